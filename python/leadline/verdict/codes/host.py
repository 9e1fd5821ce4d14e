"""This host: its memory as a target, its CPUs, the load generator and its clocks."""

from __future__ import annotations

import json
from collections.abc import Iterator

from leadline.analysis.cells import worst_trial
from leadline.store.tables import TrialRow
from leadline.units import format_duration, format_rate
from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.model import Code


def _memory_target(case: Case) -> Iterator[Code]:
    if case.facts.in_memory:
        yield catalogue()["memory_target"].fire(f"{case.facts.mount_point} is {case.facts.file_system}")


def _generator_saturated(case: Case) -> Iterator[Code]:
    if not case.facts.has_storage:
        return  # there the generator is what is measured
    kind = catalogue()["generator_saturated"]
    busy, trial = worst_trial(case.good, lambda row: row.busy_share_max)
    if busy >= kind.thresholds["busy_share"]:
        yield kind.fire(f"a thread was on CPU {min(busy, 1):.0%} of the time in {trial}")
    late_ms, trial = worst_trial(case.good, _own_late_ms)
    if late_ms >= kind.thresholds["own_late_ms"]:
        yield kind.fire(
            f"operations began {late_ms:.3g} ms late on average in {trial}, not waiting for storage"
        )


def _own_late_ms(trial: TrialRow) -> float | None:
    """Lateness that the pacer itself caused; waiting for a slow target is not the generator's fault."""
    late_ns = (json.loads(trial.summary).get("pacer") or {}).get("own_late_ns_mean")
    return None if late_ns is None else float(late_ns) / 1e6


def _host_cpu_saturated(case: Case) -> Iterator[Code]:
    kind = catalogue()["host_cpu_saturated"]
    busy, trial = worst_trial(case.good, lambda row: row.cpu_busy_share)
    if busy >= kind.thresholds["busy_share"] and case.facts.has_storage:
        yield kind.fire(f"the host's CPUs were busy {busy:.0%} of the time in {trial}")


def _throttled(case: Case) -> Iterator[Code]:
    count, trial = worst_trial(case.good, lambda row: row.cgroup_throttled)
    if count > 0:
        yield catalogue()["throttled"].fire(f"the control group was throttled {count:.0f} times in {trial}")
    limit = case.max_rate_bytes_per_s
    if limit and case.good:
        rate = max((t.read_bytes + t.write_bytes) / max(t.measured_ns / 1e9, 1e-9) for t in case.good)
        kind = catalogue()["throttled"]
        if rate >= kind.thresholds["rate_share"] * limit:
            yield kind.fire(f"the study's limit of {format_rate(limit)} was reached")


def _noisy_host(case: Case) -> Iterator[Code]:
    kind = catalogue()["noisy_host"]
    steal, trial = worst_trial(case.good, lambda row: row.cpu_steal_share)
    if steal >= kind.thresholds["steal_share"]:
        yield kind.fire(f"{steal:.0%} of the CPUs' time was stolen in {trial}")


def _worker_stopped(case: Case) -> Iterator[Code]:
    """By the word of the worker's parent, to which the kernel tells each stop: a busy host stops nobody."""
    kind = catalogue()["worker_stopped"]
    stopped_ns, trial = worst_trial(case.good, lambda row: row.stopped_ns)
    if stopped_ns <= 0:
        return
    whole_ns = next(row.ramp_ns + row.measured_ns for row in case.good if row.trial == trial)
    share = stopped_ns / max(whole_ns, 1)
    words = f"a signal (SIGSTOP or the like) had the worker of {trial} stopped for"
    yield kind.fire(
        f"{words} {format_duration(stopped_ns / 1e9)} of {format_duration(whole_ns / 1e9)}",
        worse=share >= kind.thresholds["share_invalid"],
    )


def _clock_skew(case: Case) -> Iterator[Code]:
    kind = catalogue()["clock_skew"]
    skew_ns, trial = worst_trial(case.good, lambda row: None if row.hosts else row.start_skew_ns)
    if skew_ns > kind.thresholds["seconds"] * 1e9:
        yield kind.fire(f"the jobs of {trial} began within {skew_ns / 1e9:.3g} s")


RULES: tuple[Rule, ...] = (
    _memory_target,
    _generator_saturated,
    _host_cpu_saturated,
    _throttled,
    _noisy_host,
    _clock_skew,
    _worker_stopped,
)
