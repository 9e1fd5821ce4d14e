"""What a sweep found: the least that is enough, what bounds the plateau, what was tried; as sentences, as
rows of the first screen, and as maps of each grid. Many sweeps on several targets have a few sentences in
all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any

from leadline.analysis.knee import Knee, Place
from leadline.units import GIB, KIB, MIB, format_count, format_latency, format_number, format_quantity
from leadline.verdict.interface import KindAnswer
from leadline.verdict.model import FigureRow, FigureTable, Quantity, State, Statement, worst
from leadline.verdict.sections.charts import KneeField, KneeMap
from leadline.verdict.sections.section import Panels, Part, Section, TextTable
from leadline.verdict.sweep.detection import SweepFound

_MAP_NOTE = (
    "Percent of the plateau: in bold measured, in italics by the fit; a thick frame is the knee, a dashed one"
    " a cell that could be it (95 %). Cells without a frame were not needed."
)
_GRID_NOTE = (
    "Percent of the plateau: 80 measured, (80) by the fit and not needed, [97] the knee, x tried without a"
    " usable value, blank where the target cannot do it."
)


def sweeps_section(found: Sequence[SweepFound]) -> Section | None:
    """None of a study without sweeps."""
    if not found:
        return None
    parts: list[Part] = [sweeps_table(found)]
    charts = tuple((knee_map(place, one),) for place, one in enumerate(found) if one.knee is not None)
    if charts:
        parts.append(Panels(charts, note=_MAP_NOTE))
    for one in found:
        parts += [_in_letters(one), _measured_table(one)]
    known = {"sweeps": [_as_json(one) for one in found]}
    return Section("sweeps", "Sweeps", tuple(parts), json=known, leads=True)


def _as_json(one: SweepFound) -> dict[str, Any]:
    """A sweep for programs: levels by option, rates in base units."""
    knee = one.knee
    found: dict[str, Any] = {
        "name": one.measured.name,
        "target": one.measured.target,
        "share": one.measured.asked.share,
        "metric": one.measured.asked.metric,
        "unit": one.unit,
        "grid": len(one.measured.cells),
        "tried": len(one.tried),
        "trials": one.trials,
        "knee": None,
    }
    if knee is not None:
        found |= {
            "knee": None if knee.rising else _levels_of(one, knee.knee),
            "could_be": [] if knee.rising else [_levels_of(one, cell) for cell in knee.could_be],
            "sure": knee.sure,
            "plateau": dict(zip(("value", "low", "high"), knee.plateau, strict=True)),
            "parts": [{"name": part.name, "share": part.share} for part in one.parts.seen],
            "not_observed": list(one.parts.unseen),
        }
    return found


def _levels_of(one: SweepFound, cell: Place) -> dict[str, float]:
    levels = (own[at] for own, at in zip(one.measured.grid.levels, cell, strict=True))
    return dict(zip(one.measured.asked.over, levels, strict=True))


def knee_map(place: int, one: SweepFound) -> KneeMap:
    """The grid of a sweep, the option with more levels across."""
    across, up = _axes(one)
    return KneeMap(
        f"knee-{place}",
        f"{one.measured.name} on {one.measured.target}: {', '.join(one.measured.asked.over)}",
        "% of the plateau",
        list(one.measured.asked.over)[across],
        "" if up is None else list(one.measured.asked.over)[up],
        _levels(one, across),
        ("",) if up is None else _levels(one, up),
        tuple(_field(one, cell, across, up) for cell in one.measured.cells),
    )


def _axes(one: SweepFound) -> tuple[int, int | None]:
    counts = [len(levels) for levels in one.measured.grid.levels]
    if len(counts) == 1:
        return 0, None
    return (0, 1) if counts[0] >= counts[1] else (1, 0)


def _levels(one: SweepFound, option: int) -> tuple[str, ...]:
    return tuple(one.level(option, at) for at in range(len(one.measured.grid.levels[option])))


def _share(one: SweepFound, cell: Place) -> float | None:
    """Of the plateau: as measured where it was, else by the fit."""
    if one.knee is None or cell in one.unusable or cell in one.measured.failed:
        return None
    rate = one.rate_of(cell)
    return (one.knee.rates.get(cell, 0.0) if rate is None else rate) / one.knee.plateau[0]


def _field(one: SweepFound, cell: Place, across: int, up: int | None) -> KneeField:
    share, rate = _share(one, cell), one.rate_of(cell)
    trials = len(one.tried[cell].trials) if cell in one.tried else 0
    knee = one.knee is not None and cell == one.knee.knee and not one.knee.rising
    if share is None:
        said = "tried, without a usable value" if trials else "not known"
    elif rate is None:
        said = f"not needed; by the fit {100 * share:.0f} % of the plateau"
    else:
        said = f"{format_quantity(rate, one.unit)}, {100 * share:.0f} % of the plateau, {_trials(trials)}"
    return KneeField(
        one.level(across, cell[across]),
        "" if up is None else one.level(up, cell[up]),
        share,
        trials,
        f"{one.words(cell)}: {said}{' (the knee)' if knee else ''}",
        knee,
        one.knee is not None and cell in one.knee.could_be and not one.knee.rising,
    )


def _trials(count: int) -> str:
    return f"{count} trial{'' if count == 1 else 's'}"


def _in_letters(one: SweepFound) -> TextTable:
    """The map for a terminal: a row for each level of the option that has more of them."""
    down, across = _axes(one)
    options = list(one.measured.asked.over)
    heading = options[down] if across is None else f"{options[down]} \\ {options[across]}"
    columns = ("",) if across is None else _levels(one, across)
    rows = []
    for at, level in enumerate(_levels(one, down)):
        places = [_place(down, at, across, other) for other in range(len(columns))]
        rows.append((level, *(_letters(one, place) for place in places)))
    return TextTable(
        f"Sweep {one.measured.name} on {one.measured.target}",
        (heading, *(("of the plateau",) if across is None else columns)),
        tuple(rows),
        right=frozenset(range(1, len(columns) + 1)),
        note=_GRID_NOTE,
    )


def _place(down: int, at: int, across: int | None, other: int) -> Place:
    if across is None:
        return (at,)
    return (at, other) if down < across else (other, at)


def _letters(one: SweepFound, cell: Place) -> str:
    if cell not in one.measured.cells:
        return ""
    share = _share(one, cell)
    if share is None:
        return "x" if cell in one.tried else ""
    if one.knee is not None and cell == one.knee.knee and not one.knee.rising:
        return f"[{share:.0%}]"
    return f"{share:.0%}" if cell in one.measured.rates else f"({share:.0%})"


def _measured_table(one: SweepFound) -> TextTable:
    """What was measured, from the least in flight to the most."""
    rows = []
    for cell in sorted(one.measured.rates, key=lambda cell: (one.measured.grid.amount(cell), cell)):
        rate, share = one.rate_of(cell), _share(one, cell)
        state = one.tried[cell].validity.state if cell in one.tried else "VALID"
        figure = "" if rate is None else format_quantity(rate, one.unit)
        rows.append(
            (
                one.words(cell),
                f"INVALID {figure}" if state == "INVALID" else figure,
                "" if share is None else f"{share:.0%}",
                str(len(one.measured.rates[cell])),
                "" if state == "VALID" else state.replace("_", " "),
            )
        )
    return TextTable(
        f"Cells of {one.measured.name} on {one.measured.target} that were tried",
        ("cell", one.measured.asked.metric, "of the plateau", "blocks", "validity"),
        tuple(rows),
        right=frozenset({1, 2, 3}),
        brief=20,
    )


_TARGETS = 6  # named in a sentence
Known = tuple[SweepFound, Knee]


def in_short(found: Sequence[SweepFound]) -> str:
    """The most that each target gave, the bottleneck of the highest, and knees of sweeps of two options."""
    said = [*_highest(found), *_pairs(found)]
    none = [f"{one.measured.name} on {one.measured.target}" for one in found if one.knee is None]
    if none:
        said.append(f"No usable value: {_listed(none)}.")
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
    """The bottleneck of the highest rate."""
    full = one.parts.full
    if full:
        parts = " and ".join(part.words for part in full[:2])
        return f"Bottleneck of {one.measured.target} there: {parts}."
    if knee.rising:
        return f"Nothing observed was full there on {one.measured.target}, and its rate still rises."
    return f"Bottleneck of {one.measured.target} there: unknown, as nothing observed was full."


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


_COLUMNS = ("smallest level", "95 % CI", "plateau", "tried", "bottleneck")
_NOTE = "Smallest level: the smallest that gives the requested share of the plateau, with its CI; - unknown."
_SCALES = {"KiB/s": KIB, "MiB/s": MIB, "GiB/s": GIB}
_FEW = 4  # sweeps x targets that have a sentence each
_SHORT_NOTE = (
    "Smallest level that gives the requested share of the plateau: the plateau{unit}; ? level uncertain,"
    " > the rate still rises, - no value."
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
        none = Quantity(None, "", reason="no cell has a usable value")
        return (none, none, Quantity(None, one.unit, reason="no cell has a usable value"), tried, none)
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


SURE = 0.9
_OTHERS = 4  # parts below their limits that are named


def brief(one: SweepFound) -> str:
    """A sentence for the first screen."""
    knee, asked = one.knee, one.measured.asked
    if knee is None:
        return f"{_name(one)}: no cell has a usable value."
    rate = format_quantity(knee.plateau[0], one.unit)
    if knee.rising:
        return f"{_name(one)}: no plateau: the rate still rises at {one.words(one.largest)}."
    share = f"{100 * asked.share:.4g} %"
    unsure = "" if knee.sure >= SURE else " (uncertain)"
    return f"{_name(one)}: {one.words(knee.knee)} gives {share} of the plateau of {rate}{unsure}."


def _name(one: SweepFound) -> str:
    return f"{one.measured.name} on {one.measured.target}"


def sweep_statements(found: Sequence[SweepFound]) -> Iterator[Statement]:
    """Of each sweep: where its knee is, what its plateau is made of, and what was tried."""
    for one in found:
        if one.knee is None:
            continue
        yield _no_plateau(one) if one.knee.rising else _knee(one)
        yield _made_of(one)
        yield _tried(one)


def _knee(one: SweepFound) -> Statement:
    knee = one.knee
    assert knee is not None  # noqa: S101 - the caller's condition, for the type checker
    rate, low, high = (format_quantity(value, one.unit) for value in knee.plateau)
    below = _smaller(one)
    smaller = ""
    if below is not None and (measured := one.rate_of(below)) is not None:
        share = 100 * measured / knee.plateau[0]
        smaller = f" The next smaller level tried, {one.words(below)}, gives {share:.0f} %."
    return Statement(
        "headline",
        f"{_name(one)}: {one.words(knee.knee)} is the smallest level that gives"
        f" {100 * one.measured.asked.share:.4g} % of the plateau of {rate} (95 % CI {low} to {high});"
        f" {_between(one)}.{smaller}",
        tuple(_measured(one, place) for place in sorted(one.measured.rates)),
        says="sweep_knee",
        cells=one.cell_ids(tuple(dict.fromkeys((knee.knee, *one.plateau)))),
    )


def _between(one: SweepFound) -> str:
    """Which cells the knee could be, by the product of their levels."""
    knee = one.knee
    assert knee is not None  # noqa: S101
    low, high = (one.amount(value) for value in knee.amounts)
    if low == high:
        return f"95 % CI of the level: {low} alone"
    return f"95 % CI of the level: {low} to {high}"


def _smaller(one: SweepFound) -> Place | None:
    """The tried cell with the most outstanding below the knee's."""
    knee, grid = one.knee, one.measured.grid
    own = grid.amount(knee.knee) if knee else 0.0
    less = [cell for cell in one.measured.rates if grid.amount(cell) < own * 0.999]
    less = [cell for cell in less if cell not in one.unusable]
    return max(less, key=lambda cell: (grid.amount(cell), one.rate_of(cell) or 0.0), default=None)


def _no_plateau(one: SweepFound) -> Statement:
    knee = one.knee
    assert knee is not None  # noqa: S101
    rate = format_quantity(knee.plateau[0], one.unit)
    return Statement(
        "headline",
        f"{_name(one)}: no plateau: the rate, at most {rate}, still rises at {one.words(one.largest)}."
        f" Add larger levels of {' and '.join(one.measured.asked.over)}.",
        tuple(_measured(one, place) for place in sorted(one.measured.rates)),
        says="sweep_no_plateau",
        cells=one.cell_ids(sorted(one.measured.rates)),
    )


def _measured(one: SweepFound, place: Place) -> str:
    rate = one.rate_of(place)
    blocks = len(one.measured.rates[place])
    words = "nothing" if rate is None else format_quantity(rate, one.unit)
    return f"{one.words(place)}: {words}, {format_count(blocks, 'block')}"


def _made_of(one: SweepFound) -> Statement:
    """The bottleneck of the plateau, and what is below its limit."""
    full, rest = one.parts.full, [part for part in one.parts.seen if part not in one.parts.full]
    others = ", ".join(part.words for part in rest[:_OTHERS]) or "nothing else was observed"
    unseen = f"; not observed: {', '.join(one.parts.unseen)}" if one.parts.unseen else ""
    what = f"bottleneck of the {'rate' if one.knee and one.knee.rising else 'plateau'}"
    if full:
        named = " and ".join(part.words for part in full[:_OTHERS])
        text = f"{_name(one)}: {what}: {named}. Below their limits: {others}{unseen}."
    elif one.knee and one.knee.rising:
        text = f"{_name(one)}: {what}: latency, as nothing observed is full: {others}{unseen}."
    else:
        text = f"{_name(one)}: {what}: unknown, as nothing observed is full: {others}{unseen}."
    cells = one.cell_ids(one.plateau)
    return Statement("finding", f"{text}{_latency(one)}", says="sweep_made_of", cells=cells)


def _latency(one: SweepFound) -> str:
    """How long a request took at the knee, and at the largest queue depth of the plateau."""
    if one.knee is None:
        return ""
    grid = one.measured.grid
    ranked = sorted(one.plateau, key=grid.amount)
    latencies = [(place, item.value) for place in ranked if (item := _latency_of(one, place)) and item.value]
    if len(latencies) < 2:
        return ""
    (first, short), (last, long) = latencies[0], latencies[-1]
    more = grid.amount(last) / grid.amount(first)
    if more < 2:
        return ""
    return (
        f" A request took {format_latency(short)} at {one.words(first)} and {format_latency(long)} with"
        f" {more:,.0f}x the outstanding bytes or requests."
    )


def _latency_of(one: SweepFound, place: Place) -> Quantity | None:
    cell = one.tried.get(place)
    return cell.metrics.get("latency_mean") if cell else None


def _tried(one: SweepFound) -> Statement:
    every, tried = len(one.measured.cells), len(one.tried)
    rest = "; the others were not needed" if tried < every else ""
    unsure = one.knee is not None and one.knee.sure < SURE and not one.knee.rising
    more = (
        f" All {one.measured.asked.trials} trials are used: more would narrow the CI of the level."
        if (unsure and one.trials >= one.measured.asked.trials)
        else ""
    )
    return Statement(
        "finding",
        f"{_name(one)}: {tried} of {format_count(every, 'cell')} of its grid were tried, in"
        f" {format_count(one.trials, 'trial')}{rest}.{more}",
        says="sweep_tried",
    )
