"""Reads and writes of files as verdicts see them: rates, latencies, costs, and how much of them was right."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from leadline.analysis.metrics import (
    COST_METRICS,
    LARGE_BLOCK_BYTES,
    LATENCY_METRICS,
    Measured,
    add_costs,
    add_latency,
    cpu_per_operation,
    nothing_done,
)
from leadline.plan.model import PlannedCell
from leadline.store.tables import LatencyRow, TrialRow
from leadline.units import format_number, format_size
from leadline.verdict.interface import JudgedWork, OwnCells, WithinTarget
from leadline.verdict.model import CellShown
from leadline.verdict.sections.section import Section, TextTable
from leadline.workloads.io.job import MIXED, READ_ONLY, REMEDIES, WRONG, Job

_HEADINGS = ("cell", "as written", "read back", "wrong", "what to do")


def verified_section(own: OwnCells) -> Section | None:
    """A row for each cell that was verified; None where none was."""
    verified = [own.tables[one.id] for one in own.planned if one.job.verify and one.id in own.tables]
    trials = {table.cell: table.trials for table in verified}
    rows = tuple(_row(cell, found) for cell, found in trials.items() if any(map(_verification, found)))
    if not rows:
        return None
    note = "Blocks of 4 KiB, against what the engine knows that it wrote. " + " ".join(
        f"{kind}: {words}." for kind, words in WRONG.items()
    )
    return Section("verification", "Verification", (TextTable("Verification", _HEADINGS, rows, note=note),))


def _verification(trial: TrialRow) -> dict[str, Any] | None:
    found: dict[str, Any] | None = json.loads(trial.summary).get("verification")
    return found


def _row(cell: str, trials: tuple[TrialRow, ...]) -> tuple[str, ...]:
    judged = [found for found in map(_verification, trials) if found is not None]
    counts = Counter({kind: sum(found[kind] for found in judged) for kind in WRONG})
    wrong = {kind: blocks for kind, blocks in counts.items() if blocks}
    right = sum(trial.verified_blocks for trial in trials if _verification(trial) is not None)
    return (
        cell,
        f"{right:,} of {right + counts.total():,} blocks",
        ", ".join(dict.fromkeys(_ways(judged))) or "as the trial read them",
        ", ".join(f"{blocks:,} {kind}" for kind, blocks in wrong.items()) or "nothing",
        "; ".join(f"{kind}: {REMEDIES[kind]}" for kind in wrong),
    )


def _ways(judged: list[dict[str, Any]]) -> Iterator[str]:
    for found in judged:
        yield from (f"through {look['target']} {look['past']}" for look in found["looks"])


def io_metrics(trial: TrialRow, latency: Sequence[LatencyRow], *, open_loop: bool) -> Measured:
    """Every metric of one trial. Of an open loop, latencies count from when an operation was to begin."""
    seconds = trial.measured_ns / 1e9
    amounts = {
        "read": (trial.read_bytes, trial.read_operations),
        "write": (trial.write_bytes, trial.write_operations),
    }
    used = [name for name, (_, operations) in amounts.items() if operations]
    if seconds <= 0 or not used:
        why = f"none finished in {format_number(seconds)} s" if seconds > 0 else "nothing was measured"
        return nothing_done(("bandwidth", "iops"), why)
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for name in used if len(used) > 1 else ():
        values[f"{name}_bandwidth"] = amounts[name][0] / seconds
        values[f"{name}_iops"] = amounts[name][1] / seconds
    values["bandwidth"] = sum(amounts[name][0] for name in used) / seconds
    operations = sum(amounts[name][1] for name in used)
    values["iops"] = operations / seconds
    clock = "intended" if open_loop else "total"
    for name in (*used, *(("sync",) if trial.sync_operations else ())):
        prefix = f"{name}_" if len(used) > 1 or name == "sync" else ""
        add_latency(values, reasons, latency, name, clock, prefix=prefix)
    every = _all_operations(trial) or operations
    values |= cpu_per_operation(trial, every)
    add_costs(values, reasons, trial, every)
    return Measured(values, reasons)


def _all_operations(trial: TrialRow) -> int:
    """Operations of the whole trial, as CPU time is counted; 0 where the engine did not say."""
    total = json.loads(trial.summary).get("total") or {}
    return sum(sums.get("operations", 0) for name, sums in total.items() if name != "sync")


_PLAIN = ("bandwidth", "iops", *LATENCY_METRICS)


class JudgedIo(JudgedWork[Job]):
    """Asked for bandwidth with large blocks, for IOPS with small ones, and beside it for the p99."""

    kind = Job.kind
    metric_kinds = COST_METRICS

    def known_metrics(self) -> tuple[str, ...]:
        """All names that a cell can have."""
        mixed = (f"{direction}_{name}" for direction in ("read", "write") for name in _PLAIN)
        return (*_PLAIN, "cpu_per_operation", *self.metric_kinds, *mixed, "sync_latency_mean")

    def metrics(
        self,
        trial: TrialRow,
        latency: Sequence[LatencyRow],
        *,
        open_loop: bool,
        extra: Any,
    ) -> Measured:
        """Rates, latencies and costs."""
        return io_metrics(trial, latency, open_loop=open_loop)

    def default_metrics(self, job: Job) -> tuple[str, ...]:
        """A rate and a tail latency."""
        latencies = ("read_latency_p99", "write_latency_p99") if job.rw in MIXED else ("latency_p99",)
        return (leading_rates(job.bs)[0], *latencies)

    def expected_metrics(self, job: Job) -> tuple[str, ...]:
        """The columns of the table that everybody reads."""
        return ("bandwidth", "iops", "latency_mean", "latency_p99")

    def shown(self, job: Job) -> CellShown:
        """In both directions where it is mixed."""
        one = "read" if job.rw in READ_ONLY else "write"
        return CellShown(
            leading=leading_rates(job.bs),
            directions=("read", "write") if job.rw in MIXED else (one,),
            asked=(("", self.default_metrics(job)[0]),),
            in_flight=job.iodepth * job.numjobs,
            pattern=pattern_words(job),
            block_bytes=job.bs if job.bssplit is None else None,
        )

    def within(self, planned: Sequence[PlannedCell]) -> WithinTarget:
        """Each job in a shared file against the same job, option by option, with a file each."""
        jobs = [(cell, cell.job) for cell in planned if isinstance(cell.job, Job)]
        pairs = []
        for cell, job in jobs:
            apart = job.model_copy(update={"shared": "none"})
            alike = [one for one, other in jobs if (one.target, other) == (cell.target, apart)]
            pairs += [(one, cell) for one in alike[:1] if job.shared != "none"]
        return WithinTarget("a file each", tuple(pairs))

    def ends_with_size(self, job: Job) -> bool:
        """Where no clock ends it."""
        return not job.time_based

    def compressible(self, job: Job) -> str | None:
        """The shares that the study asked for."""
        if job.incompressible:
            return None
        shares = (
            (job.buffer_compress_percentage, "of each block can be compressed"),
            (job.dedupe_percentage, "of the blocks equal one another"),
        )
        return " and ".join(f"{percent} % {what}" for percent, what in shares if percent) or "all of it"

    def must_be_slower(self, small: Job, large: Job, sizes: float) -> tuple[str, str] | None:
        """Small random reads against large sequential ones, with no more in flight and all else alike."""
        free = all(
            job.rate_iops is None and job.rate_bytes_per_s is None and not job.thinktime_ns
            for job in (small, large)
        )
        slower = (
            (small.rw, large.rw) == ("randread", "read")
            and (small.engine, small.direct, small.numjobs) == (large.engine, large.direct, large.numjobs)
            and large.iodepth >= small.iodepth
            and large.bs >= sizes * small.largest_bs
            and free
        )
        words = f"random reads of {format_size(small.bs)}", f"sequential ones of {format_size(large.bs)}"
        return words if slower else None

    def write_sizes(self, job: Job) -> tuple[tuple[int, float], ...]:
        """One size, or those of its mixture."""
        if job.bssplit is None:
            return ((job.bs, 1.0),)
        total = sum(size * percent for size, percent in job.bssplit.write)
        return tuple((size, size * percent / total) for size, percent in job.bssplit.write)

    def section(self, own: OwnCells) -> Section | None:
        """What was verified."""
        return verified_section(own)

    def syncs_each(self, job: Job) -> bool:
        """With fsync=1 or fdatasync=1."""
        return 1 in (job.fsync, job.fdatasync)


def pattern_words(job: Job) -> str:
    """How it moves data: `sequential read`, `random write`, `random, 80 % read`."""
    order = "random" if job.rw.startswith("rand") else "sequential"
    if job.rw in MIXED:
        return f"{order}, {job.rwmixread} % read"
    return f"{order} {'read' if job.rw in READ_ONLY else 'write'}"


def leading_rates(bs: int) -> tuple[str, str]:
    """Bandwidth for large blocks, IOPS for small ones; then the other."""
    return ("bandwidth", "iops") if bs >= LARGE_BLOCK_BYTES else ("iops", "bandwidth")
