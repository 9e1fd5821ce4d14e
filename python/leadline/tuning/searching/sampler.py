"""Who proposes, by Optuna's samplers made anew from what is stored, and the states in which it is measured.

So there is no second store beside the result, and a search that is resumed proposes as it would have.
"""

from __future__ import annotations

import itertools
import math
import random
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from leadline.errors import TuningError, UsageError
from leadline.tuning.access.interface import same_value
from leadline.tuning.proving.proof import WITHOUT, ProofJournal, ProvedSetting
from leadline.tuning.proving.states import (
    SETTLED_WITHIN_S,
    SettingChanger,
    TargetClient,
    looked,
    not_as_wanted,
    restless,
)
from leadline.tuning.searching.space import SearchDimension
from leadline.tuning.surroundings import HealthSeen, health_of, worsened
from leadline.tuning.system import TuningSystem

if TYPE_CHECKING:
    import optuna


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


SamplerKind = Literal["tpe", "random"]
_STARTED = 6  # proposals, the default among them, before the model of the space decides
_TRIES = 30  # until a proposal is none that was there before
_LISTED_MAX = 4096


@dataclass(frozen=True)
class TriedProposal:
    """A proposal that was measured: its values, the logarithm of its gain, and by how much it broke what it
    must keep (over 0: it did)."""

    values: Mapping[str, str]
    gain: float | None
    broken: float = 0.0


def optuna_here() -> Any:
    """The library. Raises UsageError where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import optuna
    except ImportError as error:
        raise UsageError(
            f"a search of settings needs Optuna, which is not here: {error}", "pip install 'leadline[search]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def propose(
    space: Sequence[SearchDimension],
    default: Mapping[str, str],
    tried: Sequence[TriedProposal],
    kind: SamplerKind,
    seed: int,
) -> dict[str, str] | None:
    """The values to measure next, none that was tried or is the default; None where there are none left.

    `default` has what is in force without: its gain is 0 by what a ratio is, and costs no measurement.
    """
    known = [_key(space, one.values) for one in tried] + [_key(space, default)]
    for attempt in range(_TRIES):
        values = _asked(space, default, tried, kind, seed=_seed(seed, len(tried), attempt))
        if _key(space, values) not in known:
            return values
    return _left(space, known, random.Random(f"{seed}:{len(tried)}"))  # noqa: S311 - reproducible, no secret


def _seed(*parts: int) -> int:
    return random.Random(":".join(map(str, parts))).getrandbits(31)  # noqa: S311 - reproducible, no secret


def _key(space: Sequence[SearchDimension], values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(str(one.number(values[one.name])) if one.name in values else "" for one in space)


def _asked(
    space: Sequence[SearchDimension],
    default: Mapping[str, str],
    tried: Sequence[TriedProposal],
    kind: SamplerKind,
    *,
    seed: int,
) -> dict[str, str]:
    optuna = optuna_here()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is experimental of it stays so
        study = optuna.create_study(direction="maximize", sampler=_sampler(kind, seed))
        distributions = {one.name: _distribution(optuna, one) for one in space}
        for one in (TriedProposal(default, 0.0), *tried):
            if (known := _stored(optuna, space, distributions, one)) is not None:
                study.add_trial(known)
        found = study.ask(distributions).params
    return {one.name: one.text(found[one.name]) for one in space}


def _sampler(kind: SamplerKind, seed: int) -> optuna.samplers.BaseSampler:
    samplers = optuna_here().samplers
    found: optuna.samplers.BaseSampler = (
        samplers.RandomSampler(seed=seed)
        if kind == "random"
        else samplers.TPESampler(seed=seed, n_startup_trials=_STARTED, multivariate=True)
    )
    return found


def _distribution(optuna: Any, one: SearchDimension) -> Any:
    if one.choices:
        return optuna.distributions.CategoricalDistribution(one.choices)
    if one.whole:
        return optuna.distributions.IntDistribution(int(one.low), int(one.high), log=one.logarithmic)
    return optuna.distributions.FloatDistribution(one.low, one.high, log=one.logarithmic)


def _stored(
    optuna: Any, space: Sequence[SearchDimension], distributions: Mapping[str, Any], one: TriedProposal
) -> Any | None:
    """As Optuna keeps a finished trial; None for a default outside of the space, or of nothing seen."""
    numbers = {part.name: part.number(one.values.get(part.name, "")) for part in space}
    if None in numbers.values() or (one.gain is None and one.broken <= 0):
        return None
    return optuna.trial.create_trial(
        params=numbers,
        distributions=dict(distributions),
        value=one.gain if one.gain is not None else -1.0,
        constraints={"kept": one.broken},
    )


def _left(
    space: Sequence[SearchDimension], known: Sequence[tuple[str, ...]], chance: random.Random
) -> dict[str, str] | None:
    """Of a space that can be listed, one that was not tried; None where all were, or nobody can tell."""
    if math.prod(one.count for one in space) > _LISTED_MAX:
        return None
    whole = [
        one.choices or [str(value) for value in range(int(one.low), int(one.high) + 1, one.step)]
        for one in space
    ]
    points = [
        dict(zip((one.name for one in space), values, strict=True)) for values in itertools.product(*whole)
    ]
    chance.shuffle(points)
    return next((point for point in points if _key(space, point) not in known), None)
