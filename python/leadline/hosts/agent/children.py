"""Processes that an agent starts on its host, in the place of processes here: workers and observers.

Each has pipes here, which threads pump. What a worker's commands name of the result lies here, and the worker
is there: `Carrier` exchanges such paths for those of the agent's directory, and moves the files.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from leadline.errors import LeadlineError
from leadline.foreign import parse_json
from leadline.hosts.agent.connection import AgentConnection, AgentError, AgentLostError
from leadline.hosts.replies import ATTEMPT_BYTES_MAX
from leadline.run.kinds import handed

_READ_S = 20.0  # a call that waits for output is answered by then
_LATE_S = 30.0  # more for its answer
_PIECE_BYTES = 4 << 20
_GONE_S = 5.0
_LINE_BYTES_MAX = 64 << 20


def _as_it_is(line: bytes, _message: object = None) -> bytes:
    return line


class ChildStreams(NamedTuple):
    """Descriptors: what it reads, what it writes, and its errors."""

    input: int
    output: int
    errors: int


class AgentChild:
    """A process of an agent. Takes copies of its streams. See `run.prepared.WorkerProcess`."""

    def __init__(
        self,
        connection: AgentConnection,
        role: str,
        streams: ChildStreams,
        told: Callable[[bytes], bytes] = _as_it_is,
        says: Callable[[bytes, Any], bytes] = _as_it_is,
    ) -> None:
        """`told` changes each line that it is told, and `says` each that it says, given with its JSON."""
        self._connection, self._told, self._says = connection, told, says
        found = connection.call("spawn", role, [])
        self._id, self.pid = found["id"], int(found["pid"])
        self.returncode: int | None = None
        self._ended = threading.Event()
        self._input = os.fdopen(os.dup(streams.input), "rb")
        self._output, self._errors = os.dup(streams.output), os.dup(streams.errors)
        for doing in (self._feed, self._pump):
            threading.Thread(target=doing, name=f"leadline-{role}-{self.pid}", daemon=True).start()

    def _feed(self) -> None:
        with suppress(LeadlineError, OSError, ValueError), self._input:
            for line in self._input:
                self._connection.call("write", self._id, self._told(line))
            self._connection.call("close", self._id)

    def _pump(self) -> None:
        try:
            self._hand_on()
            with suppress(OSError):
                _write_all(self._errors, bytes(self._connection.call("errors", self._id) or b""))
        except LeadlineError as error:
            with suppress(OSError):
                _write_all(self._errors, f"{error.message}\n".encode())
        finally:
            os.close(self._output)
            os.close(self._errors)
        with suppress(LeadlineError):
            while self.returncode is None:
                self.returncode = self._connection.call("wait", self._id, _READ_S, within_s=_READ_S + _LATE_S)
        self._ended.set()

    def _hand_on(self) -> None:
        """Whole lines, until it closes its output; the last may be cut short."""
        pending = b""
        while True:
            data = self._connection.call("read", self._id, _READ_S, within_s=_READ_S + _LATE_S)
            if data is None:
                break
            *lines, pending = (pending + data).split(b"\n")
            if len(pending) > _LINE_BYTES_MAX:
                raise AgentError("a process of the agent prints a line without end", "see who answers there")
            for line in lines:
                message = _message_of(line)
                with suppress(OSError):  # nobody listens any more
                    _write_all(self._output, self._says(line + b"\n", message))
        with suppress(OSError):
            _write_all(self._output, pending)

    def begun(self) -> str | None:
        """See `WorkerProcess`: it is there."""
        return None

    def give_up(self) -> None:
        """See `WorkerProcess`."""
        self.signal(signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """See `WorkerProcess`."""
        with suppress(LeadlineError):
            self._connection.call("signal", self._id, int(number))

    def wait(self, deadline_s: float) -> bool:
        """See `WorkerProcess`."""
        return self._ended.wait(deadline_s)

    def stopped_ns(self, since_ns: int, until_ns: int) -> int | None:
        """See `WorkerProcess`: nobody knows."""
        del since_ns, until_ns
        return None

    def death(self) -> str:
        """See `WorkerProcess`."""
        code = self.returncode
        if code is None:
            return "ended: its host's agent is gone"
        return f"ended by signal {signal.Signals(-code).name}" if code < 0 else f"ended by exit code {code}"

    @property
    def orphaned(self) -> bool:
        """See `WorkerProcess`."""
        return self.returncode is None and self._connection.over

    def close(self) -> None:
        """See `WorkerProcess`."""
        with suppress(LeadlineError):
            self._connection.call("release", self._id)


def _message_of(line: bytes) -> Any:
    """A line's JSON; None for one that is not meant to be any.

    Raises AgentError for what those who read the words of our own processes would not survive.
    """
    if not line.startswith(b"{"):
        return None
    try:
        return parse_json(line)
    except ValueError as error:
        words = f"a process of the agent answers with no message: {error}"
        raise AgentError(words, "see who answers there") from None


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class AgentWorker(AgentChild):
    """A worker on an agent's host."""

    def __init__(self, connection: AgentConnection, streams: ChildStreams, carrier: Carrier) -> None:
        self._carrier = carrier
        super().__init__(connection, "worker", streams, carrier.told, carrier.says)

    def bring(self, record: Path) -> None:
        """See `WorkerProcess`."""
        self._carrier.bring(record)


class AgentForks:
    """Starts workers on an agent's host. See `run.prepared.Forks`."""

    def __init__(
        self, connection: AgentConnection, directory: str, start_there: Callable[[int], int]
    ) -> None:
        """`start_there` has an instant of this host's CLOCK_MONOTONIC on that host's."""
        self._connection, self._directory, self._start_there = connection, directory, start_there
        self._sent: dict[str, tuple[int, int]] = {}

    def fork(self, streams: tuple[int, int, int], kinds: Collection[str]) -> AgentWorker:
        """See `Forks`."""
        del kinds
        carrier = Carrier(self._connection, self._directory, self._start_there, self._sent)
        return AgentWorker(self._connection, ChildStreams(*streams), carrier)

    def told(self) -> list[str]:
        """See `Forks`."""
        return []

    def leave(self) -> None:
        """See `Forks`."""


class Carrier:
    """Changes one worker's commands and answers, and moves the files that they name."""

    def __init__(
        self,
        connection: AgentConnection,
        directory: str,
        start_there: Callable[[int], int],
        sent: dict[str, tuple[int, int]],
    ) -> None:
        self._connection, self._directory, self._start_there = connection, directory, start_there
        self._sent = sent  # files that the host has, with their size and time of change
        self._fetching = threading.Lock()
        self._trial: dict[str, Any] | None = None  # the command that is not answered yet

    def told(self, line: bytes) -> bytes:
        """A command as it is for the host."""
        message = parse_json(line)
        if message.get("start_ns") is not None:
            message["start_ns"] = self._start_there(message["start_ns"])
        if message.get("command") == "trial":
            self._trial = dict(message)
            message["record"] = self._place(message["record"])
        if isinstance(message.get("job"), dict):
            message["job"] = self._job(message["job"])
        return json.dumps(message).encode() + b"\n"

    def _job(self, job: dict[str, Any]) -> dict[str, Any]:
        carried = handed(job).carried
        there = {name: value for name, value in job.items() if name not in carried.ours}
        for name in (*carried.kept, *carried.sent, *carried.brought):
            if name in job:
                there[name] = self._place(job[name])
        for name in carried.sent:
            if name in job:
                self._send(job[name], there[name])
        return there

    def _place(self, path: str) -> str:
        """Where a file of the result lies on the host."""
        own = Path(path)
        return f"{self._directory}/{own.parent.name}-{own.name}"

    def _send(self, path: str, there: str) -> None:
        found = Path(path).stat()
        if self._sent.get(there) == (found.st_size, found.st_mtime_ns):
            return
        with Path(path).open("rb") as file:
            self._connection.call("write_file", there, file.read(_PIECE_BYTES), False)
            while piece := file.read(_PIECE_BYTES):
                self._connection.call("write_file", there, piece, True)
        self._sent[there] = found.st_size, found.st_mtime_ns

    def says(self, line: bytes, message: dict[str, Any] | None) -> bytes:
        """An answer, once the files that belong to it are here."""
        if self._trial is None or message is None or message.get("event") not in ("done", "failed"):
            return line
        trial, self._trial = self._trial, None
        try:
            self._take(trial, message.get("answer"))
        except AgentLostError:
            raise
        except OSError as error:
            words = f"{error.strerror or error}"
            message = {"event": "failed", "message": words, "remedy": "", "errno": error.errno}
            message["file"] = str(error.filename or trial["record"])
            return json.dumps(message).encode() + b"\n"
        except LeadlineError as error:
            words = f"what the trial recorded cannot be fetched: {error.message}"
            return json.dumps({"event": "failed", "message": words, "remedy": error.remedy}).encode() + b"\n"
        return line

    def _take(self, trial: dict[str, Any], answer: dict[str, Any] | None) -> None:
        job, record = trial["job"], Path(trial["record"])
        kind = handed(job)
        self.bring(record)
        self._remove(str(record))
        for name in kind.carried.brought:
            if name in job:
                own = Path(job[name])
                own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with suppress(*(() if answer is not None else (AgentError,))):  # a trial that failed has none
                    self._fetch(own)
                self._remove(job[name])
        if answer is not None:
            kind.taken(job, answer)

    def bring(self, record: Path) -> None:
        """Have what is written of a record so far; nothing where none is."""
        with suppress(AgentError):
            self._fetch(record)

    def _fetch(self, own: Path) -> None:
        """Copy a file of the host here. Raises AgentError where there is none, and OSError."""
        there, offset = self._place(str(own)), 0
        with self._fetching:  # the record is looked at by one thread, while another takes it
            data = self._connection.call("read_file", there, 0, _PIECE_BYTES)
            with own.open("wb") as file:
                while data:
                    offset += file.write(data)
                    if offset > ATTEMPT_BYTES_MAX:
                        raise LeadlineError(
                            f"{own.name} has more than {ATTEMPT_BYTES_MAX >> 30} GiB there", ""
                        )
                    data = self._connection.call("read_file", there, offset, _PIECE_BYTES)

    def _remove(self, path: str) -> None:
        with suppress(AgentError):
            self._connection.call("remove_file", self._place(path))


class AgentObserver:
    """The observers on an agent's host. See `observe.machine.ObserverProcess`."""

    def __init__(self, connection: AgentConnection) -> None:
        its_input, to = os.pipe()
        output, its_output = os.pipe()
        errors, its_errors = os.pipe()
        given: Sequence[int] = (its_input, its_output, its_errors)
        try:
            self._child = AgentChild(connection, "observe", ChildStreams(*given))
        except BaseException:
            for descriptor in (to, output, errors):
                os.close(descriptor)
            raise
        finally:
            for descriptor in given:
                os.close(descriptor)
        self.stdin: IO[bytes] | None = os.fdopen(to, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(output, "rb")
        self.stderr: IO[bytes] | None = os.fdopen(errors, "rb")
        self.pid = self._child.pid

    def poll(self) -> int | None:
        """See `ObserverProcess`."""
        if not self._child.wait(0):
            return None
        code = self._child.returncode
        return -signal.SIGKILL if code is None else code

    def wait(self, timeout: float | None = None) -> int:
        """See `ObserverProcess`."""
        if not self._child.wait(_GONE_S if timeout is None else timeout):
            raise subprocess.TimeoutExpired("observe", timeout or _GONE_S)
        self._child.close()
        return self.poll() or 0

    def kill(self) -> None:
        """See `ObserverProcess`."""
        self._child.signal(signal.SIGKILL)
