"""The state of the cluster that each trial saw: clean, degraded, or rebuilding what was lost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from leadline.store.tables import TrialRow

ClusterMood = Literal["clean", "degraded", "rebuilding"]
MOODS: tuple[ClusterMood, ...] = ("degraded", "rebuilding", "clean")


@dataclass(frozen=True)
class ClusterLook:
    """What was seen of a cluster at one moment, `at_s` seconds of the time of day."""

    trial: str
    at_s: float
    mood: ClusterMood
    degraded_objects: int | None


def asked_degraded(manifest: Mapping[str, Any]) -> bool:
    """Whether the study was to be measured while its cluster is not clean."""
    return bool((manifest.get("options") or {}).get("degraded"))


def looks_of(trial: TrialRow) -> Iterator[ClusterLook]:
    """At the start and the end of a trial, as far as the cluster was seen."""
    ended_s = (trial.started_unix_ns + trial.ramp_ns + trial.measured_ns) / 1e9
    for at_s, text in ((trial.started_unix_ns / 1e9, trial.start_state), (ended_s, trial.end_state)):
        state = json.loads(text)
        if state:
            yield ClusterLook(trial.trial, at_s, _mood(state), state.get("degraded_objects"))


def _mood(state: Mapping[str, Any]) -> ClusterMood:
    clean = all({"active", "clean"} <= set(name.split("+")) for name in state["pgs"])
    if state["recovering"]:
        return "rebuilding"
    down = state["osds"] is not None and state["osds_up"] is not None and state["osds_up"] < state["osds"]
    return "degraded" if down or not clean else "clean"


def moods_of(trial: TrialRow) -> tuple[ClusterMood, ...]:
    """The states that a trial saw, each once; none where the cluster could not be asked."""
    return tuple(dict.fromkeys(look.mood for look in looks_of(trial)))


@dataclass(frozen=True)
class Rebuilt:
    """That a cluster was clean again, `least_s` to `most_s` after it was first seen otherwise."""

    least_s: float
    most_s: float
    degraded_objects: int | None


def rebuilt(trials: Sequence[TrialRow]) -> Rebuilt | None:
    """When a cluster that was not clean was seen clean for good; None where that was not seen."""
    looks = sorted((look for trial in trials for look in looks_of(trial)), key=lambda look: look.at_s)
    unclean = [look for look in looks if look.mood != "clean"]
    after = [look for look in looks if unclean and look.at_s > unclean[-1].at_s]
    if not unclean or not after:
        return None
    most = max((look.degraded_objects or 0 for look in unclean), default=0)
    first = unclean[0].at_s
    return Rebuilt(unclean[-1].at_s - first, after[0].at_s - first, most or None)
