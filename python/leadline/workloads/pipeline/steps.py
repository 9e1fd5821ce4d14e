"""The built-in steps of a pipeline, each in a process of its own, so that they are traced like any program.

Run as a file with one argument, JSON: nothing of leadline is loaded, and of Python what a step needs.
A step says on standard output what it did, as one line of JSON, and on standard error why it could not.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import stat
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

URL = "LEADLINE_SOURCE_URL"  # in the environment: where a download's job names none
_TEMPORARY = ".leadline-part"  # beside the file that it becomes


class StepError(Exception):
    """Why a step cannot be done, in words."""


def _temporary(output: str) -> str:
    return os.path.join(os.path.dirname(output), _TEMPORARY)  # noqa: PTH118, PTH120


def _write_all(descriptor: int, block: bytes) -> None:
    left = memoryview(block)
    while left:
        left = left[os.write(descriptor, left) :]


@contextlib.contextmanager
def _becoming(output: str) -> Iterator[int]:
    """A new file under a temporary name, renamed once it is whole."""
    partial = _temporary(output)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        yield descriptor
    except BaseException:
        os.close(descriptor)
        os.unlink(partial)  # noqa: PTH108
        raise
    os.close(descriptor)
    os.rename(partial, output)  # noqa: PTH104


def _blocks(path: str, buffer: int) -> Iterator[bytes]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        while block := os.read(descriptor, buffer):
            yield block
    finally:
        os.close(descriptor)


def _one(job: dict[str, Any]) -> str:
    path = str(job["inputs"][0])
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
        raise StepError(f"its input is no file: {path}")
    return path


def ingest(job: dict[str, Any]) -> dict[str, Any]:
    """One thread reads, digests and writes, buffer by buffer, into a temporary file that is then renamed."""
    import hashlib

    digest, size = hashlib.new(job["digest"], usedforsecurity=False), 0
    with _becoming(job["output"]) as writing:
        for block in _blocks(_one(job), job["buffer"]):
            digest.update(block)
            _write_all(writing, block)
            size += len(block)
    return {"bytes": size, "digest": digest.hexdigest()}


def copy(job: dict[str, Any]) -> dict[str, Any]:
    """A plain copy, buffer by buffer."""
    return {"bytes": _copy(_one(job), job["output"], job["buffer"])}


def _copy(path: str, output: str, buffer: int) -> int:
    size = 0
    with _becoming(output) as writing:
        for block in _blocks(path, buffer):
            _write_all(writing, block)
            size += len(block)
    return size


def checksum(job: dict[str, Any]) -> dict[str, Any]:
    """Read a file from its beginning to its end."""
    import hashlib

    digest, size = hashlib.new(job["digest"], usedforsecurity=False), 0
    for block in _blocks(_one(job), job["buffer"]):
        digest.update(block)
        size += len(block)
    return {"bytes": size, "digest": digest.hexdigest()}


def download(job: dict[str, Any]) -> dict[str, Any]:
    """One request over HTTP, its answer into a file. A server that sends nothing for too long is given up."""
    import http.client
    import urllib.parse

    address = urllib.parse.urlsplit(job["url"] or os.environ[URL])
    if address.scheme not in ("http", "https") or not address.hostname:
        raise StepError("the address is neither http nor https")
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    timeout_s = job["timeout_ns"] / 1e9
    connection = kind(address.hostname, address.port, timeout=timeout_s)
    path = (address.path or "/") + (f"?{address.query}" if address.query else "")
    try:
        connection.request("GET", path, headers={"Accept-Encoding": "identity"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise StepError(f"the server answered {answer.status} {answer.reason}")
        wanted = answer.length
        with _becoming(job["output"]) as writing:
            size = _receive(answer, writing, job["buffer"])
            if wanted is not None and size != wanted:
                raise StepError(f"the server sent {size} of {wanted} bytes")
    except TimeoutError:
        raise StepError(f"the server sent nothing for {timeout_s:g} s") from None
    except http.client.HTTPException as error:
        raise StepError(f"the server's answer is no HTTP or not whole: {type(error).__name__}") from None
    finally:
        connection.close()
    return {"bytes": size}


def _receive(answer: Any, writing: int, buffer: int) -> int:
    room, size = memoryview(bytearray(buffer)), 0
    while count := answer.readinto(room):
        _write_all(writing, room[:count])  # type: ignore[arg-type]
        size += count
    return size


def link_or_copy(job: dict[str, Any]) -> dict[str, Any]:
    """A second name for a file where links work as they should, a copy where they do not."""
    path = _one(job)
    how, why = _choose(job, os.path.dirname(job["output"]))  # noqa: PTH120
    size = _link(path, job["output"]) if how == "link" else _copy(path, job["output"], job["buffer"])
    return {"bytes": size, "how": how, "why": why, "links": os.stat(job["output"]).st_nlink}  # noqa: PTH116


def publish(job: dict[str, Any]) -> dict[str, Any]:
    """Every file of the inputs into one directory, linked or copied."""
    place = job["output"]
    how, why = _choose(job, place)
    size = files = 0
    for path in (found for one in job["inputs"] for found in _files(one)):
        name = os.path.join(place, _free_name(place, os.path.basename(path)))  # noqa: PTH118, PTH119
        size += _link(path, name) if how == "link" else _copy(path, name, job["buffer"])
        files += 1
    return {"bytes": size, "files": files, "how": how, "why": why}


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):  # noqa: PTH112
        yield path
        return
    for top, directories, names in os.walk(path):
        directories.sort()
        yield from (os.path.join(top, name) for name in sorted(names))  # noqa: PTH118


def _free_name(place: str, name: str) -> str:
    """Two inputs may be called the same."""
    number, found = 1, name
    while os.path.lexists(os.path.join(place, found)):  # noqa: PTH118
        number += 1
        found = f"{number}-{name}"
    return found


def _link(path: str, name: str) -> int:
    os.link(path, name)
    return os.stat(name).st_size  # noqa: PTH116


def _choose(job: dict[str, Any], place: str) -> tuple[str, str]:
    """Link or copy, and why: by a file of our own that is linked and then looked at."""
    if job["how"] == "copy":
        return "copy", "asked for"
    wrong = _links_are_wrong(place, job.get("seen_from"))
    if wrong is None:
        return "link", "a link was made and looked at: the same file, two names"
    if job["how"] == "link":
        raise StepError(f"links do not work here: {wrong}")
    return "copy", wrong


def _links_are_wrong(place: str, seen_from: str | None) -> str | None:
    """What is wrong with links in a directory, for this client or a second one; None where nothing is."""
    first, second = (os.path.join(place, f".leadline-link-{n}") for n in (1, 2))  # noqa: PTH118
    try:
        with open(first, "wb") as file:  # noqa: PTH123
            file.write(b"probe")
        try:
            os.link(first, second)
        except OSError as error:
            return f"link: {error.strerror}"
        wrong = _looks_wrong(first, second, "here")
        if wrong is None and seen_from is not None:
            there = [os.path.join(seen_from, os.path.basename(name)) for name in (first, second)]  # noqa: PTH118, PTH119
            wrong = _looks_wrong(there[0], there[1], "from the second client")
        return wrong
    finally:
        for name in (first, second):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)  # noqa: PTH108


def _looks_wrong(first: str, second: str, where: str) -> str | None:
    try:
        one, two = os.stat(first), os.stat(second)  # noqa: PTH116
    except OSError as error:
        return f"a linked file is not seen {where}: {error.strerror}"
    if (one.st_ino, one.st_size) != (two.st_ino, two.st_size):
        return f"two names of one file look like two files {where}"
    if two.st_nlink != 2:
        return f"a file with two names says that it has {two.st_nlink} {where}"
    return None


def _load(step: str) -> None:
    """What a step needs of Python is loaded before its time begins."""
    if step == "download":
        import http.client  # noqa: F401
        import urllib.parse  # noqa: F401
    else:
        import hashlib  # noqa: F401


def _moved() -> dict[str, int]:
    """Bytes of this process's read and write calls so far (proc(5), /proc/PID/io); none where unreadable."""
    try:
        with open("/proc/self/io", "rb", buffering=0) as file:  # noqa: PTH123
            lines = file.read().decode().splitlines()
    except OSError:
        return {}
    found = {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}
    return {"read_bytes": found["rchar"], "write_bytes": found["wchar"]}


STEPS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "download": download,
    "ingest": ingest,
    "copy": copy,
    "link_or_copy": link_or_copy,
    "checksum": checksum,
    "publish": publish,
}


def main() -> int:
    """Do the step of the command line's JSON."""
    job = json.loads(sys.argv[1])
    _load(job["step"])
    moved = _moved()
    begun, before = time.monotonic_ns(), resource.getrusage(resource.RUSAGE_SELF)
    try:
        did = STEPS[job["step"]](job)
    except StepError as error:
        sys.stderr.write(f"{job['step']}: {error}\n")
        return 1
    except OSError as error:
        words = error.strerror or str(error) or errno.errorcode.get(error.errno or 0, "failed")
        sys.stderr.write(f"{job['step']}: {words}\n")
        return 1
    after = resource.getrusage(resource.RUSAGE_SELF)
    cost = {
        "begun_ns": begun,
        "ended_ns": time.monotonic_ns(),
        "cpu_user_ns": round((after.ru_utime - before.ru_utime) * 1e9),
        "cpu_system_ns": round((after.ru_stime - before.ru_stime) * 1e9),
    }
    for name, count in _moved().items():
        cost[name] = count - moved.get(name, 0)
    sys.stdout.write(json.dumps({**did, "cost": cost}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
