"""What this process lacks where an error comes of it: memory, threads, descriptors, /proc.

No file is damaged then, and the program has no defect: limits of the shell or the host are the cause.
"""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator
from pathlib import Path

_PROC = "/proc/"
_NO_MEMORY = ("failed to map segment", "cannot allocate memory", "bad_alloc")
FILES_REMEDY = "Allow more, then start it again: ulimit -n 1024"


def shortage_of(problem: BaseException) -> tuple[str, str] | None:
    """What was lacking and what to do, where `problem`, or what it came of, says so."""
    return next((found for one in _chain(problem) if (found := _lacking(one)) is not None), None)


def no_proc() -> tuple[str, str] | None:
    """The same where /proc is not mounted."""
    if Path(_PROC, "self").exists():
        return None
    return "/proc is not mounted, and leadline reads it", "Mount it: mount -t proc proc /proc"


def no_memory() -> tuple[str, str]:
    """The same of memory, with the limit where there is one."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    bound = "" if limit == resource.RLIM_INFINITY else f": its limit of address space is {limit >> 20} MiB"
    remedy = "Allow more, then start it again: ulimit -v unlimited; or free memory on this host."
    return f"this process got no more memory{bound}", remedy


def _chain(problem: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    at: BaseException | None = problem
    while at is not None and at not in seen:
        seen.append(at)
        yield at
        at = at.__cause__ or at.__context__


def _lacking(problem: BaseException) -> tuple[str, str] | None:
    number = problem.errno if isinstance(problem, OSError) else None
    text = str(problem).lower()
    if number == errno.EMFILE:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return f"too many files are open: this process may open {limit}", FILES_REMEDY
    if "can't start new thread" in text:
        return (
            "this process may start no more threads",
            "Allow more, then start it again: ulimit -u, ulimit -v",
        )
    bounded = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    # Without a limit it may be what a file claims that no memory holds.
    refused = isinstance(problem, MemoryError) and bounded and not text.startswith("it needs")
    if refused or number == errno.ENOMEM or any(words in text for words in _NO_MEMORY):
        return no_memory()
    missing = number == errno.ENOENT and str(getattr(problem, "filename", "")).startswith(_PROC)
    return no_proc() if missing else None
