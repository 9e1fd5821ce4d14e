"""The code `implausible`: a figure above what the link, the device or the control group lets through.

Only limits that nothing passes are held against a figure (see `observe.limits`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from leadline.store.tables import TrialRow
from leadline.units import format_rate
from leadline.verdict.case import Case
from leadline.verdict.catalogue import catalogue
from leadline.verdict.model import Code

_WIRE = "wire_limit_bytes_per_s"
_DEVICE = {"read": "device_read_limit_bytes_per_s", "write": "device_write_limit_bytes_per_s"}


def implausible(case: Case) -> Iterator[Code]:
    """Fires on the trial whose figure is furthest above its limit."""
    if case.facts.access == "null" or case.facts.in_memory:
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
        yield kind.fire(evidence)


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
