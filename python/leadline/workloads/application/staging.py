"""Copies a command's input to a target, once, and checks that what lies there is what was read.

Called in a worker process only: any of these calls can hang with the file system under it.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from leadline.errors import TargetError
from leadline.removal import remove_tree
from leadline.run.storage import make_in_own

_BLOCK_BYTES = 1 << 20
_SAY_EVERY_NS = 250_000_000
STAGED = ".staged"  # how the name of a staged input ends; its prefix comes before it

Say = Callable[[int, int], None]  # bytes copied, ns since the start


def staged_path(directory: Path, prefix: str) -> Path:
    """Where the input of a prefix lies below a study's directory."""
    return directory / f"{prefix}{STAGED}"


def staged_of(job: Mapping[str, Any]) -> Path:
    """The same for the job that a worker was handed."""
    return staged_path(Path(job["directory"]), job["prefix"])


def stage_input_of(job: Mapping[str, Any], say: Callable[..., None]) -> dict[str, Any]:
    """Copy a job's input to the target and check it; `say` hears now and then how much of it is done."""
    whole, said = max(int(job["input_bytes"]), 1), 0

    def now_and_then(size: int, elapsed_ns: int) -> None:
        nonlocal said
        if elapsed_ns - said > _SAY_EVERY_NS:
            said = elapsed_ns
            share = min(size / whole, 1.0)
            done = {"bytes": size, "operations": 0, "elapsed_ns": elapsed_ns, "share": share}
            say(event="progress", phase="staging", **done)

    return stage_input(Path(job["input"]), staged_of(job), now_and_then)


def forget_input(job: Mapping[str, Any]) -> None:
    """Drop what this host's page cache holds of a job's input, where the trial is to begin cold."""
    if job["input"] is not None and job["cache"] == "cold":
        forget(staged_of(job))


def stage_input(source: Path, staged: Path, say: Say = lambda *_: None) -> dict[str, Any]:
    """Copy a file, or a directory with all below it, and compare checksums from a second reading.

    Returns bytes, files, a checksum over names and contents, and the time of copying and of checking apart.
    Links to files are followed. A directory that is there already is of a run that died: it is made anew.
    """
    if staged.exists():
        remove_tree(staged)
    make_in_own(staged)
    begun = time.monotonic_ns()
    digests: dict[str, str] = {}
    size = 0
    for name, path in _files(source):
        place = staged / name
        place.parent.mkdir(parents=True, exist_ok=True)
        digests[name], count = _copy(path, place)
        size += count
        say(size, time.monotonic_ns() - begun)
    copied = time.monotonic_ns()
    forget(staged)
    for name, digest in digests.items():
        if _digest(staged / name) != digest:
            raise TargetError(
                f"{staged / name} is not what was copied there: its checksum differs",
                "do not trust this storage before the cause is known; keep its logs",
            )
    whole = hashlib.sha256("".join(f"{n}\0{d}\n" for n, d in sorted(digests.items())).encode()).hexdigest()
    return {
        "bytes": size,
        "files": len(digests),
        "sha256": whole,
        "copied_ns": copied - begun,
        "checked_ns": time.monotonic_ns() - copied,
    }


def offer(staged: Path, directory: Path) -> None:
    """Link each entry of the staged input into a copy's directory, so that relative names find it."""
    for entry in sorted(os.listdir(staged)):  # noqa: PTH208 - names are all that is needed
        (directory / entry).symlink_to(staged / entry)


def input_place(staged: Path, source: Path) -> Path:
    """What stands for the input in a command: the directory, or the file itself."""
    return staged if not _was_file(staged, source) else staged / source.name


def forget(staged: Path) -> None:
    """Ask the kernel to drop the clean pages of a staged input: ours alone, not the host's."""
    for _, path in _files(staged):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _was_file(staged: Path, source: Path) -> bool:
    """True where a single file was staged; told from the copy, as the source may be gone by now."""
    entries = os.listdir(staged)  # noqa: PTH208
    return entries == [source.name] and (staged / source.name).is_file()


def _files(source: Path) -> Iterator[tuple[str, Path]]:
    """Every file with its name below `source`, in a settled order."""
    if source.is_file():
        yield source.name, source
        return
    for top, directories, names in os.walk(source, onerror=_raise):
        directories.sort()
        for name in sorted(names):
            path = Path(top) / name
            yield str(path.relative_to(source)), path


def _raise(error: OSError) -> None:
    raise error


def _copy(source: Path, place: Path) -> tuple[str, int]:
    """Copy one file; its checksum as it was read, and its bytes. Only the right to write is taken away."""
    digest, size = hashlib.sha256(), 0
    with source.open("rb", buffering=0) as reading, place.open("xb", buffering=0) as writing:
        while block := reading.read(_BLOCK_BYTES):
            digest.update(block)
            left = memoryview(block)
            while left:
                left = left[writing.write(left) :]
            size += len(block)
        os.fsync(writing.fileno())
        found = os.fstat(reading.fileno())
        os.utime(writing.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
        os.fchmod(writing.fileno(), found.st_mode & 0o555)
    return digest.hexdigest(), size


def _digest(path: Path) -> str:
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
