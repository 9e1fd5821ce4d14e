"""Writes the tables of docs/diagnosis.md from the causes and the figures, so that they never differ."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from leadline.knowledge.tables import with_numbers
from leadline.verdict.diagnosis.budget import PARTS
from leadline.verdict.diagnosis.causes import FIGURES, CauseEntry, causes

PAGE = Path(__file__).parent.parent / "docs" / "diagnosis.md"
_SHARES = {"time": "of a request's time", "full": "utilization", "part": "of the measured time"}
BEGIN, END = "<!-- made by tools/diagnosis_page.py: {} -->", "<!-- end -->"


def page() -> str:
    """The whole page, with its tables made anew."""
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in (("budget", _budget()), ("causes", _causes()), ("figures", _figures())):
        begin = BEGIN.format(name)
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(END)}", re.DOTALL)
        made = "\n".join([begin, *lines, END])
        text = pattern.sub(lambda _, made=made: made, text)
    return text


def _causes() -> Iterator[str]:
    for cause in causes():
        yield f"### `{cause.name}`: {cause.plain_title}"
        yield ""
        yield f"{cause.place}, {cause.told}. {cause.means}"
        yield ""
        yield f"- Seen: `{_seen(cause)}`" + (f"; needs {', '.join(f'`{name}`' for name in cause.needs)}.")
        yield f"- Share: {_share(cause)}"
        yield f"- To verify: {cause.experiment}"
        yield f"- Remedy: {cause.remedy} Trade-off: {cause.price}. Source: {cause.source}."
        yield ""


def _share(cause: CauseEntry) -> str:
    if not cause.share:
        return f"none, as nothing measures it. What would: {cause.measured_by}"
    return f"{_SHARES[cause.share_kind]}, `{cause.share}`."


def _seen(cause: CauseEntry) -> str:
    return with_numbers(" ".join(cause.seen.split()), cause.thresholds)


def _budget() -> Iterator[str]:
    yield "| segment | seconds | source | what else would show it |"
    yield "|---|---|---|---|"
    for part in PARTS:
        yield f"| {part.title} | {part.formula} | {part.source} | {part.shown_by} |"


def _figures() -> Iterator[str]:
    yield "| value | what it is |"
    yield "|---|---|"
    for name, words in FIGURES.items():
        yield f"| `{name}` | {words} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
