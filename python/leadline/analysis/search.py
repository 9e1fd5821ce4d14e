"""A latency-bounded search: which probes held, what to try next, and what a block found.

A probe holds when it kept its rate and its latency, from the intended start, stayed under the bound. The
next rate halves what is left on a logarithmic scale: rates differ by factors, not by steps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline import units
from leadline.store.tables import LatencyRow, TrialRow
from leadline.study.work import Search

KEPT_SHARE = 0.98  # of the rate asked for; below it the target or the generator did not hold it
_DIGITS = 4  # of a probe's rate: finer steps than these are noise

Stored = tuple[TrialRow, Sequence[LatencyRow]]


@dataclass(frozen=True)
class Probe:
    """One trial of a search. `rate` is what was asked for, None for as fast as it goes; 1/s.

    `latency_ns` is the bounded percentile from the intended start; None where nothing was measured or
    nothing was intended.
    """

    trial: str
    rate: float | None
    achieved: float
    latency_ns: float | None
    held: bool


def asked_rate(row: TrialRow) -> float | None:
    """The rate of a probe in 1/s; None for as fast as it goes."""
    found = json.loads(row.job).get("rate_iops")
    return None if found is None else float(found)


def read_probe(search: Search, row: TrialRow, latency: Sequence[LatencyRow]) -> Probe:
    """What a stored trial of a search says."""
    rate = asked_rate(row)
    seconds = row.measured_ns / 1e9
    achieved = (row.read_operations + row.write_operations) / seconds if seconds > 0 else 0.0
    latency_ns = _worst_latency(search, latency)
    held = (
        row.state == "complete"
        and rate is not None
        and achieved >= KEPT_SHARE * rate
        and latency_ns is not None
        and latency_ns <= search.bound
    )
    return Probe(row.trial, rate, achieved, latency_ns, held)


def _worst_latency(search: Search, latency: Sequence[LatencyRow]) -> float | None:
    """Of reads and writes the slower: the bound holds for both."""
    found = [
        _bounded_latency(search, row.histogram)
        for row in latency
        if row.interval < 0 and row.clock == "intended" and row.operations
    ]
    return max(found) if found else None


def _bounded_latency(search: Search, histogram: bytes) -> float:
    from leadline import _core

    if search.percentile is None:
        return float(_core.histogram_summary(histogram)["mean"])
    return float(_core.histogram_percentiles(histogram, [search.percentile])[0])


def next_rate(search: Search, probes: Sequence[Stored]) -> float | None:
    """The rate of the next probe of a block, 1/s; None for as fast as it goes.

    That is the first probe where the highest rate is not given. A given one is tried first: where it holds,
    nothing is left to search but to try it again. The last probe of a block in which none held is the lowest
    rate.
    """
    found = [read_probe(search, row, latency) for row, latency in probes]
    if not found:
        return search.high if isinstance(search.high, float) else None
    top = search.high if isinstance(search.high, float) else _reached(found)
    held = [probe.rate for probe in found if probe.held and probe.rate is not None]
    failed = [probe.rate for probe in found if not probe.held and probe.rate is not None]
    if not held and len(found) == search.trials - 1:
        return search.low  # what is said of a bound that nothing keeps is said of the lowest rate
    low = max(held, default=search.low)
    high = min([rate for rate in failed if rate > low], default=max(top, low))
    return _rounded(math.sqrt(low * high))


def _reached(probes: Sequence[Probe]) -> float:
    return max((probe.achieved for probe in probes if probe.rate is None), default=0.0)


def _rounded(rate: float) -> float:
    return float(f"{rate:.{_DIGITS}g}")


def counted_trials(search: Search, probes: Sequence[Stored]) -> Mapping[int, Probe]:
    """The probe of each block that its figures are taken from.

    It is the highest rate that held, else the lowest one tried; a block without any rate tried has none.
    """
    by_block: dict[int, list[Probe]] = {}
    for row, latency in probes:
        if row.state == "complete":
            by_block.setdefault(row.block, []).append(read_probe(search, row, latency))
    found = {}
    for block, tried in by_block.items():
        held = [probe for probe in tried if probe.held]
        paced = [probe for probe in tried if probe.rate is not None]
        if held:
            found[block] = max(held, key=lambda probe: probe.rate or 0.0)
        elif paced:
            found[block] = min(paced, key=lambda probe: probe.rate or 0.0)
    return found


def not_held(search: Search, probe: Probe) -> str:
    """Why a block has no rate: what was seen at the lowest one tried."""
    latency = "not measured" if probe.latency_ns is None else units.format_latency(probe.latency_ns)
    return (
        f"not even the lowest rate tried was held: at {probe.rate or 0:g} per second"
        f" {search.latency} was {latency}"
        f" and {probe.achieved:.4g} per second were done"
    )
