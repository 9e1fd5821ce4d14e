"""The file in which a lab says which faults are in force, and since and until when; others only read it.

It lies in the lab's directory and is appended to: one line before a fault is done, one after it is undone.
Time is this machine's, so what ran meanwhile on it can be marked. Nothing in it undoes a fault.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from leadline.foreign import parse_json, read_plain

DIRECTORY = "LEADLINE_LAB_DIR"  # in the environment of what a lab started: where the lab is
FILE = "faults.jsonl"
FORMAT = "leadline.faults/1"
BEGAN, ENDED, UNKNOWN = "fault_began", "fault_ended", "faults_unknown"  # in the journal of a study
_BYTES_MAX = 16 << 20
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


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

    @property
    def key(self) -> tuple[str, float]:
        """Which one it is: a lab that is made anew begins anew to number its faults."""
        return self.id, self.began_unix_s

    @property
    def what(self) -> tuple[str, str, str]:
        """What was done to what: the same for a fault that is done once more."""
        return self.kind, self.on, self.words

    def overlaps(self, begin_unix_s: float, end_unix_s: float) -> bool:
        """True where it was in force at any time between the two."""
        return self.began_unix_s <= end_unix_s and (
            self.ended_unix_s is None or self.ended_unix_s >= begin_unix_s
        )

    def covers(self, begin_unix_s: float, end_unix_s: float) -> bool:
        """True where it was in force all the time between the two."""
        return self.began_unix_s <= begin_unix_s and (
            self.ended_unix_s is None or self.ended_unix_s >= end_unix_s
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Fault:
        """The inverse of `asdict`; keys of a newer minor version are dropped. Raises KeyError, TypeError
        or ValueError for what is no fault."""
        names = ("id", "kind", "on", "words")
        if not all(isinstance(value[name], str) for name in names):
            raise TypeError("a fault is named and described by text")
        ended = value.get("ended_unix_s")
        return cls(
            **{name: value[name] for name in names},
            began_unix_s=float(value["began_unix_s"]),
            ended_unix_s=None if ended is None else float(ended),
        )


@dataclass(frozen=True)
class TrialFault:
    """A fault that a trial ran under; `whole`: from its beginning to its end."""

    fault: Fault
    whole: bool

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self.fault) | {"whole": self.whole}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> TrialFault:
        """The inverse of `as_json`. Raises as `Fault.from_json` does."""
        return cls(Fault.from_json(value), bool(value["whole"]))


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

    A line that is damaged or of a newer format is passed over. Raises OSError where the file cannot be read:
    a link or a FIFO in its place is not followed or waited for, and one of more than 16 MiB is no lab's.
    """
    try:
        data = read_plain(directory / FILE, _BYTES_MAX, follow=False)
    except FileNotFoundError:
        return ()
    found: dict[str, Fault] = {}
    for line in data.split(b"\n"):
        _take(line, found)
    return tuple(sorted(found.values(), key=lambda fault: fault.began_unix_s))


def in_force(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """Those that have not ended."""
    return tuple(fault for fault in faults if fault.ended_unix_s is None)


def _append(directory: Path, line: Mapping[str, object]) -> None:
    descriptor = os.open(directory / FILE, _APPEND, 0o600)
    try:
        data = (json.dumps(line) + "\n").encode()
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            data = b"\n" + data  # a line that a crash tore takes none of the next with it
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _take(line: bytes, found: dict[str, Fault]) -> None:
    try:
        value = parse_json(line)
        if value["format"] != FORMAT:
            return
        if "began_unix_s" in value:
            found[value["id"]] = Fault.from_json(value)
        elif value["id"] in found:
            ended = float(value["ended_unix_s"])
            found[value["id"]] = replace(found[value["id"]], ended_unix_s=ended)
    except (ValueError, KeyError, TypeError):
        return
