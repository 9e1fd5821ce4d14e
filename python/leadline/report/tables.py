"""The tables of a result as frozen rows of printed text: terminal, Markdown and HTML share them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leadline.report import format as fmt
from leadline.report import metrics
from leadline.report.metrics import by_operation, parts
from leadline.units import whole_percent
from leadline.verdict.model import (
    SEVERITY,
    Cell,
    Chain,
    ChainPlace,
    Code,
    Comparison,
    Findings,
    Quantity,
    State,
    severity,
    worst,
)


@dataclass(frozen=True)
class KeyColumn:
    """A metric's column: its heading and the one unit of its numbers."""

    metric: str
    heading: str
    scale: fmt.Scale


@dataclass(frozen=True)
class Measure:
    """One printed number: `value` in base units for sorting, `text` in the column's unit."""

    value: float | None
    text: str
    spread: str
    interval: str
    reason: str


@dataclass(frozen=True)
class KeyRow:
    """A cell with its printed numbers, in the order of the table's columns."""

    cell: Cell
    measures: tuple[Measure, ...]


@dataclass(frozen=True)
class KeyTable:
    """Columns and rows, ready to lay out."""

    columns: tuple[KeyColumn, ...]
    rows: tuple[KeyRow, ...]


@dataclass(frozen=True)
class Fired:
    """A validity code and every cell where it fired, with what was seen there."""

    code: Code
    cells: tuple[tuple[str, str], ...]


def comparison_notes(comparisons: Sequence[Comparison]) -> list[str]:
    """What belongs below the comparisons: what intervals rest on, and at which confidence they hold."""
    every = [note for item in comparisons for note in (item.assumption, item.correction) if note]
    bounded = any(item.low is not None for item in comparisons)
    if bounded and not any(item.correction for item in comparisons):
        every.append("CIs have 95 % confidence")
    return list(dict.fromkeys(every))


def key_table(findings: Findings, cells: tuple[Cell, ...]) -> KeyTable:
    """Bandwidth, IOPS, mean and p99 latency of `cells`: the table that everybody reads.

    Columns and units follow all cells of the result, so that tables of several targets can be compared.
    """
    every = by_operation(findings).cells
    present = [name for name in metrics.KEY_METRICS if _is_shown(name, every)]
    names = [*present, *_asked_besides(present, every)] or metrics.all_metrics(every)[:4]
    columns = tuple(_column(name, every, si=findings.published_units) for name in names)
    shown = (part for cell in cells for part in parts(cell))
    rows = tuple(KeyRow(cell, tuple(measure(cell, column) for column in columns)) for cell in shown)
    return KeyTable(columns, rows)


def _asked_besides(present: Sequence[str], cells: Sequence[Cell]) -> Iterator[str]:
    """What kinds of work are asked for that have none of the metrics that everybody reads."""
    rest = (cell for cell in cells if not any(metrics.find(cell, name) for name in present))
    yield from dict.fromkeys(name for cell in rest for _, name in cell.shown.asked if name in cell.metrics)


def _is_shown(name: str, cells: Sequence[Cell]) -> bool:
    """A metric that some cell has; of an application only where one has a value: a trace is a choice."""
    found = [pair[1] for cell in cells if (pair := metrics.find(cell, name))]
    return any(item.value is not None for item in found) if name in metrics.EXPLAINING else bool(found)


def _column(name: str, cells: tuple[Cell, ...], *, si: bool) -> KeyColumn:
    found = [item[1] for cell in cells if (item := metrics.find(cell, name))]
    unit = found[0].unit if found else ""
    scale = fmt.scale_for(unit, [item.value for item in found], si=si)
    return KeyColumn(name, metrics.heading(name), scale)


def measure(cell: Cell, column: KeyColumn) -> Measure:
    """What a cell has to print in `column`; the reason where it has no number."""
    item = metrics.find(cell, column.metric)
    if item is None:
        return Measure(None, fmt.NO_VALUE, "", "", _absent(cell))
    return printed(item[1], column.scale)


def _absent(cell: Cell) -> str:
    return "not run" if cell.validity.state == "NOT_RUN" else "not measured"


def printed(item: Quantity, scale: fmt.Scale) -> Measure:
    """A quantity in one scale; a single block has no interval, and that is said."""
    if item.value is None and item.text is not None:
        return Measure(None, fmt.printable(item.text), "", "", "")
    if item.value is None:
        return Measure(None, fmt.NO_VALUE, "", "", fmt.printable(item.reason or "not measured"))
    return Measure(item.value, fmt.number(item.value, scale), fmt.spread(item), fmt.interval(item, scale), "")


def mixed_latency(table: KeyTable) -> bool:
    """True where a latency in the table is that of a mixed work's reads, which must be said."""
    found = [metrics.find(row.cell, column.metric) for row in table.rows for column in table.columns]
    return any(pair is not None and pair[0].startswith("read_latency") for pair in found)


def by_target(findings: Findings) -> dict[str, tuple[Cell, ...]]:
    """The cells of each target, targets in the order given; what is of two of them has tables of its own."""
    own = [cell for cell in findings.cells if not cell.shown.own_tables]
    names = [target.name for target in findings.targets]
    names += [cell.target for cell in own if cell.target not in names]
    grouped = {name: tuple(cell for cell in own if cell.target == name) for name in names}
    return {name: cells for name, cells in grouped.items() if cells}


def by_work(findings: Findings) -> dict[str, tuple[Cell, ...]]:
    """The cells of each work, works in the order met, targets in the order given."""
    order = {target.name: place for place, target in enumerate(findings.targets)}
    works = dict.fromkeys(cell.work for cell in findings.cells)
    cells = sorted(findings.cells, key=lambda cell: order.get(cell.target, len(order)))
    return {work: tuple(cell for cell in cells if cell.work == work) for work in works}


def fired(findings: Findings) -> tuple[Fired, ...]:
    """Every code that fired, the worst first, with its cells."""
    seen: dict[str, tuple[Code, list[tuple[str, str]]]] = {}
    for cell in findings.cells:
        for code in cell.validity.codes:
            _, where = seen.setdefault(f"{code.state} {code.code}", (code, []))
            where.append((cell.id, code.evidence))
    ranked = sorted(seen.values(), key=lambda item: -severity(item[0].state))
    return tuple(Fired(code, tuple(where)) for code, where in ranked)


def counts(findings: Findings) -> tuple[tuple[State, int], ...]:
    """How many cells are in each state, the worst first; states without a cell are left out."""
    every = [cell.validity.state for cell in findings.cells]
    numbers = [(state, every.count(state)) for state in reversed(SEVERITY)]
    return tuple((state, number) for state, number in numbers if number)


def tally(findings: Findings) -> str:
    """The same in words, and that targets are missing where no cell says so: `2 DOUBTFUL, 23 VALID`."""
    found = counts(findings)
    parts = [f"{number} {state.replace('_', ' ')}" for state, number in found]
    if found and findings.state == "NOT_RUN" and "NOT_RUN" not in dict(found):
        parts.append("targets that could not be measured")
    return ", ".join(parts)


def against_base(findings: Findings) -> dict[tuple[str, str], Comparison]:
    """For each (work, target) the comparison in the rate that leads that work, where there is one."""
    chosen: dict[tuple[str, str], Comparison] = {}
    findings = by_operation(findings)
    leading = {work: metrics.rate_metric(cells) for work, cells in by_work(findings).items()}
    for item in findings.comparisons:
        place = (item.work, item.other)
        lead = leading.get(item.work, "")
        if place not in chosen or item.metric.endswith(lead) > chosen[place].metric.endswith(lead):
            chosen[place] = item
    return chosen


def states_of(findings: Findings) -> dict[tuple[str, str], State]:
    """The state of the cell of each (work, target)."""
    return {(cell.work, cell.target): cell.validity.state for cell in findings.cells}


def comparison_state(item: Comparison, states: Mapping[tuple[str, str], State]) -> State:
    """A ratio is never better than the worse of the two cells that it stands on."""
    sides = [states.get((item.work, name), "VALID") for name in (item.base, item.other)]
    return worst([item.validity, *sides])


CHAIN_HEADINGS = ("Work", "Target", "Bytes", "Came from, got as far as", "Stored per byte", "Model", "Ratio")

_SHOWN_CELLS_MAX = 3


@dataclass(frozen=True)
class ChainRow:
    """One direction of one cell. `notes` say why places could not be told apart, or were not seen."""

    cell: Cell
    chain: Chain
    places: str
    stored: str
    model: str
    ratio: str
    notes: tuple[str, ...]


def chain_rows(findings: Findings) -> tuple[ChainRow, ...]:
    """Every chain, works in order, targets in the order given."""
    return tuple(
        _row(cell, chain) for cells in by_work(findings).values() for cell in cells for chain in cell.chains
    )


def most_telling(rows: tuple[ChainRow, ...]) -> list[ChainRow]:
    """The rows with most beside the end of their chain first; where that is equal, as they are."""
    return sorted(rows, key=lambda row: -(1 - (row.chain.places[-1].share or 0.0)))


def chain_notes(rows: tuple[ChainRow, ...]) -> tuple[str, ...]:
    """What the rows leave open, each note once with the cells it is about."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for note in row.notes:
            found.setdefault(note, []).append(row.cell.id)
    return tuple(f"{note} ({_some(cells)})" for note, cells in found.items())


def _some(cells: list[str]) -> str:
    rest = len(cells) - _SHOWN_CELLS_MAX
    return ", ".join(cells[:_SHOWN_CELLS_MAX]) + (f" and {rest} more" if rest > 0 else "")


def _row(cell: Cell, chain: Chain) -> ChainRow:
    store = next((place for place in chain.places if place.name in ("store", "device")), None)
    written = chain.direction == "write" and store is not None
    measured = store.bytes_per_byte if written and store is not None else None
    model = store.model if written and store is not None else None
    return ChainRow(
        cell,
        chain,
        ", ".join(_place(place) for place in chain.places if place.share != 0),
        fmt.NO_VALUE if measured is None else fmt.ratio(measured),
        fmt.NO_VALUE if model is None else fmt.ratio(model),
        fmt.NO_VALUE if measured is None or not model else fmt.ratio(measured / model),
        tuple(_notes(chain)),
    )


def _place(place: ChainPlace) -> str:
    why = f" ({place.reason})" if place.share is None and place.reason else ""
    return f"{place.words} {whole_percent(place.share)}{why}"


def _notes(chain: Chain) -> list[str]:
    notes = [f"{place.words}: {place.reason}" for place in chain.places if place.reason]
    if chain.together:
        notes.append(chain.together)
    if chain.model:
        notes.append(f"model of what is stored: {chain.model}")
    if chain.acknowledged:
        notes.append(f"a write is acknowledged {chain.acknowledged}")
    return notes
