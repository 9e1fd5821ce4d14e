"""Darshan's counters in the columns of our table `files`, module by module. No files, no processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.tracing.tables import COUNTERS, SIZE_BINS, TIMES

_KINDS = ("read", "write", "meta")
PREFIXES = {"POSIX": "POSIX_", "STDIO": "STDIO_", "MPI-IO": "MPIIO_"}
# MPI-IO tells apart how a call was made; here only that it was.
_SUMS = {
    "OPENS": ("INDEP_OPENS", "COLL_OPENS"),
    "READS": ("INDEP_READS", "COLL_READS", "SPLIT_READS", "NB_READS"),
    "WRITES": ("INDEP_WRITES", "COLL_WRITES", "SPLIT_WRITES", "NB_WRITES"),
    "FSYNCS": ("SYNCS",),
    **{
        f"SIZE_{direction}_{size}": (f"SIZE_{direction}_AGG_{size}",)
        for direction in ("READ", "WRITE")
        for size in SIZE_BINS
    },
}


def counters(module: str, columns: dict[str, list[Any]]) -> dict[str, list[int | None]]:
    """Our counters: null where the module has none, or where Darshan's -1 says that it does not know."""
    rows = len(columns["id"])
    found: dict[str, list[int | None]] = {}
    for name in COUNTERS:
        values = _column(module, name, columns)
        found[name] = [None] * rows if values is None else [_known(value) for value in values]
    return found


def times(module: str, columns: dict[str, list[Any]], shift_s: float) -> dict[str, list[float | None]]:
    """Our times. Darshan's timestamp 0 means never; others move to the trial's start."""
    rows = len(columns["id"])
    found: dict[str, list[float | None]] = {}
    for name in TIMES:
        values = columns.get(PREFIXES[module] + name)
        if values is None:
            found[name] = [None] * rows
        elif name.endswith("_TIMESTAMP"):
            found[name] = [value + shift_s if value > 0 else None for value in values]
        else:
            found[name] = [value if value >= 0 else None for value in values]
    return found


def _column(module: str, name: str, columns: dict[str, list[Any]]) -> list[Any] | None:
    prefix = PREFIXES[module]
    if prefix + name in columns:
        return columns[prefix + name]
    if module == "MPI-IO" and name in _SUMS:
        parts = [columns[prefix + part] for part in _SUMS[name] if prefix + part in columns]
        return [sum(values) if min(values) >= 0 else -1 for values in zip(*parts, strict=True)] or None
    return None


def _known(value: int) -> int | None:
    return None if value < 0 else value


def slowest_rank(modules: Mapping[str, dict[str, list[Any]]], ranks: int) -> dict[str, Any] | None:
    """The rank that was in I/O for longest, with its seconds by kind, and `io_s` of all; None without any.

    Of a file that all ranks share Darshan keeps the sum and the slowest rank: what is left is of the others
    evenly. MPI-IO's calls contain the POSIX calls that they make, so of these layers the longer one counts.
    """
    layers = {name: _by_rank(name, columns, ranks) for name, columns in modules.items() if name in PREFIXES}
    streams = [layers.pop("STDIO")] if "STDIO" in layers else []
    known = [*streams, *sorted(layers.values(), key=lambda layer: -layer.io_s)[:1]]
    numbers = {rank for layer in known for rank in layer.own} or {0}
    seconds = {rank: _added([layer.of(rank) for layer in known]) for rank in numbers}
    rank = max(sorted(seconds), key=lambda one: sum(seconds[one].values()))
    io_s = sum(layer.io_s for layer in known)
    if io_s <= 0:
        return None
    return {"rank": rank, "ranks": ranks, "seconds": seconds[rank], "io_s": io_s}


@dataclass
class _Layer:
    """Seconds of one module by kind: `own` of single ranks, `each` of every rank besides."""

    own: dict[int, dict[str, float]]
    each: dict[str, float]
    io_s: float

    def of(self, rank: int) -> dict[str, float]:
        return _added([self.own.get(rank, {}), self.each])


def _added(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {kind: sum(part.get(kind, 0.0) for part in parts) for kind in _KINDS}


def _by_rank(module: str, columns: dict[str, list[Any]], ranks: int) -> _Layer:
    prefix = PREFIXES[module]
    found = _Layer({}, dict.fromkeys(_KINDS, 0.0), 0.0)
    for place, rank in enumerate(columns["rank"]):
        spent = {kind: max(0.0, columns[f"{prefix}F_{kind.upper()}_TIME"][place]) for kind in _KINDS}
        total_s = sum(spent.values())
        found.io_s += total_s
        owner, part, rest = max(0, rank), 1.0, 0.0
        if rank < 0 and total_s > 0:
            owner = max(0, int(columns[f"{prefix}SLOWEST_RANK"][place]))
            slow_s = min(total_s, max(total_s / ranks, columns[f"{prefix}F_SLOWEST_RANK_TIME"][place]))
            rest = (1 - slow_s / total_s) / max(1, ranks - 1)
            part = slow_s / total_s - rest
        own = found.own.setdefault(owner, dict.fromkeys(_KINDS, 0.0))
        for kind, seconds in spent.items():
            own[kind] += seconds * part
            found.each[kind] += seconds * rest
    return found


def seconds_by_slowest(columns: dict[str, list[Any]]) -> float:
    """Darshan's I/O time for `agg_perf_by_slowest`, of the POSIX module.

    The time of the rank that had the longest on files of its own, plus, for every file that all ranks share,
    the time of the rank that had the longest on it (darshan-util, accumulators).
    """
    own: dict[int, float] = {}
    shared = 0.0
    for place, rank in enumerate(columns["rank"]):
        if rank < 0:
            shared += columns["POSIX_F_SLOWEST_RANK_TIME"][place]
        else:
            spent = sum(columns[f"POSIX_F_{kind}_TIME"][place] for kind in ("READ", "WRITE", "META"))
            own[rank] = own.get(rank, 0.0) + spent
    return shared + max(own.values(), default=0.0)


def by_slowest(logs: Sequence[Mapping[str, dict[str, list[Any]]]]) -> tuple[float | None, float | None]:
    """(bytes per second, seconds) as Darshan defines them; of several logs' modules, over the slowest."""
    posix = [modules["POSIX"] for modules in logs if "POSIX" in modules]
    seconds = max((seconds_by_slowest(columns) for columns in posix), default=0.0)
    moved = sum(sum(columns[f"POSIX_BYTES_{what}"]) for columns in posix for what in ("READ", "WRITTEN"))
    return (moved / seconds, seconds) if seconds > 0 and moved > 0 else (None, None)
