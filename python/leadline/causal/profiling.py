"""Runs a program block by block under delays, each block in an order of its own, as far as time and the
user allow."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from leadline import units
from leadline.causal.model import (
    PLAIN_RUNS,
    CallSums,
    CausalProfile,
    Condition,
    DelayedRun,
    Ended,
)
from leadline.errors import StudyError, UsageError

# Of a class's calls: more from run to run, and the program does not do the same each time.
_CALLS_APART = 0.02
_NOT_DELAYED = 0.02  # of the wait that was asked for: more is missing, and not all calls were delayed


@dataclass(frozen=True)
class ProfileAsked:
    """What a profile is to be."""

    program: tuple[str, ...]
    below: tuple[str, ...]
    classes: tuple[str, ...]
    delays_ns: tuple[int, ...]
    blocks: int
    seed: int
    longest_s: float


@dataclass(frozen=True)
class RanOnce:
    """What came of one run: its time and sums; `how` in words where it did not end well; `stopped`: we were
    told to."""

    run_s: float
    sums: Mapping[str, CallSums]
    how: str = ""
    stopped: bool = False
    notes: tuple[str, ...] = ()


class RunsProgram(Protocol):
    """Runs the program once under a condition, until a moment (monotonic) at most."""

    def __call__(self, condition: Condition, until_s: float) -> RanOnce:
        """What came of it."""


Say = Callable[[str], None]


def profile(
    asked: ProfileAsked,
    run: RunsProgram,
    say: Say,
    now_s: Callable[[], float] = time.monotonic,
) -> CausalProfile:
    """Run it once without delays, say how long all takes, then the blocks. Raises where the program fails."""
    until_s = now_s() + asked.longest_s
    first = run(Condition(), until_s)
    if first.stopped or now_s() >= until_s:
        why = "it was interrupted" if first.stopped else "the time that --for allows was over"
        raise StudyError(f"{why} in the first run: nothing is known", "let it run longer, or raise --for")
    _check(first, 1)
    classes = _classes(asked, first)
    made = _Made(asked, classes, first)
    say(made.announcement())
    runs, ended = made.blocks(run, until_s, say, now_s)
    notes = tuple(dict.fromkeys(note for note in made.notes))
    found = CausalProfile(
        asked.program,
        asked.below,
        asked.seed,
        asked.delays_ns,
        asked.classes,
        classes,
        DelayedRun(-1, Condition(), first.run_s, first.sums),
        runs,
        asked.blocks,
        ended,
    )
    return _with_cautions(found, notes)


def conditions(classes: Sequence[str], delays_ns: Sequence[int], seed: int, block: int) -> list[Condition]:
    """A block's runs, in the order that the seed gives it."""
    found = [Condition()] * PLAIN_RUNS + [Condition(name, delay) for name in classes for delay in delays_ns]
    random.Random(f"{seed}/{block}").shuffle(found)  # noqa: S311 - an order, no secret
    return found


class _Made:
    """A profile while it is made."""

    def __init__(self, asked: ProfileAsked, classes: tuple[str, ...], first: RanOnce) -> None:
        self._asked, self._classes, self._first = asked, classes, first
        self.notes: list[str] = list(first.notes)

    def announcement(self) -> str:
        """How many runs there will be, and how long they take at least and at most."""
        asked, first = self._asked, self._first
        count = asked.blocks * (PLAIN_RUNS + len(self._classes) * len(asked.delays_ns))
        calls = sum(first.sums[name].calls for name in self._classes)
        least_s = count * first.run_s
        most_s = least_s + asked.blocks * calls * sum(asked.delays_ns) / 1e9
        words = (
            f"{count} runs in {asked.blocks} blocks, {units.format_duration(least_s)} to"
            f" {units.format_duration(most_s)} if every call waits in turn"
        )
        if most_s <= asked.longest_s:
            return words
        return f"{words}; --for ends it after {units.format_duration(asked.longest_s)}, with its whole blocks"

    def blocks(
        self, run: RunsProgram, until_s: float, say: Say, now_s: Callable[[], float]
    ) -> tuple[tuple[DelayedRun, ...], Ended]:
        """All runs of all blocks, up to where it ended."""
        found: list[DelayedRun] = []
        for number, (block, condition) in enumerate(self._order(), start=2):
            try:
                ran = run(condition, until_s)
            except KeyboardInterrupt:
                return tuple(found), "interrupted"
            if ran.stopped:
                return tuple(found), "interrupted"
            if now_s() >= until_s:
                return tuple(found), "time"
            _check(ran, number, condition)
            self.notes += ran.notes
            found.append(DelayedRun(block, condition, ran.run_s, ran.sums))
            if len(found) % (PLAIN_RUNS + len(self._classes) * len(self._asked.delays_ns)) == 0:
                say(f"block {block + 1} of {self._asked.blocks} done")
        return tuple(found), "whole"

    def _order(self) -> Iterator[tuple[int, Condition]]:
        asked = self._asked
        for block in range(asked.blocks):
            for condition in conditions(self._classes, asked.delays_ns, asked.seed, block):
                yield block, condition


def _check(ran: RanOnce, number: int, condition: Condition | None = None) -> None:
    """Raise where a run gives no figures."""
    under = f", {condition.delayed} delayed" if condition and condition.delayed else ""
    if ran.how:
        raise StudyError(
            f"the command {ran.how} in run {number}{under}: there are no figures",
            "make it end well when it is run again and again, for example by removing what it made before",
        )
    if condition and condition.delayed and not getattr(ran.sums.get(condition.delayed), "waited_s", 0.0):
        raise StudyError(
            f"no {condition.delayed} call was delayed in run {number}, though the first run made some",
            "start it again if the first run did what is done once, or name the other classes with --class",
        )


def _classes(asked: ProfileAsked, first: RanOnce) -> tuple[str, ...]:
    found = tuple(name for name in asked.classes if name in first.sums)
    if found:
        return found
    places = ", ".join(asked.below)
    others = ", ".join(first.sums)
    if others:
        raise UsageError(
            f"the command makes no {' or '.join(asked.classes)} call below {places}, but {others}",
            "name one of these with --class",
        )
    raise UsageError(
        f"none of the command's calls reached a file below {places}",
        "name the directory of its data with --below; `leadline trace` lists its files",
    )


def _with_cautions(found: CausalProfile, notes: Sequence[str]) -> CausalProfile:
    cautions = list(notes)
    for name in found.classes:
        counts = [run.sums[name].calls for run in found.runs if name in run.sums]
        if counts and max(counts) - min(counts) > _CALLS_APART * max(counts):
            cautions.append(
                f"the command made {min(counts):,} to {max(counts):,} {name} calls from run to run:"
                " it does not do the same each time"
            )
        missing = max((_missing(run, name) for run in found.runs), default=0.0)
        if missing > _NOT_DELAYED:
            cautions.append(
                f"up to {units.format_percent(missing)} of the {name} calls were not delayed, as those of a"
                " program that filters its own system calls are not: the slope is that of the others"
            )
    if found.ended != "whole":
        why = "the time that --for allows was over" if found.ended == "time" else "it was interrupted"
        cautions.append(f"{why} after {len(found.blocks())} whole blocks of {found.blocks_asked}")
    return CausalProfile(**{**vars(found), "cautions": tuple(cautions)})


def _missing(run: DelayedRun, name: str) -> float:
    """The share of a class's calls that did not wait, though it was delayed: no sleep is too short."""
    if run.condition.delayed != name or name not in run.sums:
        return 0.0
    asked_s = run.sums[name].calls * run.condition.delay_ns / 1e9
    return 1 - run.sums[name].waited_s / asked_s if asked_s else 0.0


def delays_of(text: str) -> tuple[int, ...]:
    """Nanoseconds of `200us,1ms`. Raises UsageError."""
    from leadline.causal.model import DELAY_NS_MAX

    found = sorted({units.parse_duration(part) for part in text.split(",")})
    if found[0] == 0:
        raise UsageError(
            "a delay of 0 delays nothing", "runs without delay are made anyway: name longer ones"
        )
    if found[-1] > DELAY_NS_MAX:
        raise UsageError(
            f"a delay of {units.format_latency(found[-1])} is longer than a second", "name shorter ones"
        )
    return tuple(found)
