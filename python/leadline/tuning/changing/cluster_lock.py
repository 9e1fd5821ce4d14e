"""One at a time on a cluster, whichever host and journal: the monitors keep a lock, beside the journal's own.

Who wants it writes a key of its own, then lists all keys: of two at once one at least sees the other, and
withdraws. It ends by its time unless it is renewed, and with a process of this host that has ended.
"""

from __future__ import annotations

import json
import os
import pwd
import secrets
import shlex
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.errors import LeadlineError, RefusedChangeError, TuningError, UsageError
from leadline.foreign import parse_json
from leadline.tuning.surroundings import TunedSurroundings
from leadline.units import printable

_PREFIX = "leadline/tuning-lock/"
APPLY_S, PROOF_S = 600.0, 3600.0  # a trial of a proof may be long, and renews nothing
_TEXT_MAX = 64


@dataclass(frozen=True)
class LockHolder:
    """Who holds a cluster. `until_unix_s` is when the lock ends by itself, None where it does not say."""

    id: str
    host: str = ""
    user: str = ""
    pid: int = 0
    began_unix_s: float = 0.0
    until_unix_s: float | None = None
    process: str = ""  # boot, namespace of processes, number and start: tells whether it is this host's

    @property
    def words(self) -> str:
        """In one line."""
        if self.until_unix_s is None:
            return f"lock {self.id}, which cannot be read,"
        since = _clock(self.began_unix_s)
        return f"process {self.pid} of {self.user} on {self.host} (lock {self.id}, since {since})"

    @property
    def ends(self) -> str:
        """When, in words."""
        if self.until_unix_s is None:
            return "not by itself"
        return f"at {_clock(self.until_unix_s)} unless it is renewed"

    @property
    def is_running(self) -> bool | None:
        """None where it cannot be told from here."""
        here, _, own = self.process.rpartition(" ")
        if not here or here != _here():
            return None
        return own == _started(self.pid)

    def is_over(self, now_s: float) -> bool:
        """Whether it counts no more."""
        ended = self.until_unix_s is not None and self.until_unix_s <= now_s
        return ended or self.is_running is False


class ClusterLock:
    """The lock of one process on the cluster of `around`, for `lease_s` at a time."""

    def __init__(self, around: TunedSurroundings, lease_s: float = APPLY_S) -> None:
        self._around, self._lease_s = around, lease_s
        self._id, self._began_s, self._until_s = secrets.token_hex(4), 0.0, 0.0

    @property
    def is_held(self) -> bool:
        """Whether this process has it."""
        return self._began_s > 0

    def take(self) -> None:
        """Have it, or renew it. Raises RefusedChangeError that names who has it."""
        if self.is_held:
            self.renew()
            return
        try:
            self._write()
            now = time.time()
            others = [one for one in holders(self._around) if one.id != self._id]
            for one in others:
                if one.is_over(now):
                    _remove(self._around, one.id)
        except LeadlineError as error:
            self.release()
            raise RefusedChangeError(
                f"the lock of the cluster cannot be taken: {error.message}: nothing was changed",
                "use a user that may write `ceph config-key`, such as client.admin (--id)",
            ) from error
        first = next((one for one in others if not one.is_over(now)), None)
        if first is not None:
            self.release()
            raise RefusedChangeError(
                f"{first.words} is changing settings of this cluster: nothing was changed",
                f"wait for it: the lock ends {first.ends}; where its holder has ended:"
                f" {_breaking(self._around, first.id)}",
            )

    def renew(self) -> None:
        """Called now and then while it is held. Raises TuningError where somebody has broken it."""
        if not self.is_held or self._until_s - time.time() > 0.75 * self._lease_s:
            return
        try:
            found = {one.id for one in holders(self._around)}
        except LeadlineError:
            return  # who answers nobody gives nobody a lock
        if self._id not in found:
            self._began_s = 0.0
            raise TuningError(
                f"the lock of the cluster ({self._id}) was broken: somebody else may change its settings",
                "find out who, then begin again",
            )
        with suppress(LeadlineError):
            self._write()

    def release(self) -> None:
        """No longer; where the cluster does not answer the lock ends by its time."""
        if self.is_held:
            self._began_s = 0.0
            with suppress(LeadlineError):
                _remove(self._around, self._id)

    def _write(self) -> None:
        now = time.time()
        self._began_s = self._began_s or now
        row = {
            "host": socket.gethostname(),
            "user": _user(),
            "pid": os.getpid(),
            "began_unix_s": self._began_s,
            "until_unix_s": now + self._lease_s,
            "process": f"{_here()} {_started(os.getpid())}",
        }
        self._around.command("config-key set", key=_PREFIX + self._id, val=json.dumps(row))
        self._until_s = now + self._lease_s


@contextmanager
def cluster_locked(around: TunedSurroundings, *, needed: bool) -> Iterator[ClusterLock]:
    """Nobody else changes settings of the cluster meanwhile, where that is `needed`."""
    lock = ClusterLock(around)
    try:
        if needed:
            lock.take()
        yield lock
    finally:
        lock.release()


def holders(around: TunedSurroundings) -> tuple[LockHolder, ...]:
    """All that the monitors keep, also those that count no more. Raises TuningError."""
    found = around.ask("config-key dump", key=_PREFIX)
    rows = found.items() if isinstance(found, Mapping) else ()
    return tuple(_holder(key.removeprefix(_PREFIX), text) for key, text in rows if key.startswith(_PREFIX))


def break_lock(around: TunedSurroundings, lock: str) -> LockHolder:
    """Take a lock away whose holder has ended. Raises UsageError where it is none, or runs on this host."""
    found = {one.id: one for one in holders(around)}
    if lock not in found:
        known = ", ".join(found) or "none"
        raise UsageError(f"the cluster has no lock {lock!a}", f"it has: {known}")
    if found[lock].is_running:
        raise UsageError(f"{found[lock].words} is running on this host", "wait for it, or end it")
    _remove(around, lock)
    return found[lock]


def _remove(around: TunedSurroundings, lock: str) -> None:
    around.command("config-key rm", key=_PREFIX + lock)


def _holder(lock: str, text: object) -> LockHolder:
    """As far as it can be read: whoever may write there may have written anything."""
    try:
        row: dict[str, Any] = parse_json(str(text))
        began, until, pid = float(row["began_unix_s"]), float(row["until_unix_s"]), int(row["pid"])
        host, user = (printable(str(row[key]))[:_TEXT_MAX] for key in ("host", "user"))
        for moment in (began, until):
            _clock(moment)
        return LockHolder(printable(lock), host, user, pid, began, until, str(row["process"]))
    except (ValueError, KeyError, TypeError, OverflowError, OSError):
        return LockHolder(printable(lock))


def _breaking(around: TunedSurroundings, lock: str) -> str:
    words = ["leadline", "tune", "status", "--break-lock", lock]
    words += ["--conf", str(around.conf.absolute())] if around.conf else []
    return shlex.join(words + (["--id", around.client_name] if around.client_name else []))


def _here() -> str:
    """Names this boot and this namespace of processes, in which alone a number says which process it is."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process of this host started; "" where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def _clock(unix_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(unix_s))
