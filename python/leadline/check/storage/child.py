"""What touches a device or directory: a process that may be killed, `python -m leadline.check.storage.child`.

It opens one place, obeys commands that come as JSON lines on standard input, and answers on standard
output, where the engine also tells its progress. It ends with its input or its parent, and leaves nothing:
in a directory its file has no name.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import random
import secrets
import signal
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from leadline import _core
from leadline.check.storage.rounds import READS, WRITES, job_of
from leadline.units import format_size

FILE_BYTES_MAX, FILE_BYTES_MIN = 256 << 20, 16 << 20
_FREE_SHARE = 0.1  # of the free space at most is used
_FILL_S = 3.0
_CHUNK = 4 << 20
_TURNS, _TURNS_S = 100, 1.0
_BLOCK = 4096
_PR_SET_PDEATHSIG = 1
_RWF_DSYNC = 2


class _RefusedError(Exception):
    """In words that need no place."""


def open_device(path: Path, *, writes: bool) -> tuple[int, int]:
    """Its descriptor and bytes. Who writes is alone on it: the kernel refuses what another claimed."""
    flags = os.O_RDWR | os.O_EXCL if writes else os.O_RDONLY
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    size = os.lseek(descriptor, 0, os.SEEK_END) >> 20 << 20
    if size < FILE_BYTES_MIN:
        raise _RefusedError(
            f"it has {format_size(size)}, less than the {format_size(FILE_BYTES_MIN)} it takes"
        )
    return descriptor, size


def open_unnamed(directory: Path) -> tuple[int, int]:
    """A new file without a name, filled with bytes that nothing can compress: its descriptor and bytes."""
    free = os.statvfs(directory)
    most = min(FILE_BYTES_MAX, int(free.f_bavail * free.f_frsize * _FREE_SHARE)) // _CHUNK * _CHUNK
    if most < FILE_BYTES_MIN:
        asked = format_size(FILE_BYTES_MIN / _FREE_SHARE)
        raise _RefusedError(f"less than {asked} are free there: a tenth of them is the least that is used")
    descriptor = _without_name(directory)
    written, end = 0, time.monotonic() + _FILL_S
    while written < most and (written < FILE_BYTES_MIN or time.monotonic() < end):
        os.pwrite(descriptor, os.urandom(_CHUNK), written)
        os.fdatasync(descriptor)
        written += _CHUNK
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    return descriptor, os.fstat(descriptor).st_size


def _without_name(directory: Path) -> int:
    try:
        return os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            raise
    # Network file systems have no such files: there the name goes at once.
    name = directory / f"leadline-check-{secrets.token_hex(8)}"
    descriptor = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    name.unlink()
    return descriptor


def measure(descriptor: int, size: int, fact: str) -> dict[str, int]:
    """One load by the engine: bytes, operations, measured_ns."""
    pattern = next(one for one in (*READS, *WRITES) if one.fact == fact)
    record = os.memfd_create("record")
    try:
        job = job_of(pattern, descriptor, size, os.getppid())
        summary = _core.run_trial(job, f"/proc/self/fd/{record}")
    finally:
        os.close(record)
    if summary["error"] is not None:
        number = summary["error"].get("errno")
        raise _RefusedError(os.strerror(number) if number else str(summary["error"].get("message")))
    if summary["state"] != "complete":
        raise _RefusedError(f"it was {summary['state']}")
    moved = summary["directions"].values()
    return {
        "bytes": sum(one["bytes"] for one in moved),
        "operations": sum(one["operations"] for one in moved),
        "measured_ns": summary["measured_ns"],
    }


def flush(descriptor: int, size: int) -> dict[str, float]:
    """Medians in µs of a 4 KiB write past the page cache: alone, with fdatasync after it, and with RWF_DSYNC.

    The three take turns, so that what else the device does meets all of them.
    """
    again = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
    took: dict[str, list[float]] = {"plain_us": [], "flush_us": [], "fua_us": []}
    try:
        with mmap.mmap(-1, _BLOCK) as block:
            end = time.monotonic() + _TURNS_S
            for turn in range(_TURNS):
                if turn > 2 and time.monotonic() > end:
                    break
                for name, values in took.items():
                    block[:] = os.urandom(_BLOCK)
                    offset = random.randrange(size // _BLOCK) * _BLOCK  # noqa: S311 - no secret
                    begun = time.perf_counter_ns()
                    os.pwritev(again, [block], offset, _RWF_DSYNC if name == "fua_us" else 0)
                    if name == "flush_us":
                        os.fdatasync(again)
                    values.append((time.perf_counter_ns() - begun) / 1e3)
    finally:
        os.close(again)
    return {name: median(values) for name, values in took.items()}


def _obey(command: dict[str, Any], descriptor: int, size: int) -> dict[str, Any]:
    if "measure" in command:
        return measure(descriptor, size, command["measure"])
    return flush(descriptor, size)


def _say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _failed(error: Exception) -> None:
    words = error.strerror if isinstance(error, OSError) else str(error)
    if isinstance(error, OSError) and error.errno == errno.EINVAL:
        words = "it refuses direct I/O"
    _say(event="failed", message=words)


def main() -> None:
    """Obey until standard input ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    asked = json.loads(sys.argv[1])
    path = Path(asked["path"])
    try:
        opened = open_device(path, writes=asked["writes"]) if asked["raw"] else open_unnamed(path)
    except (OSError, _RefusedError) as error:
        _failed(error)
        return
    _say(event="ready", size=opened[1])
    while line := sys.stdin.readline():
        try:
            _say(event="done", answer=_obey(json.loads(line), *opened))
        except (OSError, ValueError, RuntimeError, _RefusedError) as error:
            _failed(error)


if __name__ == "__main__":
    main()
