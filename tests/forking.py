"""Commands of leadline in forks of a process that has loaded it: processes of their own, loaded once.

Loading takes most of the time of a short command. What loading itself depends on needs a new interpreter.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from dying import Death, arm, dying_line
from support import Process, command_line

# What the interpreter or the loader reads as it starts: with one of these a command is started anew.
_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC", "OMP_", "OPENBLAS")
_MESSAGE_BYTES = 1 << 20


class Forks:
    """One such process, which ends with its owner."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._environment = dict(os.environ)
        self._free = threading.Lock()
        self._started: Started | None = None
        words = [sys.executable, str(Path(__file__).resolve()), str(theirs.fileno())]
        self._process = subprocess.Popen(words, pass_fds=[theirs.fileno()])
        theirs.close()

    def close(self) -> None:
        """End it, and what a test has left running."""
        if self._started is not None and self._started.poll() is None:
            self._started.kill()
            self._started.wait()
        self._socket.close()
        self._process.wait(120)  # it may still be loading, on a busy host

    def can_run(self, environment: Mapping[str, str], options: Mapping[str, Any]) -> bool:
        """False for a command that needs an interpreter of its own."""
        before = self._environment
        changed = {name for name in {*environment, *before} if environment.get(name) != before.get(name)}
        return not options.keys() - {"cwd"} and not any(name.startswith(_AT_START) for name in changed)

    def command(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        timeout: float,
        dies: Death | None = None,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """`leadline WORDS` to its end: in a fork, or started anew where it needs that or a fork is busy.

        It is killed at the event of its journal that `dies` says, see `dying`.
        """
        if self.can_run(environment, options) and self._free.acquire(blocking=False):
            return self._run(words, environment, timeout, dies, **options)
        return subprocess.run(
            command_line(*words) if dies is None else dying_line(dies, *words),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env=environment,
            **options,
        )

    def start(self, words: Sequence[str]) -> Process:
        """`leadline WORDS`, running; what it prints is kept until it is asked for."""
        if self.can_run(os.environ, {}) and self._free.acquire(blocking=False):
            outputs = [os.fdopen(os.memfd_create(name), "r+b") for name in ("output", "errors")]
            pid = self._fork(words, os.environ, [file.fileno() for file in outputs])
            self._started = Started(words, pid, self._socket, self._free, outputs)
            return self._started
        return subprocess.Popen(
            command_line(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def _fork(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        outputs: Sequence[int],
        cwd: Path | None = None,
        dies: Death | None = None,
    ) -> int:
        """The process id of a fork that is `leadline WORDS`."""
        place = str(cwd or Path.cwd())
        request = {"words": list(words), "environment": dict(environment), "cwd": place, "dies": dies}
        socket.send_fds(self._socket, [json.dumps(request).encode()], outputs)
        return int(self._socket.recv(64))

    def _run(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        timeout: float,
        dies: Death | None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Like `subprocess.run` with its output captured."""
        ends = [os.pipe(), os.pipe()]
        pid = self._fork(words, environment, [write for _, write in ends], cwd, dies)
        running = Started(words, pid, self._socket, self._free, ())
        for _, write in ends:
            os.close(write)
        try:
            output = _read_all([read for read, _ in ends], timeout)
        except TimeoutError:
            running.kill()
            running.wait()
            raise subprocess.TimeoutExpired(list(words), timeout) from None
        return subprocess.CompletedProcess(list(words), running.wait(), *output)


class Started:
    """One fork that runs: what `subprocess.Popen` offers of it."""

    def __init__(
        self,
        words: Sequence[str],
        pid: int,
        channel: socket.socket,
        free: threading.Lock,
        outputs: Sequence[IO[bytes]],
    ) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._words, self._socket, self._free, self._outputs = words, channel, free, outputs

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._socket], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(list(self._words), timeout or 0)
            self.returncode = int(self._socket.recv(64))
            self._free.release()
        return self.returncode

    def communicate(self, *, timeout: float | None = None) -> tuple[str, str]:
        """What it has printed on its standard output and error, once it has ended."""
        self.wait(timeout)
        for file in self._outputs:
            file.seek(0)
        output, errors = (file.read().decode() for file in self._outputs)
        return output, errors

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send it SIGKILL, unless it has ended."""
        self.send_signal(signal.SIGKILL)


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
    """What most commands load and read of the package; nothing may start a thread or see the environment."""
    import jinja2  # noqa: F401
    import pyarrow.compute
    import pyarrow.parquet
    import rich.console
    import rich.table  # noqa: F401
    import ruamel.yaml  # noqa: F401
    import vl_convert  # noqa: F401

    import leadline
    from leadline.verdict.chains import vocabulary
    from leadline.verdict.codes.catalogue import catalogue

    pyarrow.array([None])
    for module in pkgutil.walk_packages(leadline.__path__, "leadline."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    catalogue()
    vocabulary()


def _serve(channel: socket.socket) -> dict[str, Any] | None:
    """Fork at each request; in the fork the request is returned, in the server None at the end."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(channel, _MESSAGE_BYTES, 2)
        if not data:
            return None
        pid = os.fork()
        if pid == 0:
            channel.close()
            signal.signal(signal.SIGINT, signal.default_int_handler)
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


def main(channel: socket.socket) -> NoReturn:
    """Serve; in a fork be the command, to the end of the process.

    Ctrl-C is for tests and their commands; this process ends with its owner, who takes labs down by it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load()
    gc.collect()
    gc.freeze()  # a fork that looked for garbage here would copy every page
    request = _serve(channel)
    if request is None:
        end(0)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    if request["dies"] is not None:
        arm(*request["dies"])
    sys.path[0], sys.argv = request["cwd"], ["leadline", *request["words"]]
    from leadline.cli.main import main as command

    run_to_end(command)


def run_to_end(command: Callable[[], object]) -> NoReturn:
    """Run a command as the last thing of this process, and exit with its code as the interpreter does."""
    code = 0
    try:
        command()
    except SystemExit as left:
        if left.code is not None and not isinstance(left.code, int):
            print(left.code, file=sys.stderr)
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    end(code)


def end(code: int) -> NoReturn:
    """Do what the interpreter does at its end, but take nothing apart: that costs half a second of CPU."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
