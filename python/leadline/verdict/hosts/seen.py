"""What a result says of each of its hosts, read once: how fast beside the others, and its clock.

Empty where a study ran on one host.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leadline.analysis.cells import CellTable
from leadline.analysis.stragglers import HostAway, hosts_away
from leadline.store.by_host import HostRow, read_by_host
from leadline.store.journal import Event
from leadline.store.reader import Result
from leadline.verdict.codes.catalogue import catalogue

_RATES = ("rate_iops", "rate_bytes_per_s")
_COMPARED = "clock_compared"  # the event that says how far a host's clock was off


@dataclass(frozen=True)
class ClockMove:
    """By how much a host's clock moved against this one's while the study ran.

    `least_ns` is that less what each comparison may be off: so much it moved for certain.
    """

    moved_ns: int
    least_ns: int


@dataclass(frozen=True)
class HostsSeen:
    """`rows` by trial, `away` by cell, `moved` by host; `facts` are what a host says of itself, by name."""

    rows: Mapping[str, tuple[HostRow, ...]] = field(default_factory=dict)
    away: Mapping[str, tuple[HostAway, ...]] = field(default_factory=dict)
    moved: Mapping[str, ClockMove] = field(default_factory=dict)
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rows)


ONE_HOST = HostsSeen()


def hosts_seen(result: Result, tables: Mapping[str, CellTable], alpha: float) -> HostsSeen:
    """Raises ResultError where a table is damaged."""
    rows = read_by_host(result)
    if not rows:
        return ONE_HOST
    speeds = {
        cell: {
            trial.block: _speeds(rows[trial.trial], trial.job) for trial in table.good if trial.trial in rows
        }
        for cell, table in tables.items()
    }
    away: dict[str, list[HostAway]] = {}
    for one in hosts_away(speeds, alpha):
        away.setdefault(one.cell, []).append(one)
    return HostsSeen(
        rows=rows,
        away={cell: tuple(found) for cell, found in away.items()},
        moved=clock_moves(result.events),
        facts=_facts(result.manifest),
    )


def _speeds(rows: Sequence[HostRow], job: str) -> dict[str, float]:
    """Bytes a second, or operations, or how often it could be done; of a rate that was asked for how quick
    its operations were."""
    asked = json.loads(job)
    at_rate = any(asked.get(name) is not None for name in _RATES)
    found = {}
    for row in rows:
        done = row.bytes or row.operations or 1
        if at_rate and row.mean_ns:
            found[row.host] = 1e9 / row.mean_ns
        elif row.measured_ns > 0:
            found[row.host] = done * 1e9 / row.measured_ns
    return found


def clock_moves(events: Sequence[Event]) -> dict[str, ClockMove]:
    """Host -> how far apart its offsets were at most."""
    offsets: dict[str, list[tuple[int, int]]] = {}
    for event in events:
        if event.event == _COMPARED:
            details = event.details
            offsets.setdefault(str(details["host"]), []).append(
                (int(details["offset_ns"]), int(details["error_ns"]))
            )
    found = {}
    for host, seen in offsets.items():
        (low, low_error), (high, high_error) = min(seen), max(seen)
        found[host] = ClockMove(high - low, max(high - low - low_error - high_error, 0))
    return found


def _facts(manifest: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    listed = manifest.get("hosts")
    rows = listed if isinstance(listed, list) else []
    return {str(one["name"]): one for one in rows if isinstance(one, dict) and "name" in one}


def is_straggler(one: HostAway) -> bool:
    """Slower than the others for certain, and by enough to matter."""
    return one.found and one.ratio <= 1 - catalogue()["straggler"].thresholds["share"]


def stragglers(away: Sequence[HostAway]) -> list[HostAway]:
    """The slowest first."""
    return sorted(filter(is_straggler, away), key=lambda one: one.ratio)
