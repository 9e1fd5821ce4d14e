"""Text that was made elsewhere: harmless on a terminal and in Markdown, and changed all through findings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from leadline.report import format as fmt
from leadline.units import quoted

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


STYLES = {"VALID": "green", "DOUBTFUL": "yellow", "INVALID": "bold red", "NOT_RUN": "magenta"}


def terminal_text(value: object, style: str = "") -> Text:
    """Text that is never read as markup and never moves the cursor."""
    from rich.text import Text

    return Text(fmt.printable(value), style=style)


def terminal_table(title: str, *, spaced: bool = False) -> Table:
    """A table without frame; `spaced`: with room around each column."""
    from rich import box
    from rich.table import Table

    look: dict[str, Any] = {} if spaced else {"pad_edge": False, "padding": (0, 1, 0, 0), "header_style": ""}
    return Table(
        title=terminal_text(title, "bold"), title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, **look
    )


# Everything that Markdown could read as markup; an underscore inside a word is only itself.
_SPECIAL = re.compile(r"([\\`*\[\]#|~$]|(?<!\w)_|_(?!\w))")


def markdown_text(value: object) -> str:
    """Foreign text on one line, shown as it is: no markup, no HTML, no link made of an address."""
    text = _SPECIAL.sub(r"\\\1", fmt.printable(value))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("://", ":\\/\\/")


def markdown_table(headings: Sequence[str], right: Collection[int], rows: Sequence[Sequence[str]]) -> str:
    """A table; the columns in `right` have numbers."""
    marks = ["---:" if place in right else "---" for place in range(len(headings))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [headings, marks, *rows])


ANYWHERE = "DIR"
_PAGE = "PAGE"
_COMMAND = re.compile(r"\b(leadline(?: [a-z]+){1,2}(?: --[a-z-]+)?) DIR\b(?!/)")


def word_for(path: Path | None) -> str:
    """How a shell is told of a result; `DIR` where it is not to be named."""
    return ANYWHERE if path is None else quoted(path)


def placed(text: str, word: str) -> str:
    """A text whose commands name the result, and a page after it."""
    if word == ANYWHERE:
        return text.replace(f"-o {_PAGE}", f"-o {ANYWHERE}.html")
    page = quoted(f"{Path(shlex.split(word)[0]).resolve().name or 'report'}.html")
    return _COMMAND.sub(lambda found: f"{found[1]} {word}", text).replace(f"-o {_PAGE}", f"-o {page}")


_Value = TypeVar("_Value")
ChangedMapping = Callable[[Mapping[Any, Any]], Mapping[Any, Any]]


def changed_texts(
    value: _Value, change: Callable[[str], str], mapping: ChangedMapping | None = None
) -> _Value:
    """`value` with every text in it changed; `mapping` changes mappings whole, else their keys stay."""

    def changed(one: Any) -> Any:
        return changed_texts(one, change, mapping)

    found: Any = value
    if isinstance(value, str):
        found = change(value)
    elif is_dataclass(value) and not isinstance(value, type):
        found = replace(cast(Any, value), **{f.name: changed(getattr(value, f.name)) for f in fields(value)})
    elif isinstance(value, Mapping):
        found = mapping(value) if mapping else {key: changed(item) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        found = type(value)(map(changed, value))
    return cast(_Value, found)
