"""Many sweeps on several targets in a few sentences: one of each would be a wall that nobody reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from leadline.analysis.knee.knee import Knee
from leadline.units import format_quantity
from leadline.verdict.swept.found import SweepFound
from leadline.verdict.swept.words import SURE

_TARGETS = 6  # named in a sentence
Known = tuple[SweepFound, Knee]


def in_short(found: Sequence[SweepFound]) -> str:
    """The most that each target gave and what bounds the highest; then the knees of sweeps of two options."""
    said = [*_highest(found), *_pairs(found)]
    none = [f"{one.measured.name} on {one.measured.target}" for one in found if one.knee is None]
    if none:
        said.append(f"No figure to use: {_listed(none)}.")
    return " ".join(said)


def _highest(found: Sequence[SweepFound]) -> Iterator[str]:
    """Rates of one unit can be ranked."""
    for unit in dict.fromkeys(one.unit for one in found):
        best: dict[str, Known] = {}
        for one in found:
            before = best.get(one.measured.target)
            if one.unit != unit or one.knee is None:
                continue
            if before is None or one.knee.plateau[0] > before[1].plateau[0]:
                best[one.measured.target] = (one, one.knee)
        if best:
            ranked = sorted(best.values(), key=lambda known: -known[1].plateau[0])
            yield f"Highest plateau: {_listed([_rate(*known) for known in ranked])}{_unsure(ranked)}."
            yield _bound(*ranked[0])


def _rate(one: SweepFound, knee: Knee) -> str:
    rate = format_quantity(knee.plateau[0], one.unit)
    if knee.rising:
        return f"{one.measured.target} {rate} ({one.measured.name}, still rising at {_named(one, True)})"
    return f"{one.measured.target} {rate} ({one.measured.name}, {_named(one)})"


def _named(one: SweepFound, largest: bool = False) -> str:
    """`streams 8`, `buffer 1 MiB x in_flight 8`."""
    place = one.largest if largest or one.knee is None else one.knee.knee
    return one.words(place).partition(" (")[0]


def _bound(one: SweepFound, knee: Knee) -> str:
    """What the highest rate is bound by."""
    full = one.parts.full
    if full:
        return f"{one.measured.target} is bound there by {' and '.join(part.words for part in full[:2])}."
    if knee.rising:
        return f"Nothing observed was full there on {one.measured.target}, and its rate still rises."
    return f"What bounds {one.measured.target} there is not known: nothing observed was full."


def _pairs(found: Sequence[SweepFound]) -> Iterator[str]:
    """A sentence for each sweep of two options."""
    names = dict.fromkeys(one.measured.name for one in found if len(one.measured.asked.over) == 2)
    for name in names:
        own = [one for one in found if one.measured.name == name]
        known: list[Known] = [(one, one.knee) for one in own if one.knee is not None]
        if not known:
            continue
        asked = own[0].measured.asked
        told = [
            f"{one.measured.target} more than {one.levels(one.largest)}"
            if knee.rising
            else f"{one.measured.target} {one.levels(knee.knee)}"
            for one, knee in known
        ]
        yield (
            f"Enough for {100 * asked.share:.4g} % in {name} ({' x '.join(asked.over)}):"
            f" {_listed(told)}{_unsure(known)}."
        )


def _unsure(known: Iterable[Known]) -> str:
    """Where the level is not sure, once for all of them."""
    every = [(one, knee) for one, knee in known if not knee.rising]
    names = [one.measured.target for one, knee in every if knee.sure < SURE]
    if not names:
        return ""
    return "; levels not sure" if len(names) == len(every) else f"; level not sure on {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _TARGETS
    return ", ".join(names) if rest <= 0 else f"{', '.join(names[:_TARGETS])} and {rest} more"
