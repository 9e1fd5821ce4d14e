"""What every source of observations is: it samples, and it answers marks.

One thread per source, so that none waits for another.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from leadline.observe.clock import steady_unix_ns
from leadline.observe.model import ClusterState

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
