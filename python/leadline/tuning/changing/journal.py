"""What was changed and is to be put back: an append-only journal, synced before each deed, and its lock.

What is needed to put a run back is reserved before its first change.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leadline.durable import sync_directory
from leadline.errors import LeadlineError, RefusedChangeError, TuningError
from leadline.trusted import why_not_file
from leadline.tuning.changes import SettingChange
from leadline.tuning.changing.records import RecordFile
from leadline.tuning.changing.state import (
    JournalledChange,
    JournalState,
    Reach,
    StateOfRecords,
    setting_row,
)
from leadline.tuning.settings import Setting

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
