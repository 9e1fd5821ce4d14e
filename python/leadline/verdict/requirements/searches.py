"""The section of searches: the highest rate under each bound, beside what the work does without one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from leadline.analysis.cells import CellTable
from leadline.analysis.search import asked_rate
from leadline.analysis.statistics.means import geometric_mean
from leadline.plan.model import PlannedCell
from leadline.study.work import Search
from leadline.units import exact_duration, format_quantity
from leadline.verdict.model import UNUSABLE, Cell, FigureRow, FigureTable, Quantity, Statement
from leadline.verdict.sections.section import Section

RATE_AT = "rate_at_"  # what the metric of a search is called begins so
_NOTE = (
    "Operations a second in open loop, of each block the highest rate that was kept with its latency, counted"
    " from the intended start, within the bound; the interval is over the blocks."
)


def searches_section(
    planned: Sequence[PlannedCell], cells: Sequence[Cell], tables: Mapping[str, CellTable]
) -> Section | None:
    """A table for each bound; None of a study without searches."""
    by_bound: dict[Search, list[tuple[PlannedCell, Cell]]] = {}
    for asked, cell in zip(planned, cells, strict=True):
        if asked.search is not None:
            bound = Search(latency=asked.search.latency, bound=_written(asked.search))
            by_bound.setdefault(bound, []).append((asked, cell))
    if not by_bound:
        return None
    parts = tuple(
        _table(place, bound, found, tables) for place, (bound, found) in enumerate(by_bound.items(), start=1)
    )
    return Section("searches", "Highest rates under a bound", parts, leads=True, in_csv=False)


def _written(search: Search) -> str:
    return exact_duration(search.bound)


def _table(
    place: int,
    bound: Search,
    found: Sequence[tuple[PlannedCell, Cell]],
    tables: Mapping[str, CellTable],
) -> FigureTable:
    latency = f"latency_{bound.latency}"
    rows = []
    for _, cell in found:
        table = tables.get(cell.id)
        rate = cell.metrics.get(bound.metric) or Quantity(None, "1/s", reason="nothing was measured")
        there = _slower(cell, latency)
        if rate.value is None:  # the latency is that of a rate which did not hold
            there = Quantity(None, "ns", reason=rate.reason)
        values = (rate, there, _unbounded(table), _held(bound.metric, table))
        rows.append(FigureRow((cell.work, cell.target), values, cell.validity.state))
    return FigureTable(
        f"searches-{place}",
        f"Highest rate with {bound.latency} <= {_written(bound)}",
        ("work", "target"),
        ("rate", f"{bound.latency} there", "as fast as it goes", "blocks that held"),
        tuple(rows),
        note=_NOTE,
    )


def _slower(cell: Cell, latency: str) -> Quantity:
    """Of a mixed work the slower of reads and writes: the bound holds for both."""
    found = [cell.metrics.get(f"{direction}{latency}") for direction in ("", "read_", "write_")]
    measured = [item for item in found if item is not None and item.value is not None]
    return max(
        measured, key=lambda item: item.value or 0.0, default=Quantity(None, "ns", reason="not measured")
    )


def search_statements(cells: Sequence[Cell], tables: Mapping[str, CellTable]) -> Iterator[Statement]:
    """A sentence for each bound: what each cell keeps under it."""
    by_metric: dict[str, list[tuple[str, str]]] = {}
    for cell in cells:
        if cell.validity.state in UNUSABLE:
            continue
        for metric, item in cell.metrics.items():
            if metric.startswith(RATE_AT):
                kept = format_quantity(item.value, item.unit)
                if item.value is None:
                    held, blocks = _blocks(metric, tables.get(cell.id))
                    kept = f"none in {blocks - held} of {blocks} blocks" if held else "none that was tried"
                by_metric.setdefault(metric, []).append((cell.id, kept))
    for metric, found in by_metric.items():
        latency, _, bound = metric.removeprefix(RATE_AT).partition("_")
        yield Statement(
            "headline",
            f"Highest rate with {latency} <= {bound}: {', '.join(f'{cell} {kept}' for cell, kept in found)}.",
            says="rates_under_bound",
            cells=tuple(cell for cell, _ in found),
        )


def _unbounded(table: CellTable | None) -> Quantity:
    """What the first probes, which had no rate to keep, did."""
    free = [t for t in table.trials if t.state == "complete" and asked_rate(t) is None] if table else []
    rates = [rate for t in free if table and (rate := table.probes[t.trial].values.get("iops"))]
    mean = geometric_mean(rates)
    if mean is None:
        return Quantity(None, "1/s", reason="the highest rate to try was given")
    return Quantity(mean.value, "1/s", mean.low, mean.high, mean.count)


def _held(metric: str, table: CellTable | None) -> Quantity:
    return Quantity(None, "", text="{} of {}".format(*_blocks(metric, table)))


def _blocks(metric: str, table: CellTable | None) -> tuple[int, int]:
    """In how many blocks a rate held, and how many there are."""
    blocks = table.by_block.values() if table else ()
    return sum(metric in measured.values for measured in blocks), len(blocks)
