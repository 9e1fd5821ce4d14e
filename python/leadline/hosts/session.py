"""`python -m leadline.hosts.session`: what executes a study's trials on one of its hosts.

The study's worker there starts it and speaks with it by JSON lines; standard output carries nothing else. It
outlives neither that process nor its lease, which every word renews: then it ends its trial as a stop of the
user does, removes its workspaces, keeps its tables and ends.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, NoReturn

from leadline.errors import LeadlineError, UsageError, shortage_of
from leadline.hosts.directory import LINE_BYTES_MAX
from leadline.hosts.host_study import HostStudy
from leadline.hosts.model import Attempt, as_json
from leadline.observe import machine
from leadline.plan.model import Plan, PlannedCell, Trial
from leadline.store.tables import TrialRow

_FUTURE_S_MAX = 600.0  # a start further off is no start that was agreed on
PREPARED = {"prepared": True}

_Tell = Callable[[int, Mapping[str, Any]], None]


class CurrentAttempt:
    """One attempt at a time. `tell` answers a request, by its number; `stopping` ends any wait."""

    def __init__(self, tell: _Tell, stopping: Callable[[], bool]) -> None:
        self._tell = tell
        self._stopping = stopping
        self._changed = threading.Condition()
        self._attempt = ""
        self._asker: int | None = None
        self._prepared = False
        self._start_ns: int | None = None
        self._called_off: set[str] = set()

    def take(self, attempt: str, asker: int) -> None:
        """The attempt is the one that is worked at; `asker` is the request to prepare it."""
        with self._changed:
            self._attempt, self._asker = attempt, asker
            self._prepared, self._start_ns = False, None

    def is_off(self) -> bool:
        """Whether it was called off."""
        with self._changed:
            return self._attempt in self._called_off

    def wait(self) -> int | None:
        """Say that all is prepared, and wait for its start (ns of CLOCK_MONOTONIC); None: called off."""
        with self._changed:
            if self._ended():
                return None  # who asked hears how it ended
            self._answer(PREPARED)
            self._prepared = True
            while self._start_ns is None and not self._ended():
                self._changed.wait(_LOOK_EVERY_S)
            self._prepared = False
            start_ns, self._start_ns = self._start_ns, None
            return start_ns

    def _ended(self) -> bool:
        return self._stopping() or self._attempt in self._called_off

    def begin(self, attempt: str, start_unix_ns: int, asker: int) -> str:
        """Have it start then, on this host's time of day. Why that cannot be, or ""."""
        there = machine.other()
        monotonic_ns = time.monotonic_ns()
        unix_ns = time.time_ns() if there is None else monotonic_ns + there.offset_ns()
        with self._changed:
            if attempt != self._attempt or not self._prepared or self._start_ns is not None:
                return (
                    f"attempt {attempt} is not prepared here: it was begun before, has ended, or is another"
                )
            if start_unix_ns - unix_ns > _FUTURE_S_MAX * 1e9:
                return f"its start is {(start_unix_ns - unix_ns) / 1e9:,.0f} s away by this host's clock"
            self._start_ns = monotonic_ns + start_unix_ns - unix_ns
            self._asker = asker
            self._changed.notify_all()
        return ""

    def call_off(self, attempt: str) -> None:
        """End an attempt, also one that has not come yet."""
        with self._changed:
            self._called_off.add(attempt)
            self._changed.notify_all()

    def end(self, answer: Mapping[str, Any]) -> None:
        """It has ended; who waits for it is told how."""
        with self._changed:
            self._answer(answer)
            self._attempt = ""

    def _answer(self, answer: Mapping[str, Any]) -> None:
        asker, self._asker = self._asker, None
        if asker is not None:
            self._tell(asker, answer)


_LOOK_EVERY_S = 0.1
_UNOPENED_S = 60.0  # until a study is opened

_Message = Mapping[str, Any]


class UnseenDisplay:
    """Nobody looks at a host's own progress: the study's parent shows what comes of it."""

    def begin(self, plan: Plan, remaining: int) -> None:
        """Nothing to show."""

    def trial(self, trial: Trial, cell: PlannedCell) -> None:
        """Nothing to show."""

    def grown(self, trials: Sequence[Trial]) -> None:
        """Nothing to show."""

    def progress(self, message: Mapping[str, Any]) -> None:
        """Nothing to show."""

    def finished(self, row: TrialRow) -> None:
        """Nothing to show."""

    def say(self, text: str) -> None:
        """Nothing to show: what is said is in the journal too."""


class HostSession:
    """Hears in one thread (`hear`), works in another (`serve`)."""

    def __init__(self, output: int) -> None:
        self._output = output
        self._speaking = threading.Lock()
        self._asked: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._study: HostStudy | None = None
        self._turn = CurrentAttempt(self._tell, self.stopping)
        self._parent = os.getppid()
        self._lease_s = _UNOPENED_S
        self._heard_s = time.monotonic()
        self._stopped = False
        self._ended = False
        self._quick = {
            "begin": self._begin,
            "cancel": self._cancel,
            "forget": self._forget,
        }
        self._slow = {"open": self._open, "prepare": self._prepare, "close": self._close}

    # -- what ends it ------------------------------------------------------------------------------

    def end(self) -> None:
        """End what goes on, and the session."""
        self._ended = True

    def ending(self) -> bool:
        """Whether the session is over: told so, its lease has run out, or its parent is gone."""
        late = time.monotonic() > self._heard_s + self._lease_s
        return self._ended or late or os.getppid() != self._parent

    def stopping(self) -> bool:
        """What a trial is ended for."""
        return self._stopped or self.ending()

    # -- hearing -------------------------------------------------------------------------------------

    def hear(self, message: _Message) -> None:
        """Do at once what is quick; the rest waits for its turn. Every word renews the lease."""
        self._heard_s = time.monotonic()
        what = message.get("do")
        self._stopped = self._stopped or what == "close"  # also what still waits for its start
        if what == "renew":
            self._tell(message["id"], {"lease_s": self._lease_s})
        elif what in self._quick:
            self._answered(message, self._quick[what])
        else:
            self._asked.put(message)

    def _begin(self, message: _Message) -> _Message | None:
        attempt = str(message["attempt"])
        why = self._turn.begin(attempt, int(message["start_unix_ns"]), int(message["id"]))
        return {"attempt": attempt, "state": "refused", "reason": why} if why else None

    def _cancel(self, message: _Message) -> _Message:
        self._turn.call_off(str(message["attempt"]))
        return {}

    def _forget(self, message: _Message) -> _Message:
        self._opened().forget(str(message["attempt"]))
        return {}

    # -- working -------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Do what is asked for, one after another, until the session is over; nothing is left then."""
        try:
            while not self.ending():
                with suppress(queue.Empty):
                    message = self._asked.get(timeout=_LOOK_EVERY_S)
                    self._answered(message, self._slow.get(str(message.get("do")), self._unknown))
        finally:
            study, self._study = self._study, None
            if study is not None:
                study.close(discard=False)

    def _open(self, message: _Message) -> _Message:
        if self._study is not None:
            raise UsageError("a study is open in this session already", "close it first")
        self._lease_s = float(message["lease_s"])
        self._study = HostStudy(
            message["manifest"],
            message["host"],
            message["directory"],
            UnseenDisplay(),
            lambda: self.stopping() or self._turn.is_off(),
            self._turn.wait,
        )
        return {"facts": self._study.facts, "directory": str(self._study.place)}

    def _prepare(self, message: _Message) -> None:
        """One attempt, to its end: who asks for it is answered once it is prepared, or why it will not be."""
        asked = message["attempt"]
        attempt = Attempt(
            str(asked["id"]),
            [str(trial) for trial in asked["trials"]],
            rates=asked.get("rates") or {},
            grown=asked.get("grown") or (),
        )
        study = self._opened()
        self._turn.take(attempt.id, int(message["id"]))
        try:
            self._turn.end(as_json(study.run(attempt)))
        except Exception as error:
            self._turn.end(_refusal(error))

    def _close(self, message: _Message) -> _Message:
        study, self._study = self._study, None
        left = () if study is None else study.close(discard=bool(message.get("discard")))
        self.end()
        return {"left": list(left)}

    def _unknown(self, message: _Message) -> _Message:
        raise UsageError(
            f"{message.get('do')!r} is nothing that a session does", "use one version on all hosts"
        )

    def _opened(self) -> HostStudy:
        if self._study is None:
            raise UsageError("no study is open in this session", "open it first")
        return self._study

    # -- speaking ------------------------------------------------------------------------------------

    def _answered(self, message: _Message, doing: Any) -> None:
        """Do it and answer; it answers by itself later where it gives nothing."""
        try:
            answer = doing(message)
        except Exception as error:  # said to who asked, who decides: the session goes on
            answer = _refusal(error)
        if answer is not None:
            self._tell(int(message["id"]), answer)

    def _tell(self, asker: int, answer: _Message) -> None:
        line = json.dumps({"id": asker, "answer": dict(answer)}).encode() + b"\n"
        with self._speaking:
            view = memoryview(line)
            try:
                while view:
                    view = view[os.write(self._output, view) :]
            except OSError:  # nobody listens any more
                self.end()


def _refusal(error: Exception) -> dict[str, Any]:
    """An error in words, for whoever asked."""
    if isinstance(error, LeadlineError):
        return {"refused": error.message, "remedy": error.remedy}
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return {"refused": f"{error.strerror or error}{where}", "remedy": ""}
    defect = (f"internal error: {type(error).__name__}: {error}", "report this as a defect")
    refused, remedy = shortage_of(error) or defect
    return {"refused": refused, "remedy": remedy}


def _listen(session: HostSession, stream: IO[bytes]) -> None:
    """Hear until the end of the input: the worker of this host has ended, or wants no more."""
    try:
        while (line := stream.readline(LINE_BYTES_MAX)).endswith(b"\n"):
            session.hear(json.loads(line))
    finally:  # also where what was said is no request of this version
        session.end()


class SessionThread:
    """A session in this process, for a host that is another: what `channel.Channel` needs of a child."""

    def __init__(self, errors: int) -> None:
        its_input, to = os.pipe()
        output, its_output = os.pipe()
        self.stdin: IO[bytes] | None = os.fdopen(to, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(output, "rb")
        self.pid = os.getpid()
        self.returncode: int | None = None
        self._errors = errors
        self._session = HostSession(its_output)
        stream = os.fdopen(its_input, "rb")
        threading.Thread(target=_listen, args=(self._session, stream), daemon=True).start()
        self._thread = threading.Thread(target=self._run, args=(its_output,), daemon=True)
        self._thread.start()

    def _run(self, output: int) -> None:
        code = 1
        try:
            self._session.serve()
            code = 0
        except Exception as error:
            words = error.message if isinstance(error, LeadlineError) else traceback.format_exc()
            os.write(self._errors, words.encode())
        finally:
            self.returncode = code
            os.close(output)

    def poll(self) -> int | None:
        """How it ended, None while it has not."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise subprocess.TimeoutExpired("session", timeout or 0)
        return self.returncode or 0

    def kill(self) -> None:
        """Have it end; it cannot be killed alone."""
        self._session.end()


def main() -> NoReturn:
    """Serve one study, and leave: where a thread still hears, Python's own end is an abort."""
    output = os.dup(1)
    os.dup2(2, 1)  # what a library prints is no answer
    session = HostSession(output)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: session.end())
    threading.Thread(target=_listen, args=(session, sys.stdin.buffer), daemon=True).start()
    code = 1
    try:
        session.serve()
        code = 0
    except Exception:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
