"""The file in which a lab says which faults are in force, and since and until when; others only read it.

It lies in the lab's directory and is appended to: one line before a fault is done, one after it is undone.
Time is this machine's, so what ran meanwhile on it can be marked. Nothing in it undoes a fault.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

FILE = "faults.jsonl"
FORMAT = "leadline.faults/1"
_BYTES_MAX = 16 << 20
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Fault:
    """One fault: `kind` such as `link-rate`, `on` what it was done to, `words` for people.

    `ended_unix_s` is None while it is in force.
    """

    id: str
    kind: str
    on: str
    words: str
    began_unix_s: float
    ended_unix_s: float | None = None

    def overlaps(self, begin_unix_s: float, end_unix_s: float) -> bool:
        """True where it was in force at any time between the two."""
        return self.began_unix_s <= end_unix_s and (
            self.ended_unix_s is None or self.ended_unix_s >= begin_unix_s
        )


def begin(directory: Path, identifier: str, kind: str, on: str, words: str) -> Fault:
    """Says that a fault is about to be done. It is on disk when this returns."""
    fault = Fault(identifier, kind, on, words, time.time())
    _append(directory, {"format": FORMAT} | asdict(fault))
    return fault


def end(directory: Path, identifier: str) -> None:
    """Says that the fault was undone."""
    _append(directory, {"format": FORMAT, "id": identifier, "ended_unix_s": time.time()})


def read(directory: Path) -> tuple[Fault, ...]:
    """Every fault of the lab in `directory`, by their beginnings; none where there is no such file.

    A line that is damaged or of a newer format is passed over. Raises OSError where the file cannot be read.
    """
    try:
        descriptor = os.open(directory / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return ()
    with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor
        text = stream.read(_BYTES_MAX).decode(errors="replace")
    found: dict[str, Fault] = {}
    for line in text.splitlines():
        _take(line, found)
    return tuple(sorted(found.values(), key=lambda fault: fault.began_unix_s))


def in_force(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """Those that have not ended."""
    return tuple(fault for fault in faults if fault.ended_unix_s is None)


def _append(directory: Path, line: dict[str, object]) -> None:
    descriptor = os.open(directory / FILE, _APPEND, 0o600)
    try:
        os.write(descriptor, (json.dumps(line) + "\n").encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _take(line: str, found: dict[str, Fault]) -> None:
    try:
        value = json.loads(line)
        if value.pop("format") != FORMAT:
            return
        identifier = str(value["id"])
        if "began_unix_s" in value:
            found[identifier] = Fault(**value)
        elif identifier in found:
            found[identifier] = replace(found[identifier], ended_unix_s=float(value["ended_unix_s"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return
