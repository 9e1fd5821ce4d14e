"""A table of another benchmark's figures as published ones: what can be recomputed of it then is.

The document is JSON, which is YAML too, so that no text of a file needs to be escaped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leadline.published.document import FORMAT

_TEXT_MAX = 200


@dataclass
class TableMaker:
    """Collects tables and checks; `text` is the document."""

    title: str
    about: str
    program: str
    facts: dict[str, str] = field(default_factory=dict)
    tables: dict[str, Any] = field(default_factory=dict)
    checks: list[dict[str, str]] = field(default_factory=list)

    def table(
        self, name: str, section: str, keys: Sequence[str], columns: Mapping[str, Any], rows: Sequence[Any]
    ) -> None:
        """Rows of texts: the keys' levels, then a figure a column, None where there is none."""
        written = [["-" if value is None else clean(value) for value in row] for row in rows]
        if written:
            self.tables[name] = {
                "section": section,
                "keys": list(keys),
                "columns": dict(columns),
                "runs": 1,
                "rows": written,
            }

    def check(self, formula: str, because: str) -> None:
        """What must hold, and why."""
        self.checks.append({"check": formula, "because": clean(because)})

    def text(self) -> str:
        """The whole, of the format `leadline.published/1`."""
        document = {
            "format": FORMAT,
            "title": clean(self.title),
            "about": clean(self.about),
            "source": {"program": self.program},
            "facts": self.facts,
            "tables": self.tables,
            "checks": self.checks,
        }
        return json.dumps({key: value for key, value in document.items() if value}, indent=1)


def clean(text: str) -> str:
    """A text of a foreign file, short and printable."""
    plain = "".join(one if one.isprintable() else " " for one in text)
    return plain.encode("utf-8", "replace").decode()[:_TEXT_MAX].strip() or "-"
