"""Many hosts as one: whether all of them came to the end, began together, are alike, and are as fast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leadline.store.by_host import HOST_LOST
from leadline.store.tables import TrialRow
from leadline.units import format_duration, format_ratio_interval
from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.hosts.seen import stragglers
from leadline.verdict.model import Code

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
            f" {share:.1%} of the measured time{clock}",
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


RULES: tuple[Rule, ...] = (_host_lost, _start_skew, _clock_unsure, _hosts_differ, _straggler)
