"""What sweeps add to the first screen: a sentence each, and a row each in the place of their cells.

Many of them on several targets have a few sentences in all, and a table of sweeps by targets.

Many sweeps on several targets in a few sentences: one of each would be a wall that nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from leadline.analysis.knee.knee import Knee
from leadline.units import GIB, KIB, MIB, format_number, format_quantity
from leadline.verdict.interface import KindAnswer
from leadline.verdict.model import FigureRow, FigureTable, Quantity, State, worst
from leadline.verdict.sweep.detection import SweepFound
from leadline.verdict.sweep.messages import SURE, brief

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


_COLUMNS = ("least that is enough", "could be", "plateau", "tried", "bound by")
_NOTE = "Least: what gives the asked share of the plateau; could be: its 95 % interval; - not known."
_SCALES = {"KiB/s": KIB, "MiB/s": MIB, "GiB/s": GIB}
_FEW = 4  # sweeps x targets that have a sentence each
_SHORT_NOTE = (
    "Least that gives the asked share of the plateau: the plateau{unit}; ? least not sure, > rate still rises"
    " there, - no figure."
)


def sweeps_answer(found: Sequence[SweepFound]) -> KindAnswer:
    """The answer of all sweeps; of many of them it comes first, as it is what was asked."""
    if len(found) <= _FEW:
        return KindAnswer(" ".join(map(brief, found)), sweeps_table(found) if found else None, adds=True)
    several = len({one.measured.target for one in found}) > 1
    table = sweeps_by_target(found) if several else sweeps_table(found)
    return KindAnswer(in_short(found), table, adds=True, leads=True)


def sweeps_by_target(found: Sequence[SweepFound]) -> FigureTable:
    """Sweeps by targets, the fewer of them across; each entry is the least that is enough and the plateau."""
    places = {(one.measured.name, one.measured.target): one for one in found}
    sweeps, targets = (tuple(dict.fromkeys(key[at] for key in places)) for at in (0, 1))
    units = {one.unit for one in found}
    rates = [one.knee.plateau[0] for one in found if one.knee]
    label = format_quantity(median(rates), *units).rpartition(" ")[2] if rates and len(units) == 1 else ""
    scale = _SCALES.get(label)

    def row(name: str, own: Sequence[SweepFound | None]) -> FigureRow:
        states: tuple[State, ...] = tuple(_state(one) if one else "VALID" for one in own)
        return FigureRow((name,), tuple(_word(_entry(one, scale)) for one in own), worst(states), states)

    note = _SHORT_NOTE.format(unit=f" in {label}" if scale else "")
    if len(targets) <= len(sweeps):
        rows = (row(name, [places.get((name, target)) for target in targets]) for name in sweeps)
        return FigureTable("sweeps", "Where more is no longer faster", ("sweep",), targets, tuple(rows), note)
    rows = (row(target, [places.get((name, target)) for name in sweeps]) for target in targets)
    return FigureTable("sweeps", "Where more is no longer faster", ("target",), sweeps, tuple(rows), note)


def _entry(one: SweepFound | None, scale: int | None) -> str:
    """`8 MiB: 13.6?`, the rate in the unit that the note says, or with its own."""
    if one is None or one.knee is None:
        return "INVALID" if one is not None and _state(one) == "INVALID" else "-"
    knee = one.knee
    rate = format_number(knee.plateau[0] / scale) if scale else format_quantity(knee.plateau[0], one.unit)
    if knee.rising:
        return f"> {one.levels(one.largest)}: {rate}"
    return f"{one.levels(knee.knee)}: {rate}{'' if knee.sure >= SURE else '?'}"


def _state(one: SweepFound) -> State:
    """The worst of the cells on the plateau; without one, of those that were tried."""
    on = one.plateau or tuple(one.tried)
    return worst(cell.validity.state for place, cell in one.tried.items() if place in on)


def sweeps_table(found: Sequence[SweepFound]) -> FigureTable:
    """A row for each sweep on each target."""
    rows = tuple(
        FigureRow(
            (one.measured.name, one.measured.target),
            _values(one),
            _state(one),
        )
        for one in found
    )
    return FigureTable("sweeps", "Where more is no longer faster", ("sweep", "target"), _COLUMNS, rows, _NOTE)


def _values(one: SweepFound) -> tuple[Quantity, ...]:
    knee = one.knee
    tried = _word(f"{len(one.tried)} of {len(one.measured.cells)} cells")
    if knee is None:
        none = Quantity(None, "", reason="no cell has a figure to use")
        return (none, none, Quantity(None, one.unit, reason="no cell has a figure to use"), tried, none)
    plateau = _word(format_quantity(knee.plateau[0], one.unit))
    full = one.parts.full
    bound = _word(full[0].name if full else "latency" if knee.rising else "-")
    if knee.rising:
        return (_word("no plateau yet"), _word("-"), plateau, tried, bound)
    least, most = (one.amount(value) for value in knee.amounts)
    between = least if least == most else f"{least} to {most}"
    return (_word(one.words(knee.knee)), _word(between), plateau, tried, bound)


def _word(text: str) -> Quantity:
    return Quantity(None, "", text=text)
