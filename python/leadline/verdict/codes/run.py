"""Doubts about the run itself: samples lost, a host that is emulated, a replay that went otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.faulted import conditions, faults_of
from leadline.verdict.model import Code


def _events_lost(case: Case) -> Iterator[Code]:
    """Samples that were due and were not taken, or not kept."""
    kind = catalogue()["events_lost"]
    limit = kind.thresholds
    for trial in case.good:
        lost, due = trial.samples_missed or 0, trial.samples_due or 0
        if lost >= limit["samples"] and lost >= limit["share"] * due:
            yield kind.fire(
                f"the observers took {due - lost} of {due} samples that were due in {trial.trial}"
            )
            return


def _emulated_host(case: Case) -> Iterator[Code]:
    if case.emulation:
        yield catalogue()["emulated_host"].fire(case.emulation)


def _imported(case: Case) -> Iterator[Code]:
    words = case.work.not_seen(case)
    if words and case.trials:
        yield catalogue()["imported"].fire(words)


def _replay_differs(case: Case) -> Iterator[Code]:
    kind = catalogue()["replay_differs"]
    for evidence in case.work.differs(case, kind.thresholds):
        yield kind.fire(evidence)


def _fault_in_force(case: Case) -> Iterator[Code]:
    """Faults of a lab that were not asked for, or under which not all of the cell was measured alike."""
    kind = catalogue()["fault_in_force"]
    under = {trial.trial: faults_of(trial) for trial in case.good}
    surprised = [trial.trial for trial in case.good if under[trial.trial] and not trial.under_fault]
    unknown = {trial.trial: why for trial in case.good if (why := json.loads(trial.reasons).get("faults"))}
    partly = [name for name, found in under.items() if not all(one.whole for one in found)]
    if surprised:
        words = dict.fromkeys(one.fault.words for name in surprised for one in under[name])
        which = f"{len(surprised)} of {len(under)} trials, the first {surprised[0]}"
        yield kind.fire(f"injected while it was measured ({which}): {', '.join(words)}")
    elif partly:
        words = dict.fromkeys(one.fault.words for one in under[partly[0]] if not one.whole)
        yield kind.fire(f"in a part of {partly[0]} only: {', '.join(words)}")
    elif len({conditions(found) for found in under.values()}) > 1:
        some = [name for name, found in under.items() if found]
        words = dict.fromkeys(one.fault.words for name in some for one in under[name])
        yield kind.fire(f"trials are not under the same faults ({', '.join(words)})")
    elif unknown:
        name, why = next(iter(unknown.items()))
        yield kind.fire(f"what was in force during {name} is not known: {why}")


def _target_changed(case: Case) -> Iterator[Code]:
    """The target's mount around each trial, held against the one when the study was planned.

    Settings that are proved may be options of mounts: then only what changes within a trial counts.
    """
    kind = catalogue()["target_changed"]
    facts = case.facts
    planned = {"file_system": facts.file_system, "source": facts.source, "options": list(facts.options)}
    for trial in case.good:
        if trial.mounts is None:
            continue
        before, after = (json.loads(trial.mounts)[moment] for moment in ("before", "after"))
        same_plan = trial.states is None and trial.hosts is None
        was = {**before, **planned} if same_plan and facts.source is not None else before
        for moment, earlier, later in (("before", was, before), ("during", before, after)):
            words, other = _mount_change(earlier, later)
            if words:
                yield kind.fire(f"{moment} {trial.trial} {words}", worse=other)
                return


def _mount_change(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, bool]:
    """What differs, or "", and whether another file system is there."""
    if any(was[name] != now[name] for name in ("file_system", "source", "subtree")):
        return f"another file system took its place ({was['file_system']}, then {now['file_system']})", True
    added = [name for name in now["options"] if name not in was["options"]]
    removed = [name for name in was["options"] if name not in now["options"]]
    if added or removed:
        changes = [f"{_public(name)} was added" for name in added]
        changes += [f"{_public(name)} was removed" for name in removed]
        return f"its mount options changed: {', '.join(changes)}", False
    if was["mount_id"] != now["mount_id"]:
        return "it was mounted anew", False
    return "", False


def _public(option: str) -> str:
    """An option without a value that may name a host or an account."""
    name, equals, value = option.partition("=")
    return option if not equals or value.isdigit() else name


RULES: tuple[Rule, ...] = (
    _events_lost,
    _emulated_host,
    _imported,
    _replay_differs,
    _fault_in_force,
    _target_changed,
)
