"""Applies changes so that all of them hold or none is left, and takes them back later.

In this order: everything that speaks against them, then for each the old value into the journal, the new one
set and read back; then until daemons have it in force and for some time more, the health of the cluster.

Restarts daemons that read a setting when they start, each only once the cluster is as well as before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from leadline.errors import LeadlineError, TuningError
from leadline.tuning.access.ceph import lives_of_daemons
from leadline.tuning.access.interface import InForce, same_value
from leadline.tuning.changing.checks import check
from leadline.tuning.changing.cluster_lock import ClusterLock, cluster_locked
from leadline.tuning.changing.journal import TuningJournal
from leadline.tuning.changing.reverting import put_back
from leadline.tuning.changing.state import JournalledChange, Reach
from leadline.tuning.settings import Setting, SettingChange
from leadline.tuning.surroundings import HealthSeen, health_of, worsened
from leadline.tuning.system import TuningSystem

_RESTART_POLL_S = 0.25
_RESTART_S = 180.0


def restart_daemons(
    system: TuningSystem,
    daemons: Sequence[str],
    health: HealthSeen,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """One after the other. `health` is how the cluster was before. Raises TuningError."""
    if system.restart is None:
        raise TuningError(f"nothing here restarts {', '.join(daemons)}", "restart them by hand")
    for daemon in daemons:
        before = lives_of_daemons(system.around)
        say(f"restarting {daemon}")
        system.restart(daemon)
        _wait_restarted(system, daemon, before, health)


def _wait_restarted(system: TuningSystem, daemon: str, before: Mapping[str, str], health: HealthSeen) -> None:
    end = time.monotonic() + _RESTART_S
    worse: tuple[str, ...] = ("it is not back",)
    while time.monotonic() < end:
        time.sleep(_RESTART_POLL_S)
        now = lives_of_daemons(system.around)
        back = daemon not in before or now.get(daemon, before[daemon]) != before[daemon]
        worse = worsened(health, health_of(system.around))
        if back and not worse:
            return
    raise TuningError(
        f"{daemon} was restarted, and {_RESTART_S:.0f} s later it is not well: {'; '.join(worse)}",
        f"see the log of {daemon}",
    )


_POLL_S = 0.25
_AT_START = ("restart", "new_osd")
_BEFORE_MONITORS = ("file", "env", "cmdline", "override")
_PEERING_S = 15.0  # a pool's groups come together anew when its map changes


@dataclass(frozen=True)
class Pace:
    """How long is waited: for daemons to have it (`settle_s`), that they keep it (`hold_s`), and that the
    cluster is no worse for it (`watch_s`).
    """

    settle_s: float = 30.0
    hold_s: float = 2.0
    watch_s: float = 10.0


@dataclass(frozen=True)
class DeadMansSwitch:
    """What puts a run back where nobody confirms it `within_s`: `start` is called before the first change."""

    within_s: float
    start: Callable[[str, float], None]


@dataclass(frozen=True)
class Applied:
    """What was done: `changes`, those `already` in force, and in words what else it takes (`pending`)."""

    run: str
    changes: tuple[SettingChange, ...]
    already: tuple[SettingChange, ...] = ()
    pending: tuple[str, ...] = ()


def apply(
    system: TuningSystem,
    changes: Sequence[SettingChange],
    *,
    allowed: Iterable[str] = (),
    journal: TuningJournal,
    pace: Pace = Pace(),
    where: Mapping[int, str] | None = None,
    switch: DeadMansSwitch | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Applied:
    """Apply them all, or none. Raises RefusedChangeError where nothing was changed, else TuningError.

    Whatever ends this, Ctrl-C too, puts back what was done. `where` says who asked for which, by its index.
    """
    with journal.locked():
        checked = check(system, changes, allowed, where)
        if not checked.changes:
            return Applied("", (), checked.already)
        of_cluster = any(change.place.cluster for change in checked.changes)
        with cluster_locked(system.around, needed=of_cluster) as lock:
            deed = _Deed(system, journal, pace, say, lock)
            run = deed.begin(checked.changes, switch.within_s if switch else 0.0)
            try:
                if switch is not None:
                    switch.start(run, switch.within_s)
                for change in checked.changes:
                    deed.make(change)
                deed.settle()
                deed.watch()
            except BaseException as error:
                raise deed.undone(error) from error
            return Applied(run, checked.changes, checked.already, tuple(deed.pending))


def reach_of(system: TuningSystem) -> Reach:
    """How the same system is reached later."""
    around = system.around
    conf = str(around.conf or os.environ.get("CEPH_CONF") or "")  # who reverts it may have another
    return Reach(
        str(Path(conf).absolute()) if conf else "",
        around.client_name or "",
        {host: str(path) for host, path in around.namespaces.items()},
    )


@dataclass
class _Deed:
    """One apply while it goes on."""

    system: TuningSystem
    journal: TuningJournal
    pace: Pace
    say: Callable[[str], None]
    lock: ClusterLock
    run: str = ""
    made: list[JournalledChange] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    health: HealthSeen | None = None
    lives: dict[str, str] = field(default_factory=dict)
    restarted: set[str] = field(default_factory=set)

    def begin(self, changes: Sequence[SettingChange], confirm_within_s: float) -> str:
        """Remember how the cluster is, and say in the journal that something comes."""
        if any(change.place.cluster for change in changes):
            self.health = health_of(self.system.around)
            self.lives = lives_of_daemons(self.system.around)
        by_s = time.time() + confirm_within_s if confirm_within_s else 0.0
        known = self.health.as_json() | {"expected": self._expected(changes)} if self.health else {}
        entries = [(change, self.system.setting(change.setting)) for change in changes]
        self.run = self.journal.begin(reach_of(self.system), by_s, known, entries)
        return self.run

    @property
    def changes(self) -> list[SettingChange]:
        """What was set so far."""
        return [one.change for one in self.made]

    def undone(self, error: BaseException) -> BaseException:
        """The error that is raised once everything was put back, as far as it could be.

        What was made is remembered here: the journal may be the very thing that has failed.
        """
        back = put_back(self.journal, reversed(self.made), lambda _: self.system)
        why = error.message if isinstance(error, LeadlineError) else f"{type(error).__name__}"
        unsaid = self.journal.say_if_it_can("ended", run=self.run, how=f"put back: {why}")
        if not isinstance(error, Exception):
            return error  # Ctrl-C is the caller's
        remedy = error.remedy if isinstance(error, LeadlineError) else ""
        if back.left:
            left = "; ".join(back.left)
            return TuningError(
                f"{why}; and not everything could be put back: {left}",
                f"try again: {self.journal.command('revert')}",
            )
        if unsaid or back.unwritten:
            status = self.journal.command("status")
            remedy = f"see to the journal's disk; until then `{status}` says that it was changed"
        return TuningError(f"{why}; all was put back as it was", remedy)

    def _expected(self, changes: Sequence[SettingChange]) -> list[str]:
        kinds = {self.system.setting(change.setting).access.kind for change in changes}
        return ["OSDMAP_FLAGS"] if "ceph_flag" in kinds else []

    def make(self, change: SettingChange) -> None:
        """Journal what is there, set it, read it back; what somebody else did since the check is found."""
        setting = self.system.setting(change.setting)
        self.lock.renew()
        now = self.system.read(setting, change.place)
        if not now.known or now.before != change.before:
            raise TuningError(
                f"{setting.name} on {change.place.words} was {change.before or 'not set'} a moment ago and is"
                f" {now.value if now.known else now.reason}: somebody else changes it",
                "find out who, then apply again",
            )
        one = self.journal.changing(self.run, change, setting, self.system.life(setting, change.place))
        self.made.append(one)
        self.system.write(change)
        self.made[-1] = replace(one, done=True)
        self.journal.say("done", number=one.number)
        was = "not set" if change.before is None else change.before
        self.say(f"{setting.name} on {change.place.words}: {was} -> {change.value}")

    def settle(self) -> None:
        """Until every daemon has it in force, those restarted that have to be."""
        self._each_holds(self.pace.settle_s)
        for change in self.changes:
            setting = self.system.setting(change.setting)
            if setting.needs == "live" or setting.access.kind == "fuse":
                continue
            daemons = [one.daemon for one in self.system.in_force(setting, change.place)]
            if setting.needs == "restart" and daemons and self.system.restart is not None:
                assert self.health is not None  # noqa: S101 - there are daemons
                restart_daemons(self.system, daemons, self.health, self._say_and_renew)
                self.lives = lives_of_daemons(self.system.around)
                self.restarted.add(setting.name)
                self._each_holds(self.pace.settle_s)
            else:
                self.pending.append(_pending(setting, change, daemons))

    def _say_and_renew(self, words: str) -> None:
        self.lock.renew()
        self.say(words)

    def _each_holds(self, settle_s: float) -> None:
        """Polls until nothing is amiss, then for `hold_s` more: mClock takes values back some time after."""
        end, since = time.monotonic() + settle_s, 0.0
        while True:
            self.lock.renew()
            amiss = [words for change in self.changes for words in self._amiss(change)]
            now = time.monotonic()
            if amiss and now > end:
                raise TuningError("; ".join(amiss), "")
            since = 0.0 if amiss else since or now
            needed = self.pace.hold_s if any(change.place.cluster for change in self.changes) else 0.0
            if since and now - since >= needed:
                return
            time.sleep(_POLL_S)

    def _amiss(self, change: SettingChange) -> list[str]:
        setting = self.system.setting(change.setting)
        what = f"{setting.name} on {change.place.words}"
        found = self.system.read(setting, change.place)
        if not same_value(found.value, change.value):
            value = found.value if found.known else found.reason
            return [f"{what} was set to {change.value} and then read {value}: somebody else changed it"]
        lacking: dict[str, list[str]] = {}
        later = setting.needs in _AT_START and setting.name not in self.restarted
        for one in self.system.in_force(setting, change.place):
            if later and one.origin not in _BEFORE_MONITORS and one.value is not None:
                continue  # it looks at it when it starts
            if not same_value(one.value, change.value):
                lacking.setdefault(_lacks(one, change), []).append(one.daemon)
        return [f"{what}: {', '.join(daemons)} {words}" for words, daemons in lacking.items()]

    def watch(self) -> None:
        """For `watch_s` the health of the cluster, and daemons that restart by themselves."""
        if self.health is None:
            return
        pools = any(self.system.setting(one.setting).access.kind == "ceph_pool" for one in self.changes)
        expected = self._expected(self.changes)
        begun, bad_since = time.monotonic(), 0.0
        while True:
            self.lock.renew()
            now = time.monotonic()
            worse = worsened(self.health, health_of(self.system.around), expected)
            bad_since = (bad_since or now) if worse else 0.0
            if worse and now - bad_since >= (_PEERING_S if pools else 0.0):
                raise TuningError(f"the cluster is worse off since: {'; '.join(worse)}", "")
            if not worse and now - begun >= self.pace.watch_s:
                break
            time.sleep(_POLL_S)
        for daemon, life in lives_of_daemons(self.system.around).items():
            if self.lives.get(daemon, life) != life:
                self.say(f"{daemon} restarted meanwhile")
                self._each_holds(self.pace.settle_s)


def _lacks(one: InForce, change: SettingChange) -> str:
    if one.value is None:
        return f"cannot be asked what is in force: {one.reason}"
    if one.origin in _BEFORE_MONITORS:
        names = {
            "file": "its own configuration file",
            "env": "its environment",
            "cmdline": "its command line",
        }
        source = names.get(one.origin, "an override at run time (ceph tell, or its admin socket)")
        return f"has {one.value} from {source}, which goes before what the monitors keep"
    return (
        f"works with {one.value} although {change.value} was accepted:"
        " it takes the value back (mClock does, unless its profile is custom)"
    )


def _pending(setting: Setting, change: SettingChange, daemons: Sequence[str]) -> str:
    words = {
        "restart": f"a restart of {', '.join(daemons) or 'its daemons'}",
        "reconnect": "new connections: those that are open keep the old value",
        "reopen": "files that are opened anew",
        "remount": "a new mount",
        "reboot": "a reboot",
        "new_osd": "OSDs that are made from now on",
        "new_file": "files that are made from now on",
    }
    return (
        f"{setting.name} on {change.place.words} takes effect with {words.get(setting.needs, setting.needs)}"
    )
