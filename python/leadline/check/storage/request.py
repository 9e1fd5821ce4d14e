"""A place's child, from outside: commands, answers by a deadline, and an end in any case."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from typing import IO, Any

from leadline.check.storage.places import DevicePlace
from leadline.interpreter import module_command, module_environment

ANSWER_S = 30.0
_END_S = 2.0
_LINE_MAX = 1 << 20


class NotAnsweredError(Exception):
    """Why there is no figure, in words."""


class DeviceChild:
    """One process for one place. After its first failure to answer it is not asked again."""

    def __init__(self, place: DevicePlace) -> None:
        self.place = place
        self.lost = ""
        self._rest = b""
        asked = json.dumps({"path": str(place.path), "raw": place.raw, "writes": place.writes})
        self._process = subprocess.Popen(
            module_command("leadline.check.storage.child", asked),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=module_environment(),
            # Ctrl-C is for the parent, who ends its children.
            start_new_session=True,
        )
        self._input, self._output = _both(self._process)

    def tell(self, **command: Any) -> None:
        """Does not wait."""
        if not self.lost:
            with suppress(BrokenPipeError):
                self._input.write(json.dumps(command).encode() + b"\n")
                self._input.flush()

    def answer(self, seconds: float = ANSWER_S) -> dict[str, Any]:
        """To the last command, or to the start. Raises NotAnsweredError."""
        end = time.monotonic() + seconds
        while not self.lost:
            line = self._line(end)
            if not line:
                continue
            message = json.loads(line)
            if message.get("event") == "failed":
                raise NotAnsweredError(str(message["message"]))
            if message.get("event") == "ready":
                return {}
            if message.get("event") == "done":
                return dict(message["answer"])
        raise NotAnsweredError(self.lost)

    def _line(self, end: float) -> bytes:
        """The next one, or nothing yet; sets `lost` where none will come."""
        line, found, rest = self._rest.partition(b"\n")
        if found:
            self._rest = rest
            return line
        source = self._output.fileno()
        if not select.select([source], [], [], max(0.0, end - time.monotonic()))[0]:
            self._lose("it did not answer in time, and is not asked again")
            return b""
        data = os.read(source, _LINE_MAX)
        if not data:
            self._lose("its process ended")
        self._rest += data
        return b""

    def _lose(self, why: str) -> None:
        self.lost = why
        self._process.kill()

    def end(self) -> None:
        """Killed where it does not end by itself; one that hangs in the kernel is left to its end."""
        with suppress(BrokenPipeError):
            self._input.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
        self._output.close()


def _both(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Its pipes, which are there as they were asked for."""
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a process without pipes")
    return process.stdin, process.stdout
