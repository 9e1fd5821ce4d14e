"""The table of block sizes and protections: bandwidth, operations and latency, as architects compare them.

One row for each pattern, block size and target, with how the target's pool is protected; the same as bars.
A figure is divided by the devices of the cluster only where these are what bounds the cell: what is bound by
a client or a link does not grow with the devices.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.store.tables import TrialRow
from leadline.study.target import TargetFacts
from leadline.units import format_size
from leadline.verdict.diagnosis.results import CellDiagnosed
from leadline.verdict.model import UNUSABLE, Cell, FigureRow, FigureTable, Quantity, Statement, TargetView
from leadline.verdict.sections.charts import GroupedBar, GroupedBars
from leadline.verdict.sections.section import Item, Panels, Section, Words

# Why a cell's figures are not divided, in the order in which they are said.
_LAB = "on a lab, whose OSDs share one disk"
_UNUSABLE = "INVALID or not run"
_UNCOUNTED = "where the number of OSDs changed or was not seen"
_OTHERWISE = "with another bottleneck ({causes})"
_UNKNOWN = "with an unknown bottleneck"
_CAUSES_MAX = 3


@dataclass(frozen=True)
class PerDevice:
    """Of cells on a cluster how many devices their figures may be divided by, and why others' are not."""

    by_cell: Mapping[str, int]
    statements: tuple[Statement, ...] = ()

    def devices(self, cell: Cell) -> int | None:
        """How many devices share the cell's figures; None where they are not to be divided."""
        return self.by_cell.get(cell.id)

    def divided(self, cell: Cell, figure: Quantity) -> Quantity:
        """A rate of the cell for each device."""
        count = self.by_cell.get(cell.id)
        if count is None or figure.value is None:
            return Quantity(None, figure.unit, reason="the devices are not the bottleneck: see Per device")
        low, high = (None if end is None else end / count for end in (figure.low, figure.high))
        return replace(figure, value=figure.value / count, low=low, high=high)


def per_device_of(
    cells: Sequence[Cell],
    targets: Sequence[TargetView],
    diagnosed: Sequence[CellDiagnosed],
    trials: Sequence[TrialRow],
) -> PerDevice:
    """Judge these cells; those of targets without a cluster behind them have no such devices."""
    clusters = {view.name: view.facts["ceph"] for view in targets if view.facts.get("ceph")}
    found = {one.cell.id: one for one in diagnosed}
    asked = [cell for cell in cells if cell.target in clusters]
    counted = _osds_in(trials)
    by_cell: dict[str, int] = {}
    reasons: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    for cell in asked:
        named = found[cell.id].found.named if cell.id in found else ()
        if clusters[cell.target].get("lab"):
            reasons[_LAB] += 1
        elif cell.validity.state in UNUSABLE:
            reasons[_UNUSABLE] += 1
        elif not named:
            reasons[_UNKNOWN] += 1
        elif not named[0].entry.every_device:
            reasons[_OTHERWISE] += 1
            causes[named[0].title] += 1
        elif counted.get(cell.id) is None:
            reasons[_UNCOUNTED] += 1
        else:
            by_cell[cell.id] = counted[cell.id]
    return PerDevice(by_cell, tuple(_withheld(asked, by_cell, reasons, causes)))


def _osds_in(trials: Sequence[TrialRow]) -> dict[str, int]:
    """How many OSDs were in at the begin of each trial of a cell, where it was the same in all of them."""
    seen: dict[str, set[int | None]] = {}
    for trial in trials:
        state = json.loads(trial.start_state) or {}
        seen.setdefault(trial.cell, set()).add(state.get("osds_in"))
    alike = {cell: next(iter(counts)) for cell, counts in seen.items() if len(counts) == 1}
    return {cell: count for cell, count in alike.items() if count}


def _withheld(
    asked: Sequence[Cell], by_cell: Mapping[str, int], reasons: Counter[str], causes: Counter[str]
) -> list[Statement]:
    if not reasons:
        return []
    most = ", ".join(title for title, _ in causes.most_common(_CAUSES_MAX))
    parts = [
        f"{reasons[why]} {why.format(causes=most)}"
        for why in (_LAB, _UNUSABLE, _OTHERWISE, _UNKNOWN, _UNCOUNTED)
        if reasons[why]
    ]
    left = len(asked) - len(by_cell)
    text = f"No value per device for {left} of {len(asked)} cells on a cluster: {'; '.join(parts)}."
    return [Statement("finding", text, says="per_device_withheld")]


_KEYS = ("Pattern", "I/O size", "Queue depth", "Target", "Protection")
_COLUMNS = ("Bandwidth", "Operations", "Average latency")
_PER_DEVICE = ("Bandwidth per device", "Operations per device")
_NOTE = (
    "Bandwidth counts bytes of the application. Latency is from the submission of an operation to its end; of"
    " mixed patterns it is that of reads. Queue depth: threads times iodepth, as requested. If a client"
    " accepts fewer requests, an operation's time starts when the client accepts it."
)
_DEVICES = (
    " Per device: divided by the OSDs that were in, one device each, and only if these devices are the"
    " bottleneck of the cell."
)
_NO_POOL = "\u2013"  # a target without a pool, or one of which the cluster did not say how it is protected


def protected_section(
    cells: Sequence[Cell], targets: Sequence[TargetView], per_device: PerDevice
) -> Section | None:
    """None where no pattern was measured with two block sizes on a target."""
    chosen = compared_sizes(cells)
    if not chosen:
        return None
    protections = protections_of(targets)
    order = {view.name: place for place, view in enumerate(targets)}
    rows = sorted(
        chosen, key=lambda one: (_place(chosen, one), one.shown.block_bytes or 0, order[one.target])
    )
    said = [Item(one.text, doubtful=False) for one in per_device.statements]
    words = (Words(tuple(said), title="Per device"),) if said else ()
    return Section(
        "protections",
        "Block sizes and protections",
        (_table(rows, protections, per_device), *_bars(rows, protections), *words),
        "Sizes",
        leads=True,
        in_csv=False,
    )


def compared_sizes(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of patterns that were measured with several block sizes."""
    sizes: dict[str, set[int]] = {}
    for cell in cells:
        if cell.shown.block_bytes and cell.swept is None:
            sizes.setdefault(cell.shown.pattern, set()).add(cell.shown.block_bytes)
    return [
        cell
        for cell in cells
        if cell.shown.block_bytes and cell.swept is None and len(sizes[cell.shown.pattern]) > 1
    ]


def protections_of(targets: Sequence[TargetView]) -> dict[str, str]:
    """`3x` or `EC 2+1` by target; a dash where there is no pool, or nobody said."""
    found = {}
    for view in targets:
        ceph = TargetFacts.from_json(view.facts).ceph if "access" in view.facts else None
        found[view.name] = (ceph.protection_words if ceph else None) or _NO_POOL
    return found


def _place(cells: Sequence[Cell], cell: Cell) -> int:
    """Of a pattern, in the order of the study."""
    return [one.shown.pattern for one in cells].index(cell.shown.pattern)


def _table(rows: Sequence[Cell], protections: Mapping[str, str], per_device: PerDevice) -> FigureTable:
    divided = any(per_device.devices(cell) for cell in rows)
    return FigureTable(
        "protections",
        "By pattern, size and protection",
        _KEYS,
        (*_COLUMNS, *(_PER_DEVICE if divided else ())),
        tuple(_row(cell, protections, per_device, divided=divided) for cell in rows),
        _NOTE + (_DEVICES if divided else ""),
    )


def _row(cell: Cell, protections: Mapping[str, str], per_device: PerDevice, *, divided: bool) -> FigureRow:
    figures = [_figure(cell, name, unit) for name, unit in (("bandwidth", "B/s"), ("iops", "1/s"))]
    latency = _figure(cell, "latency_mean" if "latency_mean" in cell.metrics else "read_latency_mean", "ns")
    each = [per_device.divided(cell, one) for one in figures] if divided else []
    keys = (
        cell.shown.pattern,
        format_size(cell.shown.block_bytes or 0),
        "" if cell.shown.in_flight is None else f"{cell.shown.in_flight}",
        cell.target,
        protections[cell.target],
    )
    return FigureRow(keys, (*figures, latency, *each), cell.validity.state)


def _figure(cell: Cell, metric: str, unit: str) -> Quantity:
    found = cell.metrics.get(metric)
    return found if found is not None else Quantity(None, unit, reason="not measured")


def _bars(rows: Sequence[Cell], protections: Mapping[str, str]) -> tuple[Panels, ...]:
    """A panel for each pattern: bandwidth by block size, a bar for each target."""
    charts = []
    for place, pattern in enumerate(dict.fromkeys(cell.shown.pattern for cell in rows)):
        bars = tuple(
            GroupedBar(
                format_size(cell.shown.block_bytes or 0),
                cell.target,
                f"{cell.target} {protections[cell.target]}".removesuffix(f" {_NO_POOL}"),
                _figure(cell, "bandwidth", "B/s"),
                cell.validity.state,
            )
            for cell in rows
            if cell.shown.pattern == pattern
        )
        charts.append(GroupedBars(f"protections-{place}", pattern, bars))
    title = "Bandwidth by block size and protection"
    known = [f"{name} {how}" for name, how in protections.items() if how != _NO_POOL]
    note = f"Protection: {', '.join(known)}." if known else ""
    return (Panels((tuple(charts),), title, note, legend=True),)
