"""The states of a search and of its proof: each a set of values. What worsens health is ended.

As in a proof what is in force is looked at, at every daemon and client, and never believed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from leadline.errors import TuningError
from leadline.tuning.access.interface import same_value
from leadline.tuning.health import HealthSeen, health_of, worsened
from leadline.tuning.proving.changer import SettingChanger
from leadline.tuning.proving.clients import TargetClient
from leadline.tuning.proving.kept import ProofJournal
from leadline.tuning.proving.proof import WITHOUT, ProvedSetting
from leadline.tuning.proving.states import SETTLED_WITHIN_S, looked, not_as_wanted, restless
from leadline.tuning.system import TuningSystem

_LOOK_EVERY_S = 0.2
_WATCH_EVERY_S = 2.0


class StateValues(Protocol):
    """What states are made of: whoever makes them has every value that was ever set."""

    def values_of(self, state: str) -> Mapping[str, str]:
        """By setting; none of the default."""

    def ours(self, name: str) -> Sequence[str]:
        """All values of a setting that may have been set here: others are somebody else's."""

    def ended(self, state: str, why: str) -> None:
        """Health worsened in this state, and all was put back."""


class ValueStates:
    """`run.model.States` over a system. `journal` is that of `leadline tune apply`, where what is changed
    stands until it is put back.
    """

    def __init__(
        self,
        system: TuningSystem,
        settings: Sequence[ProvedSetting],
        values: StateValues,
        client: TargetClient | None,
        *,
        stopping: Callable[[], bool] = lambda: False,
        journal: ProofJournal | None = None,
        within_s: float = SETTLED_WITHIN_S,
    ) -> None:
        self._system, self._settings, self._client = system, tuple(settings), client
        self._values = values
        self._stopping, self._within_s = stopping, within_s
        self._changer = SettingChanger(system, settings, self._is_ours, journal)
        self._of_ceph = any(one.setting.of_cluster for one in self._settings)
        self._healthy: HealthSeen | None = None
        self._state, self._watched_s = WITHOUT, 0.0

    def enter(self, state: str) -> None:
        """See `States`. Raises TuningError; no state is entered while the cluster is worse than it was."""
        if self._of_ceph and self._healthy is None:
            self._healthy = health_of(self._system.around)
        if state != WITHOUT:
            self._wait(self._unhealthy)
        values = self._values.values_of(state)
        for one in self._settings:
            self._changer.bring(one, values.get(one.setting.name))
        self._state, self._watched_s = state, time.monotonic()
        self._wait(lambda: self._unsettled(state))

    def look(self, state: str) -> Mapping[str, Any]:
        """See `States`. Where health has worsened everything is put back at once, and the reading says so."""
        self._changer.renew()
        self._end_where_worse()
        return looked(self._system, self._settings, self._client, self._values.values_of(state))

    def watch(self) -> None:
        """Called while trials run: now and then looks at health, and puts back where it worsened."""
        now = time.monotonic()
        if self._state != WITHOUT and now - self._watched_s >= _WATCH_EVERY_S:
            self._watched_s = now
            self._end_where_worse()

    def leave(self) -> tuple[str, ...]:
        """See `States`. What is neither ours nor what was there is left as it is, and named."""
        self._state = WITHOUT
        return self._changer.put_all_back()

    def _is_ours(self, one: ProvedSetting, value: str | None) -> bool:
        return any(same_value(value, own) for own in self._values.ours(one.setting.name))

    def _end_where_worse(self) -> None:
        if self._state == WITHOUT or not self._of_ceph or not (why := self._unhealthy()):
            return
        state = self._state
        left = self.leave()
        self._values.ended(state, why)
        if left:
            raise TuningError(f"{why}; and could not be put back: {'; '.join(left)}", "put it back by hand")

    def _unhealthy(self) -> str:
        if self._healthy is None:
            return ""
        found = worsened(self._healthy, health_of(self._system.around))
        return f"health is worse than at the start: {'; '.join(found)}" if found else ""

    def _wait(self, lacking: Callable[[], str]) -> None:
        """Until nothing lacks. Raises TuningError where that does not come."""
        until = time.monotonic() + self._within_s
        while why := lacking():
            if self._stopping():
                raise TuningError(f"stopped while waiting: {why}", "")
            if time.monotonic() > until:
                raise TuningError(
                    f"{why}, and that has not changed for {self._within_s:g} s",
                    "see what it needs to take effect, and what else goes on in the cluster",
                )
            time.sleep(_LOOK_EVERY_S)

    def _unsettled(self, state: str) -> str:
        """What is not yet as it must be; "" where all is, or health has ended the state already."""
        found = self.look(state)
        if self._state != state:
            return ""
        if lacking := not_as_wanted(found):
            return lacking
        return restless(self._system.around.ask("status")) if self._of_ceph else ""
