"""Traces of transfers whose truth is known: independent streams, and what is put into them.

A stream keeps so many slots busy; each slot's requests follow each other, with latencies drawn independently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.store.own import Acks
from leadline.workloads.transfer.job import TransferJob

MIB = 1 << 20
Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
LATENCIES: dict[str, Draw] = {
    "exponential": lambda chance, count: chance.exponential(1.0, count),
    "constant": lambda chance, count: 1.0 + 0.02 * chance.standard_normal(count),
    "gamma": lambda chance, count: chance.gamma(4.0, 0.25, count),
    "lognormal": lambda chance, count: chance.lognormal(-0.125, 0.5, count),
    "long_tail": lambda chance, count: chance.lognormal(-0.5, 1.0, count),
}


def transfer_job(**changes: Any) -> TransferJob:
    """Sixteen streams that write, a file of 64 MiB each."""
    plain = {
        "transfer": "write",
        "streams": 16,
        "readers": 0,
        "buffer": MIB,
        "in_flight": 4,
        "size": 64 * MIB,
        "clients": None,
        "engine": "io_uring",
        "direct": True,
        "checksum": None,
        "end_sync": False,
        "time_based": False,
        "runtime_ns": 0,
        "ramp_time_ns": 0,
        "rate_bytes_per_s": None,
        "incompressible": True,
    }
    return TransferJob.model_validate({**plain, **changes})


def made_acks(
    seed: int,
    *,
    streams: int = 16,
    in_flight: int = 4,
    latency_s: float = 0.05,
    seconds: float = 30.0,
    latencies: str = "exponential",
    hosts: Sequence[str | None] = (None,),
    paces: Sequence[float] | NDArray[np.float64] | None = None,
    by_size: int | None = None,
) -> Acks:
    """Streams that know nothing of each other. `paces` are factors of each one's latency.

    With `by_size` each stream makes so many requests; else all end when the time is over, and drain.
    """
    chance = np.random.default_rng(seed)
    columns: dict[str, list[NDArray[np.int64]]] = {
        "stream": [],
        "host": [],
        "submitted_ns": [],
        "acked_ns": [],
    }
    for place in range(streams * len(hosts)):
        pace = 1.0 if paces is None else paces[place % len(paces)]
        mean_s = latency_s * pace
        each = int(3 * seconds / mean_s) + 50 if by_size is None else 3 * by_size // in_flight + 50
        took = mean_s * np.maximum(LATENCIES[latencies](chance, each * in_flight), 1e-4).reshape(
            in_flight, each
        )
        acked = np.cumsum(took, axis=1) + chance.random((in_flight, 1)) * mean_s
        submitted = (acked - took).ravel()
        acked = acked.ravel()
        ranked = np.argsort(submitted, kind="stable")
        kept = ranked[submitted[ranked] < seconds] if by_size is None else ranked[:by_size]
        count = len(submitted[kept])
        columns["stream"].append(np.full(count, place % streams))
        columns["host"].append(np.full(count, place // streams))
        columns["submitted_ns"].append(np.rint(submitted[kept] * 1e9).astype(np.int64))
        columns["acked_ns"].append(np.rint(acked[kept] * 1e9).astype(np.int64))
    whole = {name: np.concatenate(parts) for name, parts in columns.items()}
    count = len(whole["stream"])
    size = np.full(count, MIB)
    return Acks(
        reads=np.zeros(count, bool),
        offset=np.arange(count) * MIB,
        length=size,
        result=size,
        hosts=tuple(hosts),
        **whole,
    )


def stalled(acks: Acks, at_s: float, lasts_s: float, streams: Sequence[int], host: int | None = None) -> Acks:
    """The same with these streams frozen for that time: what comes later comes by that much later."""
    own = np.isin(acks.stream, list(streams)) & (True if host is None else acks.host == host)
    at_ns, lasts_ns = round(at_s * 1e9), round(lasts_s * 1e9)
    later = {
        name: np.where(
            own & (getattr(acks, name) >= at_ns), getattr(acks, name) + lasts_ns, getattr(acks, name)
        )
        for name in ("submitted_ns", "acked_ns")
    }
    return replace(acks, **later)


def in_step(acks: Acks, every_s: float) -> Acks:
    """The same with every acknowledgement put off to the next tick of one clock."""
    every_ns = round(every_s * 1e9)
    return replace(acks, acked_ns=-(-acks.acked_ns // every_ns) * every_ns)


def put_off(acks: Acks, by_s: float) -> Acks:
    """The same with all acknowledgements that come after the last request of all coming so much later."""
    last = acks.submitted_ns.max()
    return replace(
        acks, acked_ns=np.where(acks.acked_ns > last, acks.acked_ns + round(by_s * 1e9), acks.acked_ns)
    )


def ending_together(acks: Acks, within_s: float) -> Acks:
    """The same with the last quarter of each stream's requests sped up or slowed to end at one moment."""
    submitted, acked = acks.submitted_ns.astype(np.float64), acks.acked_ns.astype(np.float64)
    own = [np.flatnonzero(acks.stream == stream) for stream in np.unique(acks.stream)]
    turns = [np.sort(acked[rows])[int(0.76 * len(rows))] for rows in own]
    end = max(turns) + 1e9
    for number, (rows, turn) in enumerate(zip(own, turns, strict=True)):
        last = acked[rows].max()
        to = end + within_s * 1e9 * number / max(len(own) - 1, 1)
        for times in (submitted, acked):
            late = rows[times[rows] > turn]
            times[late] = turn + (times[late] - turn) * (to - turn) / (last - turn)
    return replace(
        acks, submitted_ns=np.rint(submitted).astype(np.int64), acked_ns=np.rint(acked).astype(np.int64)
    )
