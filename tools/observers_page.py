"""Writes the tables of docs/observers.md from the list of counters, so that the two never differ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from leadline.counters.catalogue import Described, SampledFigure, described, sampled

PAGE = Path(__file__).parent.parent / "docs" / "observers.md"
_BEGIN, _END = "<!-- made by tools/observers_page.py: {} -->\n", "<!-- end -->\n"
_SUBJECTS = {"osd": "`ceph`, `osd.N`", "mds": "`ceph`, `mds.NAME`", "client": "`client`, `ceph-fuse.PID`"}
_KINDS = {"gauge": "now", "rate": "growth since the last sample", "mean": "mean of what ended since then"}


def page() -> str:
    """The whole page, its tables made anew."""
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in (("trials", _trials()), ("daemons", _daemons())):
        before, _, rest = text.partition(_BEGIN.format(name))
        _, _, after = rest.partition(_END)
        text = f"{before}{_BEGIN.format(name)}{''.join(lines)}{_END}{after}"
    return text


def _trials() -> Iterator[str]:
    yield "| metric | unit | read from | not observable when |\n|---|---|---|---|\n"
    for row in described():
        yield f"| {_names(row)} | {row.figures[0].unit} | {row.read_from} | {row.not_observable} |\n"


def _names(row: Described) -> str:
    return ", ".join(f"`{figure.name}`" for figure in row.figures)


def _daemons() -> Iterator[str]:
    yield "| source, subject | metrics (counter of the perf dump) | value | unit |\n|---|---|---|---|\n"
    for daemon, subject in _SUBJECTS.items():
        for (kind, unit), figures in groupby(sampled(daemon), lambda figure: (figure.kind, figure.unit)):
            metrics = ", ".join(_metric(figure) for figure in figures)
            yield f"| {subject} | {metrics} | {_KINDS[kind]} | {unit} |\n"


def _metric(figure: SampledFigure) -> str:
    return f"`{figure.metric}` ({' or '.join(f'`{name}`' for name in figure.names)})"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
