"""Whether a figure may be divided by the devices of the cluster: only where these are what bounds the cell.

What is bound by something else, such as a client or a link, does not grow with the devices: its share of a
device would promise what a larger cluster does not give.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.store.tables import TrialRow
from leadline.verdict.diagnosis.of_result import CellDiagnosed
from leadline.verdict.model import UNUSABLE, Cell, Quantity, Statement, TargetView

# Why a cell's figures are not divided, in the order in which they are said.
_LAB = "on a lab, whose OSDs share one disk"
_UNUSABLE = "INVALID or not run"
_UNCOUNTED = "where the number of OSDs changed or was not seen"
_OTHERWISE = "bound by something else ({causes})"
_UNKNOWN = "of which nobody could tell what bounds them"
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
            return Quantity(None, figure.unit, reason="not bound by the devices: see Per device")
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
    text = f"No figure per device for {left} of {len(asked)} cells on a cluster: {'; '.join(parts)}."
    return [Statement("finding", text, says="per_device_withheld")]
