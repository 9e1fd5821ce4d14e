"""Writes docs/validity.md from the catalogue of codes, so that the two never differ."""

from __future__ import annotations

from pathlib import Path

from leadline.verdict.codes.catalogue import CodeKind, catalogue

PAGE = Path(__file__).parent.parent / "docs" / "validity.md"
_HEAD = """# Validity codes

Every code that a cell can have: its state, trigger, thresholds and remedy. A cell has the state of its
worst code. [Concepts](concepts.md) explains the states. "For `KIND`" is the remedy for one kind of workload
or tracer.

`tools/validity_page.py` makes this page from `python/leadline/verdict/codes/codes.yaml`. Codes marked
*reserved* have no trigger in this version.
"""

_MOVES = {
    "raises": "The measured performance may be too high.",
    "lowers": "The measured performance may be too low.",
    "scatters": "The measured performance scatters; the confidence interval includes that.",
}


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(_entry(kind) for kind in catalogue().values())])


def _entry(kind: CodeKind) -> str:
    states = kind.state if kind.worse is None else f"{kind.state} or {kind.worse}"
    lines = [
        f"## `{kind.name}`: {kind.title}",
        "",
        f"{states}{'' if kind.since else ', reserved'}. {kind.means}",
        "",
    ]
    if kind.thresholds:
        values = ", ".join(f"{name} {value:g}" for name, value in kind.thresholds.items())
        lines += [f"Thresholds: {values}.", ""]
    if kind.moves:
        lines += [_MOVES[kind.moves], ""]
    lines.append(f"Remedy: {kind.remedy}")
    if kind.remedies:
        lines += ["", *(f"- For `{maker}`: {remedy}" for maker, remedy in kind.remedies.items())]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
