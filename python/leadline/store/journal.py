"""The journal of a result, `events.jsonl`: append-only, one JSON object a line, synced before acting on it.

What is going to be changed is written here first; so a crash at any point can be undone or resumed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.durable import private_opener
from leadline.errors import ResultError
from leadline.foreign import RESTORE, parse_json, read_plain, reading
from leadline.store.files import storing

_BYTES_MAX = 256 << 20
_PART = re.compile(r"[-+.\\a-zA-Z0-9]{1,5}")  # of a number, a word or an escape


@dataclass(frozen=True)
class Event:
    """One line: when (unix ns), what, and its details."""

    t_ns: int
    event: str
    details: dict[str, Any]

    @property
    def finished(self) -> tuple[str, ...]:
        """Trials that it says are finished; of jobs of one group all of them or none."""
        if self.event == "trial_finished":
            return (str(self.details["trial"]),)
        return tuple(self.details["trials"]) if self.event == "trials_finished" else ()


class Journal:
    """Appends events; each is on disk when `append` returns."""

    def __init__(self, path: Path, now_ns: Callable[[], int]) -> None:
        self._path = path
        self._now_ns = now_ns

    def append(self, event: str, **details: Any) -> None:
        """Write one event and sync it. A torn last line of an earlier crash is closed first."""
        line = json.dumps({"t_ns": self._now_ns(), "event": event, **details}) + "\n"
        with storing(self._path.parent):
            self._write(line)

    def _write(self, line: str) -> None:
        descriptor = private_opener(str(self._path), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = "\n" + line
            data = line.encode()
            while data:
                data = data[os.write(descriptor, data) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class DamagedJournalError(ResultError):
    """A line of a journal cannot be read, and was not torn by a crash: what it said is lost."""


def read_journal(path: Path) -> tuple[Event, ...]:
    """All events. Lines torn by a crash are passed over; DamagedJournalError where another cannot be read."""
    if not os.path.lexists(path):
        raise ResultError(
            f"{path.parent} has no {path.name}", "the directory is not a complete result of leadline"
        )
    with reading(path):
        text = read_plain(path, _BYTES_MAX).decode("utf-8", "replace")
    return tuple(_events(path, text))


def _is_torn(line: str, error: json.JSONDecodeError) -> bool:
    """Whether an event was cut short: by the end of what was written, or by zeros that a disk has instead."""
    if "\0" in line or error.pos == len(line):
        return True
    # Within a word, a number or an escape the error is where that began; a whole event ends with a brace.
    cut = error.msg.startswith("Unterminated") or _PART.fullmatch(line, error.pos)
    return bool(cut) and line.startswith("{") and not line.endswith("}")


def _events(path: Path, text: str) -> Iterator[Event]:
    from leadline.store.shapes import check_event_shape

    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number},"
        with reading(where):
            try:
                value = parse_json(line)
            except json.JSONDecodeError as error:
                if _is_torn(line, error):
                    continue  # its action had not begun, since the sync had not returned
                raise DamagedJournalError(f"{where} is damaged: {error.msg}", RESTORE) from error
            if not isinstance(value, dict) or not isinstance(value.get("event"), str):
                raise ValueError("it is not an event of leadline")
            check_event_shape(value["event"], value)
        yield Event(value.pop("t_ns", 0), value.pop("event"), value)
