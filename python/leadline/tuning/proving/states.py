"""Brings settings into the states that trials are measured in, waits until they are in force, puts all back.

Waits by looking, never by the clock: at every daemon and client that has the setting, and at the cluster.

Sets the settings of a proof or a search, and puts them back: one way for both, also after a kill.

What is neither what was there before nor was set here is somebody else's: it is named, and never overwritten.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leadline.errors import LeadlineError, TuningError
from leadline.observe.ceph.client import NotObservableError, ask_socket, connect
from leadline.observe.ceph.parse import slow_checks
from leadline.tuning.access.interface import same_value
from leadline.tuning.changing.applying import restart_daemons
from leadline.tuning.proving.proof import WITH, ProofDesign, ProofJournal, ProvedSetting
from leadline.tuning.settings import Setting
from leadline.tuning.surroundings import HealthSeen, health_of
from leadline.tuning.system import TuningSystem, is_before


@dataclass(frozen=True)
class TargetClient:
    """How to ask the client of a target: by the `socket` of process `pid`, or as a new one of `conf`."""

    conf: str | None = None
    name: str | None = None
    keyring: str | None = None
    socket: str | None = None
    pid: int | None = None

    @property
    def anew(self) -> bool:
        """Whether each trial has a client of its own."""
        return self.socket is None

    @property
    def words(self) -> str:
        """Where a value was read."""
        return "a new client" if self.anew else f"ceph-fuse.{self.pid}"

    def option(self, name: str) -> tuple[str | None, str]:
        """The value, or None and why."""
        try:
            if self.socket is not None and self.pid is not None:
                return str(ask_socket(self.socket, self.pid, "config get", var=name)[name]), ""
            cluster = connect(self.conf, self.name, self.keyring)
            try:
                return cluster.option(name), ""
            finally:
                cluster.close()
        except (NotObservableError, KeyError, TypeError) as error:
            return None, str(error)


class SettingChanger:
    """`is_ours` knows the values that are set here; `journal` is None for results that are older than it.

    `restart` is told of a setting that was put back at the end.
    """

    def __init__(
        self,
        system: TuningSystem,
        settings: Sequence[ProvedSetting],
        is_ours: Callable[[ProvedSetting, str | None], bool],
        journal: ProofJournal | None,
        restart: Callable[[ProvedSetting], None] = lambda _: None,
    ) -> None:
        self._system, self._settings, self._is_ours = system, tuple(settings), is_ours
        self._journal, self._restart = journal, restart

    def bring(self, one: ProvedSetting, value: str | None) -> bool:
        """To this value, None: to what was there before. Whether it had to be changed. Raises TuningError."""
        reading = self._system.read(one.setting, one.change.place)
        before = is_before(reading, one.change)
        if not reading.known:
            raise TuningError(f"{named(one)} cannot be read: {reading.reason}", "see what it waits for")
        if not before and not self._is_ours(one, reading.value):
            raise TuningError(
                f"{named(one)} is {reading.value} now, which neither was there before nor was set here",
                "somebody else changes it: nothing was overwritten; go on when nobody does",
            )
        if value is None:
            if not before:
                self._system.put_back(one.change)
            return not before
        if not before and same_value(reading.value, value):
            return False
        if self._journal is not None:
            self._journal.announce(one, value)
        self._system.write(replace(one.change, value=value))
        return True

    def renew(self) -> None:
        """What is held meanwhile stays so. Raises TuningError where it was taken away."""
        if self._journal is not None:
            self._journal.renew()

    def put_all_back(self) -> tuple[str, ...]:
        """The last first. What could not be, in words."""
        return tuple(words for one in reversed(self._settings) if (words := self._put_back(one)))

    def _put_back(self, one: ProvedSetting) -> str:
        """What a killed program asked of a monitor may be done after it was read: so what is in doubt is put
        back whatever it reads.
        """
        try:
            reading = self._system.read(one.setting, one.change.place)
            if not reading.known:
                return f"{named(one)} cannot be read: {reading.reason}"
            before = is_before(reading, one.change)
            if not before and not self._is_ours(one, reading.value):
                return f"{named(one)} is {reading.value} now, set by somebody else: left as it is"
            if not before or (self._journal is not None and self._journal.in_doubt(one)):
                self._system.put_back(one.change)
                self._restart(one)
            if self._journal is not None:
                self._journal.back(one)
        except LeadlineError as error:
            return error.message
        return ""


def named(one: ProvedSetting) -> str:
    """In words, with its place."""
    return f"{one.setting.name} on {one.change.place.words}"


SETTLED_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.2
_STEADY_STATES = frozenset({"active+clean", "active+clean+scrubbing", "active+clean+scrubbing+deep"})


class SettingStates:
    """`run.model.States` over a system: `without` has what was there, `with` every proved value.

    `design` names the settings that are changed in each of other states; `journal` keeps what it sets.
    """

    def __init__(
        self,
        system: TuningSystem,
        proved: Sequence[ProvedSetting],
        client: TargetClient | None,
        stopping: Callable[[], bool] = lambda: False,
        within_s: float = SETTLED_WITHIN_S,
        design: ProofDesign | None = None,
        journal: ProofJournal | None = None,
    ) -> None:
        self._health: HealthSeen | None = None
        self._changed = design.states if design else {WITH: [one.setting.name for one in proved]}
        self._system, self._proved, self._client = system, tuple(proved), client
        self._stopping, self._within_s = stopping, within_s
        self._changer = SettingChanger(
            system,
            proved,
            lambda one, value: same_value(value, one.change.value),
            journal,
            lambda one: self._restart([one]),
        )

    def enter(self, state: str) -> None:
        """See `States`. Raises TuningError; what somebody else set meanwhile is named and left."""
        if self._health is None and any(one.setting.needs == "restart" for one in self._proved):
            self._health = health_of(self._system.around)
        values = self._values_of(state)
        changed = [one for one in self._proved if self._changer.bring(one, values.get(one.setting.name))]
        self._restart(changed)
        self._settle(state)

    def look(self, state: str) -> Mapping[str, Any]:
        """See `States`."""
        self._changer.renew()
        return looked(self._system, self._proved, self._client, self._values_of(state))

    def leave(self) -> tuple[str, ...]:
        """See `States`. What is neither ours nor what was there is left as it is, and named."""
        return self._changer.put_all_back()

    def _restart(self, changed: Sequence[ProvedSetting]) -> None:
        """Daemons that read one of these when they start are restarted, each once."""
        daemons = {
            one.daemon: None
            for proved in changed
            if proved.setting.needs == "restart"
            for one in self._system.in_force(proved.setting, proved.change.place)
        }
        if daemons:
            health = self._health or health_of(self._system.around)
            restart_daemons(self._system, list(daemons), health)

    def _values_of(self, state: str) -> Mapping[str, str]:
        """What is changed in this state, by setting."""
        on = self._changed.get(state, ())
        return {one.setting.name: one.change.value for one in self._proved if one.setting.name in on}

    def _settle(self, state: str) -> None:
        until = time.monotonic() + self._within_s
        while why := self._unsettled(state):
            if self._stopping():
                raise TuningError(f"stopped while waiting: {why}", "")
            if time.monotonic() > until:
                raise TuningError(
                    f"{why}, {self._within_s:g} s after it was changed",
                    "see what it needs to take effect: `leadline tune explain NAME`, and who changes it too",
                )
            time.sleep(_LOOK_EVERY_S)

    def _unsettled(self, state: str) -> str:
        """What is not yet as it must be; "" where all is."""
        if lacking := not_as_wanted(self.look(state)):
            return lacking
        if any(one.setting.of_cluster for one in self._proved):
            return restless(self._system.around.ask("status"))
        return ""


def seen(
    system: TuningSystem, setting: Setting, place: Any, client: TargetClient | None
) -> dict[str, tuple[str | None, str]]:
    """The value, or None and why, wherever the setting is at work."""
    if setting.access.kind != "ceph_config":
        reading = system.read(setting, place)
        return {place.words: (reading.value, reading.reason)}
    found = {one.daemon: (one.value, one.reason) for one in system.in_force(setting, place)}
    if place.subject in ("client", "global") and client is not None:
        found[client.words] = client.option(setting.access.options["option"])
    return found or {place.words: (None, "no daemon or client that has it answers")}


def looked(
    system: TuningSystem,
    settings: Sequence[ProvedSetting],
    client: TargetClient | None,
    values: Mapping[str, str],
) -> dict[str, Any]:
    """By setting and place what is wanted and found: one of `values`, or what was there before."""
    found: dict[str, Any] = {}
    for one in settings:
        own = values.get(one.setting.name)
        for where, (value, reason) in seen(system, one.setting, one.change.place, client).items():
            wanted = own if own is not None else one.without.get(where)
            name = f"{one.setting.name} at {where}"
            found[name] = {"wanted": wanted, "found": wanted if same_value(value, wanted) else value}
            found[name] |= {"reason": reason} if reason else {}
    return found


def not_as_wanted(found: Mapping[str, Any]) -> str:
    """The first of what was `looked` at that is not as it must be; "" where all is."""
    for name, one in found.items():
        if one["found"] is None:
            return f"{name} cannot be read: {one.get('reason', '')}"
        if one["found"] != one["wanted"]:
            return f"{name} is {one['found']}, not {one['wanted']}"
    return ""


def restless(status: Mapping[str, Any]) -> str:
    """What a cluster does still, by its own status; "" where it is at rest."""
    moving = sum(
        int(row["count"])
        for row in status["pgmap"].get("pgs_by_state", ())
        if row["state_name"] not in _STEADY_STATES
    )
    if moving:
        return f"{moving} placement groups are not active+clean"
    slow = slow_checks(dict.fromkeys(status["health"]["checks"], ""))
    return f"operations are slow ({', '.join(slow)})" if slow else ""
