"""Brings settings into the states that trials are measured in, waits until they are in force, puts all back.

Waits by looking, never by the clock: at every daemon and client that has the setting, and at the cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leadline.errors import TuningError
from leadline.observe.ceph.parse import slow_checks
from leadline.tuning.access.interface import same_value
from leadline.tuning.changing.restarting import restart_daemons
from leadline.tuning.health import HealthSeen, health_of
from leadline.tuning.proving.changer import SettingChanger
from leadline.tuning.proving.clients import TargetClient
from leadline.tuning.proving.kept import ProofJournal
from leadline.tuning.proving.proof import WITH, ProofDesign, ProvedSetting
from leadline.tuning.settings import Setting
from leadline.tuning.system import TuningSystem

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
