"""What is said of faults that a lab had in force while it was measured: a sentence and a section."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from leadline.faults import BEGAN, ENDED, Fault, TrialFault
from leadline.store.journal import Event
from leadline.store.tables import TrialRow
from leadline.verdict.model import FaultSpan, Statement
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
    several = [f"{words} ({_plural(number, 'trial')})" for words, number in each[:_NAMED]]
    named = [each[0][0]] if len(each) == 1 else several
    rest = f" and {len(each) - _NAMED} more" if len(each) > _NAMED else ""
    text = f"{count} of {_plural(len(trials), 'trial')} ran while a fault was in force"
    text += f"{', as asked for' if asked else ''}: {', '.join(named)}{rest}."
    if len({conditions(found) for found in under.values()}) > 1:
        text += " Trials differ in that: what is between them may be the fault's."
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
        "Faults in force meanwhile",
        (TextTable("Faults in force meanwhile", headings, rows), *([of_cells] if of_cells.rows else [])),
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


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _time(unix_s: float | None) -> str:
    if unix_s is None:
        return "still in force"
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M:%S} UTC"
