"""The command's side of the helper that workers are forked from: started when a worker is asked for first."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Protocol

from leadline.errors import EngineError
from leadline.interpreter import module_command, module_environment
from leadline.observe import machine

_OWN = Path("/proc/thread-self")
# proc(5): accounts, umask, capabilities, filters, processors and memory of a thread.
_INHERITED = ("Umask", "Uid", "Gid", "Groups", "Cap", "NoNewPrivs", "Seccomp", "Cpus_allowed", "Mems_allowed")
_LIMITS = ("limits", "cgroup", "oom_score_adj", "timerslack_ns")

Circumstances = tuple[object, ...]


def circumstances(command: Sequence[str]) -> Circumstances:
    """Equal for two processes that a `command` would find the same around them."""
    namespaces = tuple(sorted((one.name, str(one.readlink())) for one in (_OWN / "ns").iterdir()))
    status = (_OWN / "status").read_text().splitlines()
    return (
        tuple(command),
        tuple(sorted(module_environment().items())),
        os.getpid(),
        str((_OWN / "cwd").readlink()),  # its name alone: it may lie on what hangs
        namespaces,
        tuple(line for line in status if line.startswith(_INHERITED)),
        tuple(_text(name) for name in _LIMITS),
        (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)),
    )


def _text(name: str) -> str:
    try:
        return (_OWN / name).read_text()
    except OSError:
        return ""


_TELL_S = 10.0  # a helper that forked a worker says so at once, and so does one asked how it ended
_END_S = 1.0
_ERRORS_BYTES_MAX = 2000


class ForkHelper:
    """One helper process, and how many of its workers are still held by somebody."""

    def __init__(self, made_in: Circumstances, command: list[str]) -> None:
        self.made_in = made_in
        self.owner = os.getpid()
        self.held = 0
        self.retired = False
        # In memory: the temporary directory may lie on what hangs.
        self._errors = os.fdopen(os.memfd_create("leadline-helper"), "w+b")
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env=module_environment(),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def ask(self, request: dict[str, Any], *descriptors: int) -> None:
        """Raises OSError where it has ended."""
        socket.send_fds(self._control, [json.dumps(request).encode()], descriptors)

    def death(self) -> str:
        """How it ended, in words; "" while it has not."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.process.wait(_END_S)
            last = self._last_error()
            detail = f": {last}" if last else ""
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            return f"the process {self.process.pid} that forks workers ended by {how}{detail}"
        return ""

    def _last_error(self) -> str:
        if self._errors.closed:
            return ""
        size = os.fstat(self._errors.fileno()).st_size
        text = os.pread(self._errors.fileno(), _ERRORS_BYTES_MAX, max(size - _ERRORS_BYTES_MAX, 0))
        return (text.decode("utf-8", "replace").strip().splitlines() or [""])[-1]

    def close(self) -> None:
        """End it, and its workers with it."""
        self._control.close()
        if self.owner == os.getpid():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_END_S)
            if self.process.returncode is None:  # it was still loading
                self.process.kill()
                self.process.wait()
        self._errors.close()


class ForkedProcess:
    """A worker's process, which is the helper's child: signalled and waited for by its own descriptor."""

    def __init__(self, helper: ForkHelper, told: socket.socket, prepared: Prepared) -> None:
        self._helper, self._told, self._prepared = helper, told, prepared
        self._held: int | None = None
        self._pid: int | None = None
        self._ended = False
        self._closed = False
        self.returncode: int | None = None

    @property
    def pid(self) -> int:
        """Its process id; until it was forked, that of the process that is to fork it."""
        return self._helper.process.pid if self._pid is None else self._pid

    def begun(self) -> str | None:
        """Take it over once it is there; why it was refused, or None."""
        words, descriptors = self._hear()
        if descriptors:
            self._pid, self._held = words["pid"], descriptors[0]
        refused: str | None = words.get("refused")
        return refused

    def bring(self, record: Path) -> None:
        """See `WorkerProcess`: it writes here."""

    def give_up(self) -> None:
        """It did not come to be in time: neither it nor what was to fork it is waited for any more."""
        if self._held is None:
            self._prepared.discard(self._helper)
        else:
            self.signal(signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, and never another process."""
        if self._held is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._held, number)

    def wait(self, deadline_s: float) -> bool:
        """Whether it has ended, at most after so long; `returncode` says how, unless the helper is gone."""
        if self._ended or self._held is None:
            return True
        polled = select.poll()
        polled.register(self._held, select.POLLIN)
        if not polled.poll(deadline_s * 1000):
            return False
        self._ended = True
        with contextlib.suppress(OSError):
            self._helper.ask({"reap": self._pid})
            self.returncode = self._hear()[0].get("code")
        return True

    def stopped_ns(self, since_ns: int, until_ns: int) -> int | None:
        """How long signals had it stopped between two instants (CLOCK_MONOTONIC); None if nobody knows."""
        if self._ended or self._held is None:
            return None
        with contextlib.suppress(OSError):
            self._helper.ask({"stopped": self._pid, "since_ns": since_ns, "until_ns": until_ns})
            found: int | None = self._hear()[0].get("stopped_ns")
            return found
        return None

    def death(self) -> str:
        """How it ended, in words."""
        code = self.returncode
        if code is None:
            why = self._helper.death() or "nobody knows how"
            return f"ended: {why}"
        return f"ended by signal {signal.Signals(-code).name}" if code < 0 else f"ended by exit code {code}"

    @property
    def orphaned(self) -> bool:
        """Whether it ended for no fault of its own or its storage's: what had forked it was gone."""
        return self.returncode is None and self._helper.process.poll() is not None

    def close(self) -> None:
        """Of no interest any more, ended or stuck."""
        if self._closed:
            return
        self._closed = True
        if self._held is not None:
            os.close(self._held)
            self._held = None
        self._told.close()  # the helper sees that it is to reap it, once it has ended, by itself
        self._prepared.released(self._helper)

    def _hear(self) -> tuple[dict[str, Any], list[int]]:
        """What the helper tells of it; nothing where the helper has ended."""
        self._told.settimeout(_TELL_S)
        try:
            data, descriptors, _, _ = socket.recv_fds(self._told, 4096, 1)
        except OSError:  # its end may have gone with words unread
            return {}, []
        return (json.loads(data) if data else {}), list(descriptors)


class WorkerProcess(Protocol):
    """A worker's process, here or on another machine. See `ForkedProcess`."""

    @property
    def pid(self) -> int:
        """Its process id."""

    @property
    def orphaned(self) -> bool:
        """Whether it ended since what had forked it was gone."""

    def begun(self) -> str | None:
        """Why it was refused, or None."""

    def bring(self, record: Path) -> None:
        """Have the record of a trial that still runs here."""

    def give_up(self) -> None:
        """Nobody waits for it any more."""

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""

    def wait(self, deadline_s: float) -> bool:
        """Whether it has ended, at most after so long."""

    def stopped_ns(self, since_ns: int, until_ns: int) -> int | None:
        """How long signals had it stopped; None if nobody knows."""

    def death(self) -> str:
        """How it ended, in words."""

    def close(self) -> None:
        """Of no interest any more."""


class Forks(Protocol):
    """What starts workers, from several threads."""

    def fork(self, streams: tuple[int, int, int], kinds: Collection[str]) -> WorkerProcess:
        """A worker with these descriptors as its streams."""

    def told(self) -> list[str]:
        """What is to be said since this was asked last."""

    def leave(self) -> None:
        """No worker is asked for soon."""


class Prepared:
    """The helper of this command's circumstances. Safe to be asked from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._helper: ForkHelper | None = None
        self._retired: list[ForkHelper] = []
        self._deaths: list[str] = []
        atexit.register(self.close)

    def fork(self, streams: tuple[int, int, int], kinds: Collection[str]) -> ForkedProcess:
        """Ask for a worker with these descriptors as its streams; it may take a while until it is there."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, self._lock:
            helper = self._present()
            try:
                helper.ask({"kinds": sorted(kinds)}, *streams, theirs.fileno())
            except OSError as error:  # it ended after it was looked at
                self._note_death(helper)
                ours.close()
                why = self._deaths[-1] or str(error)
                raise EngineError(f"a worker process did not start: {why}", "run: leadline doctor") from None
            helper.held += 1
        return ForkedProcess(helper, ours, self)

    def told(self) -> list[str]:
        """What is to be said of helpers that ended by themselves since this was asked last."""
        with self._lock:
            found, self._deaths = self._deaths, []
        return found

    def discard(self, helper: ForkHelper) -> None:
        """End a helper that does not do its work; the next worker has a new one."""
        with self._lock:
            if self._helper is helper:
                self._helper = None
            helper.retired = True
            helper.process.kill()

    def released(self, helper: ForkHelper) -> None:
        """A worker of it is gone; a retired helper goes with its last."""
        with self._lock:
            helper.held -= 1
            if helper.retired and helper.held == 0:
                self._retired = [one for one in self._retired if one is not helper]
                helper.close()

    def leave(self) -> None:
        """No worker is asked for soon: the helper goes, with its last worker. A process may stay for days."""
        with self._lock:
            if self._helper is not None and self._helper.owner == os.getpid():
                self._retire(self._helper)

    def close(self) -> None:
        """End all helpers."""
        with self._lock:
            for helper in filter(None, (self._helper, *self._retired)):
                helper.close()
            self._helper, self._retired = None, []

    def _present(self) -> ForkHelper:
        command = module_command("leadline.run.fork_helper")
        now = circumstances(command)
        helper = self._helper
        if helper is not None and helper.owner != os.getpid():  # a fork of the command: it is its parent's
            helper = self._helper = None
        if helper is not None and helper.process.poll() is not None:
            self._note_death(helper)
            helper = None
        if helper is not None and helper.made_in != now:
            self._retire(helper)
            helper = None
        if helper is None:
            helper = self._helper = ForkHelper(now, command)
        return helper

    def _note_death(self, helper: ForkHelper) -> None:
        self._deaths.append(helper.death())
        self._retire(helper)

    def _retire(self, helper: ForkHelper) -> None:
        """Its workers would end with it, so that it stays as long as one of them does."""
        self._helper = None
        helper.retired = True
        if helper.held == 0:
            helper.close()
        else:
            self._retired.append(helper)


@functools.cache
def prepared() -> Prepared:
    """That of this process."""
    return Prepared()


def forks() -> Forks:
    """What workers are forked by: the helper of this process, or the machine that it works for."""
    there = machine.other()
    return prepared() if there is None else there.workers
