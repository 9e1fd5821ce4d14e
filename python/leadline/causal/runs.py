"""Runs a program under the tracer, block by block with the calls of one class delayed, each block in an
order of its own, as far as time and the user allow.

The program's standard input is empty and what it prints is not shown: it is run many times. The end of what
it said is kept for the run that fails.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

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
from leadline.tracing.mapped import named_places
from leadline.tracing.sources.launch import CopyEnd, run_traced
from leadline.tracing.sources.preload import LOG_SUFFIX
from leadline.tracing.sources.sources import Bounds, PreloadSource
from leadline.tracing.tables import TraceTables, files_schema

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
            f"the command {ran.how} in run {number}{under}: there are no values",
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


_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SAID_BYTES = 1000
_BESIDE = ("asynchronous I/O", "io_uring")
_EXIT_INTERRUPTED = 130


class DelayingSource(PreloadSource):
    """The preloaded tracer, which counts by class and delays; of its logs only the sums are read."""

    def __init__(self, directory: Path, bounds: Bounds, below: Sequence[str], condition: Condition) -> None:
        super().__init__(directory, bounds)
        self._place, self._below, self._condition = directory, below, condition

    def environment(self, copy: int, inherited: Mapping[str, str]) -> dict[str, str]:
        """As the tracer's, with what it delays."""
        variables = super().environment(copy, inherited)
        variables["LEADLINE_TRACE_BELOW"] = ":".join(self._below)
        if self._condition.delayed:
            variables["LEADLINE_TRACE_DELAY"] = f"{self._condition.delayed}:{self._condition.delay_ns}"
        return variables

    def finish(self, started_unix_ns: int) -> TraceTables:
        """The sums of all processes, in `extra`; no rows."""
        from leadline import _core

        self._watch.close()
        paths = sorted(str(path) for path in self._place.rglob(f"*{LOG_SUFFIX}"))
        read = _core.read_trace_logs(paths, started_unix_ns)
        return TraceTables(
            mode="preload",
            processes=(),
            files=files_schema().empty_table(),
            extra={"sums": _added(read["processes"]), "notes": _notes(read)},
        )


class DelayedProgram:
    """The program, to be run again and again; its logs lie in `logs` while it runs."""

    def __init__(self, words: Sequence[str], executable: Path, below: Sequence[str], logs: Path) -> None:
        self._words, self._executable, self._below, self._logs = words, executable, below, logs
        self._runs = 0
        self._bounds = Bounds(None, 64 << 20)

    def __call__(self, condition: Condition, until_s: float) -> RanOnce:
        """Run it once."""
        self._runs += 1
        place = self._logs / f"run-{self._runs}"
        place.mkdir(mode=0o700)
        said = place / "said"
        with DelayingSource(place, self._bounds, self._below, condition) as source, _streams_to(said):
            traced = run_traced(self._words, self._executable, source, until_s=until_s)
        end = traced.ends[0]
        ran = RanOnce(
            end.wall_s,
            traced.tables.extra["sums"],
            _how(end, said),
            _is_stopped(end, traced.heard),
            tuple(traced.tables.extra["notes"]),
        )
        _clear(place)
        return ran


def _is_stopped(end: CopyEnd, heard: Sequence[int]) -> bool:
    """Were we told to stop, or the command by the terminal, which tells both?"""
    killed = end.end == "signal" and end.status == signal.SIGINT
    return killed or end.status == _EXIT_INTERRUPTED or any(number in _STOPS for number in heard)


def _added(processes: Sequence[Mapping[str, Any]]) -> dict[str, CallSums]:
    found: dict[str, CallSums] = {}
    for process in processes:
        for name, (calls, own_ns, waited_ns) in process["classes"].items():
            known = found.get(name, CallSums(0, 0.0, 0.0))
            found[name] = CallSums(
                known.calls + calls, known.own_s + own_ns / 1e9, known.waited_s + waited_ns / 1e9
            )
    return found


def _notes(read: Mapping[str, Any]) -> list[str]:
    """What was not delayed, and so is in no slope."""
    found: dict[str, None] = {}
    for process in read["processes"]:
        for note in process["notes"]:
            if note.startswith("static child "):
                found[
                    f"{note.removeprefix('static child ')} is linked statically: its calls were not delayed"
                ] = None
            elif note in _BESIDE:
                found[f"requests of {note} were not delayed: no slope holds for them"] = None
        if process["lost"].get("children"):
            found["a child of the command could not be followed: its calls were not delayed"] = None
    for path, why in read["unreadable"]:
        found[f"a log could not be read ({Path(path).name}: {why})"] = None
    return list(found)


def _how(end: CopyEnd, said: Path) -> str:
    if end.end == "exit" and end.status == 0:
        return ""
    how = (
        f"was killed by signal {end.status}" if end.end == "signal" else f"ended with exit code {end.status}"
    )
    with suppress(OSError):
        lines = said.read_bytes()[-_SAID_BYTES:].decode(errors="replace").strip().splitlines()
        if lines:
            return f"{how} ({lines[-1].strip()})"
    return how


def _clear(place: Path) -> None:
    """Logs of a gigabyte each must not pile up; whatever stays goes with the directory that they are in."""
    for path in place.rglob("*"):
        if path.is_file():
            with suppress(OSError):
                path.unlink()


@contextmanager
def _streams_to(said: Path) -> Iterator[None]:
    """Our standard streams, which the program inherits: nothing to read, and what it prints goes into a
    file."""
    kept = [os.dup(number) for number in range(3)]
    nothing = os.open(os.devnull, os.O_RDWR)
    errors = os.open(said, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        for number, to in enumerate((nothing, nothing, errors)):
            os.dup2(to, number)
        yield
    finally:
        for number, before in enumerate(kept):
            os.dup2(before, number)
            os.close(before)
        os.close(nothing)
        os.close(errors)


def places_below(given: Sequence[str], words: Sequence[str], doing: Callable[[str], None]) -> tuple[str, ...]:
    """The directories to follow, under the names that programs may reach them by: those given, or else the
    working directory and absolute paths among the command's words. To be asked in a fork, as it touches them;
    `doing` is told each before.
    """
    places = list(given) or [".", *named_places([words])]
    found: dict[str, None] = {}
    for place in places:
        absolute = str(Path(place).absolute())
        doing(absolute)
        if ":" in absolute:
            raise UsageError(
                f"{absolute} has a colon in its name, which separates directories", "use a link to it"
            )
        if given and not Path(absolute).exists():
            raise UsageError(f"{absolute} does not exist", "name an existing directory with --below")
        for name in (os.path.normpath(absolute), os.path.realpath(absolute)):
            found[name] = None
    return tuple(found)
