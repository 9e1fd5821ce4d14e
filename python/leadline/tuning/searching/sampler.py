"""Who proposes: Optuna's samplers, made anew for each proposal from what is stored of those before.

So there is no second store beside the result, and a search that is resumed proposes as it would have.
"""

from __future__ import annotations

import itertools
import math
import random
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from leadline.errors import UsageError
from leadline.tuning.searching.space import SearchDimension

if TYPE_CHECKING:
    import optuna

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
