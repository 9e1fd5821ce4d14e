"""When a trace's bytes moved: segments summed into bins of time, batch by batch, so that millions fit.

The bytes of a call are spread evenly over the time that it took: a write of one second does not become a peak
of its first millisecond.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

COLUMNS = ("process", "call", "result", "start_ns", "duration_ns")
BINS = 120
# By the beginning of a call's name, after what only says how it was reached.
_READS = (
    "read",
    "pread",
    "fread",
    "fgets",
    "fgetc",
    "getc",
    "aio_read",
    "io_submit:read",
    "io_uring:read",
    "lio_listio:read",
    "getline",
    "fscanf",
    "getdelim",
    "getw",
    "isoc99_",
    "scanf",
    "vfscanf",
    "vscanf",
)
_WRITES = (
    "write",
    "pwrite",
    "fwrite",
    "fput",
    "putc",
    "puts",
    "fprintf",
    "aio_write",
    "io_submit:write",
    "io_uring:write",
    "lio_listio:write",
    "vfprintf",
    "dprintf",
    "printf",
    "putw",
    "vdprintf",
    "vprintf",
)
_BOTH = ("copy_file_range", "sendfile", "splice")
_NO_BYTES = ("readlink", "readdir", "readahead")
_PREFIXES = ("__", "MPI_File_", "X_POSIX:", "X_MPIIO:")


@dataclass(frozen=True)
class CallTotal:
    """One function over the whole trial: calls, failed ones, bytes of those that move some, seconds."""

    call: str
    count: int
    failed: int
    bytes: int | None
    seconds: float


@dataclass(frozen=True)
class OverTime:
    """Bytes per bin of `bin_s` from the trial's start, of all and of each process; and what calls took."""

    bin_s: float
    read: tuple[float, ...]
    written: tuple[float, ...]
    read_by_process: Mapping[int, tuple[float, ...]]
    written_by_process: Mapping[int, tuple[float, ...]]
    calls: tuple[CallTotal, ...]
    segments: int


def direction(call: str) -> str | None:
    """`read`, `write` or `both` of a call that moves bytes; None of any other."""
    name = call
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    if name.startswith(_NO_BYTES):
        return None
    if name.startswith(_BOTH):
        return "both"
    if name.startswith(_READS):
        return "read"
    return "write" if name.startswith(_WRITES) else None


def over_time(
    batches: Iterable[pa.RecordBatch], wall_s: float, processes: Sequence[int], bins: int = BINS
) -> OverTime | None:
    """Sum segments (columns COLUMNS) into `bins` bins; None where there is nothing to draw.

    `processes` are the numbers that get a row of their own; all others are only in the whole.
    """
    import numpy as np

    if wall_s <= 0:
        return None
    width_ns = wall_s * 1e9 / bins
    rows = {number: place + 1 for place, number in enumerate(processes)}
    grids = {way: np.zeros((len(processes) + 1, bins)) for way in ("read", "write")}
    totals: dict[str, list[float]] = {}
    count = 0
    for batch in batches:
        count += batch.num_rows
        names, codes = _calls(batch.column("call"))
        values = {
            name: batch.column(name).to_numpy(zero_copy_only=False) for name in COLUMNS if name != "call"
        }
        _add_calls(totals, names, codes, values)
        ways = [direction(name) for name in names]
        for way, grid in grids.items():
            moving = np.array([found in (way, "both") for found in ways], dtype=bool)
            chosen = moving[codes] & (values["result"] > 0) if len(names) else np.zeros(0, dtype=bool)
            if chosen.any():
                _spread(grid, {name: column[chosen] for name, column in values.items()}, rows, width_ns)
    if not count:
        return None
    return OverTime(
        bin_s=width_ns / 1e9,
        read=tuple(grids["read"].sum(axis=0)),
        written=tuple(grids["write"].sum(axis=0)),
        read_by_process={n: tuple(grids["read"][place]) for n, place in rows.items()},
        written_by_process={n: tuple(grids["write"][place]) for n, place in rows.items()},
        calls=_call_totals(totals),
        segments=count,
    )


def _calls(column: Any) -> tuple[list[str], Any]:
    """The names in a batch, and each row's place among them."""
    import pyarrow as pa

    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)


def _add_calls(
    totals: dict[str, list[float]], names: Sequence[str], codes: Any, values: Mapping[str, Any]
) -> None:
    import numpy as np

    size = len(names)
    if not size:
        return
    failed = values["result"] < 0
    sums = [
        np.bincount(codes, minlength=size),
        np.bincount(codes, weights=failed, minlength=size),
        np.bincount(codes, weights=np.where(failed, 0, values["result"]), minlength=size),
        np.bincount(codes, weights=values["duration_ns"], minlength=size),
    ]
    for place, name in enumerate(names):
        known = totals.setdefault(name, [0.0] * 4)
        for column, amounts in enumerate(sums):
            known[column] += float(amounts[place])


def _call_totals(totals: Mapping[str, Sequence[float]]) -> tuple[CallTotal, ...]:
    found = [
        CallTotal(
            name, int(count), int(failed), int(moved) if direction(name) is not None else None, spent / 1e9
        )
        for name, (count, failed, moved, spent) in totals.items()
        if count
    ]
    return tuple(sorted(found, key=lambda item: (-item.seconds, item.call)))


def _spread(
    grid: np.ndarray, values: Mapping[str, np.ndarray], rows: Mapping[int, int], width_ns: float
) -> None:
    """Add each call's bytes to the bins that it lasted through, in proportion to its time in each."""
    import numpy as np

    bins = grid.shape[1]
    lookup = np.zeros(max(int(values["process"].max()), max(rows, default=0)) + 1, dtype=np.int64)
    for number, place in rows.items():
        lookup[number] = place
    row = lookup[values["process"]]
    begin = np.clip(values["start_ns"] / width_ns, 0, bins)
    end = np.clip((values["start_ns"] + values["duration_ns"]) / width_ns, 0, bins)
    first = np.minimum(begin.astype(np.int64), bins - 1)
    last = np.minimum(end.astype(np.int64), bins - 1)
    moved = values["result"].astype(np.float64)
    short = last <= first
    cells = grid.reshape(-1)  # the same memory: numpy adds at one index in a seventh of the time for two
    np.add.at(cells, row[short] * bins + first[short], moved[short])
    if short.all():
        return
    row, first, last, begin, end, moved = (part[~short] for part in (row, first, last, begin, end, moved))
    rate = moved / np.maximum(end - begin, 1e-12)
    np.add.at(cells, row * bins + first, rate * (first + 1 - begin))
    np.add.at(cells, row * bins + last, rate * (end - last))
    # Whole bins between the first and the last: a step up and a step down, summed along the row.
    steps = np.zeros((grid.shape[0], bins + 1))
    np.add.at(steps.reshape(-1), row * (bins + 1) + first + 1, rate)
    np.subtract.at(steps.reshape(-1), row * (bins + 1) + last, rate)
    grid += np.cumsum(steps, axis=1)[:, :bins]


def over_time_of_heat(
    rows: Sequence[Mapping[str, Any]], processes: Collection[int], bins: int = BINS
) -> OverTime | None:
    """The same from sums that a source kept by slices of time (Darshan's HEATMAP), of the POSIX layer.

    Slices of different lengths are divided as if their bytes had moved evenly.
    """
    import numpy as np

    posix = [row for row in rows if row["layer"] == "POSIX"]
    length_s = max((len(row["bytes_read"]) * row["bin_s"] for row in posix), default=0.0)
    if length_s <= 0:
        return None
    edges = np.linspace(0.0, length_s, bins + 1)
    found: dict[str, dict[int, np.ndarray]] = {"bytes_read": {}, "bytes_written": {}}
    for row in posix:
        for name, grid in found.items():
            ends = np.arange(len(row[name]) + 1) * row["bin_s"]
            total = np.concatenate([[0.0], np.cumsum(np.asarray(row[name], dtype=np.float64))])
            part = np.diff(np.interp(edges, ends, total))
            grid[row["process"]] = grid.get(row["process"], np.zeros(bins)) + part
    sums = {name: tuple(sum(grid.values(), np.zeros(bins))) for name, grid in found.items()}
    return OverTime(
        bin_s=length_s / bins,
        read=sums["bytes_read"],
        written=sums["bytes_written"],
        read_by_process=_rows_of(found["bytes_read"], processes),
        written_by_process=_rows_of(found["bytes_written"], processes),
        calls=(),
        segments=0,
    )


def _rows_of(grid: Mapping[int, np.ndarray], processes: Collection[int]) -> dict[int, tuple[float, ...]]:
    return {number: tuple(values) for number, values in grid.items() if number in processes}
