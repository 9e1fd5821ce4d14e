"""What published figures say of what their documents leave out, by the model: inferences, no validation.

CASTOR's uplinks are solved for, from the rate that was published. Of Fermilab's curve over copies the first
points are given to the model of copies and the others are predicted. The section is part of
bench/simulation.md, which bench/simulation.py prints.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from scipy import stats

from leadline.analysis.models.storage import run_time
from leadline.simulation.model import SimulatedCluster, parse_work
from leadline.simulation.parameters import catalogue
from leadline.simulation.simulate import simulate
from simulation_clusters import castor

_CASTOR_BYTES_S = 2.2e9
_DRAWS, _ROUNDS, _CLOSE = 50, 12, 0.004
_WRITES = "rw=write,iodepth=16,protection=8+3,clients=40"
Rates = tuple[float, float, float]  # most likely, low and high end of 90 %


@dataclass(frozen=True)
class Layout:
    """Where clients and proxies may have been; of switches the document says only which uplinks were full."""

    name: str
    cluster: Callable[[float], SimulatedCluster]
    work: str = _WRITES


LAYOUTS = (
    Layout("clients at the core, no proxy (the row above)", castor),
    Layout("clients below the same six switches, no proxy", lambda rate: castor(rate, clients_below=True)),
    Layout(
        "clients and 12 proxies below the same six switches",
        lambda rate: castor(rate, clients_below=True, proxies_below=True),
        f"{_WRITES},through=xrootd",
    ),
)
OTHER_REASONS = (
    Layout("six uplinks", castor),
    Layout("five uplinks", lambda rate: castor(rate, switches=5)),
    Layout("four uplinks", lambda rate: castor(rate, switches=4)),
    Layout("six uplinks, 128 groups", castor, f"{_WRITES},groups=128"),
    Layout("six uplinks, 32 groups", castor, f"{_WRITES},groups=32"),
    *LAYOUTS[1:],
)
# Seconds of a run by the number of runs at once: table 4 of Diagnostic and Testing of the Ceph Filesystem.
RUNS: Mapping[str, Mapping[int, float]] = {
    "its system of then": {1: 813, 2: 847, 4: 943, 6: 1344, 7: 1529, 8: 1529},
    "CephFS of the analysis facility": {1: 925, 2: 918, 4: 889, 6: 895, 7: 902, 8: 914},
}
CPUS = {"its system of then": 4.0, "CephFS of the analysis facility": 8.0}
GIVEN = (1, 2, 4)
_CASTOR_ASKED = """\
Given: 2.2 GB/s were written, and the uplinks of six switches were full. Sought: the rate of an uplink at
which the model writes that much. The interval holds all rates with which 2.2 GB/s lies inside the model's
interval of 90 %."""
_FERMILAB_ASKED = """\
The hardware is not named, so that nothing can be simulated. `leadline model copies` is given the times of 1,
2 and 4 runs at once and predicts those of 6, 7 and 8, which it never saw. Its range is what it leaves open
beyond the processors; the interval of 90 % is the fit's, of one degree of freedom, and so wide."""
_CASTOR_NOTES = """
**It is an inference, no validation**: the rate that the model should give was put in. With clients at the
core an uplink carried about 7 Gbit/s of clients' and OSDs' bytes. That is one link of 10 Gbit/s for each
switch with three tenths of it for something else, or four such uplinks, not six. So few groups that some
uplinks are full while others are not come near it, at the edge of the interval. So do bytes that pass the
uplinks once more: clients and proxies were batch nodes by the document, and below the same six switches
they need nine tenths of one link for each, or all but a hundredth at the interval's end. No published
figure decides between these. Which switch each machine is on, and the uplinks' rate, would."""
_OTHER_NOTES = """
**Off** is from the nearest end of the model's range. The four processors are those of the document's
virtual machine; that its system of then was measured on it is assumed. There 6 and 7 runs are within 2 %
and inside. At 8 the document has the time of 7 once more: it lies at the low end of the model's range,
and outside the fit's interval. The facility's processors are not named; 8 are assumed, so that none is
short. Its first times fall with more runs, by 4 %, and the model carries that on, while the next ones
rise: it is too fast each time, by up to 8 %, and 8 runs are outside. No sharing is seen there that the
model could describe: a flat line, the mean of the three times, is within 2 % of all three that were kept
from it. So of six points four are inside.

### Opencast's ingest

It is not predicted: a local disk and the kernel's mount took the same 17 minutes, so that the storage did
not bound it, and of the slow FUSE mount neither the size of its requests nor their latency is published."""


@cache
def rates_of(layout: Layout, uplink: float) -> Rates:
    """Bytes per second that the model gives at this rate of uplinks."""
    one: Any = simulate(
        layout.cluster(uplink), [parse_work(layout.work, 1)], catalogue(), draws=_DRAWS
    ).predicted[0]
    piece = one.work.piece_bytes
    return one.operations_s * piece, one.low * piece, one.high * piece


def uplink_for(layout: Layout, place: int, wanted: float) -> float:
    """Gbit/s at which that end of the rates is what is wanted; rates are nearly as the uplinks."""
    uplink = 10.0
    for _ in range(_ROUNDS):
        found = rates_of(layout, uplink)[place]
        if abs(found / wanted - 1) < _CLOSE:
            return uplink
        uplink *= wanted / found
    raise SystemExit(f"{layout.name}: no uplink gives {wanted:.3g} B/s")


def castor_lines() -> Iterator[str]:
    """Uplinks as they must have been, and what else would give the published rate."""
    yield "### CASTOR's uplinks, as they must have been\n"
    yield f"{_CASTOR_ASKED}\n"
    yield "| layout assumed | uplink, Gbit/s (90 %) | of one link of 10 Gbit/s |"
    yield "|---|--:|--:|"
    for layout in LAYOUTS:
        likely, most, least = (uplink_for(layout, place, _CASTOR_BYTES_S) for place in range(3))
        yield f"| {layout.name} | {likely:.1f} ({least:.1f} to {most:.1f}) | {likely / 10:.0%} |"
    yield "\nWith uplinks of 10 Gbit/s, one link's rate, other layouts write:\n"
    yield "| layout assumed | GB/s (90 %) | 2.2 GB/s |"
    yield "|---|--:|---|"
    for layout in OTHER_REASONS:
        likely, low, high = (rate / 1e9 for rate in rates_of(layout, 10.0))
        inside = "inside" if low <= _CASTOR_BYTES_S / 1e9 <= high else "outside"
        yield f"| {layout.name} | {likely:.2f} ({low:.2f} to {high:.2f}) | {inside} |"


@dataclass(frozen=True)
class PredictedRun:
    """A number of runs that was kept from the model: its range, the fit's interval, what was published."""

    runs: int
    low: float
    high: float
    interval: tuple[float, float]
    published: float

    @property
    def off(self) -> float:
        """How far the nearest end of the model's range is from what was published; 0 inside."""
        nearest = min(max(self.published, self.low), self.high)
        return nearest / self.published - 1


def predicted_runs(times: Mapping[int, float], cpus: float) -> Iterator[PredictedRun]:
    """Each number of runs that was not given, by `leadline model copies` from those that were."""
    given = {float(runs): times[runs] for runs in GIVEN}
    for runs in (runs for runs in times if runs not in GIVEN):
        found = run_time(given, cpus, runs).computed[0]
        yield PredictedRun(runs, found.low, found.high, interval_of(given, cpus, runs), times[runs])


def interval_of(given: Mapping[float, float], cpus: float, runs: int) -> tuple[float, float]:
    """90 % for one more run, by the fit's own scatter: the time is a sum of C and s, each by its weight."""
    xs, ys = list(given), list(given.values())
    mean = sum(xs) / len(xs)
    square = sum((x - mean) ** 2 for x in xs)
    slope = sum((x - mean) * (y - sum(ys) / len(ys)) for x, y in given.items()) / square
    start = sum(ys) / len(ys) - slope * mean
    freedom = len(xs) - 2
    scatter = sum((y - start - slope * x) ** 2 for x, y in given.items()) / freedom
    of_compute, of_shared = max(1.0, runs / cpus), min(float(runs), cpus)
    variance = (
        1
        + of_compute**2 * (1 / len(xs) + mean**2 / square)
        + of_shared**2 / square
        - 2 * of_compute * of_shared * mean / square
    )
    half = float(stats.t.ppf(0.95, freedom)) * math.sqrt(scatter * variance)
    middle = of_compute * start + of_shared * slope
    return middle - half, middle + half


def fermilab_lines() -> Iterator[str]:
    """The curve over copies: what was given, what was predicted, and what was missed."""
    yield "\n### Fermilab's curve over copies\n"
    yield f"{_FERMILAB_ASKED}\n"
    yield "| system, processors | runs | model, s | fit's 90 %, s | published, s | off |"
    yield "|---|--:|--:|--:|--:|--:|"
    for name, times in RUNS.items():
        for one in predicted_runs(times, CPUS[name]):
            low, high = one.interval
            inside = "" if low <= one.published <= high else ", **outside**"
            span = f"{one.low:,.0f} to {one.high:,.0f}" if one.high - one.low > 1 else f"{one.high:,.0f}"
            yield (
                f"| {name}, {CPUS[name]:g} | {one.runs} | {span} | {low:,.0f} to {high:,.0f} |"
                f" {one.published:,.0f} | {one.off:+.1%}{inside} |"
            )


def lines() -> Sequence[str]:
    """The whole section."""
    return [
        "## Inferred from published figures\n",
        *castor_lines(),
        _CASTOR_NOTES,
        *fermilab_lines(),
        _OTHER_NOTES,
    ]


if __name__ == "__main__":
    print("\n".join(lines()))
