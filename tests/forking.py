"""Commands of leadline in forks of a process that has loaded it: processes of their own, loaded once.

Loading takes most of the time of a short command. What loading itself depends on needs a new interpreter.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support import command_line

# What the interpreter or the loader reads as it starts: with one of these a command is started anew.
_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC", "OMP_", "OPENBLAS")
_MESSAGE_BYTES = 1 << 20


class Forks:
    """One such process, which ends with its owner."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._environment = dict(os.environ)
        self._free = threading.Lock()
        words = [sys.executable, str(Path(__file__).resolve()), str(theirs.fileno())]
        self._process = subprocess.Popen(words, pass_fds=[theirs.fileno()])
        theirs.close()

    def close(self) -> None:
        """End it."""
        self._socket.close()
        self._process.wait(30)

    def can_run(self, environment: Mapping[str, str], options: Mapping[str, Any]) -> bool:
        """False for a command that needs an interpreter of its own."""
        before = self._environment
        changed = {name for name in {*environment, *before} if environment.get(name) != before.get(name)}
        return not options.keys() - {"cwd"} and not any(name.startswith(_AT_START) for name in changed)

    def command(
        self, words: Sequence[str], environment: Mapping[str, str], timeout: float, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """`leadline WORDS` to its end: in a fork, or started anew where it needs that or a fork is busy."""
        if self.can_run(environment, options) and self._free.acquire(blocking=False):
            try:
                return self._run(words, environment, timeout, **options)
            finally:
                self._free.release()
        return subprocess.run(
            command_line(*words),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env=environment,
            **options,
        )

    def _run(
        self, words: Sequence[str], environment: Mapping[str, str], timeout: float, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Like `subprocess.run` with its output captured."""
        request = {"words": list(words), "environment": dict(environment), "cwd": str(cwd or Path.cwd())}
        ends = [os.pipe(), os.pipe()]
        socket.send_fds(self._socket, [json.dumps(request).encode()], [write for _, write in ends])
        for _, write in ends:
            os.close(write)
        pid = int(self._socket.recv(64))
        try:
            output = _read_all([read for read, _ in ends], timeout)
        except TimeoutError:
            os.kill(pid, 9)
            self._socket.recv(64)
            raise subprocess.TimeoutExpired(list(words), timeout) from None
        code = int(self._socket.recv(64))
        return subprocess.CompletedProcess(list(words), code, *output)


def _read_all(descriptors: Sequence[int], timeout: float) -> list[str]:
    """What comes out of pipes until nobody holds their other ends."""
    end = time.monotonic() + timeout
    parts: dict[int, bytearray] = {descriptor: bytearray() for descriptor in descriptors}
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        try:
            while selector.get_map():
                ready = selector.select(max(0.0, end - time.monotonic()))
                if not ready and time.monotonic() >= end:
                    raise TimeoutError
                for key, _ in ready:
                    data = os.read(key.fd, 1 << 16)
                    parts[key.fd] += data
                    if not data:
                        selector.unregister(key.fd)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
    return [bytes(parts[descriptor]).decode().replace("\r\n", "\n") for descriptor in descriptors]


def load() -> None:
    """What most commands load; nothing here may start a thread or look at the environment."""
    import duckdb  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import scipy.special  # noqa: F401

    import leadline.cli.main
    import leadline.cli.measure.run
    import leadline.report.renderers.terminal
    import leadline.run.session
    import leadline.verdict.findings
    import leadline.verdict.summary  # noqa: F401


def _serve(channel: socket.socket) -> dict[str, Any] | None:
    """Fork at each request; in the fork the request is returned, in the server None at the end."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(channel, _MESSAGE_BYTES, 2)
        if not data:
            return None
        pid = os.fork()
        if pid == 0:
            channel.close()
            for descriptor, stream in zip(descriptors, (1, 2), strict=True):
                os.dup2(descriptor, stream)
                os.close(descriptor)
            request: dict[str, Any] = json.loads(data)
            return request
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        channel.send(str(os.waitstatus_to_exitcode(status)).encode())


def main(channel: socket.socket) -> None:
    """Serve; in a fork be the command, to the end of the process."""
    load()
    request = _serve(channel)
    if request is None:
        return
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[0], sys.argv = request["cwd"], ["leadline", *request["words"]]
    from leadline.cli.main import main as command

    command()


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
