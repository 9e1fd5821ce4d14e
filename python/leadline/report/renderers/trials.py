"""The trials of each cell as a page prints them: all, or of thousands a part, so that it can be mailed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leadline.report import format as fmt
from leadline.report import metrics
from leadline.verdict.model import Cell, TrialView

FIGURES_MAX = 36_000  # in all tables of trials: some two megabytes of a page
_EACH = 5  # of any trial: its name, block, order, state and error
_FEWEST = 8  # trials of any cell


@dataclass(frozen=True)
class TrialTable:
    """The trials of one cell: printed numbers under headings with units; `note` says which are left out."""

    headings: tuple[str, ...]
    rows: tuple[tuple[TrialView, tuple[str, ...]], ...]
    note: str = ""


def trial_tables(cells: Sequence[Cell]) -> list[TrialTable]:
    """A table for each cell, in their order."""
    figures = sum(len(cell.trials) * (len(_names(cell.trials)) + _EACH) for cell in cells)
    share = min(1.0, FIGURES_MAX / max(figures, 1))
    return [_table(cell, max(_FEWEST, int(len(cell.trials) * share))) for cell in cells]


def _names(trials: Sequence[TrialView]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for trial in trials for name in trial.values))


def _table(cell: Cell, most: int) -> TrialTable:
    names = _names(cell.trials)
    units_of = {name: cell.metrics[name].unit if name in cell.metrics else _unit_of(name) for name in names}
    scales = {
        name: fmt.scale_for(units_of[name], [trial.values.get(name) for trial in cell.trials])
        for name in names
    }
    headings = tuple(f"{metrics.heading(name)} {scales[name].label}".strip() for name in names)
    kept, note = _kept(cell.trials, most)
    rows = tuple(
        (trial, tuple(fmt.number(trial.values.get(name), scales[name]) for name in names)) for trial in kept
    )
    return TrialTable(headings, rows, note)


def _kept(trials: Sequence[TrialView], most: int) -> tuple[list[TrialView], str]:
    """Those that failed before others, which are taken evenly; and words on what is left out."""
    if len(trials) <= most:
        return list(trials), ""
    failed = [place for place, trial in enumerate(trials) if trial.state != "complete"]
    good = [place for place, trial in enumerate(trials) if trial.state == "complete"]
    chosen = _evenly(failed, most)
    chosen += _evenly(good, most - len(chosen))
    which = "some of those that failed" if len(failed) > most else "evenly over the study"
    if 0 < len(failed) <= most:
        which = f"all that failed ({len(failed)}), and others {which}"
    count = f"{len(chosen):,} of {len(trials):,} trials"
    note = f"{count} stand here: {which}. All are in the result, in trials/."
    return [trials[place] for place in sorted(chosen)], note


def _evenly(places: Sequence[int], most: int) -> list[int]:
    count = min(len(places), most)
    return [places[number * len(places) // count] for number in range(count)]


def _unit_of(name: str) -> str:
    """A trial's figure that is no metric carries its unit in its name."""
    endings = {"_bytes_per_s": "B/s", "_ns": "ns", "_bytes": "B", "bytes": "B", "_s": "s", "_share": "1"}
    return next((unit for ending, unit in endings.items() if name.endswith(ending)), "")
