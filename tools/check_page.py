"""Writes the table of docs/check.md from the rows of checks, so that they never differ."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from leadline.check.rows import ROLES, Row, rows

PAGE = Path(__file__).parent.parent / "docs" / "check.md"
BEGIN, END = "<!-- made by tools/check_page.py -->", "<!-- end -->"


def page() -> str:
    """The whole page, with its table made anew."""
    made = "\n".join([BEGIN, *_lines(), END])
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: made, PAGE.read_text(encoding="utf-8"))


def _lines() -> Iterator[str]:
    yield "| of | what | expected | roles | severity | shown by | source |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows():
        words = (row.kind, row.title, row.expected, _roles(row), row.severity, f"`{row.verify}`", row.source)
        yield f"| {' | '.join(words)} |"


def _roles(row: Row) -> str:
    return "all" if set(row.roles) == set(ROLES) else ", ".join(row.roles)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
