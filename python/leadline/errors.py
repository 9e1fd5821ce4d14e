"""Every error that a user can meet, as one tree.

    LeadlineError
    ├── UsageError          what was asked cannot be done: nothing was started
    │   ├── SpecError       a study, an override or a target is not valid (names file, line, key)
    │   ├── TargetError     a target cannot be measured: missing, read-only, full, raw device, `/`
    │   ├── ResultError     a directory is no result, is corrupt, or is of a newer version
    │   ├── CommandError    a command to trace cannot be started (126) or was not found (127)
    │   └── RefusedChangeError  a change of a setting may not be made, or cannot be: nothing was changed
    ├── StudyError          a study was started and could not go on
    │   ├── EngineError     the load engine refused or failed outside a trial
    │   ├── ObserverError   the observers could not be started
    │   └── StoreError      a result cannot be written: its disk is full, or failed
    ├── TuningError         a setting was changed and did not hold, or could not be put back
    └── LabError            a lab could not be started, inspected or removed

A message says what happened and to what; `remedy` says what to do. Only the command line
turns an error into an exit code.
"""

from __future__ import annotations


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
