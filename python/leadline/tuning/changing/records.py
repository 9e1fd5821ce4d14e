"""The file of a tuning journal: a record a line, each with a checksum, written into room that was reserved.

Room is zeros that were written and synced before: a disk that is full by then still has it. A checksum covers
the lines before it, too, so that a line that was changed or cut out is found. Only the last line may be torn,
by a crash: what it announces was not begun.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.durable import sync_directory
from leadline.errors import RefusedChangeError, TuningError
from leadline.foreign import parse_json, read_plain, reason_of

FORMAT, UNCHECKED = "leadline.tuning/2", "leadline.tuning/1"
_HEAD = "journal"  # the event of the first line, which says the format
_BYTES_MAX = 64 << 20
_SUM = re.compile(rb', "sum": "([0-9a-f]{8})"\}$')
_DAMAGED = (
    "restore it from a copy; without one compare the settings by hand (leadline tune audit),"
    " put back what is wrong, and move the file away"
)


@dataclass(frozen=True)
class Records:
    """What a file holds: records by their line. `end` is where the next line goes, `total` the checksum."""

    lines: tuple[tuple[int, dict[str, Any]], ...] = ()
    end: int = 0
    total: int = 0


class RecordFile:
    """The file at `path`; it is made when something is first written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Records:
        """All records. Raises TuningError for a line that is damaged, and where the file cannot be read."""
        try:
            return self._scan(read_plain(self.path, _BYTES_MAX, follow=False))
        except OSError as error:
            raise TuningError(
                f"{self.path} cannot be read: {error.strerror}", "see what is wrong with its file system"
            ) from error

    def append(self, record: Mapping[str, Any]) -> None:
        """One record, synced. Raises TuningError."""
        try:
            new = not self.path.exists()
            descriptor = self._open()
            try:
                data = _all_of(descriptor)
                found = self._scan(data)
                if not found.lines and record["event"] != _HEAD:
                    head, total = _line({"t_ns": record["t_ns"], "event": _HEAD, "format": FORMAT}, 0)
                    line = head + _line(record, total)[0]
                else:
                    line = _line(record, found.total)[0]
                if data[found.end - 1 : found.end] not in (b"", b"\n"):
                    line = b"\n" + line
                torn = len(data.rstrip(b"\0")) - found.end - len(line)
                _write(descriptor, line + bytes(max(0, torn)), found.end)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if new:
                sync_directory(self.path.parent)
        except OSError as error:
            raise TuningError(f"{self.path} cannot be written: {error.strerror}", _room_or_disk()) from error

    def reserve(self, size: int) -> None:
        """Room for `size` bytes behind the last line. Raises TuningError."""
        try:
            descriptor = self._open()
            try:
                data = _all_of(descriptor)
                missing = self._scan(data).end + size - len(data)
                if missing > 0:
                    _write(descriptor, bytes(missing), len(data))
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise TuningError(
                f"{self.path} gets no room for what is to be put back: {error.strerror}", _room_or_disk()
            ) from error

    def _open(self) -> int:
        """Nobody else writes until it is closed."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return descriptor

    def _scan(self, data: bytes) -> Records:
        written = data.rstrip(b"\0")
        lines = written.split(b"\n")
        last = max((at for at, line in enumerate(lines) if line.strip(b"\0 ")), default=-1)
        found: list[tuple[int, dict[str, Any]]] = []
        begin, total, checked = 0, 0, False
        for at, line in enumerate(lines):
            if line.strip(b"\0 "):
                try:
                    record = _record(line)
                    checked = checked if found else self._is_checked(record)
                    total = _checksum(line, total, checked=checked)
                except ValueError as error:
                    if at == last and (at == len(lines) - 1 or b"\0" in line):
                        return Records(tuple(found), begin, total)
                    raise self.damaged(at + 1, error) from error
                found.append((at + 1, record))
            begin += len(line) + 1
        return Records(tuple(found), len(written), total)

    def _is_checked(self, head: Mapping[str, Any]) -> bool:
        """Whether every line has a checksum, by the first one."""
        if head.get("event") != _HEAD:
            raise ValueError("it is not the first line of a journal")
        if head.get("format") not in (FORMAT, UNCHECKED):
            raise RefusedChangeError(
                f"{self.path} was written by another version ({head.get('format')})", "use that one"
            )
        return bool(head["format"] == FORMAT)

    def damaged(self, line: int, error: Exception) -> TuningError:
        """The error that names a line."""
        return TuningError(f"{self.path}, line {line}, is damaged: {reason_of(error)}", _DAMAGED)


def _record(line: bytes) -> dict[str, Any]:
    record = parse_json(line)
    if not isinstance(record, dict) or not isinstance(record.get("event"), str):
        raise ValueError("it is no record of a journal")
    return record


def _checksum(line: bytes, total: int, *, checked: bool) -> int:
    """The one so far, with this line. Raises ValueError where the line has another, or lacks it."""
    found = _SUM.search(line)
    if found is None:
        if checked:
            raise ValueError("it has no checksum")
        return total
    total = zlib.crc32(line[: found.start()], total)
    if int(found[1], 16) != total:
        raise ValueError("its checksum is another: it was changed, or a line before it is missing")
    return total


def _line(record: Mapping[str, Any], total: int) -> tuple[bytes, int]:
    """A record's line, and the checksum with it."""
    body = json.dumps(record)[:-1].encode()
    total = zlib.crc32(body, total)
    return body + f', "sum": "{total:08x}"}}\n'.encode(), total


def _all_of(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _write(descriptor: int, data: bytes, at: int) -> None:
    """All of it. Raises OSError."""
    while data:
        count = os.pwrite(descriptor, data, at)
        data, at = data[count:], at + count


def _room_or_disk() -> str:
    return "free space there, or see what is wrong with its file system"
