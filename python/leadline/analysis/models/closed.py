"""A fixed number in flight at stations in a row: what it gives, and what bounds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leadline.analysis.models.computed import Computed, ModelSaid, exactly
from leadline.units import format_latency


@dataclass(frozen=True)
class Station:
    """Where an operation is served: by one server (`servers` 1), several, or without waiting (0: a delay)."""

    name: str
    seconds: float
    servers: int = 1


def operations(stations: Sequence[Station], in_flight: int) -> ModelSaid:
    """Operations per second and their latency.

    The mean value analysis of a closed network (Reiser and Lavenberg, J. ACM 27, 1980), exact for
    exponential times; several servers as one that is faster and a delay (Seidmann and others, 1987). High:
    the bound min(N / R, 1 / D), as for times without any chance.
    """
    rate, waits = _mean_values(stations, in_flight)
    alone_s = sum(one.seconds for one in stations)
    slowest = max((one for one in stations if one.servers), key=_demand_s, default=None)
    bound = in_flight / alone_s
    words = f"{in_flight} / {format_latency(alone_s * 1e9)}"
    if slowest is not None and 1 / _demand_s(slowest) < bound:
        bound = 1 / _demand_s(slowest)
        words = f"{slowest.name}: 1 / {format_latency(_demand_s(slowest) * 1e9)}"
    shares = ", ".join(
        f"{one.name} {100 * seconds * rate / in_flight:.0f} %"
        for one, seconds in zip(stations, waits, strict=True)
    )
    found = [
        Computed("operations", rate, bound, "1/s", f"at most {words}; with chance in its times, less"),
        Computed(
            "latency",
            in_flight / bound,
            in_flight / rate,
            "s",
            f"{in_flight} in flight / operations; of it {shares}",
        ),
    ]
    if slowest is not None:
        knee = alone_s / _demand_s(slowest)
        words = (
            f"{format_latency(alone_s * 1e9)} / {format_latency(_demand_s(slowest) * 1e9)}, {slowest.name}"
        )
        found.append(exactly("in flight from which it is full", knee, "", words))
    return ModelSaid(
        tuple(found),
        "Little 1961; mean value analysis, Reiser and Lavenberg 1980; bounds, Denning and Buzen 1978",
        "Locks, batches (a journal flushes several at once) and times that grow with load are not in it.",
    )


def _demand_s(station: Station) -> float:
    return station.seconds / max(station.servers, 1)


def _mean_values(stations: Sequence[Station], in_flight: int) -> tuple[float, list[float]]:
    """Operations per second, and seconds at each station with its waiting."""
    queues = [0.0] * len(stations)
    rate, waits = 0.0, [one.seconds for one in stations]
    for count in range(1, in_flight + 1):
        waits = [
            one.seconds if not one.servers else _demand_s(one) * (1 + queue) + one.seconds - _demand_s(one)
            for one, queue in zip(stations, queues, strict=True)
        ]
        rate = count / sum(waits)
        queues = [
            0.0 if not one.servers else rate * (wait - one.seconds + _demand_s(one))
            for one, wait in zip(stations, waits, strict=True)
        ]
    return rate, waits
