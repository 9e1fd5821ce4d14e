"""Darshan's counters in the columns of our table `files`, module by module. No files, no processes."""

from __future__ import annotations

from typing import Any

from leadline.tracing.tables import COUNTERS, SIZE_BINS, TIMES

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
