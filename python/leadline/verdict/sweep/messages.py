"""What a sweep found in sentences: the least that is enough, what bounds the plateau, what was tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leadline.analysis.knee.surface import Place
from leadline.units import format_latency, format_quantity
from leadline.verdict.model import Quantity, Statement
from leadline.verdict.sweep.detection import SweepFound

SURE = 0.9
_OTHERS = 4  # parts below their limits that are named


def brief(one: SweepFound) -> str:
    """A sentence for the first screen."""
    knee, asked = one.knee, one.measured.asked
    if knee is None:
        return f"{_name(one)}: no cell has a figure to use."
    rate = format_quantity(knee.plateau[0], one.unit)
    if knee.rising:
        return f"{_name(one)}: no plateau: the rate still rises at {one.words(one.largest)}."
    share = f"{100 * asked.share:.4g} %"
    unsure = "" if knee.sure >= SURE else " (not sure)"
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
        smaller = f" Next smaller of those tried, {one.words(below)}: {measured / knee.plateau[0]:.0%}."
    return Statement(
        "headline",
        f"{_name(one)}: {one.words(knee.knee)} is the least that gives {100 * one.measured.asked.share:.4g} %"
        f" of the plateau of {rate} (95 % interval {low} to {high}); {_between(one)}.{smaller}",
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
        return f"no other than {low} could be it (95 %)"
    return f"it could be from {low} to {high} (95 %)"


def _smaller(one: SweepFound) -> Place | None:
    """The tried cell with the most in flight below the knee's."""
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
        f"{_name(one)}: no plateau in its grid: the rate, {rate} at its best, still rises at"
        f" {one.words(one.largest)}. Give {' and '.join(one.measured.asked.over)} larger levels.",
        tuple(_measured(one, place) for place in sorted(one.measured.rates)),
        says="sweep_no_plateau",
        cells=one.cell_ids(sorted(one.measured.rates)),
    )


def _measured(one: SweepFound, place: Place) -> str:
    rate = one.rate_of(place)
    blocks = len(one.measured.rates[place])
    words = "nothing" if rate is None else format_quantity(rate, one.unit)
    return f"{one.words(place)}: {words}, {blocks} {'block' if blocks == 1 else 'blocks'}"


def _made_of(one: SweepFound) -> Statement:
    """What bounds the plateau, and what else is below its limit."""
    full, rest = one.parts.full, [part for part in one.parts.seen if part not in one.parts.full]
    others = ", ".join(part.words for part in rest[:_OTHERS]) or "nothing else was observed"
    unseen = f"; not observed: {', '.join(one.parts.unseen)}" if one.parts.unseen else ""
    what = "What the rate is bound by" if one.knee and one.knee.rising else "What the plateau is made of"
    if full:
        named = " and ".join(part.words for part in full[:_OTHERS])
        text = f"{_name(one)}: {what}: {named}. Below their limits: {others}{unseen}."
    elif one.knee and one.knee.rising:
        text = f"{_name(one)}: {what}: latency, as nothing observed is full: {others}{unseen}."
    else:
        text = f"{_name(one)}: {what} is not known: nothing observed is full: {others}{unseen}."
    cells = one.cell_ids(one.plateau)
    return Statement("finding", f"{text}{_latency(one)}", says="sweep_made_of", cells=cells)


def _latency(one: SweepFound) -> str:
    """How long a request took at the knee, and with how many times as much in flight how long."""
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
        f" {more:,.0f} times as much in flight."
    )


def _latency_of(one: SweepFound, place: Place) -> Quantity | None:
    cell = one.tried.get(place)
    return cell.metrics.get("latency_mean") if cell else None


def _tried(one: SweepFound) -> Statement:
    every, tried = len(one.measured.cells), len(one.tried)
    rest = "; the others were not needed" if tried < every else ""
    unsure = one.knee is not None and one.knee.sure < SURE and not one.knee.rising
    more = (
        f" Its {one.measured.asked.trials} trials are used up: more would tell the knee surer."
        if (unsure and one.trials >= one.measured.asked.trials)
        else ""
    )
    return Statement(
        "finding",
        f"{_name(one)}: {tried} of {every} cells of its grid were tried, in {one.trials} trials{rest}.{more}",
        says="sweep_tried",
    )
