"""Rules on the hosts and the cluster: this host and its clocks, many hosts as one, and the cluster's state,
as seen at the start and the end of each trial and by samples between.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from leadline.analysis.cells import worst_trial
from leadline.store.by_host import HOST_LOST
from leadline.store.tables import TrialRow
from leadline.units import format_duration, format_rate, format_ratio_interval
from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.degraded import moods_of
from leadline.verdict.hosts import stragglers
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
        yield kind.fire(f"a thread was on CPU {100 * min(busy, 1):.0f} % of the time in {trial}")
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
        yield kind.fire(f"the host's CPUs were busy {100 * busy:.0f} % of the time in {trial}")


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
        yield kind.fire(f"{100 * steal:.0f} % of the CPUs' time was stolen in {trial}")


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


HOST_RULES: tuple[Rule, ...] = (
    _memory_target,
    _generator_saturated,
    _host_cpu_saturated,
    _throttled,
    _noisy_host,
    _clock_skew,
    _worker_stopped,
)


# A cluster with room on average may hold one OSD, or a pool with a quota, that has none.
_FULL_CHECKS = frozenset(
    f"{what}_{how}" for what in ("OSD", "POOL") for how in ("NEARFULL", "NEAR_FULL", "BACKFILLFULL", "FULL")
)


def _cluster(case: Case) -> Iterator[Code]:
    """Codes on the cluster's state; where it was not to be clean, that it was not is none of them."""
    seen: dict[str, str] = {}
    for trial in case.good:
        for moment, text in (("start", trial.start_state), ("end", trial.end_state)):
            state = json.loads(text)
            if state:
                for code, evidence in _cluster_problems(state, degraded=case.degraded):
                    seen.setdefault(code, f"at the {moment} of {trial.trial}: {evidence}")
    for trial in case.good:
        for code, count, what in (
            ("cluster_not_clean", trial.pgs_not_clean_max, "not clean"),
            ("scrub_or_recovery", trial.pgs_scrubbing_max, "scrubbing"),
        ):
            if count and not (case.degraded and code == "cluster_not_clean"):
                seen.setdefault(code, f"during {trial.trial}: {count} PGs {what}")
    for code, evidence in seen.items():
        yield catalogue()[code].fire(evidence)


def _as_asked(case: Case) -> Iterator[Code]:
    """Where the cluster was not to be clean: that it was, or could not be asked."""
    if not case.degraded or not case.good or not (case.facts.ceph or case.facts.on_cluster):
        return
    moods = {trial.trial: moods_of(trial) for trial in case.good}
    unlike = [name for name, found in moods.items() if not found or "clean" in found]
    if unlike:
        what = "saw a clean cluster" if moods[unlike[0]] else "could not ask the cluster"
        yield catalogue()["cluster_not_degraded"].fire(
            f"{len(unlike)} of {len(moods)} trials, {unlike[0]} first, {what}"
        )


def _cluster_problems(state: Mapping[str, Any], *, degraded: bool) -> Iterator[tuple[str, str]]:
    unclean = {n: c for n, c in state["pgs"].items() if not {"active", "clean"} <= set(n.split("+"))}
    down = state["osds"] is not None and state["osds_up"] is not None and state["osds_up"] < state["osds"]
    if unclean and not degraded:
        yield "cluster_not_clean", ", ".join(f"{count} PGs {name}" for name, count in unclean.items())
    elif down and not degraded:
        yield "cluster_not_clean", f"{state['osds_up']} of {state['osds']} OSDs were up"
    recovering = state["recovering"] and not degraded
    if state["scrubbing"] or recovering:
        what = "recovery" if recovering else f"{state['scrubbing']} PGs scrubbing"
        yield "scrub_or_recovery", what
    used, near = state["used_share"], state["nearfull_share"]
    full = {code: text for code, text in state["checks"].items() if code in _FULL_CHECKS}
    if full:
        yield "nearly_full", ", ".join(f"{code}: {text}" for code, text in full.items())
    elif used is not None and near is not None and used >= near:
        yield "nearly_full", f"{100 * used:.0f} % used, nearfull at {100 * near:.0f} %"


CLUSTER_RULES: tuple[Rule, ...] = (_cluster, _as_asked)


# What makes figures of two hosts different ones; of the first a study must not be made at all.
_ALIKE = ("leadline", "python", "kernel", "cpus", "memory_bytes")
_MEMORY_SHARE = 0.05  # what a kernel keeps for itself differs
_NAMED = 4


def is_lost(trial: TrialRow) -> bool:
    """Whether a trial failed as one of its hosts was lost."""
    return bool(trial.error) and str(trial.error).endswith(HOST_LOST)


def _host_lost(case: Case) -> Iterator[Code]:
    lost = [trial for trial in case.trials if is_lost(trial)]
    if lost:
        words = str(lost[0].error).removesuffix(HOST_LOST).rstrip()
        yield catalogue()["host_lost"].fire(
            f"{len(lost)} of {len(case.trials)} trials; {lost[0].trial}: {words}"
        )


def _start_skew(case: Case) -> Iterator[Code]:
    """Absolute, and of the time that is measured: the skew is cut off both ends of it."""
    kind = catalogue()["clock_skew"]
    limit = kind.thresholds
    found = [
        (trial.start_skew_ns / max(trial.measured_ns, 1), trial.start_skew_ns, trial)
        for trial in case.good
        if trial.hosts and trial.start_skew_ns is not None
    ]
    if not found:
        return
    share, skew_ns, trial = max(found, key=lambda one: one[:2])
    longest = max(one[1] for one in found)
    if longest > limit["seconds"] * 1e9 or share > limit["share"]:
        invalid = share > limit["share_invalid"] or longest > limit["seconds_invalid"] * 1e9
        clock = f", by clocks that are known to {_time(trial.clock_error_ns or 0)}"
        yield kind.fire(
            f"the {trial.hosts} hosts of {trial.trial} began within {_time(skew_ns)},"
            f" {100 * share:.1f} % of the measured time{clock}",
            worse=invalid,
        )


def _clock_unsure(case: Case) -> Iterator[Code]:
    kind = catalogue()["clock_unsure"]
    limit = kind.thresholds
    trials = [(trial.clock_error_ns, trial.trial) for trial in case.good if trial.clock_error_ns is not None]
    error_ns, trial = max(trials, default=(0, ""))
    taking_part = {row.host for one in case.good for row in case.hosts.rows.get(one.trial, ())}
    moves = [(move.least_ns, host) for host, move in case.hosts.moved.items() if host in taking_part]
    moved_ns, host = max(moves, default=(0, ""))
    if moved_ns > limit["moved_seconds"] * 1e9:
        yield kind.fire(
            f"the clock of {host} moved by at least {_time(moved_ns)} while the study ran",
            worse=moved_ns > limit["seconds_invalid"] * 1e9,
        )
    elif error_ns > limit["error_seconds"] * 1e9:
        yield kind.fire(
            f"the clocks of the hosts of {trial} are known to {_time(error_ns)} only",
            worse=error_ns > limit["seconds_invalid"] * 1e9,
        )


def _hosts_differ(case: Case) -> Iterator[Code]:
    facts = {
        row.host: case.hosts.facts[row.host]
        for trial in case.trials
        for row in case.hosts.rows.get(trial.trial, ())
        if row.host in case.hosts.facts
    }
    differing = [(name, words) for name in _ALIKE if (words := _differing(facts, name))]
    if differing:
        versions = any(name == "leadline" for name, _ in differing)
        yield catalogue()["hosts_differ"].fire("; ".join(words for _, words in differing), worse=versions)


def _differing(facts: Mapping[str, Mapping[str, Any]], name: str) -> str:
    """Which hosts have what of one kind, where they differ; "" where they do not."""
    having: dict[str, list[str]] = {}
    numbers = [float(one[name]) for one in facts.values() if isinstance(one.get(name), int | float)]
    if name == "memory_bytes" and numbers and max(numbers) <= min(numbers) * (1 + _MEMORY_SHARE):
        return ""
    for host, one in facts.items():
        if one.get(name) is not None:
            value = str(one[name])
            value = ".".join(value.split(".")[:2]) if name == "python" else value
            having.setdefault(value, []).append(host)
    if len(having) < 2:
        return ""
    rarest = sorted(having.items(), key=lambda item: (len(item[1]), item[0]))
    parts = [f"{value} on {_listed(hosts)}" for value, hosts in rarest[:_NAMED]]
    return f"{name}: {', '.join(parts)}"


def _listed(hosts: list[str]) -> str:
    shown = ", ".join(sorted(hosts)[:_NAMED])
    return f"{shown} and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else shown


def _straggler(case: Case) -> Iterator[Code]:
    away = case.hosts.away.get(case.cell.id, ())
    found = stragglers(away)
    if not found:
        return
    parts = [
        f"{one.host} {one.ratio:.2f} times as fast as the others"
        f" ({format_ratio_interval(one.low or 0.0, one.high or 0.0)}, {one.blocks} blocks)"
        for one in found[:_NAMED]
    ]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    yield catalogue()["straggler"].fire(f"{len(found)} of {len(away)} hosts: {', '.join(parts)}{more}")


def _time(ns: int) -> str:
    return format_duration(ns / 1e9)


HOSTS_RULES: tuple[Rule, ...] = (_host_lost, _start_skew, _clock_unsure, _hosts_differ, _straggler)
