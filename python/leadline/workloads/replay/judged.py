"""The calls of a trace, repeated, as verdicts see them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from leadline.analysis.cells import worst_trial
from leadline.analysis.metrics import LATENCY_METRICS, Measured
from leadline.analysis.origin import Bytes
from leadline.store.tables import LatencyRow, TrialRow
from leadline.verdict.face import JudgedWork, KindAnswer, Limits, OwnCells
from leadline.verdict.model import CellShown, Statement
from leadline.workloads.replay.figures import CLASSES, replay_metrics, share_otherwise
from leadline.workloads.replay.job import ReplayJob
from leadline.workloads.replay.words import replay_answer, replay_statements

if TYPE_CHECKING:
    from leadline.verdict.codes.case import Case


class JudgedReplay(JudgedWork[ReplayJob]):
    """Asked for how long it took. What it leaves in memory the program itself left there."""

    kind = ReplayJob.kind
    directions = CLASSES
    exempt = frozenset({"buffered_writes"})

    def known_metrics(self) -> tuple[str, ...]:
        """Those that no other kind has."""
        latencies = (f"{name}_{metric}" for name in ("meta", "sync") for metric in LATENCY_METRICS)
        return ("run_time", "io_time", *latencies)

    def metrics(
        self,
        trial: TrialRow,
        latency: Sequence[LatencyRow],
        *,
        open_loop: bool,
        extra: Any,
    ) -> Measured:
        """Times of the whole, and each class of calls."""
        return replay_metrics(trial, latency)

    def default_metrics(self, job: ReplayJob) -> tuple[str, ...]:
        """Its time and the tail latency of what it moved; with the recorded pauses most of the time is the
        program's own, and so it is the time in calls."""
        asked = "io_time" if job.pace == "recorded" else "run_time"
        return (asked, *(f"{name}_latency_p99" for name in _moved(job)))

    def shown(self, job: ReplayJob) -> CellShown:
        """In the directions in which it moved something."""
        return CellShown(directions=_moved(job), asked=(("", self.default_metrics(job)[0]),))

    def too_short(self, case: Case, limits: Limits) -> tuple[str, bool] | None:
        """Calls are as many as the trace has; only its time tells."""
        seconds = min(trial.measured_ns / 1e9 for trial in case.good)
        return (f"the replay took {seconds:.3g} s", False) if seconds < limits["phase_seconds"] else None

    def read_cold(self, job: ReplayJob, found: Bytes, trials: Sequence[TrialRow]) -> Bytes | None:
        """What a program reads again may come from a cache; what it reads first may not."""
        cold = min(found.application, job.cold_bytes * len(trials)) if job.reads else 0
        return replace(found, application=cold) if cold else None

    def differs(self, case: Case, limits: Limits) -> Iterator[str]:
        """In bytes that were left out, and in calls that went otherwise than in the trace."""
        job: ReplayJob = case.cell.job  # type: ignore[assignment]
        if job.bytes_of_trace:
            left = 1 - (job.read_bytes + job.write_bytes) / job.bytes_of_trace
            if left > limits["bytes_left_out"]:
                yield f"{left:.0%} of the trace's bytes were not replayed"
        share, trial = worst_trial(case.good, share_otherwise)
        if share > limits["calls_otherwise"]:
            yield f"{share:.1%} of the calls of {trial} failed or read less, unlike in the trace"

    def statements(self, own: OwnCells) -> Iterable[Statement]:
        """What of the trace was replayed."""
        return replay_statements(own.manifest)

    def answer(self, own: OwnCells) -> KindAnswer:
        """How much of it."""
        return replay_answer(own.manifest) if own.cells else KindAnswer()


def _moved(job: ReplayJob) -> tuple[str, ...]:
    amounts = (("read", job.read_bytes), ("write", job.write_bytes))
    return tuple(name for name, amount in amounts if amount)
