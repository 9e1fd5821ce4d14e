"""Works that differ in nothing but how many threads they have: what one gives, what many give together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leadline.analysis.cells import CellTable, compare_cells
from leadline.analysis.models.law import POINTS_MIN, LawOfBlocks, LawOutcome, law_of_blocks
from leadline.analysis.statistics.means import Estimate
from leadline.plan.model import PlannedCell
from leadline.units import format_count, format_number, format_quantity
from leadline.verdict.interface import KindAnswer
from leadline.verdict.model import UNUSABLE, Cell, FigureRow, FigureTable, Quantity, State, Statement, worst
from leadline.verdict.sections.charts import GrowthLines, GrowthModel, GrowthPoint
from leadline.verdict.sections.section import Panels, Section

_COLUMNS = ("one", "most measured", "with", "times", "contention", "law's most at")
_NOTE = (
    "One: the fewest threads. Times: the most threads over the fewest, paired by block. Contention and the"
    " number of threads with the highest rate come from the Universal Scalability Law, fitted to each block."
    " Contention is the serial share. ? means inconclusive, > that the rate still rises at the most threads."
)
_TIMES = "\u00d7"
_FAR = 0.2  # a law that is so far from a mean rate does not describe it
_ENDS: tuple[tuple[LawOutcome, tuple[str, str]], ...] = (  # of one work, of several
    ("peak", ("peaks before that", "peak before that")),
    ("rising", ("still rises there", "still rise there")),
    ("undecided", ("is inconclusive", "are inconclusive")),
)
_STEPS = 24  # points of a drawn law


def scaling_statements(found: Sequence[Scaled]) -> Iterator[Statement]:
    """A sentence for each work of which the figures can be used."""
    for one in found:
        text = sentence(one)
        if text:
            cells = tuple(cell.id for cell in one.cells.values())
            yield Statement("finding", text, says="scaling_of_threads", cells=cells)


def sentence(one: Scaled) -> str:
    """What more threads give; empty where no figure is to be used."""
    if not one.usable or one.times is None:
        return ""
    least, most = one.ends
    first, last = (format_quantity(one.rate(at).value, one.rate(at).unit) for at in (least, most))
    times = one.times
    between = "" if times.low is None or times.high is None else f"; {times.low:.2f} to {times.high:.2f}"
    threads = "thread gives" if least == 1 else "threads give"
    head = (
        f"{one.name} on {one.target}: {least} {threads} {first}, {most} together {last}"
        f" ({times.value:.2f}x{between})"
    )
    return f"{head}; {_of_law(one)}."


def _of_law(one: Scaled) -> str:
    law, most = one.law, one.ends[1]
    if law is None:
        return "three blocks or more would show the peak"
    if law.furthest > _FAR:
        return f"no scalability law fits: the best is {100 * law.furthest:.0f} % off"
    low, high = law.most_at
    if law.outcome == "peak":
        return f"the peak is at {format_number(low)} to {format_number(high)} threads, by the scalability law"
    if law.outcome == "rising":
        return f"it still rises at {most} threads, by the scalability law"
    return "the number of threads at the peak is inconclusive"


def scaling_table(found: Sequence[Scaled]) -> FigureTable:
    """A row for each work and target."""
    rows = tuple(_row(one) for one in found)
    return FigureTable("scaling", "How rates grow with threads", ("work", "target"), _COLUMNS, rows, _NOTE)


def _row(one: Scaled) -> FigureRow:
    times, law = one.times, one.law
    ratio = Quantity(None, _TIMES, reason="no block has both")
    if times is not None:
        ratio = Quantity(times.value, _TIMES, times.low, times.high, times.count)
    contention = Quantity(None, "1", reason="too few blocks")
    if law is not None:
        share = law.contention
        contention = Quantity(share.value, "1", share.low, share.high, share.count)
    values = (one.rate(one.ends[0]), one.rate(one.best), _word(str(one.best)), ratio, contention)
    return FigureRow((one.name, one.target), (*values, _word(_most_at(one))), one.state)


def _most_at(one: Scaled) -> str:
    law = one.law
    if law is None or law.furthest > _FAR or law.outcome == "undecided":
        return "?"
    if law.outcome == "rising":
        return f">{one.ends[1]}"
    return f"{format_number(law.most_at[0])}..{format_number(law.most_at[1])}"


def _word(text: str) -> Quantity:
    return Quantity(None, "", text=text)


def scaling_section(found: Sequence[Scaled]) -> Section | None:
    """The table, and a chart for each work; None without any."""
    if not found:
        return None
    charts = tuple(
        _chart(place, name, found) for place, name in enumerate(dict.fromkeys(o.name for o in found))
    )
    panels = Panels((charts,), "Rate by threads, the law dotted", legend=True)
    return Section("scaling", "Threads", (scaling_table(found), panels), "Threads", leads=True, in_csv=False)


def _chart(place: int, name: str, found: Sequence[Scaled]) -> GrowthLines:
    own = [one for one in found if one.name == name]
    points = tuple(
        GrowthPoint(
            one.target, one.target, at, one.rate(at), cell.validity.state, f"{one.target}, {at} threads"
        )
        for one in own
        for at, cell in one.cells.items()
    )
    models = tuple(_model(one) for one in own if one.law is not None and one.law.furthest <= _FAR)
    unit = own[0].rate(own[0].best).unit or "1/s"
    return GrowthLines(f"scaling-{place}", name, "threads", points, models, unit)


def _model(one: Scaled) -> GrowthModel:
    assert one.law is not None  # noqa: S101 - asked before
    least, most = one.ends
    steps = [least + (most - least) * step / _STEPS for step in range(_STEPS + 1)]
    return GrowthModel(one.target, one.target, tuple((at, one.law.law.rate(at)) for at in steps))


def scaling_answer(found: Sequence[Scaled], cells: Sequence[Cell]) -> KindAnswer:
    """The answer of a study that asks for nothing else: a row for each work and target."""
    scaled = {cell.id for one in found for cell in one.cells.values()}
    if not found or scaled != {cell.id for cell in cells}:
        return KindAnswer()
    return KindAnswer(_in_short(found), scaling_table(found), adds=True, leads=True)


def _in_short(found: Sequence[Scaled]) -> str:
    """By target: how many times one thread's rate all of them give, and where the most is."""
    said = []
    for target in dict.fromkeys(one.target for one in found):
        own = [one for one in found if one.target == target and one.usable and one.times]
        if not own:
            continue
        grown = sorted(own, key=lambda one: one.times.value if one.times else 0.0)
        ends = [f"{one.times.value:.2f}x in {one.name}" for one in (grown[0], grown[-1]) if one.times]
        least, most = own[0].ends
        outcomes = [one.law.outcome for one in own if one.law and one.law.furthest <= _FAR]
        where = [
            f"{count} {words[count > 1]}" for outcome, words in _ENDS if (count := outcomes.count(outcome))
        ]
        of_works = f" Of {format_count(len(own), 'workload')} {', '.join(where)}." if where else ""
        both = " to ".join(dict.fromkeys(ends))
        fewest = format_count(least, "thread")
        said.append(f"{target}: {most} threads give {both}, compared with {fewest}.{of_works}")
    return " ".join(said)


FACTOR = "numjobs"
_LEVEL = re.compile(rf"[_-]*{FACTOR}[0-9]+")  # as the works of a factor are named
_RATES = ("B/s", "1/s")


@dataclass(frozen=True)
class Scaled:
    """One work of one target at several numbers of threads, `cells` by that number in rising order.

    `times` is the rate of the largest number over that of the smallest, paired by block; None where no block
    has both. `law` is None where there are too few blocks or numbers.
    """

    name: str
    target: str
    metric: str
    cells: Mapping[int, Cell]
    times: Estimate | None
    law: LawOfBlocks | None

    @property
    def state(self) -> State:
        """The worst of its cells."""
        return worst(cell.validity.state for cell in self.cells.values())

    @property
    def usable(self) -> bool:
        """False where a figure may not be used."""
        return self.state not in UNUSABLE

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the most threads."""
        return min(self.cells), max(self.cells)

    def rate(self, number: int) -> Quantity:
        """At so many threads."""
        return self.cells[number].metrics.get(self.metric) or Quantity(None, "", reason="not measured")

    @property
    def best(self) -> int:
        """The number of threads with the highest measured rate."""
        return max(self.cells, key=lambda number: self.rate(number).value or 0.0)


def find_scaled(
    planned: Sequence[PlannedCell], cells: Sequence[Cell], tables: Mapping[str, CellTable], alpha: float
) -> tuple[Scaled, ...]:
    """Every work that was measured with four numbers of threads or more."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for plan, cell in zip(planned, cells, strict=True):
        if FACTOR in plan.factors and plan.swept is None and _metric(cell):
            groups.setdefault((cell.target, _else(cell)), []).append(cell)
    found = (_scaled(target, own, tables, alpha) for (target, _), own in groups.items())
    return tuple(one for one in found if len(one.cells) >= POINTS_MIN)


def _else(cell: Cell) -> str:
    """All that its job says but the number of threads."""
    return json.dumps({name: value for name, value in cell.job.items() if name != FACTOR}, sort_keys=True)


def _metric(cell: Cell) -> str | None:
    """The rate that it is asked for."""
    for name in cell.shown.leading:
        found = cell.metrics.get(name)
        if found is not None and found.unit in _RATES:
            return name
    return None


def _scaled(target: str, own: Sequence[Cell], tables: Mapping[str, CellTable], alpha: float) -> Scaled:
    by_number = {int(cell.job[FACTOR]): cell for cell in own}
    cells = {number: by_number[number] for number in sorted(by_number)}
    metric = _metric(own[0]) or ""
    held = {number: tables[cell.id] for number, cell in cells.items() if cell.id in tables}
    name = _LEVEL.sub("", own[0].work) or own[0].work
    ratio = None
    if {min(cells), max(cells)} <= held.keys():
        ratio = compare_cells(held[min(cells)], held[max(cells)], metric)
    blocks = _blocks(held, metric) if len(held) == len(cells) else []
    law = law_of_blocks(blocks, alpha) if len(cells) >= POINTS_MIN and blocks else None
    return Scaled(name, target, metric, cells, ratio.estimate(alpha) if ratio else None, law)


def _blocks(held: Mapping[int, CellTable], metric: str) -> list[dict[float, float]]:
    """The rate by threads of each block."""
    numbers = sorted({block for table in held.values() for block in table.by_block})
    return [
        {
            float(threads): table.by_block[block].values[metric]
            for threads, table in held.items()
            if block in table.by_block and metric in table.by_block[block].values
        }
        for block in numbers
    ]
