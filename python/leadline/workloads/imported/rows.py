"""The table of every row that an imported file has: jobs, their clones and hosts, which cells add up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from leadline.store.tables import TrialRow
from leadline.units import format_latency, format_rate
from leadline.verdict.face import OwnCells
from leadline.verdict.sections.section import Section, TextTable

_HEADINGS = ("cell", "block", "host", "job", "direction", "bandwidth", "operations/s", "mean latency")
_ROWS_MAX = 1_000
_BRIEF = 12


def rows_section(own: OwnCells) -> Section | None:
    """A row for each row of the files; None where there is none."""
    trials = [trial for one in own.planned if one.id in own.tables for trial in own.tables[one.id].trials]
    rows = tuple(row for trial in trials for row in _rows(trial))
    if not rows:
        return None
    table = TextTable(
        "Rows of the imported files",
        _HEADINGS,
        rows[:_ROWS_MAX],
        right=frozenset({5, 6, 7}),
        note="As the program printed them: a cell is the sum of its rows, over the longest of their times.",
        total=len(rows),
        brief=_BRIEF,
    )
    return Section("imported", "Imported rows", (table,), in_csv=False)


def _rows(trial: TrialRow) -> Iterator[tuple[str, ...]]:
    said = json.loads(trial.summary).get("imported") or {}
    for row in said.get("rows", ()):
        for name, one in row["directions"].items():
            yield (
                trial.cell,
                str(trial.block),
                row["host"] or "-",
                row["name"],
                name,
                *_figures(one),
            )


def _figures(one: Mapping[str, Any]) -> tuple[str, str, str]:
    seconds, mean_ns = one["runtime_ns"] / 1e9, one["mean_ns"]
    latency = "-" if mean_ns is None else format_latency(mean_ns)
    if not seconds:
        return "-", "-", latency
    return format_rate(one["bytes"] / seconds), f"{one['operations'] / seconds:,.0f}", latency
