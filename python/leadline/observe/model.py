"""What the observers hand to a run: marks, samples, and the difference between two marks. Frozen values.

A counter that could not be read is None, and `reasons` says why; it is never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sample:
    """One row of the series: `t_ns` is Unix time; source is host, process, client or ceph."""

    t_ns: int
    source: str
    subject: str
    metric: str
    value: float
    unit: str


@dataclass(frozen=True)
class Mark:
    """All counters at one moment (`t_ns`, Unix time).

    `counters` only grow, unless a daemon restarted. `sources` says in words where each was read.
    `state` is the cluster's state (see `ClusterState`), None where the target has no cluster or it
    did not answer (`reasons["state"]`). `cpu_ns` is the observers' own CPU time so far.
    """

    id: str
    t_ns: int
    counters: Mapping[str, int | None]
    reasons: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    state: ClusterState | None = None
    cpu_ns: int | None = None


# A group in these states holds all its copies; scrubbing and trimming are work beside that.
_CLEAN = frozenset({"active", "clean"})
_BESIDE = frozenset({"scrubbing", "deep", "snaptrim", "snaptrim_wait"})


def group_is_clean(state: str) -> bool:
    """True for a placement group's state such as `active+clean` or `active+clean+scrubbing+deep`."""
    names = set(state.split("+"))
    return names >= _CLEAN and names <= _CLEAN | _BESIDE


@dataclass(frozen=True)
class ClusterState:
    """A cluster at one moment.

    `pgs` counts placement groups by state; `flags` are those set for the whole cluster.
    `checks` are the codes of `ceph health` with their summaries. None is "not observable".
    """

    health: str
    checks: Mapping[str, str]
    pgs: Mapping[str, int]
    flags: tuple[str, ...] | None
    slow_ops: int
    degraded_objects: int | None
    misplaced_objects: int | None
    recovering: bool
    scrubbing: int
    osds: int | None
    osds_up: int | None
    osds_in: int | None
    used_share: float | None
    nearfull_share: float | None
    full_share: float | None

    @property
    def clean(self) -> bool:
        """True where every placement group is active and clean (scrubbing or not) and all OSDs are up."""
        return bool(self.pgs) and all(map(group_is_clean, self.pgs)) and self.osds_up == self.osds

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            name: dict(value) if isinstance(value, Mapping) else value
            for name in self.__dataclass_fields__
            for value in (getattr(self, name),)
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ClusterState:
        """The inverse of `as_json`."""
        known = {name: value[name] for name in cls.__dataclass_fields__}
        known["flags"] = None if known["flags"] is None else tuple(known["flags"])
        return cls(**known)


@dataclass(frozen=True)
class Delta:
    """What happened between two marks; None has its reason in `reasons`.

    Shares are 0..1 of all CPUs' time. Bytes:

    device    the target's own block device, everybody's I/O on it
    wire      between this host's client and its servers; `sources` says whether from the client
              daemon's own messengers or from whole network interfaces
    process   what the worker's own system calls fetched from and sent to storage (/proc/PID/io)
    osd       what clients asked of the OSDs, before replication or erasure coding
    subop     what OSDs received from OSDs
    store     what the OSDs' object stores wrote to and read from their devices
    own       what this run's processes, all of them, fetched from and sent to storage (/proc/PID/io)
    interface the network interfaces towards the servers, everybody's traffic

    `other_cpu_share` is the part of all CPUs' time that nobody known to the run used.
    `dirty_at_start_bytes` is what this host still had to write back when the trial began; the limits are
    what links and control groups allow. `samples_missed` of `samples_due` were not taken, or not kept.
    client    what the client daemon's own cache was asked for (`client_read`; `client_cached` of it was
              there), was given (`client_written`), and sent on (`client_flushed`)
    """

    elapsed_ns: int
    device_read_bytes: int | None
    device_written_bytes: int | None
    wire_sent_bytes: int | None
    wire_received_bytes: int | None
    process_read_bytes: int | None
    process_written_bytes: int | None
    osd_read_bytes: int | None
    osd_written_bytes: int | None
    osd_subop_received_bytes: int | None
    store_read_bytes: int | None
    store_written_bytes: int | None
    own_read_bytes: int | None
    own_written_bytes: int | None
    interface_sent_bytes: int | None
    interface_received_bytes: int | None
    dirty_at_start_bytes: int | None
    wire_limit_bytes_per_s: int | None
    device_read_limit_bytes_per_s: int | None
    device_write_limit_bytes_per_s: int | None
    samples_due: int | None
    samples_missed: int | None
    cpu_busy_share: float | None
    cpu_steal_share: float | None
    other_cpu_share: float | None
    cgroup_throttled: int | None
    client_cpu_ns: int | None
    observer_cpu_ns: int | None
    reasons: Mapping[str, str]
    sources: Mapping[str, str]
    state_start: ClusterState | None
    state_end: ClusterState | None
    client_read_bytes: int | None = None
    client_cached_bytes: int | None = None
    client_written_bytes: int | None = None
    client_flushed_bytes: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain values for the journal and the tables."""
        plain: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, ClusterState):
                value = value.as_json()
            plain[name] = dict(value) if isinstance(value, Mapping) else value
        return plain


_LIMITS = tuple(name for name in Delta.__dataclass_fields__ if name.endswith("_limit_bytes_per_s"))
_AT_START = "dirty_at_start_bytes"
_BYTES = tuple(name for name in Delta.__dataclass_fields__ if name.endswith("_bytes") and name != _AT_START)


def delta(start: Mark, end: Mark) -> Delta:
    """The difference of two marks of the same target.

    A counter that is missing in either, went backwards (its daemon restarted), or was read from
    different sources gives None and a reason.
    """
    reasons: dict[str, str] = {}

    def change(name: str) -> int | None:
        value, reason = _difference(name, start, end)
        if reason:
            reasons[name] = reason
        return value

    amounts = {name: change(name) for name in _BYTES}
    total, busy, steal = change("cpu_total_ns"), change("cpu_busy_ns"), change("cpu_steal_ns")
    parts = (change("explained_cpu_ns"), change("interrupt_cpu_ns"))
    explained = None if parts[0] is None or parts[1] is None else parts[0] + parts[1]
    gauges = {name: _larger(name, start, end, reasons) for name in _LIMITS}
    gauges[_AT_START] = _larger(_AT_START, start, start, reasons)
    for mark, moment in ((start, "at the start"), (end, "at the end")):
        if "state" in mark.reasons:
            reasons.setdefault("state", f"{moment}: {mark.reasons['state']}")
    cost = None if start.cpu_ns is None or end.cpu_ns is None else end.cpu_ns - start.cpu_ns
    return Delta(
        elapsed_ns=end.t_ns - start.t_ns,
        **amounts,
        **gauges,
        samples_due=change("samples_due"),
        samples_missed=change("samples_missed"),
        cpu_busy_share=_share(busy, total),
        cpu_steal_share=_share(steal, total),
        other_cpu_share=_share(
            None if busy is None or explained is None else max(busy - explained, 0), total
        ),
        cgroup_throttled=change("cgroup_throttled"),
        client_cpu_ns=change("client_cpu_ns"),
        observer_cpu_ns=cost,
        reasons=reasons,
        sources=dict(end.sources),
        state_start=start.state,
        state_end=end.state,
    )


def _difference(name: str, start: Mark, end: Mark) -> tuple[int | None, str]:
    for mark, moment in ((start, "start"), (end, "end")):
        if mark.counters.get(name) is None:
            why = mark.reasons.get(name) or mark.reasons.get("*") or "no observer reads it"
            return None, f"not observable at the {moment}: {why}"
    if start.sources.get(name) != end.sources.get(name):
        return (
            None,
            f"not observable: read from {start.sources.get(name)} first, from {end.sources.get(name)} then",
        )
    first, last = start.counters[name], end.counters[name]
    if first is None or last is None:
        return None, "not observable"
    if last < first:
        return (
            None,
            f"not observable: the counter went backwards from {first} to {last}; its daemon restarted",
        )
    return last - first, ""


def _larger(name: str, start: Mark, end: Mark, reasons: dict[str, str]) -> int | None:
    """A gauge's larger value at two marks; None, with its reason, where it is missing in either."""
    values = (start.counters.get(name), end.counters.get(name))
    if values[0] is None or values[1] is None:
        missing = start if values[0] is None else end
        why = missing.reasons.get(name) or missing.reasons.get("*") or "no observer reads it"
        reasons[name] = f"not observable: {why}"
        return None
    return max(values[0], values[1])


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole
