"""An agent in Python, for tests of the command's side: the protocol of `leadline-agent serve`.

Its workers and observers are leadline's own modules, so that a study on it does all that one here does.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import msgpack

from leadline import _core
from leadline.observe.probe import probe_path

HEADER = struct.Struct(">QQ")
_WORKER = "import os; from leadline.run.worker import main; main(os.getppid())"


class RefusedError(Exception):
    """Why a call is refused."""


class StandIn:
    """Calls, by their names."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def hello(self, version: str, protocol: int) -> dict[str, Any]:
        if (version, protocol) != (_core.version(), 1):
            raise RefusedError(f"the command is of leadline {version} (protocol {protocol})")
        return {}

    def clock(self) -> dict[str, int]:
        return {"monotonic_ns": time.monotonic_ns(), "unix_ns": time.time_ns()}

    def engines(self) -> list[dict[str, Any]]:
        return [{name: one[name] for name in ("name", "available", "reason")} for one in _core.engines()]

    def read_texts(self, paths: list[str], limit: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path in paths:
            try:
                found[path] = Path(path).read_bytes()[:limit]
            except OSError as error:
                found[path] = {"errno": error.errno}
        return found

    def list_names(self, path: str) -> list[str]:
        return sorted(one.name for one in Path(path).iterdir())

    def read_links(self, paths: list[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path in paths:
            try:
                found[path] = bytes(Path(path).readlink())
            except OSError as error:
                found[path] = {"errno": error.errno}
        return found

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(path)
        return {"total_bytes": found.f_blocks * found.f_frsize, "free_bytes": found.f_bavail * found.f_frsize}

    def probe(self, place: str, deadline_s: float, writes: bool) -> dict[str, Any]:
        del deadline_s
        if "://" in place:
            volume = _core.Volume(place)
            return {
                "lines": [{"space": volume.space(), "address": None, "pool": volume.pool()}],
                "code": 0,
            }
        steps: list[dict[str, Any]] = []

        def doing(_path: str, step: str = "") -> None:
            steps.append({"begin": step})

        found = probe_path(place, doing, writes=writes)
        return {"lines": [*steps, found], "code": 0}

    def spawn(self, role: str, arguments: list[str]) -> dict[str, int]:
        del arguments
        words = ["-c", _WORKER] if role == "worker" else ["-m", "leadline.observe.agent"]
        pipe = subprocess.PIPE
        child = subprocess.Popen([sys.executable, "-P", *words], stdin=pipe, stdout=pipe, stderr=pipe)
        self._children[child.pid] = child
        return {"id": child.pid, "pid": child.pid}

    def write(self, id: int, data: bytes) -> dict[str, Any]:
        stream = self._children[id].stdin
        assert stream is not None
        stream.write(data)
        stream.flush()
        return {}

    def close(self, id: int) -> dict[str, Any]:
        stream = self._children[id].stdin
        assert stream is not None
        stream.close()
        return {}

    def read(self, id: int, wait_s: float) -> bytes | None:
        stream = self._children[id].stdout
        assert stream is not None
        if not select.select([stream], [], [], wait_s)[0]:
            return b""
        return os.read(stream.fileno(), 1 << 16) or None

    def errors(self, id: int) -> bytes:
        stream = self._children[id].stderr
        assert stream is not None
        return os.read(stream.fileno(), 1 << 16) if select.select([stream], [], [], 0.2)[0] else b""

    def signal(self, id: int, number: int) -> dict[str, Any]:
        self._children[id].send_signal(signal.Signals(number))
        return {}

    def wait(self, id: int, wait_s: float) -> int | None:
        try:
            return self._children[id].wait(wait_s)
        except subprocess.TimeoutExpired:
            return None

    def release(self, id: int) -> dict[str, Any]:
        self._children.pop(id).kill()
        return {}

    def _own(self, path: str) -> Path:
        if Path(path).parent != self.directory:
            raise RefusedError(f"{path} is not in {self.directory}")
        return Path(path)

    def read_file(self, path: str, offset: int, size: int) -> bytes:
        with self._own(path).open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def write_file(self, path: str, data: bytes, append: bool) -> dict[str, Any]:
        with self._own(path).open("ab" if append else "wb") as file:
            file.write(data)
        return {}

    def remove_file(self, path: str) -> dict[str, Any]:
        self._own(path).unlink()
        return {}

    def end(self) -> None:
        for child in self._children.values():
            child.kill()


def _answer(agent: StandIn, data: bytes) -> Any:
    name, arguments = msgpack.unpackb(data, unicode_errors="surrogateescape")
    try:
        return getattr(agent, name)(*arguments)
    except RefusedError as error:
        return {"refused": str(error), "remedy": ""}
    except OSError as error:
        return {"refused": f"{error.filename}: {error.strerror}", "remedy": ""}


def main() -> None:
    """Serve until the input ends; the greeting may be changed by LEADLINE_STAND_IN (JSON)."""
    incoming, outgoing = os.fdopen(0, "rb", closefd=False), os.fdopen(1, "wb", closefd=False)
    directory = Path(tempfile.mkdtemp())
    agent, writing = StandIn(directory), threading.Lock()
    greeting = {"leadline": _core.version(), "protocol": 1, "machine": os.uname().machine}
    greeting |= {"directory": str(directory), **json.loads(os.environ.get("LEADLINE_STAND_IN", "{}"))}

    def answer(number: int, data: bytes) -> None:
        whole = msgpack.packb(_answer(agent, data), unicode_errors="surrogateescape")
        with writing:
            outgoing.write(HEADER.pack(number, len(whole)) + whole)
            outgoing.flush()

    outgoing.write(b"\nleadline-agent/1 " + json.dumps(greeting).encode() + b"\n")
    outgoing.flush()
    try:
        while len(header := incoming.read(HEADER.size)) == HEADER.size:
            number, size = HEADER.unpack(header)
            data = incoming.read(size)
            threading.Thread(target=answer, args=(number, data), daemon=True).start()
    finally:
        agent.end()
        shutil.rmtree(directory, ignore_errors=True)
        os._exit(0)


if __name__ == "__main__":
    main()
