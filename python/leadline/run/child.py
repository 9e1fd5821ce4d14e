"""The parent's side of a worker process: commands with deadlines, and no wait for what the kernel holds.

A worker that does not answer is asked to end, then told to, then left where it is and named.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from leadline.errors import EngineError
from leadline.observe.host.host import patient_s
from leadline.run.prepared import forks

_POLL_S = 0.1
_INTERRUPT_GRACE_S = 10.0  # the engine finishes what is in flight, at most that long
_KILL_GRACE_S = 1.0
_START_DEADLINE_S = 60.0  # a busy host takes half of that to load Python
_LINE_BYTES_MAX = 64 * 1024 * 1024


@dataclass(frozen=True)
class Answer:
    """How a command ended.

    `outcome`: `done` (see `value`), `failed` (see `message`), `interrupted` by the user, `hung` (past
    its deadline; `pid` is stuck in the kernel when `stuck`), `died` (the worker ended by itself). It `failed`
    since it was `late`, or was `interrupted` when it was still `untold` what to do. One that `died` may be
    `orphaned`: what had forked it ended, and the target has no part in that.
    """

    outcome: str
    value: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    remedy: str = ""
    errno: int | None = None
    file: str | None = None
    pid: int | None = None
    stuck: bool = False
    late: bool = False
    untold: bool = False
    orphaned: bool = False

    @property
    def perhaps_done(self) -> bool:
        """Whether what was asked for may be there, or half of it."""
        return not self.untold and (self.outcome != "failed" or self.late)


class Worker:
    """One worker process. Use as a context manager; leaving it never waits for a stuck one."""

    def __init__(self, stopping: Callable[[], bool] = lambda: False, kinds: Collection[str] = ()) -> None:
        """`kinds` of work that it is to do are loaded before it is forked, once for all that follow it."""
        self._stopping = stopping
        # In memory: the temporary directory may lie on what hangs. Closed in `close`.
        self._stderr = os.fdopen(os.memfd_create("leadline-worker"), "w+b")
        its_input, input_ = os.pipe()
        output, its_output = os.pipe()
        self._input, self._output = os.fdopen(input_, "wb"), os.fdopen(output, "rb")
        try:
            self._process = forks().fork((its_input, its_output, self._stderr.fileno()), kinds)
        finally:
            os.close(its_input)
            os.close(its_output)
        self._pending = b""
        self._silent = False  # the worker has closed its standard output: it is ending
        self._begun = True
        self._called_ns = time.monotonic_ns()
        self.stuck = False

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._process.pid

    def stopped_ns(self, since_ns: int, until_ns: int) -> int | None:
        """See `ForkedProcess`."""
        return self._process.stopped_ns(since_ns, until_ns)

    def bring(self, record: Path) -> None:
        """Have the record of a trial that still runs here, as far as it is written."""
        self._process.bring(record)

    def __enter__(self) -> Worker:
        """Wait until it obeys. One that was stopped before answers every command by `interrupted`."""
        deadline_s = patient_s(_START_DEADLINE_S)
        end = time.monotonic() + deadline_s
        while not any(message.get("event") == "ready" for message in self._read_messages()):
            if self._stopping():  # it ends when it finds that its input has
                self._begun = False
                return self
            if self._silent:
                self._refuse(self._process.begun() or self._death().message)
            if time.monotonic() > end:
                self._refuse(f"process {self.pid} was not ready within {deadline_s:.0f} s")
        self._process.begun()
        return self

    def _refuse(self, reason: str) -> NoReturn:
        self._process.give_up()
        self.close()
        raise EngineError(f"a worker process did not start: {reason}", "run: leadline doctor")

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(
        self,
        command: str,
        deadline_s: float,
        progress: Callable[[dict[str, Any]], None] = lambda _: None,
        enough: Callable[[], bool] = lambda: False,
        come: Callable[[], int | None] | None = None,
        **arguments: Any,
    ) -> Answer:
        """Send one command and wait for its end, at most until the deadline.

        `enough` is asked often: once it is true the worker is interrupted, as by a stop request. A trial that
        `meets` others is told what `come` says once it is open: when it starts (CLOCK_MONOTONIC, ns), or None
        where it does not; that wait is none of its time.
        """
        self._called_ns = time.monotonic_ns()
        if not self._begun:
            return self._stopped(untold=True)
        try:
            self._send(command=command, **arguments)
        except OSError:
            return self._death()
        return self._next(time.monotonic() + deadline_s, progress, enough, come)

    def _send(self, **message: Any) -> None:
        self._input.write(json.dumps(message).encode() + b"\n")
        self._input.flush()

    def close(self) -> None:
        """End the process; one that is stuck is left alone."""
        with contextlib.suppress(OSError):
            self._input.close()
        if not self.stuck and not self._process.wait(_KILL_GRACE_S):
            self._process.signal(signal.SIGKILL)
            self.stuck = not self._process.wait(_KILL_GRACE_S)
        self._process.close()
        self._output.close()
        self._stderr.close()

    def _next(
        self,
        deadline: float,
        progress: Callable[[dict[str, Any]], None],
        enough: Callable[[], bool] = lambda: False,
        come: Callable[[], int | None] | None = None,
    ) -> Answer:
        """Read lines until an answer; on a stop request or at the deadline the worker is interrupted."""
        interrupted_at: float | None = None
        late = False
        while True:
            for message in self._read_messages():
                if come is not None and message.get("event") == "open":
                    deadline += self._meet(come)
                    continue
                answer = self._as_answer(message, interrupted_at is not None, late, progress)
                if answer is not None:
                    return answer
            now = time.monotonic()
            if self._silent:
                return self._death() if late or interrupted_at is None else self._stopped()
            if interrupted_at is None and (self._stopping() or now > deadline or enough()):
                late = now > deadline
                interrupted_at = now
                self._process.signal(signal.SIGINT)
            if interrupted_at is not None and now > interrupted_at + _INTERRUPT_GRACE_S:
                return self._give_up(late)

    def _meet(self, come: Callable[[], int | None]) -> float:
        """Tell a trial when it starts; for how long it waits, s."""
        since = time.monotonic()
        start_ns = come()
        with contextlib.suppress(OSError):  # who died is met with where its answer is waited for
            self._send(start_ns=start_ns)
        return max(time.monotonic(), (start_ns or 0) / 1e9) - since

    def _as_answer(
        self,
        message: dict[str, Any],
        interrupted: bool,
        late: bool,
        progress: Callable[[dict[str, Any]], None],
    ) -> Answer | None:
        event = message.get("event")
        if event == "done":
            return Answer("done", value=message.get("answer") or {}, pid=self.pid)
        if event == "failed":
            if late:  # it was interrupted for that, and by nobody else
                words = f"I/O did not end by its deadline: process {self.pid} was interrupted"
                remedy = "look at the server behind it"
                words, remedy = self._or_stopped(words, remedy)
                return Answer("failed", message=words, remedy=remedy, pid=self.pid, late=True)
            outcome = "interrupted" if message.get("interrupted") or interrupted else "failed"
            return Answer(
                outcome,
                message=str(message.get("message")),
                remedy=str(message.get("remedy") or ""),
                errno=message.get("errno"),
                file=message.get("file"),
                pid=self.pid,
            )
        progress(message)
        return None

    def _read_messages(self) -> list[dict[str, Any]]:
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            if not selector.select(_POLL_S):
                return []
        data = os.read(self._output.fileno(), 1 << 16)
        self._silent = not data
        *lines, self._pending = (self._pending + data).split(b"\n")
        if len(self._pending) > _LINE_BYTES_MAX:
            raise EngineError("a worker process printed a line without end", "report this as a defect")
        return [json.loads(line) for line in lines if line.startswith(b"{")]

    def _give_up(self, late: bool) -> Answer:
        what = "did not end by its deadline" if late else "did not stop when asked"
        killed = f"I/O {what}: process {self.pid} was killed"
        message, remedy = self._or_stopped(killed, "look at the server behind the mount")
        self._process.signal(signal.SIGKILL)
        self.stuck = not self._process.wait(_KILL_GRACE_S)
        if self.stuck:
            message = f"I/O {what}: process {self.pid} is stuck in the kernel"
            remedy = (
                f"look at /proc/{self.pid}/stack and at the server behind the mount;"
                " the process ends when its I/O does"
            )
        outcome = "hung" if late else "interrupted"
        return Answer(outcome, message=message, remedy=remedy, pid=self.pid, stuck=self.stuck)

    def _or_stopped(self, words: str, remedy: str) -> tuple[str, str]:
        """The words for a late worker, whose storage is not to blame where a signal had stopped it."""
        stopped_ns = self.stopped_ns(self._called_ns, time.monotonic_ns())
        if not stopped_ns:
            return words, remedy
        return (
            f"{words}: a signal had stopped it for {stopped_ns / 1e9:.1f} s",
            "find who sends stop signals (kill -STOP, a batch system), then run the study again",
        )

    def _stopped(self, *, untold: bool = False) -> Answer:
        words = "the worker was stopped before it could answer"
        return Answer("interrupted", message=words, pid=self.pid, untold=untold)

    def _death(self) -> Answer:
        if not self._process.wait(_KILL_GRACE_S):
            return self._give_up(late=True)  # it closed its output, and cannot finish closing its files
        self._stderr.seek(0)
        last = self._stderr.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
        detail = f": {last[-1]}" if last else ""
        words = f"the worker process {self.pid} {self._process.death()}{detail}"
        return Answer("died", message=words, pid=self.pid, orphaned=self._process.orphaned)
