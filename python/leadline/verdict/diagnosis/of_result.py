"""The diagnoses of a stored result: of each cell, from the trials that its figures rest on.

What limits a diagnosis: gaps in what was seen, daemons that began anew, a single trial.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leadline.errors import UsageError
from leadline.foreign import UNTOUCHED, reading
from leadline.store.by_host import sample_lines_by_host
from leadline.store.reader import Result, require_cells
from leadline.store.tables import TrialRow
from leadline.verdict.cells import judge_cells
from leadline.verdict.diagnosis.causes import CauseEntry, CauseInTrial, applying, judged, of_itself
from leadline.verdict.diagnosis.ceilings import RateCeilings, TrialSeen, ceilings, should_of
from leadline.verdict.diagnosis.judge import Diagnosed, diagnose, without_others
from leadline.verdict.diagnosis.samples import Samples
from leadline.verdict.diagnosis.seen.of_trial import figures_of
from leadline.verdict.diagnosis.seen.values import Figures
from leadline.verdict.inputs import Material, read_material
from leadline.verdict.model import Cell

_GAPS = 0.2  # of the samples that were due
_BEGAN_ANEW = "its daemon restarted"
_OTHERS = "not observable: read from"


def notes_of(trials: Sequence[TrialRow], sampled: Sequence[int]) -> tuple[str, ...]:
    """In words, for who reads the diagnosis; `sampled` is how many samples each trial has."""
    return tuple(_notes(trials, sampled))


def _notes(trials: Sequence[TrialRow], sampled: Sequence[int]) -> Iterator[str]:
    if len(trials) == 1:
        yield "One trial only: how much it scatters is not known."
    blind = [trial.trial for trial, count in zip(trials, sampled, strict=True) if not count]
    if blind:
        yield f"Nothing was sampled in {_named(blind)}: judged by totals alone."
    gaps = [
        trial.trial
        for trial in trials
        if trial.samples_due and (trial.samples_missed or 0) >= _GAPS * trial.samples_due
    ]
    if gaps:
        yield f"A fifth of the samples or more is missing in {_named(gaps)}."
    reasons = {trial.trial: list(json.loads(trial.reasons or "{}").values()) for trial in trials}
    anew = [name for name, said in reasons.items() if any(_BEGAN_ANEW in str(words) for words in said)]
    if anew:
        yield f"A daemon restarted in {_named(anew)}: what its counters tell of that time is left out."
    others = [name for name, said in reasons.items() if any(str(words).startswith(_OTHERS) for words in said)]
    if others:
        words = "answered at its end than at its start: their counters are left out"
        yield f"In {_named(others)} other daemons {words}."


def _named(trials: Sequence[str]) -> str:
    shown = ", ".join(trials[:3])
    return shown if len(trials) <= 3 else f"{shown} and {len(trials) - 3} more trials"


# An INVALID cell's rate is not to be used; that does not make what was seen of it wrong, but for these.
_UNTRUE = frozenset({"data_errors", "cached_reads"})


@dataclass(frozen=True)
class CellDiagnosed:
    """A cell, what bounds it, and how much of what it should reach it reached."""

    cell: Cell
    found: Diagnosed
    should: RateCeilings | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Target and work, and what sets it apart from others of that name."""
        levels = " ".join(f"{name}={value}" for name, value in self.cell.factors.items())
        return f"{self.cell.target}.{self.cell.work} {levels}".strip()


def diagnose_result(result: Result, wanted: str | None = None) -> tuple[CellDiagnosed, ...]:
    """Every cell whose id, work or target has `wanted` in it; all of them where it is None.

    Raises UsageError where there is none, or the result has no trials.
    """
    require_cells(result.path, result.manifest)
    with reading(result.path, UNTOUCHED):
        read = read_material(result, with_charts=False)
        every = judge_cells(read, with_charts=False)
        cells = [cell for cell in every if _is_wanted(cell, wanted)]
        if not cells:
            names = ", ".join(sorted({f"{cell.target}.{cell.work}" for cell in every}))
            raise UsageError(f"no cell has {wanted!r} in its name", f"the cells are: {names}")
        return diagnose_cells(result, read, cells)


def diagnose_cells(result: Result, read: Material, cells: Sequence[Cell]) -> tuple[CellDiagnosed, ...]:
    """What bounds each of these cells of a result that was read."""
    seen = [_seen(cell, result, read) for cell in cells]
    figures = [one for part in seen for one in part.judged]
    said = iter(judged(figures))
    return tuple(_found(part, said) for part in seen)


def _is_wanted(cell: Cell, wanted: str | None) -> bool:
    return wanted is None or any(wanted in name for name in (cell.id, f"{cell.target}.{cell.work}"))


@dataclass(frozen=True)
class _CellSeen:
    """What was seen of a cell's trials: those that its figures rest on, and where many failed, these."""

    cell: Cell
    good: tuple[TrialSeen, ...] = ()
    failed: tuple[TrialSeen, ...] = ()
    applying: tuple[CauseEntry, ...] = ()

    @property
    def judged(self) -> tuple[Figures, ...]:
        """Figures of failed trials, of good ones, and of these without others where these load the host."""
        good = [one.figures for one in self.good]
        return (*(one.figures for one in self.failed), *good, *without_others(good))


def _seen(cell: Cell, result: Result, read: Material) -> _CellSeen:
    if any(code.code in _UNTRUE for code in cell.validity.codes):
        return _CellSeen(cell)
    table, good = read.tables.get(cell.id), read.good(cell.id)
    failed = [trial for trial in table.judged if trial.state != "complete"] if table is not None else []
    if 2 * len(failed) < len(good):
        failed = []
    return _CellSeen(
        cell,
        tuple(_trial_seen(trial, cell, result, read) for trial in good),
        tuple(_trial_seen(trial, cell, result, read) for trial in failed),
        applying(read.facts[cell.target]),
    )


def _trial_seen(trial: TrialRow, cell: Cell, result: Result, read: Material) -> TrialSeen:
    facts = read.facts[cell.target]
    # Of a trial on many hosts those of each, which have what the trial's own lacks.
    lines = {**sample_lines_by_host(result, trial.trial), **result.sample_lines(trial.trial)}
    samples = Samples(trial, lines)
    latency, asked = read.latency.get(trial.trial, ()), cell.shown.in_flight
    host = read.manifest.get("host", {})
    figures = figures_of(trial, latency, samples, asked, target=facts, host=host)
    return TrialSeen(trial, figures, tuple(ceilings(trial, samples, figures, facts)), samples.count)


def _found(seen: _CellSeen, said: Iterator[Mapping[str, CauseInTrial]]) -> CellDiagnosed:
    """Where half as many failed as came to their end, first by those.

    What did not come to its end says nothing by its own rate, but a counter may still say why.
    """
    of_failed = [next(said) for _ in seen.failed]
    of_good = [next(said) for _ in seen.good]
    of_quiet = [next(said) for _ in seen.judged[len(seen.failed) + len(seen.good) :]]
    if seen.failed:
        found = diagnose([one.figures for one in seen.failed], of_itself(seen.applying), of_failed)
        if found.named:
            return CellDiagnosed(seen.cell, found)
    if not seen.good:
        return CellDiagnosed(seen.cell, Diagnosed("unusable"))
    found = diagnose([one.figures for one in seen.good], seen.applying, of_good, of_quiet)
    notes = notes_of([one.trial for one in seen.good], [one.sampled for one in seen.good])
    return CellDiagnosed(seen.cell, found, should_of(seen.good), notes)
