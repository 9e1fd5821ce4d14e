"""What observers read and hand over: samples, marks and their difference, on a clock that is steady."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from leadline.counters.catalogue import TrialFigure, trial_figures
from leadline.counters.observed import ObservedFigures
from leadline.observe import machine

STEP_NS_MIN = 100_000_000  # less is what keeping a clock right moves it by
_ROUNDS = 5


def closest(rounds: Iterable[tuple[int, int, int]]) -> tuple[int, int, int]:
    """The offset of another clock, its largest error, and when it was read by this one, all ns.

    A round is (this clock before, the other clock, this clock after). The shortest round counts: its offset
    is wrong by half its length at most (Cristian, Probabilistic clock synchronization, 1989). Raises
    ValueError without a round.
    """
    before, other, after = min(rounds, key=lambda one: one[2] - one[0])
    return other - (before + after) // 2, -(-max(after - before, 0) // 2), after


def offset_ns(clock: int = time.CLOCK_MONOTONIC) -> int:
    """The time of day minus a steady clock, ns: by rounds, as the CPU can be lost between two reads."""
    rounds = (
        (time.clock_gettime_ns(clock), time.time_ns(), time.clock_gettime_ns(clock)) for _ in range(_ROUNDS)
    )
    return closest(rounds)[0]


_BEGUN_NS = offset_ns()


def steady_unix_ns() -> int:
    """Now, as all processes of a run tell it that began before the clock was set."""
    return _BEGUN_NS + time.monotonic_ns()


class ClockWatch:
    """Finds out that the time of day was set, on the machine that this process works for."""

    def __init__(self) -> None:
        there = machine.other()
        self._offset_ns = offset_ns if there is None else there.offset_ns
        self._begun_ns = _BEGUN_NS if there is None else there.offset_ns()
        self._before_ns = self._seen_ns = self._begun_ns

    def step_ns(self) -> int:
        """How far it was set since the last call; 0 where it was not."""
        self._before_ns, self._seen_ns = self._seen_ns, self._offset_ns()
        step_ns = self._seen_ns - self._before_ns
        return step_ns if abs(step_ns) >= STEP_NS_MIN else 0

    def steady(self, unix_ns: int, near_ns: int) -> int:
        """A time of day between the last two calls as `steady_unix_ns` told it, which was near to that."""
        told = (unix_ns - offset + self._begun_ns for offset in (self._before_ns, self._seen_ns))
        return min(told, key=lambda found: abs(found - near_ns))


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


Row = tuple[str, str, str, float, str]  # source, subject, metric, value, unit


@dataclass(frozen=True)
class Counters:
    """A source's part of a mark: values that only grow, where each was read, and why one is missing.

    `rows` are samples since the last one or the last mark, of a source that is seldom sampled: without them
    a trial shorter than its period would be judged by what came before it.
    """

    values: Mapping[str, int | None] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    state: ClusterState | None = None
    rows: Sequence[Row] = ()


def missing(names: Sequence[str], reason: str) -> Counters:
    """None of `names` could be read, for one reason."""
    return Counters(values=dict.fromkeys(names), reasons=dict.fromkeys(names, reason))


def joined(*parts: Counters) -> Counters:
    """Parts that name different figures as one; the last state counts."""
    values: dict[str, int | None] = {}
    sources: dict[str, str] = {}
    reasons: dict[str, str] = {}
    state: ClusterState | None = None
    for part in parts:
        values |= part.values
        sources |= part.sources
        reasons |= part.reasons
        state = part.state or state
    return Counters(values, sources, reasons, state, [row for part in parts for row in part.rows])


def sum_of(amounts: Mapping[str, int], lines: Sequence[Sequence[str]]) -> int | None:
    """The sum of named lines, each under the first of its names that is there; None where one is missing."""
    found = [next((amounts[name] for name in names if name in amounts), None) for names in lines]
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None


@dataclass(frozen=True)
class Request:
    """A mark asked of a source: for which target, and the worker process (None: not running yet)."""

    target: str
    pid: int | None


class Reader(Protocol):
    """A source. Both methods run in the source's own thread, and may take long or hang there."""

    @property
    def name(self) -> str:
        """For reasons: "the cluster", "the client's admin socket"."""

    def sample(self, now_ns: int, /) -> list[Row]:
        """Rates since the last call, and gauges."""

    def counters(self, request: Request, /) -> Counters:
        """Counters now."""


class SourceThread:
    """Runs one reader: samples every `period_s`, and answers marks in between."""

    def __init__(self, reader: Reader, period_s: float, emit: Callable[[int, list[Row]], None]) -> None:
        self._reader, self._period_s, self._emit = reader, period_s, emit
        self._requests: queue.Queue[tuple[Request, Future[Counters]]] = queue.Queue()
        self._due_s = time.monotonic()
        self._taken = self._missed = 0
        self._thread = threading.Thread(target=self._run, name=reader.name, daemon=True)

    @property
    def name(self) -> str:
        """The reader's name."""
        return self._reader.name

    @property
    def samples(self) -> tuple[int, int]:
        """How many samples were due so far, and how many of them were not taken, in time or at all."""
        late = int(max(time.monotonic() - self._due_s, 0.0) / self._period_s)
        return self._taken + self._missed + late, self._missed + late

    def start(self) -> None:
        """Begin to sample; the first sample is due at once."""
        self._thread.start()

    def ask(self, request: Request) -> Future[Counters]:
        """A mark's part, answered when the source gets to it."""
        answer: Future[Counters] = Future()
        self._requests.put((request, answer))
        return answer

    def _run(self) -> None:
        self._due_s = time.monotonic()
        while True:
            try:
                request, answer = self._requests.get(timeout=max(0.0, self._due_s - time.monotonic()))
            except queue.Empty:
                now_ns = steady_unix_ns()
                rows = self._reader.sample(now_ns)
                if rows:
                    self._emit(now_ns, rows)
                # A source that was late goes on from now: samples are not made up for in a burst.
                late_s = time.monotonic() - self._due_s
                self._taken, self._missed = self._taken + 1, self._missed + int(late_s / self._period_s)
                self._due_s = max(self._due_s + self._period_s, time.monotonic())
                continue
            if answer.set_running_or_notify_cancel():
                self._answer(request, answer)

    def _answer(self, request: Request, answer: Future[Counters]) -> None:
        now_ns = steady_unix_ns()
        try:
            found = self._reader.counters(request)
        except Exception as error:
            answer.set_exception(error)
            return
        if found.rows:
            self._emit(now_ns, list(found.rows))
        answer.set_result(found)
