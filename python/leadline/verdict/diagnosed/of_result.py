"""The diagnoses of a stored result: of each cell, from the trials that its figures rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leadline.errors import UsageError
from leadline.foreign import UNTOUCHED, reading
from leadline.store.by_host import samples_by_host
from leadline.store.reader import Result, require_study
from leadline.store.tables import SeriesRow, TrialRow
from leadline.verdict.cells import judge_cells
from leadline.verdict.diagnosed.causes import applying, of_itself
from leadline.verdict.diagnosed.judge import Diagnosed, diagnose
from leadline.verdict.diagnosed.notes import notes_of
from leadline.verdict.diagnosed.samples import Samples
from leadline.verdict.diagnosed.seen.of_trial import figures_of
from leadline.verdict.diagnosed.seen.values import Figures
from leadline.verdict.diagnosed.should import Should, should_of
from leadline.verdict.material import Material, read_material, rows_by_trial
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


def diagnose_result(result: Result, wanted: str | None = None) -> tuple[CellDiagnosed, ...]:
    """Every cell whose id, work or target has `wanted` in it; all of them where it is None.

    Raises UsageError where there is none, or the result has no trials.
    """
    require_study(result.path, result.manifest)
    with reading(result.path, UNTOUCHED):
        read = read_material(result, with_charts=False)
        cells = [cell for cell in judge_cells(read, with_charts=False) if _is_wanted(cell, wanted)]
        if not cells:
            names = ", ".join(
                sorted({f"{cell.target}.{cell.work}" for cell in judge_cells(read, with_charts=False)})
            )
            raise UsageError(f"no cell has {wanted!r} in its name", f"the cells are: {names}")
        series = rows_by_trial(result.series())
        return tuple(_both(cell, read, result, series) for cell in cells)


def _is_wanted(cell: Cell, wanted: str | None) -> bool:
    return wanted is None or any(wanted in name for name in (cell.id, f"{cell.target}.{cell.work}"))


def _both(cell: Cell, read: Material, result: Result, series: dict[str, list[SeriesRow]]) -> CellDiagnosed:
    found = _diagnosed(cell, read, result, series)
    trials = read.good(cell.id)
    if found.outcome == "unusable" or len(trials) != len(found.figures):
        return CellDiagnosed(cell, found)
    rows = [tuple(_samples(result, trial.trial, series)) for trial in trials]
    samples = [Samples(trial, own) for trial, own in zip(trials, rows, strict=True)]
    should = should_of(list(zip(trials, samples, found.figures, strict=True)), read.facts[cell.target])
    return CellDiagnosed(cell, found, should, notes_of(trials, [len(own) for own in rows]))


def _diagnosed(cell: Cell, read: Material, result: Result, series: dict[str, list[SeriesRow]]) -> Diagnosed:
    """By the trials that its figures rest on; where half as many failed, first by those.

    What did not come to its end says nothing by its own rate, but a counter may still say why.
    """
    if any(code.code in _UNTRUE for code in cell.validity.codes):
        return Diagnosed("unusable")
    table, there_can_be = read.tables.get(cell.id), applying(read.facts[cell.target])
    good = read.good(cell.id)
    failed = [trial for trial in table.judged if trial.state != "complete"] if table is not None else []
    if failed and 2 * len(failed) >= len(good):
        found = diagnose(
            [_figures(one, cell, read, result, series) for one in failed], of_itself(there_can_be)
        )
        if found.named:
            return found
    return diagnose([_figures(one, cell, read, result, series) for one in good], there_can_be)


def _figures(
    trial: TrialRow, cell: Cell, read: Material, result: Result, series: dict[str, list[SeriesRow]]
) -> Figures:
    return figures_of(
        trial,
        read.latency.get(trial.trial, ()),
        tuple(_samples(result, trial.trial, series)),
        cell.shown.in_flight,
        behind_server=read.facts[cell.target].behind_server,
        host=read.manifest.get("host", {}),
    )


def _samples(result: Result, trial: str, series: dict[str, list[SeriesRow]]) -> Iterator[SeriesRow]:
    """Of a trial on many hosts those of each, which have what the trial's own lacks."""
    own: Sequence[SeriesRow] = series.get(trial, ())
    yield from own
    seen = {(row.source, row.subject, row.metric) for row in own}
    yield from (
        row for row in samples_by_host(result, trial) if (row.source, row.subject, row.metric) not in seen
    )
