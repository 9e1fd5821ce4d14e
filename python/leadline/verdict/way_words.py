"""Which way serves which work, and why: sentences from the table of ways. Thresholds are in `ways.yaml`."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leadline.analysis.cells import CellTable, compare_cells
from leadline.knowledge.tables import table_of
from leadline.study.left_out import LeftOut
from leadline.study.schemes import access
from leadline.units import format_number, format_quantity
from leadline.verdict.comparisons.deciding import decide
from leadline.verdict.comparisons.pair import Pair
from leadline.verdict.kinds import metric_kind
from leadline.verdict.model import Quantity, Statement
from leadline.verdict.ways import EMULATED, MeasuredWay, WayColumn

_MANY = 6  # reasons below one sentence


@functools.cache
def _rules() -> Mapping[str, Mapping[str, Any]]:
    return table_of("leadline.verdict", "ways.yaml")


def way_statements(
    ways: Sequence[MeasuredWay],
    columns: Sequence[WayColumn],
    tables: Mapping[str, CellTable],
    alpha: float,
    left_out: Sequence[LeftOut],
) -> tuple[Statement, ...]:
    """For each work the way to take, with the evidence; then what was not measured."""
    ranked = {column: order for column in columns if (order := _ranked(ways, column))}
    apart = _told_apart(ranked, tables, alpha)
    found = [_choice(ways, column, order, apart) for column, order in ranked.items()]
    for one in left_out:
        if one.work is None:
            found.append(
                Statement("caution", f"{one.target} was not measured: {one.reason}.", says="way_not_measured")
            )
        else:
            found.append(
                Statement(
                    "finding",
                    f"{one.target} has no figure of {one.work}: {one.reason}.",
                    says="way_without_figure",
                )
            )
    if any(way.emulated for way in ways):
        words = f"Rows marked {EMULATED} ran in an emulated guest: they show that a way works, not its speed."
        found.append(Statement("caution", words, says="ways_emulated"))
    return tuple(found)


def _ranked(ways: Sequence[MeasuredWay], column: WayColumn) -> list[MeasuredWay]:
    """The ways to choose from, the best first; empty where there is no choice."""
    measured = [way for way in ways if way.usable(column)]
    # Beside ways to a storage, this host's own and none are what to compare with, no choice.
    remote = [way for way in measured if access(way.access).storage not in ("mount", "none")]
    usable = remote or measured
    higher = metric_kind(column.metric).higher_is_better
    return sorted(usable, key=lambda way: _value(way, column), reverse=higher) if len(usable) > 1 else []


def _told_apart(
    ranked: Mapping[WayColumn, Sequence[MeasuredWay]], tables: Mapping[str, CellTable], alpha: float
) -> frozenset[tuple[WayColumn, str]]:
    """The ways that the best of their column was found to differ from: one table that explores."""
    places, pairs = [], []
    for column, (best, *others) in ranked.items():
        for other in others:
            cells = [tables.get(way.cells[column.work].id) for way in (best, other)]
            ratio = compare_cells(cells[0], cells[1], column.metric) if cells[0] and cells[1] else None
            places.append((column, other.name))
            pairs.append(Pair(column.work, best.name, other.name, column.metric, ratio, "VALID"))
    found = decide(pairs, 0.0, alpha)
    return frozenset(place for place, one in zip(places, found, strict=True) if one.at_least is not None)


def _choice(
    ways: Sequence[MeasuredWay],
    column: WayColumn,
    ranked: Sequence[MeasuredWay],
    apart: frozenset[tuple[WayColumn, str]],
) -> Statement:
    best, others = ranked[0], ranked[1:]
    alike = [way for way in others if (column, way.name) not in apart]
    worse = [way for way in others if way not in alike]
    parts = [f"{column.heading}: {best.name} is first with {_printed(best, column)}"]
    if alike:
        parts.append(f"{_listed(alike)} {'is' if len(alike) == 1 else 'are'} not told apart from it")
    if worse:
        parts.append(", ".join(f"{way.name} has {_printed(way, column)}" for way in worse))
    beside = [way for way in ways if way.usable(column) and way not in ranked]
    if beside:
        parts.append(", ".join(f"beside them {way.name} has {_printed(way, column)}" for way in beside))
    evidence = [f"{way.name}: {why}" for way in ranked for why in _whys(way, column, ranked)]
    return Statement(
        "finding",
        "; ".join(parts) + ".",
        tuple(evidence[:_MANY]),
        says="way_to_take",
        cells=tuple(way.cells[column.work].id for way in (*ranked, *beside)),
    )


def _value(way: MeasuredWay, column: WayColumn) -> float:
    return way.quantity(column, column.metric).value or 0.0


def _printed(way: MeasuredWay, column: WayColumn) -> str:
    item = way.quantity(column, column.metric)
    return format_quantity(item.value, item.unit)


def _listed(ways: Sequence[MeasuredWay]) -> str:
    names = [way.name for way in ways]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _whys(way: MeasuredWay, column: WayColumn, usable: Sequence[MeasuredWay]) -> Iterator[str]:
    """What was seen of a way that explains its figure."""
    limits = _rules()["thresholds"]
    rate, latency = (way.quantity(column, name).value for name in ("iops", "latency_mean"))
    cpu = way.quantity(column, "client_cpu_per_operation").value
    asked = way.cells[column.work].shown.in_flight
    if rate and latency and asked is not None:
        held = rate * latency / 1e9
        if asked > 1 and held < limits["in_flight_share"] * asked:
            yield f"keeps {format_number(held)} of {asked} operations in flight"
    if rate and cpu and rate * cpu / 1e9 >= limits["client_cpus"]:
        yield f"its client uses {format_number(rate * cpu / 1e9)} CPUs"
    cheapest = min(
        (value for one in usable if (value := one.quantity(column, "client_cpu_per_operation").value)),
        default=None,
    )
    if cpu and cheapest and cpu >= limits["cpu_times"] * cheapest:
        times = format_number(cpu / cheapest)
        yield f"an operation costs its client {format_quantity(cpu, 'ns')} of CPU, {times} times the cheapest"
    yield from _wire(way.quantity(column, "wire_per_byte"), limits, cached=bool(access(way.access).caches))
    passes = _rules()["passes"].get(way.access)
    if passes and way is not max(usable, key=lambda one: _rank(one, column)):
        yield str(passes)


def _rank(way: MeasuredWay, column: WayColumn) -> float:
    value = _value(way, column)
    return value if metric_kind(column.metric).higher_is_better else -value


def _wire(wire: Quantity, limits: Mapping[str, float], *, cached: bool) -> Iterator[str]:
    """`cached`: the way has a cache on this host; where it has none, fewer bytes are no cache's."""
    if wire.value is None:
        return
    if wire.value > limits["wire_more"]:
        yield f"moves {format_number(wire.value)} bytes on the wire for each byte of work"
    elif cached and wire.value < limits["wire_less"]:
        yield f"moves {format_number(wire.value)} bytes on the wire for each byte of work: a cache answered"
