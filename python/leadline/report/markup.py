"""Markdown: foreign text made harmless, and tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from leadline.report import format as fmt

# Everything that Markdown could read as markup; an underscore inside a word is only itself.
_SPECIAL = re.compile(r"([\\`*\[\]#|~$]|(?<!\w)_|_(?!\w))")


def escape(value: object) -> str:
    """Foreign text on one line, shown as it is: no markup, no HTML, no link made of an address."""
    text = _SPECIAL.sub(r"\\\1", fmt.printable(value))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("://", ":\\/\\/")


def table(headings: Sequence[str], right: Collection[int], rows: Sequence[Sequence[str]]) -> str:
    """A table; the columns in `right` have numbers."""
    marks = ["---:" if place in right else "---" for place in range(len(headings))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [headings, marks, *rows])
