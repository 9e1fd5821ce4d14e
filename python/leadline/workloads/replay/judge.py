"""The calls of a trace, repeated, as verdicts see them: figures, and what was left out of the replay."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from leadline.analysis.cells import worst_trial
from leadline.analysis.chain import Bytes
from leadline.analysis.metrics import LATENCY_METRICS, Measured, add_latency, cpu_per_operation, nothing_done
from leadline.store.tables import LatencyRow, TrialRow
from leadline.units import format_size
from leadline.verdict.interface import JudgedWork, KindAnswer, Limits, OwnCells
from leadline.verdict.model import CellShown, Statement
from leadline.workloads.replay.job import ReplayJob

if TYPE_CHECKING:
    from leadline.verdict.codes.case import Case


def replay_statements(manifest: Mapping[str, Any]) -> Iterator[Statement]:
    """One sentence for a replay, with what was left out as its evidence; nothing for other results."""
    found = manifest.get("replay")
    if not isinstance(found, dict):
        return
    coverage = found["coverage"]
    pace = (
        "each call as long after the one before as when it was traced"
        if found["pace"] == "recorded"
        else "as fast as possible"
    )
    threads = f"{found['threads']} thread{'' if found['threads'] == 1 else 's'}"
    left = " Not replayed: see below." if coverage["skipped"] else ""
    yield Statement(
        "finding",
        f"{_repeated(found)}, were repeated by {threads}, {pace}.{left}",
        tuple(skipped_words(item) for item in coverage["skipped"]),
        says="trace_replayed",
    )


def replay_answer(manifest: Mapping[str, Any]) -> KindAnswer:
    """Which time is given, and how much of the trace it is of."""
    found = manifest.get("replay")
    if not isinstance(found, dict):
        return KindAnswer()
    time = "the run time, from the first call to the end of the last (run_time)"
    if found.get("pace") == "recorded":
        time = "the time in calls, summed over threads and without the recorded pauses (io_time)"
    return KindAnswer(f"The time is {time}. Repeated: {_repeated(found)}.", adds=True)


def _repeated(found: Mapping[str, Any]) -> str:
    """`1,234 of 1,300 calls of tar, 318 MiB or 33.3% of the bytes`."""
    coverage, moved = found["coverage"], ""
    if coverage["bytes"]:
        share = coverage["bytes_replayed"] / coverage["bytes"]
        moved = f", {format_size(coverage['bytes_replayed'])} or {100 * share:.1f} % of the bytes"
    return f"{coverage['calls_replayed']:,} of {coverage['calls']:,} calls of {found['title']}{moved}"


def skipped_words(item: Mapping[str, Any]) -> str:
    """One line of what was left out."""
    moved = f", {format_size(item['bytes'])}" if item["bytes"] else ""
    return f"{item['calls']:,} x {item['call']}{moved}: {item['reason']}"


CLASSES = ("read", "write", "meta", "sync")


def replay_metrics(trial: TrialRow, latency: Sequence[LatencyRow]) -> Measured:
    """Every metric of one trial."""
    classes: Mapping[str, Mapping[str, int]] = json.loads(trial.summary).get("directions", {})
    seconds = trial.measured_ns / 1e9
    calls = sum(found["operations"] for found in classes.values())
    if seconds <= 0 or not calls:
        return nothing_done(("run_time", "io_time"), "no call was completed")
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    values["run_time"] = seconds
    values["io_time"] = sum(found["io_ns"] for found in classes.values()) / 1e9
    values["bandwidth"] = sum(found["bytes"] for found in classes.values()) / seconds
    values["iops"] = calls / seconds
    for name, found in classes.items():
        if name in ("read", "write"):
            values[f"{name}_bandwidth"] = found["bytes"] / seconds
        values[f"{name}_iops"] = found["operations"] / seconds
        add_latency(values, reasons, latency, name, "total", prefix=f"{name}_")
    values |= cpu_per_operation(trial, calls)
    # A mean of nothing is no figure: where nothing was moved there is no bandwidth.
    return Measured({name: value for name, value in values.items() if value > 0}, reasons)


def share_otherwise(trial: TrialRow) -> float | None:
    """The share of a replay's calls that did not go as in the trace."""
    found = json.loads(trial.summary).get("replay") or {}
    return (found["differed"] + found["short"]) / found["calls"] if found.get("calls") else None


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
                yield f"{100 * left:.0f} % of the trace's bytes were not replayed"
        share, trial = worst_trial(case.good, share_otherwise)
        if share > limits["calls_otherwise"]:
            yield f"{100 * share:.1f} % of the calls of {trial} failed or read less, unlike in the trace"

    def statements(self, own: OwnCells) -> Iterable[Statement]:
        """What of the trace was replayed."""
        return replay_statements(own.manifest)

    def answer(self, own: OwnCells) -> KindAnswer:
        """How much of it."""
        return replay_answer(own.manifest) if own.cells else KindAnswer()


def _moved(job: ReplayJob) -> tuple[str, ...]:
    amounts = (("read", job.read_bytes), ("write", job.write_bytes))
    return tuple(name for name, amount in amounts if amount)
