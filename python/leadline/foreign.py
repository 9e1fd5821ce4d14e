"""The door for files that somebody else may have written, damaged or replaced: stored results above all.

A file is opened without waiting for anybody, read up to a bound, and whatever is wrong with it or with what
is made of it becomes one error that names it.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import resource
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from leadline.errors import LeadlineError, ResultError, SpecError, UsageError, shortage_of
from leadline.trusted import believed_accounts

DEPTH_MAX = 64  # of JSON: nothing of ours comes near, and what walks through it stays off Python's limit
_PAGE_BYTES = resource.getpagesize()
_BOUNDING = threading.RLock()
_TOO_DEEP = f"nested deeper than {DEPTH_MAX} levels"
RESTORE = "restore it from a copy of the result"
UNTOUCHED = (
    "restore it from a copy; if nobody changed it, this is a defect of leadline: please report it with the"
    " output under LEADLINE_DEBUG=1"
)
# Strings are passed over whole, also one that does not end, so that no text is looked at twice.
_C_WORD = re.compile(r"\b(?:inf|infinity|nan)\b", re.IGNORECASE)
_C_FLOAT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[-+]?\b(?:inf|infinity|nan)\b', re.IGNORECASE | re.DOTALL)


@contextmanager
def reading(what: object, remedy: str = RESTORE, error: type[LeadlineError] = ResultError) -> Iterator[None]:
    """Whatever goes wrong while `what` is read, or something is made of it, is an error that names it."""
    try:
        yield
    except (ResultError, SpecError) as problem:
        if str(what) in problem.message:
            raise
        raise error(f"{what}: {problem.message}", problem.remedy or remedy) from problem
    except LeadlineError:
        raise
    except Exception as problem:
        if lacking := shortage_of(problem):
            raise error(f"{what} cannot be read: {lacking[0]}", lacking[1]) from problem
        # What others made and somebody named may be whole, and only of another form than is read.
        own = error is not UsageError and not isinstance(problem, OSError | MemoryError)
        state = "is damaged" if own else "cannot be read"
        raise error(f"{what} {state}: {reason_of(problem)}", remedy) from problem


def reason_of(problem: Exception) -> str:
    """What an exception says, in one line of bounded length."""
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    if isinstance(problem, RecursionError):
        return "it is nested too deeply"
    if isinstance(problem, MemoryError):
        words = str(problem)  # which are ours, or Arrow's on the bytes that it asked for
        return words if words.startswith("it needs") else "it needs more memory than it may have"
    lines = str(problem).strip().splitlines()
    words = lines[0] if lines else ""
    plain = words if isinstance(problem, ValueError) and words else f"{type(problem).__name__}: {words}"
    return plain if len(plain) <= 200 else f"{plain[:197]}..."


@contextmanager
def within_memory(bytes_more: int) -> Iterator[None]:
    """MemoryError where the process would need so many bytes more than it has now: whatever asks for them.

    The kernel counts, as nothing that a file says of itself is to be believed. A bound within another never
    widens it.
    """
    with _BOUNDING:  # bounds are the process's, and have to end in the order in which they began
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        used = _data_pages() * _PAGE_BYTES
        bounds = [used + bytes_more, *(one for one in (soft, hard) if one != resource.RLIM_INFINITY)]
        resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), hard))
        try:
            yield
        except MemoryError:
            raise MemoryError(
                f"it needs more than {max(min(bounds) - used, 0) >> 20} MiB of memory"
            ) from None
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_pages() -> int:
    """Pages of this process's data; `open` would take three times as long, and this is asked often."""
    descriptor = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(descriptor, 256).split()[5])
    finally:
        os.close(descriptor)


def open_plain(path: Path, *, follow: bool = True) -> BinaryIO:
    """A plain file, opened for reading. Raises OSError, also for what would be waited for, such as a FIFO.

    Without `follow` a link is no plain file.
    """
    link = 0 if follow else os.O_NOFOLLOW
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | link)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no plain file", str(path))
    return os.fdopen(descriptor, "rb")


def read_plain(path: Path, bytes_max: int, *, follow: bool = True, own: bool = False) -> bytes:
    """The bytes of a plain file. Raises OSError, also where there are more than `bytes_max`.

    An `own` file is one that no other account could have written, under one name, which is no link.
    """
    with open_plain(path, follow=follow and not own) as file:
        found = os.fstat(file.fileno())
        theirs = found.st_uid not in believed_accounts() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if own and (theirs or found.st_nlink > 1):
            raise OSError(errno.EPERM, "another account could have written it", str(path))
        size = found.st_size
        if size <= bytes_max:
            data = file.read(size + 1)  # what is asked for is allocated, whether it is there or not
            while len(data) > size and len(data) <= bytes_max:  # it grows, or is the kernel's and has no size
                size = min(2 * len(data) + _PAGE_BYTES, bytes_max)
                data += file.read(size + 1 - len(data))
            if len(data) <= bytes_max:
                return data
    raise OSError(errno.EFBIG, f"it is larger than {bytes_max >> 20} MiB", str(path))


def parse_json(text: str | bytes) -> Any:
    """JSON of bounded depth, without NaN and infinities. Raises ValueError.

    The only reader of JSON that is not of this very process: of files, programs, servers and other hosts.
    `parse_c_json` also takes what C prints for a float that is no number.
    """
    whole = text if isinstance(text, str) else _decoded(text)
    try:
        value = _READ.decode(whole)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if whole.count("[") + whole.count("{") > DEPTH_MAX:  # nearly all that is read is too short to be deep
        _check_depth(value)
    return value


def parse_c_json(text: str | bytes) -> Any:
    """JSON of programs that print C's floats as they are, as Ceph and fio do. Raises ValueError.

    A bare `inf` or `nan` is no number, and is None: nobody knows the value, and all others still count.
    """
    whole = text if isinstance(text, str) else _decoded(text)
    return parse_json(_C_FLOAT.sub(_without_c_float, whole) if _C_WORD.search(whole) else whole)


def _without_c_float(match: re.Match[str]) -> str:
    return match[0] if match[0][0] == '"' else json.dumps(None)


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [
            child
            for one in level
            if isinstance(one, dict | list)
            for child in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def foreign_text(data: bytes) -> str:
    """Text of a file that any system wrote: UTF-8, UTF-16 or UTF-32, with a byte order mark or without."""
    text = data.decode(json.detect_encoding(data), "replace")
    return text.removeprefix("\ufeff")


def _decoded(data: bytes) -> str:
    """As `json.loads` does it."""
    return data.decode(json.detect_encoding(data), "surrogatepass")


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _number(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError("a number is beyond all bounds")
    return value


# `json.loads` makes one at each call.
_READ = json.JSONDecoder(parse_constant=_no_number, parse_float=_number)
