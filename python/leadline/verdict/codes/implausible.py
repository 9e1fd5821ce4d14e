"""The code `implausible`: above what link, device or control group let through, or small before large.

Only limits that nothing passes are held against a figure (see `observe.limits`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from leadline.analysis.cells import CellTable, compare_cells
from leadline.plan.model import PlannedCell
from leadline.store.tables import TrialRow
from leadline.units import format_rate
from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.model import Code
from leadline.workloads.judged import judged

_WIRE = "wire_limit_bytes_per_s"
_DEVICE = {"read": "device_read_limit_bytes_per_s", "write": "device_write_limit_bytes_per_s"}


def implausible(case: Case) -> Iterator[Code]:
    """Fires on the trial whose figure is furthest above its limit."""
    if not case.facts.has_storage or case.facts.in_memory:
        return
    kind = catalogue()["implausible"]
    found = [
        (
            rate / limit,
            f"{format_rate(rate)} {direction} in {trial.trial}, {words} at most {format_rate(limit)}",
        )
        for trial in case.good
        if trial.measured_ns >= kind.thresholds["seconds"] * 1e9
        for direction, rate, limit, words in _held_against(case, trial)
    ]
    ratio, evidence = max(found, default=(0.0, ""))
    if ratio > kind.thresholds["factor"]:
        yield kind.fire(evidence, worse=True)
    elif case.outran:
        yield kind.fire(case.outran)


def outrunning(cells: Sequence[PlannedCell], tables: Mapping[str, CellTable]) -> dict[str, str]:
    """Cells of small random reads that moved more than large sequential ones of the same target did, and how.

    With no more in flight and all else alike no storage does that; a cache that only they fit into does.
    """
    limits = catalogue()["implausible"].thresholds
    found: dict[str, str] = {}
    for small, large in product(cells, cells):
        if not _comparable(small, large) or not {small.id, large.id} <= tables.keys():
            continue
        words = judged(small.kind).must_be_slower(small.job, large.job, limits["sizes"])
        ratio = compare_cells(tables[large.id], tables[small.id], "bandwidth") if words else None
        seen = None if ratio is None else ratio.estimate()
        if words and seen is not None and seen.low is not None and seen.low > limits["outran"]:
            found[small.id] = (
                f"{words[0]} moved {seen.value:.3g} times as much as {words[1]} in {large.id}"
                f" (at least {seen.low:.3g} times, {seen.count} blocks)"
            )
    return found


def _comparable(small: PlannedCell, large: PlannedCell) -> bool:
    """Of one kind, on one target, and each alone on it."""
    return (small.kind, small.target) == (large.kind, large.target) and small.group is large.group is None


def _held_against(case: Case, trial: TrialRow) -> Iterator[tuple[str, float, int, str]]:
    """(direction, rate, limit, words) for every limit that binds what this trial moved."""
    sources = json.loads(trial.sources)
    for direction, amount in (("read", trial.read_bytes), ("write", trial.write_bytes)):
        rate = amount / (trial.measured_ns / 1e9)
        names = [_WIRE] if _wire_binds(case) else []
        names += [_DEVICE[direction]] if _device_binds(case, direction) else []
        for name in names:
            limit = getattr(trial, name)
            if limit is not None and amount:
                words = sources.get(name, "its limit")
                yield {"read": "read", "write": "written"}[direction], rate, limit, f"{words} allows"


def _wire_binds(case: Case) -> bool:
    """A client may compress what it sends: then data that can be compressed passes a link faster."""
    return case.cell.job.incompressible


def _device_binds(case: Case, direction: str) -> bool:
    """Buffered writes end in memory, which their own code says; reads are never of memory."""
    return direction == "read" or case.cell.job.direct


RULES: tuple[Rule, ...] = (implausible,)
