"""The pipe to a session, from the process that started it: requests by number, answered in any order."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import Any

from leadline.hosts.directory import LINE_BYTES_MAX
from leadline.hosts.session import SessionThread
from leadline.interpreter import module_command, module_environment
from leadline.observe import machine
from leadline.observe.host.host import patient_s

_END_S = 90.0  # a trial is ended and workspaces are removed: `child` and `places` have deadlines of their own
_KILL_S = 2.0
_DETAIL_BYTES = 2000


class SessionLostError(Exception):
    """The session has ended, and why as far as it said."""


class Channel:
    """A session and who asks it, from any thread.

    `study` stands in its command line, by which sessions of one study on one machine know each other. `ended`
    is called once it is over, however it ended, before anybody hears so.
    """

    def __init__(self, study: str, ended: Callable[[], None] = lambda: None) -> None:
        self._ended = ended
        self._stderr = os.fdopen(os.memfd_create("leadline-session"), "w+b")
        self._process: subprocess.Popen[bytes] | SessionThread
        if machine.other() is not None:  # what calls its host is in this process
            self._process = SessionThread(self._stderr.fileno())
        else:
            self._process = subprocess.Popen(
                module_command("leadline.hosts.session", study),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env=module_environment(),
                start_new_session=True,
            )
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[Mapping[str, Any] | None]] = {}
        self._over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The session's process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can still answer."""
        return not self._over and self._process.poll() is None

    def ask(self, do: str, deadline_s: float | None = None, **arguments: Any) -> dict[str, Any]:
        """Its answer. Raises SessionLostError where it ends before, TimeoutError after the deadline."""
        number, answers = next(self._numbers), queue.SimpleQueue[Mapping[str, Any] | None]()
        line = json.dumps({"id": number, "do": do, **arguments}).encode() + b"\n"
        with self._lock:
            if self._over:
                raise SessionLostError(self._death())
            self._waiting[number] = answers
            with contextlib.suppress(OSError):  # it has ended: who reads its answers is about to say so
                assert self._process.stdin is not None  # noqa: S101 - PIPE was asked for
                self._process.stdin.write(line)
                self._process.stdin.flush()
        try:
            found = answers.get(timeout=deadline_s)
        except queue.Empty:
            raise TimeoutError(f"process {self.pid} did not answer {do!r} within {deadline_s:g} s") from None
        finally:
            self._waiting.pop(number, None)
        if found is None:
            raise SessionLostError(self._death())
        return dict(found)

    def close(self) -> bool:
        """Have it end, as it does when this process ends; False where it had to be killed, or cannot be."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None  # noqa: S101
            self._process.stdin.close()
        try:
            self._process.wait(patient_s(_END_S))
        except subprocess.TimeoutExpired:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_KILL_S)
            return False
        self._reader.join(_KILL_S)  # who asked until now has been told
        return True

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None  # noqa: S101
        with contextlib.suppress(OSError, ValueError):
            while (line := stream.readline(LINE_BYTES_MAX)).endswith(b"\n"):
                found = json.loads(line)
                answers = self._waiting.get(found["id"])
                if answers is not None:
                    answers.put(found["answer"])
        stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILL_S)
        try:
            self._ended()
        finally:
            with self._lock:
                self._over = True
                for answers in list(self._waiting.values()):  # each goes as it is told
                    answers.put(None)

    def _death(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILL_S)
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - _DETAIL_BYTES))
        last = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        code = self._process.returncode
        how = "closed its output" if code is None else f"ended (exit code {code})"
        return f"the session, process {self.pid}, {how}{f': {last[-1]}' if last else ''}"
