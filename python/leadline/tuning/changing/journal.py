"""What was changed and is to be put back: an append-only journal, synced before each deed, and its lock.

A journal says all that a revert needs, how the setting is accessed too: the table may be another by then.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from leadline.errors import RefusedChangeError, TuningError
from leadline.foreign import parse_json, read_plain
from leadline.trusted import why_not_file
from leadline.tuning.access.face import same_value
from leadline.tuning.changes import SettingChange
from leadline.tuning.settings import Setting, SettingAccess

FORMAT = "leadline.tuning/1"
FILE, PREVIOUS, LOCK = "journal.jsonl", "journal-previous.jsonl", "lock"
_BYTES_MAX = 64 << 20


@dataclass(frozen=True)
class Reach:
    """How the system that a run changed is reached again, from anywhere on this host."""

    conf: str = ""
    client_name: str = ""
    namespaces: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class JournalledChange:
    """One change of a run. `life` is what its value lives with; `done` once it was read back."""

    number: int
    run: str
    change: SettingChange
    setting: Setting
    life: str
    t_ns: int
    done: bool = False
    undone: str = ""  # how: put back, was back already, gone, left
    tried: tuple[str, ...] = ()  # by a search, whose change has no value of its own

    @property
    def outstanding(self) -> bool:
        """Whether it is still to be put back."""
        return not self.undone

    @property
    def values(self) -> tuple[str, ...]:
        """All that it may have been set to, the last one last: others are somebody else's."""
        return self.tried if self.tried else (self.change.value,)

    def is_ours(self, value: str | None) -> bool:
        """Whether it may have been set here to what is found."""
        return any(same_value(value, own) for own in self.values)


@dataclass(frozen=True)
class TuningRun:
    """One apply. `confirm_by_s` is when a switch puts it back (Unix time), 0 where there is none."""

    id: str
    t_ns: int
    reach: Reach
    confirm_by_s: float = 0.0
    confirmed: bool = False
    ended: str = ""
    holder_pid: int = 0
    health: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JournalState:
    """What a journal says, as a whole."""

    runs: Mapping[str, TuningRun]
    changes: tuple[JournalledChange, ...]

    def outstanding(self, run: str = "") -> tuple[JournalledChange, ...]:
        """What is still to be put back, the last change first; of one run, or of all."""
        found = (one for one in self.changes if one.outstanding and run in ("", one.run))
        return tuple(sorted(found, key=lambda one: -one.number))


def state_directory(variables: Mapping[str, str]) -> Path:
    """Where this host's journal is: for root one place, else below the account's state."""
    if os.geteuid() == 0 and not variables.get("XDG_STATE_HOME"):
        return Path("/var/lib/leadline/tuning")
    state = variables.get("XDG_STATE_HOME", "")
    home = Path(variables.get("HOME") or "~").expanduser()
    base = Path(state) if state.startswith("/") else home / ".local/state"
    return base / "leadline" / "tuning"


class TuningJournal:
    """The journal in a directory, which is made when something is first written."""

    def __init__(self, directory: Path, now_ns: Callable[[], int] = time.time_ns) -> None:
        self.directory = directory
        self._now_ns = now_ns
        self._locks = 0

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
        descriptor = os.open(
            self.directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        try:
            self._take(descriptor, time.monotonic() + wait_s)
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            self._locks = 1
            yield
        finally:
            self._locks = 0
            os.close(descriptor)

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
                        "wait for it, or end it and run: leadline tune revert",
                    ) from None
                time.sleep(0.05)

    def begin(self, reach: Reach, confirm_by_s: float, health: Mapping[str, Any]) -> str:
        """A run; its identity. Where nothing is outstanding the journal of before is set aside."""
        if self.path.exists() and not self.state().outstanding():
            self.path.replace(self.directory / PREVIOUS)
            _sync(self.directory)
        run = secrets.token_hex(4)
        if not self.path.exists():
            self._append("journal", format=FORMAT)
        self._append(
            "begun",
            run=run,
            reach=asdict(reach),
            confirm_by_s=confirm_by_s,
            pid=os.getpid(),
            health=dict(health),
        )
        return run

    def changing(self, run: str, change: SettingChange, setting: Setting, life: str) -> int:
        """Said before it is done; its number."""
        number = 1 + max((one.number for one in self.state().changes), default=0)
        access = {"kind": setting.access.kind, "options": dict(setting.access.options)}
        how = {"access": access, "needs": setting.needs, "one_of": setting.one_of, "unit": setting.unit}
        self._append("changing", run=run, number=number, change=change.as_json(), life=life, setting=how)
        return number

    def say(self, event: str, **details: Any) -> None:
        """What happened: done, trying, undone, confirmed, holding, ended."""
        self._append(event, **details)

    def state(self) -> JournalState:
        """What it says. Raises TuningError where it is damaged, or of a newer version."""
        if not os.path.lexists(self.path):
            return JournalState({}, ())
        if why := why_not_file(str(self.path.absolute())):
            raise RefusedChangeError(f"{self.path} is not believed: {why}", "use the account that wrote it")
        runs: dict[str, TuningRun] = {}
        changes: dict[int, JournalledChange] = {}
        for number, event in self._events():
            try:
                _take_up(event, runs, changes)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise self._damaged(number) from error
        return JournalState(runs, tuple(changes.values()))

    def _events(self) -> Iterator[tuple[int, dict[str, Any]]]:
        try:
            lines = read_plain(self.path, _BYTES_MAX, follow=False).decode("utf-8", "replace").split("\n")
        except OSError as error:
            raise TuningError(
                f"{self.path} cannot be read: {error.strerror}", "use the account that wrote it"
            ) from error
        for number, line in enumerate(lines, start=1):
            if not line.strip("\0 "):
                continue
            try:
                event = parse_json(line)
            except ValueError as error:
                if "\0" in line or not line.endswith("}") or getattr(error, "pos", -1) >= len(line):
                    continue  # torn by a crash: what it announces was not begun, as it was not synced
                raise self._damaged(number) from error
            if event.get("event") == "journal" and event.get("format") != FORMAT:
                raise RefusedChangeError(
                    f"{self.path} was written by another version ({event.get('format')})", "use that one"
                )
            yield number, event

    def _damaged(self, number: int) -> TuningError:
        return TuningError(
            f"{self.path}, line {number}, is damaged: what it says cannot be put back",
            "compare the settings by hand: leadline tune audit",
        )

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

    def _append(self, event: str, **details: Any) -> None:
        line = json.dumps({"t_ns": self._now_ns(), "event": event, **details}) + "\n"
        try:
            new = not self.path.exists()
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
            try:
                size = os.fstat(descriptor).st_size
                if size and os.pread(descriptor, 1, size - 1) != b"\n":
                    line = "\n" + line
                data = line.encode()
                if os.write(descriptor, data) != len(data):
                    raise TuningError(f"{self.path} cannot be written whole: its disk is full", "free space")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if new:
                _sync(self.directory)
        except OSError as error:
            raise TuningError(
                f"{self.path} cannot be written: {error.strerror}", "free space there"
            ) from error


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _take_up(event: dict[str, Any], runs: dict[str, TuningRun], changes: dict[int, JournalledChange]) -> None:
    what = event["event"]
    if what == "begun":
        reach = Reach(**event["reach"])
        runs[event["run"]] = TuningRun(
            event["run"], event["t_ns"], reach, event["confirm_by_s"], health=event["health"]
        )
    elif what == "changing":
        change, number = SettingChange.from_json(event["change"]), event["number"]
        changes[number] = JournalledChange(
            number,
            event["run"],
            change,
            _setting(change.setting, event["setting"]),
            event["life"],
            event["t_ns"],
        )
    elif what == "done":
        changes[event["number"]] = replace(changes[event["number"]], done=True)
    elif what == "trying":
        one = changes[event["number"]]
        changes[event["number"]] = replace(one, tried=(*one.tried, event["value"]))
    elif what == "undone":
        changes[event["number"]] = replace(changes[event["number"]], undone=event["how"])
    elif what == "confirmed":
        runs[event["run"]] = replace(runs[event["run"]], confirmed=True)
    elif what == "ended":
        runs[event["run"]] = replace(runs[event["run"]], ended=event["how"])
    elif what == "holding":
        runs[event["run"]] = replace(runs[event["run"]], holder_pid=event["pid"])


def _setting(name: str, how: Mapping[str, Any]) -> Setting:
    """As much of a setting as is needed to read it and to put it back."""
    one_of = how.get("one_of")
    return Setting(
        name=name,
        title=name,
        layer="sysctl",
        roles=(),
        access=SettingAccess(how["access"]["kind"], dict(how["access"]["options"])),
        means="",
        unit=how.get("unit", ""),
        default="",
        needs=how["needs"],
        persist="by_hand",
        sources=(),
        one_of=None if one_of is None else tuple(one_of),
    )
