"""This host's end of a guest's lines: takes what comes, says what to do, and notices when a guest is lost."""

from __future__ import annotations

import json
import selectors
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from leadline.errors import LabError
from leadline.foreign import parse_json
from leadline.lab.guest.machine import CONSOLE, CONTROL, STDERR, STDOUT, Console, Deadline, Lines

OUTPUT_BYTES_MAX = 64 << 20  # of each stream of the command: a runaway program must not fill a disk
_READ_BYTES = 1 << 16
_TURN_S = 0.1
_LAST_WORDS_S = 2.0
_MESSAGE_BYTES_MAX = 1 << 20


@dataclass
class GuestState:
    """What the guest has said of itself. `uptime_s` is by what was reached, on the guest's own clock."""

    uptime_s: dict[str, float] = field(default_factory=dict)
    kernel: str = ""
    mounts: dict[str, str] = field(default_factory=dict)
    exit_code: int | None = None
    why: str = ""
    left: tuple[str, ...] = ()

    def take(self, message: Mapping[str, Any]) -> None:
        """One message of the guest's agent."""
        if "reached" in message:
            self.uptime_s[str(message["reached"])] = float(message["uptime_s"])
        if "mount" in message:
            self.mounts[str(message["mount"])] = str(message["reason"])
        if "exit" in message:
            self.exit_code, self.why = int(message["exit"]), str(message["why"])
            self.left = tuple(map(str, message["left"]))
        self.kernel = str(message.get("kernel", self.kernel))


class GuestSession:
    """All lines of one guest, served in one thread.

    `output` is given the command's words, by stream. `stop` is the signal that asks to end, or 0.
    """

    def __init__(
        self, lines: Lines, console: Console, output: Callable[[str, bytes], None], stop: Callable[[], int]
    ) -> None:
        self.told, self.ended = GuestState(), False
        self._lines, self._console, self._output, self._stop = lines, console, output, stop
        self._left = {STDOUT: OUTPUT_BYTES_MAX, STDERR: OUTPUT_BYTES_MAX}
        self._rest = b""
        self._selector = selectors.DefaultSelector()
        for name, line in lines.ours.items():
            line.setblocking(False)
            self._selector.register(line, selectors.EVENT_READ, name)

    def close(self) -> None:
        """Stop serving."""
        self._selector.close()

    def tell(self, message: Mapping[str, Any]) -> None:
        """A message to the guest's agent; one that is gone hears nothing."""
        line = self._lines.ours[CONTROL]
        line.setblocking(True)
        try:
            line.settimeout(10.0)
            line.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise self.failure(f"does not take messages: {error.strerror or error}") from error
        finally:
            line.setblocking(False)

    def wait(self, reached: Callable[[], bool], deadline: Deadline, *, stoppable: bool = True) -> int:
        """Serves until `reached`; returns 0, or the signal that asked to stop before that.

        Raises LabError where the guest is lost, TimeoutError where the deadline is over.
        """
        while not reached():
            if stoppable and (number := self._stop()):
                return number
            if deadline.over:
                raise TimeoutError(f"did not {deadline.what} within {deadline.seconds:g} s")
            self._turn()
            self._require_alive(reached)
        return 0

    def drain(self, deadline: Deadline) -> None:
        """Serves what still comes until the machine has ended or the deadline is over."""
        while not self.ended and not deadline.over:
            self._turn()

    def failure(self, what: str) -> LabError:
        """An error that quotes the console's last words and names its log."""
        quoted = "".join(f"\n    {line}" for line in self._console.last_lines())
        return LabError(f"the guest {what}{quoted}", f"Its console is in {self._console.log}.")

    def _require_alive(self, reached: Callable[[], bool]) -> None:
        if self._console.panicked:
            self.drain(Deadline.of("end", _LAST_WORDS_S))
            raise self.failure("has ended: its kernel panicked")
        if self._console.failure:
            raise self.failure(f"could not start: {self._console.failure}")
        if self.ended and not reached():
            raise self.failure("has ended before it was done")

    def _turn(self) -> None:
        for key, _ in self._selector.select(_TURN_S):
            line = key.fileobj
            assert isinstance(line, socket.socket)  # noqa: S101 - for the type checker
            try:
                data = line.recv(_READ_BYTES)
            except OSError:
                data = b""
            if data:
                self._take(key.data, data)
            else:
                self._selector.unregister(line)
                self.ended = not self._selector.get_map()

    def _take(self, name: str, data: bytes) -> None:
        if name == CONSOLE:
            self._console.take(data)
        elif name == CONTROL:
            self._hear(data)
        else:
            self._pass_on(name, data)

    def _hear(self, data: bytes) -> None:
        *messages, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _MESSAGE_BYTES_MAX:
            raise self.failure("speaks without end on its control line")
        for message in messages:
            try:
                self.told.take(parse_json(message))
            except (ValueError, KeyError, TypeError) as error:
                raise self.failure(f"said what is no message: {message[:100]!r}") from error

    def _pass_on(self, name: str, data: bytes) -> None:
        left = self._left[name]
        if left <= 0:
            return
        self._left[name] = left - len(data)
        self._output(name, data[:left])
        if len(data) >= left:
            self._output(
                STDERR, f"\nleadline: more than {OUTPUT_BYTES_MAX >> 20} MiB on {name}: cut\n".encode()
            )
