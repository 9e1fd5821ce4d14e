"""What bench/diagnosis.py found, as a page: judged anew from the kept figures by the causes as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diagnosis_cases import CASES, LEFT_OUT, LEVELS, PAIRS, DiagnosisCase
from leadline.verdict.diagnosis.causes import FIGURES
from leadline.verdict.diagnosis.judge import diagnose

TUNED = frozenset({1})  # thresholds were chosen by the runs of these seeds, which prove nothing
AGAIN = 100  # added to a seed where the same is run twice with it
OUTCOMES = ("right", "undecided", "wrong")
# True of this lab without any fault: the client's link of 200 Mbit is full in streams, and one request at a
# time waits for nothing else.
_OWN = frozenset({"link_full", "links_in_turn", "latency_bound"})
_WORDS = """
Faults are injected into a lab (`bench/diagnosis_cases.py`), work is measured, and `leadline diagnose`
reads the result, out of which every trace of the fault was taken. **Right**: the cause that was injected
is named, of two both. **Undecided**: neither it nor another that can be injected is. **Wrong**: one is
named that can be injected and was not; so, too, where nothing was. What else is named of undecided runs,
such as the flushes of the OSDs' devices, no case injects: whether it is true is not tried here. A full link
of the client in streams, and too little in flight where one request follows the other, are true of this lab
without any fault, and no accusation.

Shares are of different things: of a request's time, how full what is full is, or the part of the time in
which an event held. A cause without one is present, and nothing measured how much it takes. What is observed
since these runs were made, such as the part of the time in which a control group was stopped, is not known of
them.

Thresholds were chosen by the runs of seed {tuned} alone, before the others were made. Two changes came later.
Lost packets are named from 1.5 % on: from there on the constant that was their share had let them be named.
Small writes that are written twice, or made larger, never bound: the quiet runs have them, too. What follows
counts the other seeds. The figures of each trial are kept in `bench/diagnosis.jsonl`;
`python bench/diagnosis.py judge` makes this page of them.
"""


@dataclass(frozen=True)
class Judged:
    """One run, and what became of it."""

    case: str
    level: str
    seed: int
    named: tuple[str, ...]
    share: float | None
    outcome: str
    beside: bool


def page(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The page's lines."""
    found = sorted(judged(runs), key=lambda one: (one.case, one.level, one.seed))
    counted = [one for one in found if one.seed % AGAIN not in TUNED]
    yield "# Diagnosis: what was injected, and what was named"
    yield from _WORDS.format(tuned=", ".join(map(str, sorted(TUNED)))).splitlines()
    yield ""
    yield from _by_strength(counted)
    yield from _by_case(counted)
    yield "## Left out"
    yield ""
    for name, why in LEFT_OUT.items():
        yield f"- {name}: {why}"
    yield ""
    yield "## Every run that counts"
    yield ""
    yield from _lines(counted)
    yield ""
    yield f"## The runs that thresholds were chosen by (seed {', '.join(map(str, sorted(TUNED)))})"
    yield ""
    yield from _lines([one for one in found if one.seed % AGAIN in TUNED])


def judged(runs: Sequence[Mapping[str, Any]]) -> Iterator[Judged]:
    """Each cell of each run. What was observed later than a run was made is not known of it."""
    cases = {case.name: case for case in (*CASES, *PAIRS)}
    injected = frozenset(name for case in CASES for name in case.right)
    unknown = dict.fromkeys(FIGURES)
    for one in runs:
        for cell in one["cells"]:
            found = diagnose([{**unknown, **figures} for figures in cell["figures"]])
            names = tuple(cause.entry.name for cause in found.named)
            share = found.named[0].share if found.named else None
            outcome = _outcome(cases.get(one["case"]), one["level"], frozenset(names), injected)
            beside = outcome == "undecided" and bool(set(names) - injected - _OWN)
            yield Judged(one["case"], one["level"], one["seed"], names, share, outcome, beside)


def _outcome(case: DiagnosisCase | None, level: str, names: frozenset[str], injected: frozenset[str]) -> str:
    right = case.right if case else frozenset()
    if names & (injected - right - _OWN):
        return "wrong"
    if case is None:
        return "right"
    found = right & names
    return "right" if found and (level != "two" or found == right) else "undecided"


def _by_strength(runs: Sequence[Judged]) -> Iterator[str]:
    yield "| strength | runs | right | undecided | wrong | of the undecided: something else named |"
    yield "|---|--:|--:|--:|--:|--:|"
    for level in (*LEVELS, "two", ""):
        of_level = [one for one in runs if one.level == level]
        counts = Counter(one.outcome for one in of_level)
        words = {"two": "two causes at once", "": "nothing injected"}.get(level, level)
        numbers = " | ".join(str(counts[outcome]) for outcome in OUTCOMES)
        yield f"| {words} | {len(of_level)} | {numbers} | {sum(one.beside for one in of_level)} |"
    yield ""


def _by_case(runs: Sequence[Judged]) -> Iterator[str]:
    """How often each is named, and why not oftener."""
    yield "## By cause"
    yield ""
    yield f"| cause | {' | '.join(LEVELS)} | why not oftener |"
    yield "|---|--:|--:|--:|---|"
    for case in CASES:
        parts = []
        for level in LEVELS:
            outcomes = [one.outcome for one in runs if (one.case, one.level) == (case.name, level)]
            parts.append(f"{outcomes.count('right')} of {len(outcomes)}" if outcomes else "-")
        yield f"| {case.name} | {' | '.join(parts)} | {case.limits} |"
    yield ""


def _lines(runs: Sequence[Judged]) -> Iterator[str]:
    yield "| cause | strength | seed | named | share | outcome |"
    yield "|---|---|--:|---|--:|---|"
    for one in runs:
        share = "" if one.share is None else f"{100 * one.share:.0f} %"
        parts = (one.case, one.level, str(one.seed), ", ".join(one.named), share, one.outcome)
        yield f"| {' | '.join(parts)} |"
