"""What another program measured, as verdicts see it: its figures, and that nobody of ours saw them made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leadline.analysis.metrics import LARGE_BLOCK_BYTES, LATENCY_METRICS, Measured
from leadline.store.tables import LatencyRow, TrialRow
from leadline.verdict.face import JudgedWork, OwnCells
from leadline.verdict.model import CellShown
from leadline.verdict.sections.section import Section
from leadline.workloads.imported.figures import imported_metrics
from leadline.workloads.imported.job import ImportedJob
from leadline.workloads.imported.rows import rows_section

if TYPE_CHECKING:
    from leadline.verdict.codes.case import Case

_PLAIN = ("bandwidth", "iops", *LATENCY_METRICS)


class JudgedImported(JudgedWork[ImportedJob]):
    """Asked for what the same job of ours would be. Where its bytes came from is said once, by `imported`."""

    kind = ImportedJob.kind
    exempt = frozenset({"origin_unknown", "events_lost", "other_load"})

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
