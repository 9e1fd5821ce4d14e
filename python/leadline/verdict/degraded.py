"""What was measured while something was broken: faults that a lab had in force, and a cluster that was not
clean.

A trial saw its cluster clean, degraded, or rebuilding what was lost.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from leadline.faults import BEGAN, ENDED, Fault, TrialFault
from leadline.store.journal import Event
from leadline.store.tables import TrialRow
from leadline.units import format_count, format_duration
from leadline.verdict.model import FaultSpan, Statement, Tone
from leadline.verdict.sections.section import Section, TextTable

_NAMED = 4
_Under = Mapping[str, tuple[TrialFault, ...]]  # trial -> what it ran under


def faults_of(trial: TrialRow) -> tuple[TrialFault, ...]:
    """What a trial ran under; nothing where no lab was looked at. Raises as `Fault.from_json` does."""
    return tuple(map(TrialFault.from_json, json.loads(trial.faults or "[]")))


def conditions(found: Sequence[TrialFault]) -> frozenset[tuple[str, str, str]]:
    """What was done to what, however often."""
    return frozenset(one.fault.what for one in found)


def faults_meanwhile(events: Sequence[Event]) -> tuple[Fault, ...]:
    """The faults that a study's journal tells of, by their beginnings."""
    found: dict[tuple[str, tuple[str, float]], Fault] = {}
    for event in events:
        if event.event in (BEGAN, ENDED):
            fault = Fault.from_json(event.details)
            found[str(event.details["lab"]), fault.key] = fault
    return tuple(sorted(found.values(), key=lambda fault: fault.began_unix_s))


def fault_spans(trial: TrialRow, length_s: float) -> tuple[FaultSpan, ...]:
    """When each fault was in force, in seconds since the trial's start; at most `length_s` long."""
    start_s = trial.started_unix_ns / 1e9
    found = []
    for one in faults_of(trial):
        began_s, ended_s = one.fault.began_unix_s - start_s, (one.fault.ended_unix_s or math.inf) - start_s
        begin_s = 0.0 if one.whole else min(max(began_s, 0.0), length_s)
        end_s = length_s if one.whole else max(min(ended_s, length_s), begin_s)
        found.append(FaultSpan(one.fault.words, begin_s, end_s))
    return tuple(found)


def fault_statements(trials: Sequence[TrialRow]) -> Iterator[Statement]:
    """Under which faults how many trials ran, where any did."""
    under = _under(trials)
    count = sum(map(bool, under.values()))
    if not count:
        return
    asked = all(trial.under_fault for trial in trials if under[trial.trial])
    each = [(words, len(names)) for words, names in _by_words(under).items()]
    several = [f"{words} ({format_count(number, 'trial')})" for words, number in each[:_NAMED]]
    named = [each[0][0]] if len(each) == 1 else several
    rest = f" and {len(each) - _NAMED} more" if len(each) > _NAMED else ""
    text = f"{count} of {format_count(len(trials), 'trial')} ran while a fault was active"
    text += f"{', as requested' if asked else ''}: {', '.join(named)}{rest}."
    if len({conditions(found) for found in under.values()}) > 1:
        text += " The trials ran under different faults, which may explain their differences."
    yield Statement("caution", text, tuple(_evidence(under)), says="trials_under_fault")


def faults_section(trials: Sequence[TrialRow], faults: Sequence[Fault]) -> Section | None:
    """When each fault was in force, and which trials ran under it; None where there was none."""
    under = _under(trials)
    if not faults:
        return None
    headings = ("Fault", "On", "Kind", "Began", "Ended", "Trials")
    rows = tuple(
        (fault.words, fault.on, fault.kind, _time(fault.began_unix_s), _time(fault.ended_unix_s), names)
        for fault in faults
        for names in (_listed([trial.trial for trial, _ in _during(fault, trials, under)]),)
    )
    heads = ("Cell", "Fault", "Trials under it", "From start to end", "Of trials")
    of_cells = TextTable("Faults by cell", heads, _cells(trials, under))
    document = [
        asdict(fault)
        | {
            "trials": [
                {"trial": trial.trial, "cell": trial.cell, "whole": one.whole}
                for trial, one in _during(fault, trials, under)
            ]
        }
        for fault in faults
    ]
    return Section(
        "faults",
        "Active faults",
        (TextTable("Active faults", headings, rows), *([of_cells] if of_cells.rows else [])),
        "Faults",
        note="Done on purpose by `leadline lab inject`, at this host's times. A trial's ramp counts, too.",
        json={"faults": document},
    )


def _during(fault: Fault, trials: Sequence[TrialRow], under: _Under) -> Iterator[tuple[TrialRow, TrialFault]]:
    """The trials that ran under a fault."""
    for trial in trials:
        yield from ((trial, one) for one in under[trial.trial] if one.fault.key == fault.key)


def _cells(trials: Sequence[TrialRow], under: _Under) -> tuple[tuple[str, ...], ...]:
    rows = []
    for cell in dict.fromkeys(trial.cell for trial in trials):
        own = {trial.trial: under[trial.trial] for trial in trials if trial.cell == cell}
        for words, names in _by_words(own).items():
            whole = sum(any(one.whole and one.fault.words == words for one in own[name]) for name in names)
            rows.append((cell, words, str(len(names)), str(whole), str(len(own))))
    return tuple(rows)


def _under(trials: Sequence[TrialRow]) -> dict[str, tuple[TrialFault, ...]]:
    return {trial.trial: faults_of(trial) for trial in trials}


def _by_words(under: _Under) -> dict[str, list[str]]:
    """The trials under each fault, by its words; in the order of the first."""
    found: dict[str, list[str]] = {}
    for trial, faults in under.items():
        for words in dict.fromkeys(one.fault.words for one in faults):
            found.setdefault(words, []).append(trial)
    return found


def _evidence(under: _Under) -> Iterator[str]:
    for words, names in _by_words(under).items():
        yield f"{words}: {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown or "none"


def _time(unix_s: float | None) -> str:
    if unix_s is None:
        return "still active"
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M:%S} UTC"


_WORDS = {"degraded": "degraded", "rebuilding": "rebuilding data", "clean": "clean"}


def unclean_statements(trials: Sequence[TrialRow], *, asked: bool) -> Iterator[Statement]:
    """Nothing where it was not asked for: then a code says that the cluster was not clean."""
    if not asked:
        return
    counted = Counter(_state(trial) for trial in trials)
    parts = [f"{counted[mood]} {_WORDS[mood]}" for mood in MOODS if counted[mood]]
    parts += [f"{counted['changed']} changing between these"] if counted["changed"] else []
    parts += [f"{counted['']} unknown"] if counted[""] else []
    every = format_count(len(trials), "trial")
    text = f"Of {every} with --degraded, the cluster was {', '.join(parts)}."
    tone: Tone = "finding" if len(counted) < 2 else "caution"  # figures of several states are in one mean
    yield Statement(tone, text, says="cluster_unclean_as_asked")
    found = rebuilt(trials)
    if found is None:
        return
    ends = [format_duration(float(round(seconds))) for seconds in (found.least_s, found.most_s)]
    lost = "" if found.degraded_objects is None else f"; at most {found.degraded_objects} copies were missing"
    after = f"{ends[0]} to {ends[1]} after it was first seen not clean"
    text = f"Under this load the cluster was clean again {after}"
    yield Statement("finding", f"{text}{lost}.", says="cluster_clean_again")


def _state(trial: TrialRow) -> str:
    moods = moods_of(trial)
    return "changed" if len(moods) > 1 else moods[0] if moods else ""


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
