"""Parameters from results: the most likely ones by what was measured and by the catalogue, with intervals.

Each figure of a cell (its rate, and what counters saw of a request) is held against the same figure of the
model. The parameters are those of the largest posterior probability, found by Gauss and Newton's method on
their logarithms (Levenberg 1944 for the step), their intervals by Laplace's approximation there; the
catalogue, at twice its width, is what was thought before. Intervals widen where the figures contradict
each other more than they scatter (Birge 1932).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from leadline.simulation.demands import Demand, demands
from leadline.simulation.model import SimulatedCluster, SimulatedWork
from leadline.simulation.parameters import COMMON, Parameter, Parameters
from leadline.simulation.simulate import once, places
from leadline.units import format_count

_Z90 = 1.6449
_LOOSER = 2.0  # a machine may be farther from typical ones than these are from each other
_TOLD = 0.6  # of the width before: what stays wider, where it was thought to be, was not told
_ROUNDS, _STEP, _ENOUGH, _FAR = 60, 1e-3, 1e-4, 1.5
_MAPS = 3
_ERROR, _CELLS_BEFORE = 0.06, 4  # how far the model is thought to be off, and how many cells that counts as
# How far a figure and the model of it differ at least, as a share of it.
_FLOORS = {"rate": 0.15, "osd processor": 0.2, "client processor": 0.2, "stored bytes": 0.1, "flush": 0.3}
_COMMON = (
    "latency_s",
    "osd_read_s",
    "osd_write_s",
    "osd_byte_s",
    "kv_operation_s",
    "client_operation_s",
    "client_byte_s",
    "queue_spread",
    "fork_spread",
)
_DEVICE = (
    "read_operation_s",
    "write_operation_s",
    "read_bytes_s",
    "write_bytes_s",
    "flush_s",
    "write_extra_bytes",
)
_SHARES = ("queue_spread", "fork_spread")  # never above one, whatever was measured


@dataclass(frozen=True)
class ObservedCell:
    """A cell: requests a second of all its clients, and how its trials scatter (of the logarithm).

    Of a request: seconds of processors, bytes that stores wrote. `flush_s` is one flush. None: nobody saw it.
    """

    name: str
    work: SimulatedWork
    operations_s: float
    spread: float
    osd_cpu_s: float | None = None
    client_cpu_s: float | None = None
    stored_bytes: float | None = None
    flush_s: float | None = None


@dataclass(frozen=True)
class Calibration:
    """`told`: parameters that were measured, by section and name; `off`: measured over computed, by cell."""

    parameters: Parameters
    told: tuple[tuple[str, str], ...]
    untold: tuple[tuple[str, str], ...]
    off: Mapping[str, float]


@dataclass(frozen=True)
class _Fit:
    """`theta` are logarithms of `names`, `sigma` their standard deviations."""

    names: tuple[tuple[str, str], ...]
    theta: np.ndarray
    sigma: np.ndarray
    rates: Mapping[str, float]


def calibrate(
    cluster: SimulatedCluster, cells: Sequence[ObservedCell], before: Parameters, device: str, source: str
) -> Calibration:
    """`before` is what was thought before, `device` the class of the OSDs; `source` names the results."""
    names = tuple((COMMON, name) for name in _COMMON) + tuple((device, name) for name in _DEVICE)
    first = _fitted(cluster, cells, before, names)
    own = np.array([before.sections[section][name].spread for section, name in names])
    moved = np.abs(first.theta - np.log([before.value(*name) for name in names])) > _Z90 * own
    mine = [bool(is_told) for is_told in (first.sigma <= _TOLD * own) | moved]
    told = tuple(name for name, is_told in zip(names, mine, strict=True) if is_told)
    sigma = first.sigma[mine]
    fit = _fitted(cluster, cells, before, told) if told else replace(first, theta=np.zeros(0))
    found = {
        name: _parameter(name, value, wide, len(cells), source)
        for name, value, wide in zip(told, fit.theta, sigma, strict=True)
    }
    found[(COMMON, "model_error")] = _error([fit.rates[one.name] for one in cells], source)
    for name in (one for one in names if one not in told):
        kept = before.sections[name[0]][name[1]]
        found[name] = replace(kept, source=f"not measured by {source}; {kept.source}")
    untold = tuple(name for name in names if name not in told)
    return Calibration(before.with_values(found, f"calibrated by {source}"), told, untold, fit.rates)


def _parameter(name: tuple[str, str], theta: float, sigma: float, cells: int, source: str) -> Parameter:
    most = 1.0 if name[1] in _SHARES else math.inf
    value, low, high = (min(math.exp(theta + part * sigma), most) for part in (0.0, -_Z90, _Z90))
    return Parameter(value, low, high, f"{format_count(cells, 'cell')} of {source}", "measured")


def _error(off: Sequence[float], source: str) -> Parameter:
    """What is left between model and rates, with what is thought of it before any was seen."""
    squares = sum(math.log(one) ** 2 for one in off) + _CELLS_BEFORE * _ERROR**2
    wide = _Z90 * math.sqrt(squares / (len(off) + _CELLS_BEFORE))
    words = (
        f"{format_count(len(off), 'cell')} of {source}, and {_ERROR:.0%} assumed as of {_CELLS_BEFORE} more"
    )
    return Parameter(1.0, math.exp(-wide), math.exp(wide), words, "measured")


def _before(before: Parameters, name: tuple[str, str]) -> float:
    loose = 1.0 if name[1] in _SHARES else _LOOSER
    return loose * max(before.sections[name[0]][name[1]].spread, 1e-6)


def _fitted(
    cluster: SimulatedCluster,
    cells: Sequence[ObservedCell],
    before: Parameters,
    names: tuple[tuple[str, str], ...],
) -> _Fit:
    maps = {one.name: [places(cluster, [one.work], pool + 1)[0] for pool in range(_MAPS)] for one in cells}
    start = np.log([before.value(*name) for name in names])
    width = np.array([_before(before, name) for name in names])
    seen = [pair for one in cells for pair in _seen(one)]
    measured, scatter = (np.array(part) for part in zip(*seen, strict=True))

    def computed(theta: np.ndarray) -> np.ndarray:
        parameters = _with(before, names, theta)
        return np.array(
            [value for one in cells for value in _computed(cluster, one, maps[one.name], parameters)]
        )

    def misses(theta: np.ndarray) -> np.ndarray:
        return np.concatenate([(measured - computed(theta)) / scatter, (start - theta) / width])

    theta, off, damping = start, misses(start), 1e-3
    slope = _slope(misses, theta, off)
    for _ in range(_ROUNDS):
        normal = slope.T @ slope
        step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), slope.T @ off)
        tried = theta + np.clip(step, -_FAR, _FAR)
        nearer = misses(tried)
        if nearer @ nearer > off @ off:
            damping *= 10
            continue
        moved, theta, off, damping = float(np.abs(tried - theta).max()), tried, nearer, damping / 3
        slope = _slope(misses, theta, off)
        if moved < _ENOUGH:
            break
    wide = max(1.0, float((off[: len(seen)] ** 2).sum()) / max(len(seen) - len(names), 1))
    sigma = np.sqrt(np.diag(np.linalg.inv(slope.T @ slope)) * wide)
    return _Fit(names, theta, np.minimum(sigma, width), _off(cells, measured, computed(theta)))


def _off(cells: Sequence[ObservedCell], measured: np.ndarray, computed: np.ndarray) -> dict[str, float]:
    """Measured over computed rate of each cell: the first figure of each."""
    found, at = {}, 0
    for one in cells:
        found[one.name] = float(math.exp(measured[at] - computed[at]))
        at += sum(1 for _ in _seen(one))
    return found


def _with(before: Parameters, names: Sequence[tuple[str, str]], theta: np.ndarray) -> Parameters:
    values = {
        name: replace(before.sections[name[0]][name[1]], value=_bounded(name[1], math.exp(one)))
        for name, one in zip(names, theta, strict=True)
    }
    return before.with_values(values, before.source)


def _bounded(name: str, value: float) -> float:
    return min(value, 1.0) if name in _SHARES else value


def _slope(misses: Callable[[np.ndarray], np.ndarray], theta: np.ndarray, off: np.ndarray) -> np.ndarray:
    columns = [(off - misses(theta + _STEP * row)) / _STEP for row in np.eye(len(theta))]
    return np.array(columns).T


def _seen(one: ObservedCell) -> Iterator[tuple[float, float]]:
    """Logarithms of the figures of a cell that somebody saw, and how far they scatter."""
    for name, value in _figures(one):
        if value is not None:
            yield math.log(value), math.hypot(one.spread, _FLOORS[name])


def _figures(one: ObservedCell) -> tuple[tuple[str, float | None], ...]:
    return (
        ("rate", one.operations_s),
        ("osd processor", one.osd_cpu_s),
        ("client processor", one.client_cpu_s),
        ("stored bytes", one.stored_bytes),
        ("flush", one.flush_s),
    )


def _computed(
    cluster: SimulatedCluster, one: ObservedCell, maps: Sequence[np.ndarray], parameters: Parameters
) -> Iterator[float]:
    """The same figures by the model."""
    rates = []
    for place in maps:
        found, rows = once(cluster, [one.work], [place], parameters)
        rates.append(math.log(sum(float(rate) * row[1] for rate, row in zip(found.each, rows, strict=True))))
    asked = demands(cluster, [one.work], [maps[0]], parameters)[0]
    yield float(np.median(rates))
    for name, value in _figures(one)[1:]:
        if value is not None:
            yield math.log(_of_request(name, asked, one.work, cluster, parameters))


def _of_request(
    name: str, asked: Demand, work: SimulatedWork, cluster: SimulatedCluster, parameters: Parameters
) -> float:
    if name == "stored bytes":
        return asked.stored_bytes
    if name == "flush":
        return max(parameters.value(kind, "flush_s") for kind in set(cluster.osd_classes))
    if name == "client processor":
        each = sum(
            value for key, value in asked.seconds.items() if key.startswith("client ") and "proc" in key
        )
        return each * (1 if cluster.machine_cores else work.jobs)
    return sum(
        value for key, value in asked.seconds.items() if key.startswith("osd.") and key.endswith(" processor")
    )
