"""Every error that a user can meet, as one tree; and what this process lacks where an error comes of it."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator
from pathlib import Path


class LeadlineError(Exception):
    """What happened, to what (`message`), and what to do about it (`remedy`)."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n  {self.remedy}" if self.remedy else self.message


class UsageError(LeadlineError):
    """What was asked cannot be done; nothing was started."""


class SpecError(UsageError):
    """A study is not valid: `source` (file or option), `line` (from 1, or None) and `key` say where."""

    def __init__(
        self, message: str, remedy: str = "", *, source: str = "", line: int | None = None, key: str = ""
    ) -> None:
        where = source if line is None else f"{source}, line {line}"
        prefix = ": ".join(part for part in (where, key) if part)
        super().__init__(f"{prefix}: {message}" if prefix else message, remedy)
        self.source, self.line, self.key = source, line, key
        self.plain = message  # without the place, for whoever says the place in words of their own


class TargetError(UsageError):
    """A target cannot be measured."""


class ResultError(UsageError):
    """A directory is no result of leadline, is damaged, or was written by a newer version."""


class CommandError(UsageError):
    """A command to trace cannot be started; `exit_code` is what shells give then."""

    def __init__(self, message: str, remedy: str = "", *, exit_code: int) -> None:
        super().__init__(message, remedy)
        self.exit_code = exit_code


class RefusedChangeError(UsageError):
    """A change of a setting may not be made, or cannot be made here; nothing was changed."""


class StudyError(LeadlineError):
    """A study was started and could not go on."""


class EngineError(StudyError):
    """The load engine refused a job or failed outside a trial."""


class ObserverError(StudyError):
    """The observers could not be started."""


class StoreError(StudyError):
    """A result cannot be written, at `file`; what it holds already is kept."""

    def __init__(self, message: str, remedy: str = "", *, file: str) -> None:
        super().__init__(message, remedy)
        self.file = file


class TuningError(LeadlineError):
    """A setting could not be changed, did not hold what was set, or could not be put back."""


class LabError(LeadlineError):
    """A lab could not be started, inspected or removed."""


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
