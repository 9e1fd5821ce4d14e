"""The tables and figures of a study of applications: run times, speeds and shares by copies and target.

A series is one command on one target; its cells differ in the number of copies alone.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.analysis.cells import CellTable
from leadline.analysis.metrics import PROGRAM_METRICS
from leadline.analysis.models.simple import copies_time_s, fit_copies
from leadline.analysis.statistics.means import arithmetic_mean, geometric_mean
from leadline.knowledge.tables import numbers
from leadline.plan.model import PlannedCell
from leadline.store.tables import TrialRow
from leadline.verdict.model import Cell, FigureRow, FigureTable, Quantity, State, worst
from leadline.verdict.sections.charts import GrowthLines, GrowthModel, GrowthPoint, ShareBar, ShareBars
from leadline.verdict.sections.section import Panels, Section
from leadline.workloads.application.figures import (
    KINDS,
    MOVING,
    CopyFigures,
    CopyTrace,
    account_of,
    copies_of,
)
from leadline.workloads.application.job import ApplicationJob

SHARES = (*(f"{kind}_share" for kind in KINDS), "compute_share", "wait_share")
_MEAN = "mean"
_ABSENT = Quantity(None, "", reason="not measured")
_AT_ONCE = "copies at once"
_SHARE_WORDS = {
    "read": "reading",
    "write": "writing",
    "sync": "syncing",
    "meta": "metadata",
    "compute": "computing",
    "wait": "waiting",
}
_TIMES_NOTE = "Times and rates are geometric means over blocks and copies, as ratios are of them"
_RUN_TIME_NOTE = (
    "The geometric mean of a copy's run time, with its 95 % interval over the blocks. The dotted line is a"
    " model, not a measurement: computing that the CPUs share, and a part that copies spend one after the"
    " other."
)
_SHARES_NOTE = (
    "By the trace: time in calls that read, write, or look after files. Computing is CPU time outside of"
    " them, waiting the time off the CPU: for pages of mapped files, for a CPU, for other programs."
)


@dataclass(frozen=True)
class ApplicationPoint:
    """A cell in the figures: `copies` at once took `run_time`, with its `shares` (read, write, …)."""

    series: str
    target: str
    copies: int
    run_time: Quantity
    shares: dict[str, Quantity]
    state: State


@dataclass(frozen=True)
class ApplicationModel:
    """A model fitted to a series: seconds of computing that `cpus` share, and of what copies do in turn.

    `points` are (copies, seconds by the model, measured / model - 1). It is no measurement.
    """

    series: str
    target: str
    cpus: int
    compute_s: float
    shared_s: float
    fitted_to: tuple[int, ...]
    points: tuple[tuple[int, float, float | None], ...]


@dataclass(frozen=True)
class CopiesCell:
    """A cell of a series with everything known of it; `blocks` are its copies' figures, trial by trial."""

    series: str
    target: str
    copies: int
    cell: Cell
    blocks: tuple[tuple[CopyFigures, ...], ...]
    trials: tuple[TrialRow, ...]

    def metric(self, name: str) -> Quantity:
        """A metric of the cell; without a value where it has none."""
        return self.cell.metrics.get(name, _ABSENT)


def places_of(
    planned: Sequence[PlannedCell],
    cells: Sequence[Cell],
    tables: Mapping[str, CellTable],
    traces: Mapping[str, Mapping[int, CopyTrace]],
) -> tuple[CopiesCell, ...]:
    """The application cells of a result, series by series, fewer copies first."""
    views = {cell.id: cell for cell in cells}
    own = [
        (cell, cell.job)
        for cell in planned
        if isinstance(cell.job, ApplicationJob) and cell.kind == ApplicationJob.kind
    ]
    kinds = list(dict.fromkeys(_kind(job) for _, job in own))
    found = []
    for cell, job in own:
        good = tables[cell.id].good if cell.id in tables else ()
        blocks = tuple(copies_of(trial, traces.get(trial.trial, {})) for trial in good)
        same = [other.work for other, its in own if _kind(its) == _kind(job)]
        series = cell.target if len(kinds) == 1 else f"{cell.target} {_common(same)}"
        found.append(CopiesCell(series, cell.target, job.copies, views[cell.id], blocks, good))
    return tuple(sorted(found, key=lambda place: place.copies))


def _kind(job: ApplicationJob) -> str:
    """What cells of one series have in common."""
    return json.dumps(job.model_dump(mode="json", exclude={"copies"}), sort_keys=True)


def _common(works: Sequence[str]) -> str:
    """What the works' names begin with, all of them."""
    alike = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*works, strict=False))
    return "".join(letters[0] for letters in alike).rstrip("_-.") or works[0]


def application_section(places: Sequence[CopiesCell]) -> Section | None:
    """Tables, figures and models; None where no application was run."""
    if not places:
        return None
    tables = [_run_times(places), _speeds(places)]
    if any(place.metric("read_write_time").value is not None for place in places):
        tables += [_reading_and_writing(places), _shares(places)]
    tables.append(_by_copies(places))
    points = [_point(place) for place in places]
    models = [model for series in series_of(places) if (model := model_of(by_series(places, series)))]
    document = {"tables": tables, "points": points, "models": [_model_json(model) for model in models]}
    return Section(
        name="copies",
        title="Run time by number of runs",
        parts=(*_charts(points, models), *tables),
        short="Copies",
        json={"application": {**document, "stages": []}},
        in_csv=False,
    )


def _point(place: CopiesCell) -> ApplicationPoint:
    return ApplicationPoint(
        place.series,
        place.target,
        place.copies,
        place.metric("run_time"),
        {name.removesuffix("_share"): place.metric(name) for name in SHARES},
        place.cell.validity.state,
    )


def _model_json(model: ApplicationModel) -> dict[str, object]:
    return {
        "series": model.series,
        "formula": "compute_s * max(1, copies / cpus) + copies * shared_s",
        "cpus": model.cpus,
        "compute_s": model.compute_s,
        "shared_s": model.shared_s,
        "fitted_to": model.fitted_to,
        "points": [
            {"copies": copies, "modelled_s": seconds, "residual": rest}
            for copies, seconds, rest in model.points
        ],
    }


def _charts(points: Sequence[ApplicationPoint], models: Sequence[ApplicationModel]) -> Iterator[Panels]:
    """Run time by copies, then the shares of each series; nothing of what was not measured."""
    measured = tuple(_growth_point(point) for point in points if point.run_time.value is not None)
    if measured:
        curves = tuple(
            GrowthModel(one.series, one.target, tuple((copies, s) for copies, s, _ in one.points))
            for one in models
        )
        lines = GrowthLines("copies-0", "Run time by number of runs", _AT_ONCE, measured, curves)
        yield Panels(((lines,),), note=_RUN_TIME_NOTE, legend=True)
    every = [_share_bars(points, series) for series in dict.fromkeys(point.series for point in points)]
    known = [bars for bars in every if any(bar.parts for bar in bars.bars)]
    if known:
        charts = tuple(replace(bars, name=f"shares-{place}") for place, bars in enumerate(known))
        yield Panels((charts,), title="Where the run time went", note=_SHARES_NOTE)


def _growth_point(point: ApplicationPoint) -> GrowthPoint:
    words = f"{point.series}, {point.copies} {'copy' if point.copies == 1 else 'copies'}"
    return GrowthPoint(point.series, point.target, point.copies, point.run_time, point.state, words)


def _share_bars(points: Sequence[ApplicationPoint], series: str) -> ShareBars:
    bars = tuple(
        ShareBar(
            str(point.copies),
            f"{point.series}, {point.copies} at once",
            _known_shares(point),
            point.state,
        )
        for point in points
        if point.series == series
    )
    return ShareBars("shares", series, "% of the run time", bars, _AT_ONCE, numbers=True)


def _known_shares(point: ApplicationPoint) -> tuple[tuple[str, float], ...]:
    """All of them, or none."""
    found = {kind: point.shares[kind].value for kind in _SHARE_WORDS if kind in point.shares}
    known = [(_SHARE_WORDS[kind], value) for kind, value in found.items() if value is not None]
    return tuple(known) if len(known) == len(_SHARE_WORDS) else ()


def series_of(places: Sequence[CopiesCell]) -> tuple[str, ...]:
    """The names of the series, in order."""
    return tuple(dict.fromkeys(place.series for place in places))


def by_series(places: Sequence[CopiesCell], series: str) -> tuple[CopiesCell, ...]:
    """The cells of one series, fewer copies first."""
    return tuple(place for place in places if place.series == series)


def cpus_of(places: Sequence[CopiesCell]) -> int | None:
    """CPUs that the copies could use, as their starter saw them."""
    found = {json.loads(trial.summary).get("cpus") for place in places for trial in place.trials}
    return max((cpus for cpus in found if isinstance(cpus, int)), default=None)


def thresholds() -> Mapping[str, float]:
    """The table of `thresholds.yaml`."""
    return numbers(__package__)


def model_of(places: Sequence[CopiesCell]) -> ApplicationModel | None:
    """The model of one series; None with fewer than three points within the CPUs, or if it does not hold."""
    cpus = cpus_of(places)
    times = {float(p.copies): q.value for p in places if (q := p.metric("run_time")).value is not None}
    fitted = fit_copies(times, cpus) if cpus else None
    if cpus is None or fitted is None:
        return None
    compute_s, shared_s = fitted
    if shared_s < 0:  # more copies took less time: then nothing is shared, and what is left is a mean
        below_s = [seconds for copies, seconds in times.items() if copies <= cpus]
        compute_s, shared_s = sum(below_s) / len(below_s), 0.0
    points = []
    for copies, measured in sorted((int(copies), seconds) for copies, seconds in times.items()):
        modelled = copies_time_s(copies, compute_s, shared_s, cpus)
        points.append((copies, modelled, measured / modelled - 1 if modelled > 0 else None))
    if any(rest is None or abs(rest) > thresholds()["model_off"] for _, _, rest in points):
        return None
    below = tuple(copies for copies, _, _ in points if copies <= cpus)
    first = places[0]
    return ApplicationModel(first.series, first.target, cpus, compute_s, shared_s, below, tuple(points))


def _levels(places: Sequence[CopiesCell]) -> list[int]:
    return sorted({place.copies for place in places})


def _at(places: Sequence[CopiesCell], series: str, copies: int) -> CopiesCell | None:
    return next((p for p in places if p.series == series and p.copies == copies), None)


def _of_copy(
    place: CopiesCell | None, copy: int, name: str, value: Callable[[CopyFigures], float | None]
) -> Quantity:
    """A figure of one copy over the blocks; Quantity without a value where any block lacks it."""
    kind = PROGRAM_METRICS[name]
    found = [value(one) for block in place.blocks for one in block if one.copy == copy] if place else []
    values = [one for one in found if one is not None]
    if not values or len(values) < len(found):
        reason = place.metric(name).reason if place else None
        return Quantity(None, kind.unit, reason=reason or "not measured")
    mean = arithmetic_mean(values) if kind.unit in ("1", "B") else geometric_mean(values)
    if mean is None:
        return Quantity(None, kind.unit, reason="a block measured zero")
    return Quantity(mean.value, kind.unit, mean.low, mean.high, mean.count)


def _run_times(places: Sequence[CopiesCell]) -> FigureTable:
    names = series_of(places)
    rows = []
    for copies in _levels(places):
        here = [_at(places, name, copies) for name in names]
        state = _state(here)
        for copy in range(1, copies + 1):
            values = [_of_copy(place, copy, "run_time", lambda one: one.run_time_s) for place in here]
            rows.append(FigureRow((str(copies), str(copy)), tuple(values), state))
        means = tuple(place.metric("run_time") if place else _ABSENT for place in here)
        rows.append(FigureRow((str(copies), _MEAN), means, state))
    return FigureTable(
        "run_times",
        "Run times compared",
        ("Copies at once", "Copy"),
        names,
        tuple(rows),
        "Each copy's run time, the geometric mean over the blocks; the mean is that of all copies. Copies of"
        " one trial are not independent of each other: intervals come from blocks.",
    )


def _speeds(places: Sequence[CopiesCell]) -> FigureTable:
    rows = []
    for place in _in_series(places):
        state = place.cell.validity.state
        for copy in range(1, place.copies + 1):
            values = (
                _of_copy(place, copy, "bytes_read", lambda one: one.bytes_read),
                _of_copy(place, copy, "bytes_written", lambda one: one.bytes_written),
                _of_copy(place, copy, "agg_perf_by_slowest", _perf),
                _of_copy(place, copy, "wall_throughput", _wall_speed),
            )
            rows.append(FigureRow((place.series, str(place.copies), str(copy)), values, state))
        names = ("bytes_read", "bytes_written", "agg_perf_by_slowest", "wall_throughput")
        means = tuple(place.metric(name) for name in names)
        rows.append(FigureRow((place.series, str(place.copies), _MEAN), means, state))
    return FigureTable(
        "speeds",
        "Transferred, and speed",
        ("Target", "Copies at once", "Copy"),
        ("Read", "Written", "Speed over I/O time", "Speed over run time"),
        tuple(rows),
        f"{_TIMES_NOTE}; of bytes the mean is the plain one. Speed over I/O time is Darshan's"
        " estimate at the POSIX layer, agg_perf_by_slowest: what calls took, computing left out."
        " It is no measure of how soon a program is done.",
    )


def _perf(one: CopyFigures) -> float | None:
    return one.trace.perf_by_slowest if one.trace else None


def _wall_speed(one: CopyFigures) -> float | None:
    return None if one.transferred is None or not one.run_time_s else one.transferred / one.run_time_s


def _reading_and_writing(places: Sequence[CopiesCell]) -> FigureTable:
    rows = []
    for place in _in_series(places):
        read, write = place.metric("read_share"), place.metric("write_share")
        share = Quantity(None, "1", reason=read.reason or write.reason or "not measured")
        if read.value is not None and write.value is not None:
            share = _together(place)
        values = (place.metric("run_time"), share, place.metric("read_write_time"))
        rows.append(FigureRow((place.series, str(place.copies)), values, place.cell.validity.state))
    return FigureTable(
        "reading_and_writing",
        "Reading and writing together",
        ("Target", "Copies at once"),
        ("Run time", "Share of run time", "Time in it"),
        tuple(rows),
        f"{_TIMES_NOTE}; shares are plain ones. Syncs count as writing. Shares and times are two things:"
        " a share lower by a tenth of the run time can be a time that is lower by half.",
    )


def _together(place: CopiesCell) -> Quantity:
    """The share of reading and writing together, block by block."""
    blocks = []
    for block in place.blocks:
        parts = [sum(one.trace.share[kind] for kind in MOVING) for one in block if one.trace]
        if parts:
            blocks.append(sum(parts) / len(parts))
    mean = arithmetic_mean(blocks)
    return Quantity(mean.value, "1", mean.low, mean.high, mean.count) if mean else _ABSENT


def _shares(places: Sequence[CopiesCell]) -> FigureTable:
    rows = tuple(
        FigureRow(
            (place.series, str(place.copies)),
            tuple(place.metric(name) for name in SHARES),
            place.cell.validity.state,
        )
        for place in _in_series(places)
    )
    return FigureTable(
        "shares",
        "Where the run time went",
        ("Target", "Copies at once"),
        ("Reading", "Writing", "Syncing", "Metadata", "Computing", "Waiting"),
        rows,
        "The plain mean of shares over blocks and copies. Computing is CPU time that no call on a file took,"
        " waiting the rest of the time.",
    )


def _by_copies(places: Sequence[CopiesCell]) -> FigureTable:
    names = series_of(places)
    rows = []
    for copies in _levels(places):
        here = [_at(places, name, copies) for name in names]
        values = tuple(place.metric("run_time") if place else _ABSENT for place in here)
        rows.append(FigureRow((str(copies),), values, _state(here)))
    return FigureTable(
        "by_copies", "Run time by number of runs", ("Copies at once",), names, tuple(rows), f"{_TIMES_NOTE}."
    )


def _in_series(places: Sequence[CopiesCell]) -> Iterator[CopiesCell]:
    for name in series_of(places):
        yield from by_series(places, name)


def _state(places: Sequence[CopiesCell | None]) -> State:
    return worst([place.cell.validity.state for place in places if place])


def processes_left(places: Sequence[CopiesCell]) -> int:
    """Processes that copies left running and leadline ended."""
    return sum(
        int(json.loads(trial.summary).get("left_running") or 0)
        for place in places
        for trial in place.trials
        if account_of(trial)
    )
