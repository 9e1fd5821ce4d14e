"""What was changed and is to be put back: an append-only journal, synced before each deed, and its lock.

A record a line, each with a checksum of all before it, too, so that a line that was changed or cut out is
found. Room for what puts a run back is reserved before its first change, as zeros that were written and
synced: a disk that is full by then still has it. Only the last line may be torn, by a crash: what it
announces was not begun.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shlex
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leadline.durable import sync_directory
from leadline.errors import LeadlineError, RefusedChangeError, TuningError
from leadline.foreign import parse_json, read_plain, reason_of
from leadline.trusted import why_not_file
from leadline.tuning.changing.state import (
    JournalledChange,
    JournalState,
    Reach,
    StateOfRecords,
    setting_row,
)
from leadline.tuning.settings import Setting, SettingChange

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


FILE, PREVIOUS, LOCK = "journal.jsonl", "journal-previous.jsonl", "lock"
_LOCK = re.compile(rb"[0-9 \n\0]*")  # zeros: of one that was written when the power went
_MARK_BYTES = 256  # one line that names a change or a run
_MARKS = 4  # of a change: its own line beside its texts, done, undone, and a search's or a second try
_HOW_MAX = 600  # of a run's end, in characters
_ROOM_BYTES = 4096 + 6 * _HOW_MAX


def state_directory(variables: Mapping[str, str]) -> Path:
    """Where this host's journal is: for root one place, else below the account's state."""
    if os.geteuid() == 0 and not variables.get("XDG_STATE_HOME"):
        return Path("/var/lib/leadline/tuning")
    state = variables.get("XDG_STATE_HOME", "")
    home = Path(variables.get("HOME") or "~").expanduser()
    base = Path(state) if state.startswith("/") else home / ".local/state"
    return base / "leadline" / "tuning"


class TuningJournal:
    """The journal in a directory, which is made when something is first written.

    `options` are those by which `leadline tune` means this journal and its system, where it was told some.
    """

    def __init__(
        self, directory: Path, now_ns: Callable[[], int] = time.time_ns, options: Sequence[str] = ()
    ) -> None:
        self.directory = directory
        self._now_ns = now_ns
        self._options = tuple(options)
        self._locks = 0

    def command(self, verb: str, *words: str) -> str:
        """The command line of a verb of `leadline tune` that means this journal, from any directory."""
        options = self._options
        if not options and self.directory != state_directory(os.environ):
            options = ("--state", str(self.directory.absolute()))
        return shlex.join(["leadline", "tune", verb, *words, *options])

    @property
    def path(self) -> Path:
        """The file."""
        return self.directory / FILE

    @contextmanager
    def locked(self, wait_s: float = 0.0) -> Iterator[None]:
        """Nobody else changes anything by this journal meanwhile; may be nested.

        Raises RefusedChangeError that names the holder. The kernel frees it when the holder ends.
        """
        if self._locks:
            self._locks += 1
            try:
                yield
            finally:
                self._locks -= 1
            return
        self._make()
        descriptor = self._open_lock()
        try:
            self._take(descriptor, time.monotonic() + wait_s)
            with suppress(OSError):  # who holds it is for people alone
                os.pwrite(descriptor, f"{os.getpid():<20}\n".encode(), 0)
            self._locks = 1
            yield
        finally:
            self._locks = 0
            os.close(descriptor)

    def is_busy(self) -> bool:
        """Whether somebody else holds the lock just now."""
        try:
            descriptor = os.open(self.directory / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def _open_lock(self) -> int:
        """For reading only where the disk takes no writes: what is changed can be put back then, too."""
        place, flags = self.directory / LOCK, os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return self._ours(os.open(place, os.O_RDWR | os.O_CREAT | flags, 0o600))
        except OSError as error:
            with suppress(OSError):
                return os.open(place, os.O_RDONLY | flags)
            raise RefusedChangeError(
                f"{place} cannot be made: {error.strerror}: nothing was changed",
                "free space there, or name another directory with --state",
            ) from error

    def _ours(self, descriptor: int) -> int:
        """A lock holds a process's number or nothing. Another file of that name is the user's."""
        if _LOCK.fullmatch(os.pread(descriptor, _MARK_BYTES, 0)):
            return descriptor
        os.close(descriptor)
        raise RefusedChangeError(
            f"{self.directory / LOCK} is no lock of leadline's: nothing was changed",
            "name another directory with --state",
        )

    def _take(self, descriptor: int, until: float) -> None:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > until:
                    holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "?"
                    raise RefusedChangeError(
                        f"process {holder} is changing settings ({self.directory}): nothing was changed",
                        f"wait for it, or end it and run: {self.command('revert')}",
                    ) from None
                time.sleep(0.05)

    def begin(
        self,
        reach: Reach,
        confirm_by_s: float,
        health: Mapping[str, Any],
        room_for: Sequence[tuple[SettingChange, Setting]] = (),
    ) -> str:
        """A run; its identity. Where nothing is outstanding the journal of before is set aside.

        All that will be said of the changes `room_for` has its room on disk when this returns. Raises
        RefusedChangeError where it has none.
        """
        outstanding = self.state().outstanding()
        run = secrets.token_hex(4)
        try:
            if not outstanding and os.path.lexists(self.path):
                self.path.replace(self.directory / PREVIOUS)
                sync_directory(self.directory)
            self.say(
                "begun",
                run=run,
                reach=asdict(reach),
                confirm_by_s=confirm_by_s,
                pid=os.getpid(),
                health=dict(health),
            )
            texts = sum(len(json.dumps(_announced(change, setting))) for change, setting in room_for)
            marks = _MARKS * len(room_for) + len(outstanding)
            self._records.reserve(_ROOM_BYTES + texts + marks * _MARK_BYTES)
        except OSError as error:
            raise RefusedChangeError(
                f"{self.path} cannot be set aside: {error.strerror}: nothing was changed", "free space there"
            ) from error
        except TuningError as error:
            raise RefusedChangeError(f"{error.message}: nothing was changed", error.remedy) from error
        return run

    def changing(self, run: str, change: SettingChange, setting: Setting, life: str) -> JournalledChange:
        """Said before it is done; as the journal has it."""
        number = 1 + max((one.number for one in self.state().changes), default=0)
        self.say("changing", run=run, number=number, life=life, **_announced(change, setting))
        return JournalledChange(number, run, change, setting, life, self._now_ns())

    def say(self, event: str, **details: Any) -> None:
        """What happened: done, trying, undone, confirmed, holding, ended. Raises TuningError."""
        if "how" in details:
            details["how"] = details["how"][:_HOW_MAX]
        self._records.append({"t_ns": self._now_ns(), "event": event, **details})

    def say_if_it_can(self, event: str, **details: Any) -> str:
        """The same where nothing may depend on it. Why it could not be said; "" where it was."""
        try:
            self.say(event, **details)
        except LeadlineError as error:
            return error.message
        return ""

    def state(self) -> JournalState:
        """What it says. Raises TuningError where it is damaged, RefusedChangeError of a newer version."""
        found = StateOfRecords()
        if not os.path.lexists(self.path):
            return found.state
        if why := why_not_file(str(self.path.absolute())):
            raise RefusedChangeError(f"{self.path} is not believed: {why}", "use the account that wrote it")
        for line, record in self._records.read().lines:
            try:
                found.take_up(line, record)
            except Exception as error:
                raise self._records.damaged(line, error) from error
        return found.state

    @property
    def _records(self) -> RecordFile:
        return RecordFile(self.path)

    def _make(self) -> None:
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise RefusedChangeError(
                f"{self.directory} cannot be made: {error.strerror}", "name another with --state"
            ) from error
        if why := why_not_file(str(self.directory.absolute())):
            raise RefusedChangeError(
                f"{self.directory} is no place for a journal: {why}", "name another with --state"
            )


def _announced(change: SettingChange, setting: Setting) -> dict[str, Any]:
    return {"change": change.as_json(), "setting": setting_row(setting)}
