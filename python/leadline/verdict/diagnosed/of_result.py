"""The diagnoses of a stored result: of each cell, from the trials that its figures rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leadline.errors import UsageError
from leadline.foreign import UNTOUCHED, reading
from leadline.store.by_host import sample_lines_by_host
from leadline.store.reader import Result, require_cells
from leadline.store.tables import TrialRow
from leadline.verdict.cells import judge_cells
from leadline.verdict.diagnosed.causes import CauseEntry, CauseInTrial, applying, judged, of_itself
from leadline.verdict.diagnosed.judge import Diagnosed, diagnose, without_others
from leadline.verdict.diagnosed.notes import notes_of
from leadline.verdict.diagnosed.samples import Samples
from leadline.verdict.diagnosed.seen.of_trial import figures_of
from leadline.verdict.diagnosed.seen.values import Figures
from leadline.verdict.diagnosed.should import Should, TrialSeen, ceilings, should_of
from leadline.verdict.material import Material, read_material
from leadline.verdict.model import Cell

# An INVALID cell's rate is not to be used; that does not make what was seen of it wrong, but for these.
_UNTRUE = frozenset({"data_errors", "cached_reads"})


@dataclass(frozen=True)
class CellDiagnosed:
    """A cell, what bounds it, and how much of what it should reach it reached."""

    cell: Cell
    found: Diagnosed
    should: Should | None = None
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
