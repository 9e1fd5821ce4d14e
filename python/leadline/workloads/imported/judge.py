"""What another program measured, as verdicts see it: its figures, and that nobody of ours saw them made.

Its sums, what it kept of latencies, and a table of every row of an imported file, which cells add up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leadline.analysis.metrics import (
    LARGE_BLOCK_BYTES,
    LATENCY_METRICS,
    PERCENTILES,
    Measured,
    add_latency,
    cpu_per_operation,
    nothing_done,
)
from leadline.imported.job import ImportedJob
from leadline.store.tables import LatencyRow, TrialRow
from leadline.units import format_latency, format_rate
from leadline.verdict.interface import JudgedWork, OwnCells
from leadline.verdict.model import CellShown
from leadline.verdict.sections.section import Section, TextTable

if TYPE_CHECKING:
    from leadline.verdict.codes.case import Case


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


# Of the clocks that were kept the first of these: what all else here counts latencies by.
_CLOCKS = ("total", "completion")
_BEYOND_MIN = 10  # as for latencies of our own


def imported_metrics(trial: TrialRow, latency: Sequence[LatencyRow]) -> Measured:
    """Every metric of one trial."""
    said: Mapping[str, Any] = json.loads(trial.summary).get("imported") or {}
    found = {name: one for name, one in said.get("directions", {}).items() if one["operations"]}
    if not found:
        return nothing_done(("bandwidth", "iops"), "no operation is in what was imported")
    untimed = [name for name, one in found.items() if not one["runtime_ns"]]
    if untimed or trial.measured_ns <= 0:
        why = f"it says that its {' and '.join(untimed) or 'job'} took no time at all"
        return nothing_done(("bandwidth", "iops"), why)
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    seconds = trial.measured_ns / 1e9
    for name, one in found.items() if len(found) > 1 else ():
        values[f"{name}_bandwidth"] = one["bytes"] / (one["runtime_ns"] / 1e9)
        values[f"{name}_iops"] = one["operations"] / (one["runtime_ns"] / 1e9)
    operations = sum(one["operations"] for one in found.values())
    values["bandwidth"] = sum(one["bytes"] for one in found.values()) / seconds
    values["iops"] = operations / seconds
    for name, one in found.items():
        _add_latency(values, reasons, latency, name, one, prefix=f"{name}_" if len(found) > 1 else "")
    if said.get("sync"):
        _add_latency(values, reasons, latency, "sync", said["sync"], prefix="sync_")
    values |= cpu_per_operation(trial, operations)
    return Measured({name: value for name, value in values.items() if value > 0}, reasons)


def clock_of(latency: Sequence[LatencyRow], direction: str) -> str | None:
    """The clock of which there are histograms in that direction."""
    kept = {row.clock for row in latency if row.direction == direction}
    return next((clock for clock in _CLOCKS if clock in kept), None)


def _add_latency(
    values: dict[str, float],
    reasons: dict[str, str],
    latency: Sequence[LatencyRow],
    direction: str,
    said: Mapping[str, Any],
    *,
    prefix: str,
) -> None:
    """From histograms; without them what the program itself printed, where that is of one job."""
    clock = clock_of(latency, direction)
    if clock is not None:
        add_latency(values, reasons, latency, direction, clock, prefix=prefix)
        return
    kept = said.get("latency")
    if not kept:
        reasons |= dict.fromkeys((f"{prefix}{name}" for name in LATENCY_METRICS), said["latency_reason"])
        return
    values[f"{prefix}latency_mean"], values[f"{prefix}latency_max"] = kept["mean_ns"], float(kept["max_ns"])
    for name, value, why in _percentiles(kept):
        if value is None:
            reasons[f"{prefix}latency_{name}"] = why
        else:
            values[f"{prefix}latency_{name}"] = value


def _percentiles(kept: Mapping[str, Any]) -> Iterator[tuple[str, float | None, str]]:
    printed = {float(percent): value for percent, value in kept["percentiles"].items()}
    for name, percent in PERCENTILES.items():
        beyond = kept["operations"] * (100 - percent) / 100
        if percent not in printed:
            yield name, None, kept["reason"] or f"{name} is not among the percentiles that were printed"
        elif beyond < _BEYOND_MIN and percent > 50:
            yield name, None, f"{kept['operations']} operations are too few for {name}"
        else:
            yield name, float(printed[percent]), ""


_PLAIN = ("bandwidth", "iops", *LATENCY_METRICS)


class JudgedImported(JudgedWork[ImportedJob]):
    """Asked for what the same job of ours would be. Where its bytes came from is said once, by `imported`."""

    kind = ImportedJob.kind
    exempt = frozenset({"origin_unknown", "events_lost", "other_load"})
    more_blocks = "run the jobs again where they were measured, and import all results: a block each"

    def known_metrics(self) -> tuple[str, ...]:
        """All names that a cell can have."""
        mixed = (f"{direction}_{name}" for direction in ("read", "write") for name in _PLAIN)
        return (*_PLAIN, "cpu_per_operation", *mixed, *(f"sync_{name}" for name in LATENCY_METRICS))

    def metrics(
        self, trial: TrialRow, latency: Sequence[LatencyRow], *, open_loop: bool, extra: Any
    ) -> Measured:
        """Rates as the program has them, latencies from its bins."""
        return imported_metrics(trial, latency)

    def default_metrics(self, job: ImportedJob) -> tuple[str, ...]:
        """A rate and a tail latency."""
        mixed = ("read_latency_p99", "write_latency_p99") if job.reads and job.writes else ("latency_p99",)
        return (_leading(job)[0], *mixed)

    def expected_metrics(self, job: ImportedJob) -> tuple[str, ...]:
        """The columns of the table that everybody reads."""
        return ("bandwidth", "iops", "latency_mean", "latency_p99")

    def shown(self, job: ImportedJob) -> CellShown:
        """In both directions where it is mixed."""
        used = tuple(name for name, there in (("read", job.reads), ("write", job.writes)) if there)
        return CellShown(
            leading=_leading(job),
            directions=used,
            asked=(("", self.default_metrics(job)[0]),),
            in_flight=job.iodepth * job.numjobs,
        )

    def ends_with_size(self, job: ImportedJob) -> bool:
        """Where it was not told to run for a time."""
        return job.options.get("time_based", "0") in ("0", "false")

    def must_be_slower(self, small: ImportedJob, large: ImportedJob, sizes: float) -> tuple[str, str] | None:
        """Small random reads against large sequential ones, as with jobs of our own."""
        if small.bs is None or large.bs is None or small.paced or large.paced:
            return None
        slower = (
            (small.rw, large.rw) == ("randread", "read")
            and (small.engine, small.direct, small.numjobs) == (large.engine, large.direct, large.numjobs)
            and large.iodepth >= small.iodepth
            and large.bs >= sizes * small.bs
        )
        return ("small random reads", "large sequential ones") if slower else None

    def not_seen(self, case: Case) -> str | None:
        """Who measured it, and what it has besides that should be doubted."""
        job: ImportedJob = case.cell.job  # type: ignore[assignment]
        doubts = dict.fromkeys(
            str(note)
            for trial in case.trials
            for note in (json.loads(trial.summary).get("imported") or {}).get("notes", ())
        )
        paced = ("it kept to a rate, and its latencies do not count how late it was",) if job.paced else ()
        return "; ".join((f"{job.program} measured it", *paced, *doubts))

    def section(self, own: OwnCells) -> Section | None:
        """Each job, clone and host with its own row."""
        return rows_section(own)


def _leading(job: ImportedJob) -> tuple[str, str]:
    large = job.bs is not None and job.bs >= LARGE_BLOCK_BYTES
    return ("bandwidth", "iops") if large else ("iops", "bandwidth")
