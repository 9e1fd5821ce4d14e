"""Copies between two servers: the protocol's own program asks for each, and nothing passes through this host.

Of a copy this host learns when it began and when it ended; there are no requests and no acknowledgements.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from leadline.errors import TargetError
from leadline.observe.hang_guard import finish
from leadline.run.interface import plain_summary
from leadline.study.schemes import ThirdParty, scheme_of

_SIZE = re.compile(r"^Size:\s+(\d+)", re.MULTILINE)
_LOOK_S = 60.0  # for the size of a file that is there
_LOOK_EVERY_S = 0.005
_PRINTED_MAX = 1 << 16
_WORDS_MAX = 300  # of what a program said last
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)  # loaded before any fork


@dataclass(frozen=True)
class Copied:
    """One copy. Times are ns since the trial's start; `error` is what went wrong."""

    number: int
    started_ns: int
    ended_ns: int
    error: str | None


def copy_files(job: Mapping[str, Any]) -> dict[str, Any]:
    """All copies of a trial at once, to their end. Raises TargetError where they cannot be asked for."""
    scheme = scheme_of(job["location"])
    way = None if scheme is None else scheme.third_party
    if way is None:
        raise TargetError(f"{job['location']} has no copy between servers", "name another target")
    for program in (way.copy[0], way.size[0]):
        if shutil.which(program) is None:
            raise TargetError(f"there is no program {program}", f"install {way.package}")
    started_unix_ns, start_ns = time.time_ns(), time.monotonic_ns()
    copies = _wait(_started(job, way.copy), start_ns, job["deadline_ns"])
    return _summary(job, way, copies, started_unix_ns)


def _started(job: Mapping[str, Any], words: Sequence[str]) -> list[tuple[subprocess.Popen[bytes], int]]:
    """A program for each copy, with when it began. None outlives this worker."""
    found = []
    for number in range(job["streams"]):
        copy = address(job["location"], f"{job['directory']}/{job['prefix']}.{number}.0")
        began_ns = time.monotonic_ns()
        child = subprocess.Popen(
            [*words, job["source"], copy],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,  # an error's line; without a terminal there is no progress in it
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - a worker has one thread
        )
        found.append((child, began_ns))
    return found


def _wait(
    children: Sequence[tuple[subprocess.Popen[bytes], int]], start_ns: int, deadline_ns: int
) -> list[Copied]:
    """What became of each, looked at every few milliseconds; what is left at the deadline is ended."""
    ended: dict[int, Copied] = {}
    try:
        while len(ended) < len(children):
            now_ns = time.monotonic_ns() - start_ns
            for number, (child, began_ns) in enumerate(children):
                if number in ended or (child.poll() is None and now_ns < deadline_ns):
                    continue
                error = _error_of(child, late=child.returncode is None)
                ended[number] = Copied(number, began_ns - start_ns, now_ns, error)
            time.sleep(_LOOK_EVERY_S)
    finally:
        for child, _ in children:
            if child.poll() is None:
                child.kill()
    return [ended[number] for number in range(len(children))]


def _error_of(child: subprocess.Popen[bytes], *, late: bool) -> str | None:
    if late:
        return "it did not end by its deadline"
    if child.returncode == 0:
        return None
    said = child.stderr.read(_PRINTED_MAX) if child.stderr else b""
    words = " ".join(said.decode("utf-8", "replace").split())[-_WORDS_MAX:]
    return words or f"its program ended with {child.returncode}"


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def address(location: str, path: str) -> str:
    """The URL of a file below what a target's URL leads to, without the target's options."""
    base = location.partition("?")[0].rstrip("/")
    server, _, directory = base.partition("://")[2].partition("/")
    inside = "/".join(part for part in (directory.strip("/"), path.strip("/")) if part)
    return f"{base.partition('://')[0]}://{server}//{inside}"


def _summary(
    job: Mapping[str, Any], way: ThirdParty, copies: Sequence[Copied], started_unix_ns: int
) -> dict[str, Any]:
    failed = next((one for one in copies if one.error is not None), None)
    sizes = [0 if one.error else _size(way, job, one.number) for one in copies]
    wrong = next((size for size in sizes if size != job["size"]), None)
    error = None
    if failed is not None:
        error = _error(job, f"the copy failed: {failed.error}; it needs {way.needs}")
    elif wrong is not None:
        error = _error(job, f"the copy has {wrong} bytes, and the study says size: {job['size']}")
    ended_ns = max(one.ended_ns for one in copies)
    moved = {"bytes": sum(sizes), "operations": sum(one.error is None for one in copies), "short": 0}
    streams = [
        {"stream": one.number, "direction": "write", "bytes": size, "started_ns": one.started_ns}
        | {"ended_ns": one.ended_ns}
        for one, size in zip(copies, sizes, strict=True)
    ]
    return plain_summary(
        started_unix_ns,
        ended_ns,
        state="error" if error else "complete",
        error=error,
        directions={"write": moved},
        total={"write": moved},
        first_done_ns=min(one.ended_ns for one in copies),
        last_done_ns=ended_ns,
        streams=streams,
    )


def _size(way: ThirdParty, job: Mapping[str, Any], number: int) -> int:
    """Bytes of a copy, as its server says; 0 where it does not."""
    url = urlsplit(address(job["location"], f"{job['directory']}/{job['prefix']}.{number}.0"))
    places = {"server": f"{url.scheme}://{url.netloc}", "path": url.path.removeprefix("/")}
    done = finish([word.format(**places) for word in way.size], _LOOK_S)
    found = _SIZE.search(done.output.decode("utf-8", "replace"))
    return int(found[1]) if done.exit_code == 0 and found else 0


def _error(job: Mapping[str, Any], message: str) -> dict[str, Any]:
    own = {"kind": "copy", "operation": "copy", "file": Path(job["source"]).name, "offset": 0}
    return {**own, "errno": None, "message": message}
