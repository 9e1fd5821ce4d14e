"""What the observers hand to a run: marks, samples, and the difference between two marks. Frozen values.

A counter that could not be read is None, and `reasons` says why; it is never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leadline.counters.catalogue import TrialFigure, trial_figures
from leadline.counters.observed import ObservedFigures


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
class Delta(ObservedFigures):
    """What happened between two marks: a field for each figure of `counters/counters.toml`.

    None has its reason in `reasons`; `sources` says where the rest was read.
    """

    elapsed_ns: int
    reasons: Mapping[str, str]
    sources: Mapping[str, str]
    state_start: ClusterState | None
    state_end: ClusterState | None

    def figures(self) -> dict[str, int | float | None]:
        """The figures by name; those of samples, which marks do not know, are left out."""
        known = (figure for figure in trial_figures() if figure.how != "largest_sample")
        return {figure.name: getattr(self, figure.name) for figure in known}

    def as_json(self) -> dict[str, Any]:
        """Plain values for the journal and the tables."""
        return {
            "elapsed_ns": self.elapsed_ns,
            **self.figures(),
            "reasons": dict(self.reasons),
            "sources": dict(self.sources),
            "state_start": None if self.state_start is None else self.state_start.as_json(),
            "state_end": None if self.state_end is None else self.state_end.as_json(),
        }


def delta(start: Mark, end: Mark) -> Delta:
    """The difference of two marks of the same target.

    A counter that is missing in either, went backwards (its daemon restarted), or was read from
    different sources gives None and a reason.
    """
    reasons: dict[str, str] = {}
    figures: dict[str, Any] = {
        figure.name: _between(figure, start, end, reasons) for figure in trial_figures()
    }
    for mark, moment in ((start, "at the start"), (end, "at the end")):
        if "state" in mark.reasons:
            reasons.setdefault("state", f"{moment}: {mark.reasons['state']}")
    return Delta(
        elapsed_ns=end.t_ns - start.t_ns,
        reasons=reasons,
        sources=dict(end.sources),
        state_start=start.state,
        state_end=end.state,
        **figures,
    )


def _between(figure: TrialFigure, start: Mark, end: Mark, reasons: dict[str, str]) -> int | float | None:
    """One figure from two marks, by its kind."""
    if figure.how == "largest_sample":
        return None
    if figure.how == "cost":
        return None if start.cpu_ns is None or end.cpu_ns is None else end.cpu_ns - start.cpu_ns
    if figure.how == "larger":
        return _larger(figure.name, start, end, reasons)
    if figure.how == "at_start":
        return _larger(figure.name, start, start, reasons)
    changes = []
    for name in figure.marked:
        value, reason = _difference(name, start, end)
        if reason:
            reasons[name] = reason
        changes.append(value)
    return _share(*changes) if figure.how == "share" else changes[0]


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


def _share(whole: int | None, part: int | None, *less: int | None) -> float | None:
    """A part, without what is known of it, of a whole; never below 0, where clocks differ by a tick."""
    if part is None or not whole:
        return None
    for known in less:
        if known is None:
            return None
        part -= known
    return max(part, 0) / whole
