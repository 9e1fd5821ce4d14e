"""One table of all targets and all works: rates, ratios to the first target, what each costs the client; and
which way serves which work, in sentences. Used where a study asks for it (`compare.table`); thresholds:
`ways.yaml`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.analysis.cells import CellTable, compare_cells
from leadline.knowledge.tables import table_of
from leadline.study.schemes import access
from leadline.study.target import LeftOut
from leadline.units import format_number, format_quantity, format_times
from leadline.verdict.comparisons.deciding import Pair, decide
from leadline.verdict.kinds import metric_kind
from leadline.verdict.model import (
    UNUSABLE,
    Cell,
    Comparison,
    FigureRow,
    FigureTable,
    Quantity,
    State,
    Statement,
    TargetView,
    part_label,
)
from leadline.verdict.sections.section import Section

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
                    f"{one.target} has no value for {one.work}: {one.reason}.",
                    says="way_without_figure",
                )
            )
    if any(way.emulated for way in ways):
        words = f"Rows marked {EMULATED} ran in an emulated guest. They show that an access method works, not"
        words += " its speed."
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
    parts = [f"{column.heading}: {best.name} is fastest with {_printed(best, column)}"]
    if alike:
        verb = "is" if len(alike) == 1 else "are"
        parts.append(f"{_listed(alike)} {verb} not significantly different")
    if worse:
        parts.append(", ".join(f"{way.name} has {_printed(way, column)}" for way in worse))
    beside = [way for way in ways if way.usable(column) and way not in ranked]
    if beside:
        parts.append(", ".join(f"for comparison {way.name} has {_printed(way, column)}" for way in beside))
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
            yield f"has {format_number(held)} of {asked} requests outstanding"
    if rate and cpu and rate * cpu / 1e9 >= limits["client_cpus"]:
        yield f"its client uses {format_number(rate * cpu / 1e9)} CPUs"
    cheapest = min(
        (value for one in usable if (value := one.quantity(column, "client_cpu_per_operation").value)),
        default=None,
    )
    if cpu and cheapest and cpu >= limits["cpu_times"] * cheapest:
        times = format_times(cpu / cheapest)
        yield f"an operation takes {format_quantity(cpu, 'ns')} of client CPU, {times} the cheapest method"
    yield from _wire_words(
        way.quantity(column, "wire_per_byte"), limits, cached=bool(access(way.access).caches)
    )
    passes = _rules()["passes"].get(way.access)
    if passes and way is not max(usable, key=lambda one: _rank(one, column)):
        yield str(passes)


def _rank(way: MeasuredWay, column: WayColumn) -> float:
    value = _value(way, column)
    return value if metric_kind(column.metric).higher_is_better else -value


def _wire_words(wire: Quantity, limits: Mapping[str, float], *, cached: bool) -> Iterator[str]:
    """`cached`: the way has a cache on this host; where it has none, fewer bytes are no cache's."""
    if wire.value is None:
        return
    if wire.value > limits["wire_more"]:
        yield f"moves {format_number(wire.value)} bytes on the wire for each byte requested"
    elif cached and wire.value < limits["wire_less"]:
        yield f"moves {format_number(wire.value)} bytes on the wire for each byte requested: a cache answered"


EMULATED = "EMULATED"
_TIMES = "\u00d7"  # the unit of a ratio


@dataclass(frozen=True)
class WayColumn:
    """A work, or one operation of a metadata work, and the metric that it is asked for."""

    heading: str
    work: str
    metric: str


@dataclass(frozen=True)
class MeasuredWay:
    """A target with its cells by work. `reasons` say what of it was left out: by work, "" for all of it.

    `emulated`: measured in an emulated guest, and so never against what the host measured.
    """

    name: str
    access: str
    cells: Mapping[str, Cell]
    reasons: Mapping[str, str]
    emulated: bool = False

    @property
    def heading(self) -> str:
        """Its name, never without the word where it is emulated."""
        return f"{self.name} ({EMULATED})" if self.emulated else self.name

    def reason(self, work: str) -> str:
        """Why there is no value for a workload."""
        return self.reasons.get("") or self.reasons.get(work) or "not measured"

    def quantity(self, column: WayColumn, metric: str) -> Quantity:
        """A metric of the column's cell, or the reason why there is none."""
        cell = self.cells.get(column.work)
        if cell is None:
            return Quantity(None, "", reason=f"{self.name}: {self.reason(column.work)}")
        found = cell.metrics.get(metric)
        if found is None or found.value is None:
            why = (found.reason if found else None) or _evidence(cell) or "not measured"
            return Quantity(None, found.unit if found else "", reason=f"{self.name}: {why}")
        return found

    def state(self, column: WayColumn) -> State:
        """Of the column's cell."""
        cell = self.cells.get(column.work)
        if cell is None:
            return "NOT_RUN" if "" in self.reasons else "VALID"
        return cell.validity.state

    def usable(self, column: WayColumn) -> bool:
        """True for a figure that may be held against others."""
        found = self.quantity(column, column.metric).value
        return not self.emulated and found is not None and self.state(column) not in UNUSABLE


def _evidence(cell: Cell) -> str | None:
    return cell.validity.codes[0].evidence if cell.validity.state in UNUSABLE else None


def ways_of(
    targets: Sequence[TargetView],
    cells: Sequence[Cell],
    left_out: Sequence[LeftOut],
    guest: tuple[Sequence[TargetView], Sequence[Cell]] = ((), ()),
) -> tuple[MeasuredWay, ...]:
    """The measured targets in order, those of the guest, then those that are not there at all."""
    reasons: dict[str, dict[str, str]] = {}
    for one in left_out:
        reasons.setdefault(one.target, {})[one.work or ""] = one.reason
    measured = [_way(view, cells, reasons) for view in targets]
    in_guest = [_way(view, guest[1], {}, emulated=True) for view in guest[0]]
    known = {way.name for way in (*measured, *in_guest)}
    absent = [MeasuredWay(name, "", {}, why) for name, why in reasons.items() if name not in known]
    return (*measured, *in_guest, *absent)


def _way(
    view: TargetView,
    cells: Sequence[Cell],
    reasons: Mapping[str, Mapping[str, str]],
    *,
    emulated: bool = False,
) -> MeasuredWay:
    own = {cell.work: cell for cell in cells if cell.target == view.name}
    return MeasuredWay(view.name, view.access, own, reasons.get(view.name, {}), emulated)


def columns_of(ways: Sequence[MeasuredWay]) -> tuple[WayColumn, ...]:
    """What is asked of each work: a rate, of metadata each operation's, of first bytes the typical wait."""
    found: dict[str, WayColumn] = {}
    for way in ways:
        for work, cell in way.cells.items():
            for part, metric in cell.shown.asked:
                heading = part_label(work, part) if part else work
                found.setdefault(heading, WayColumn(heading, work, metric))
    return tuple(found.values())


def ways_table(
    ways: Sequence[MeasuredWay],
    columns: Sequence[WayColumn],
    tables: Mapping[str, CellTable],
    alpha: float,
    comparisons: Sequence[Comparison] = (),
) -> FigureTable | None:
    """The table, figure by figure, a row for each way; None where nothing was measured. Ratios that were
    compared have the interval of their comparison.
    """
    if not columns:
        return None
    base = ways[0]
    compared = {(one.work, one.metric, one.base, one.other): one for one in comparisons}
    groups: tuple[tuple[str, Callable[[MeasuredWay, WayColumn], Quantity]], ...] = (
        ("measured", lambda way, column: way.quantity(column, column.metric)),
        (f"against {base.name}", lambda way, column: _ratio(base, way, column, tables, alpha, compared)),
        ("client CPU per operation", lambda way, column: _cost(way, column, "client_cpu_per_operation")),
        ("wire per byte or operation", _wire),
    )
    rows = [
        FigureRow(
            (name, way.heading),
            tuple(figure(way, column) for column in columns),
            _row_state([way.state(column) for column in columns]),
            tuple(way.state(column) for column in columns),
        )
        for name, figure in groups
        for way in ways
    ]
    return FigureTable(
        "ways",
        "Every access method and workload",
        ("Metric", "Access method"),
        tuple(column.heading for column in columns),
        tuple(rows),
        "Ratios are of the values above, paired by block, with the CIs of the comparisons."
        f" {_notes(ways)}Client CPU is that of the engine and the client daemon, without the kernel's own"
        " threads and gateways. A metadata workload has one cost: the mean of its operations.",
    )


def ways_section(tables: Sequence[FigureTable]) -> Section | None:
    """The tables of ways as a section; None without any."""
    if not tables:
        return None
    return Section(
        "ways",
        tables[0].title,
        tuple(tables),
        "Access methods",
        json={"ways": tuple(tables)},
        leads=True,
        in_csv=False,
    )


def _notes(ways: Sequence[MeasuredWay]) -> str:
    """What kinds of work have to say of their columns."""
    notes = dict.fromkeys(cell.shown.note for way in ways for cell in way.cells.values())
    return "".join(f"{note} " for note in notes if note)


def _row_state(states: Sequence[State]) -> State:
    """Never INVALID as a whole: each figure has its own state."""
    return "NOT_RUN" if states and all(state == "NOT_RUN" for state in states) else "VALID"


def _ratio(
    base: MeasuredWay,
    way: MeasuredWay,
    column: WayColumn,
    tables: Mapping[str, CellTable],
    alpha: float,
    compared: Mapping[tuple[str, str, str, str], Comparison],
) -> Quantity:
    if way.emulated:
        return Quantity(
            None, _TIMES, reason=f"{way.name}: {EMULATED}, so never compared with values of this host"
        )
    found = [one.cells.get(column.work) for one in (base, way)]
    if way is base and base.usable(column):
        return Quantity(1.0, _TIMES)
    if not base.usable(column) or not way.usable(column):
        lost = way if base.usable(column) else base
        return Quantity(None, _TIMES, reason=lost.quantity(column, column.metric).reason or "INVALID")
    known = compared.get((column.work, column.metric, base.name, way.name))
    if known is not None and known.ratio is not None:
        return Quantity(known.ratio, _TIMES, known.low, known.high, known.blocks)
    pair = [tables[cell.id] for cell in found if cell is not None and cell.id in tables]
    ratio = compare_cells(pair[0], pair[1], column.metric) if len(pair) == 2 else None
    if ratio is None:
        return Quantity(None, _TIMES, reason=f"{way.name}: no block has both values")
    estimate = ratio.estimate(alpha)
    return Quantity(estimate.value, _TIMES, estimate.low, estimate.high, estimate.count)


def _cost(way: MeasuredWay, column: WayColumn, metric: str) -> Quantity:
    """A cost of the whole trial: of several operations of a metadata work it is the mean of all."""
    return way.quantity(column, metric)


def _wire(way: MeasuredWay, column: WayColumn) -> Quantity:
    per_byte = _cost(way, column, "wire_per_byte")
    cell = way.cells.get(column.work)
    if cell is not None and "wire_per_operation" in cell.metrics and per_byte.value is None:
        return _cost(way, column, "wire_per_operation")
    return per_byte
