"""From a trace's segments to a script that the engine replays: which calls, which thread, after what pause.

Pure: Arrow tables in, NumPy arrays out. What cannot be replayed is counted, by call and reason.
"""

from __future__ import annotations

import errno
import fnmatch
import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from leadline.errors import ResultError
from leadline.knowledge.tables import table_of
from leadline.tracing.tables import TraceTables

# The numbers of the script's format (crates/engine/src/replay/script.rs).
KINDS = (
    *("open", "close", "read", "write", "fsync", "fdatasync", "stat"),
    *("unlink", "rename", "mkdir", "rmdir", "truncate", "seek", "list"),
)
NOT_LAID_OUT = (1 << 64) - 1
DIRECTORY, WRITTEN, CREATED = 1, 2, 4
CALL = np.dtype(
    [
        *(("pause_ns", "<u8"), ("offset", "<u8"), ("length", "<u8"), ("expected", "<u8")),
        *(("file", "<u4"), ("kind", "u1"), ("absent", "u1"), ("zero", "<u2")),
    ]
)
_BUFFER_BYTES = 4096  # of a file of the C library on most file systems (st_blksize)
CALLS_MAX = 10_000_000  # about 350 bytes of memory each while the script is made
THREADS_MAX = 1024
_ABSENT_KINDS = ("open", "stat", "unlink")
_PROCESSES_APART = 1 << 20  # (copy, process) in one number
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_Layout = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], int]


@dataclass(frozen=True)
class Skipped:
    """Calls of one name that are not replayed, for one reason; `bytes` is what they moved."""

    call: str
    reason: str
    calls: int
    bytes: int


@dataclass(frozen=True)
class Coverage:
    """How much of a trace a replay repeats. Bytes are those that calls read, wrote or copied."""

    calls: int
    calls_replayed: int
    bytes: int
    bytes_replayed: int
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True)
class ReplayScript:
    """Calls thread after thread, and what they act on.

    `sizes` are the bytes to lay out of each file (NOT_LAID_OUT: none) and `flags` its kind; `threads` are
    (process, number of calls). `duration_ns` is from the first call's begin to the last one's end.
    """

    calls: npt.NDArray[Any]
    threads: tuple[tuple[int, int], ...]
    sizes: npt.NDArray[np.uint64]
    flags: npt.NDArray[np.uint32]
    duration_ns: int
    read_bytes: int
    write_bytes: int
    cold_bytes: int
    coverage: Coverage

    @property
    def layout_bytes(self) -> int:
        """What is written before the first call."""
        return int(self.sizes[self.sizes != NOT_LAID_OUT].sum())


@dataclass
class _Segments:
    """The columns of `segments`; a null is -1."""

    process: Ints
    thread: Ints
    file: Ints
    call: Ints
    names: list[str]
    offset: Ints
    length: Ints
    result: Ints
    start: Ints
    end: Ints

    def where(self, chosen: Flags | Ints) -> _Segments:
        """Some of the rows, or all in another order."""
        columns = {name: value[chosen] for name, value in vars(self).items() if name != "names"}
        return _Segments(names=self.names, **columns)


def make_script(tables: TraceTables, only: Sequence[str] = ()) -> ReplayScript:
    """The script of a trace; `only` are patterns of paths. Raises ResultError where nothing is left."""
    if tables.segments is None:
        raise ResultError(
            "the trace counted calls and did not record each of them",
            "trace the command again with: leadline trace --segments -- COMMAND",
        )
    kept, kind, absent, coverage = _chosen(tables, only)
    used, file = np.unique(kept.file, return_inverse=True)
    kept.file = file.astype(np.int64)
    kept.thread = _lanes(kept)
    kept.offset = _offsets(kept, kind)
    moved = _through_buffers(kept, kind)
    if not moved.all():
        kept, kind, absent = kept.where(moved), kind[moved], absent[moved]
    layout = _layout(kept, kind, absent, len(used))
    return _assembled(kept, kind, absent, layout, coverage)


def _chosen(tables: TraceTables, only: Sequence[str]) -> tuple[_Segments, Ints, Flags, Coverage]:
    """The segments that are replayed, their kinds, whether their file was absent; and what the others are."""
    every = _columns(tables.segments)
    paths, number_of = _paths(tables)
    every.file = _looked_up(every.file, number_of)
    kinds, reasons = _call_kinds(every.names)
    kind = kinds[every.call]
    absent = (every.result == -errno.ENOENT) & np.isin(kind, [KINDS.index(name) for name in _ABSENT_KINDS])
    refused = _refused(every, kind, absent, paths, only)
    chosen = refused < 0
    coverage = _coverage(every, kind, refused, reasons)
    if not chosen.any():
        raise ResultError("no call of the trace can be replayed", _why_nothing(coverage))
    if int(chosen.sum()) > CALLS_MAX:
        raise ResultError(
            f"the trace has {int(chosen.sum()):,} calls to replay, more than {CALLS_MAX:,}",
            "replay a part of its files: --only '/data/*'",
        )
    return every.where(chosen), kind[chosen], absent[chosen], coverage


def _columns(segments: Any) -> _Segments:
    import pyarrow as pa

    segments = segments.combine_chunks()

    def column(name: str) -> Ints:
        values = segments.column(name).cast(pa.int64()).fill_null(-1)
        return np.asarray(values.to_numpy(), dtype=np.int64)

    calls = segments.column("call").unify_dictionaries().combine_chunks()
    if isinstance(calls, pa.ChunkedArray):
        calls = pa.concat_arrays(calls.chunks) if calls.num_chunks else calls.type.wrap_array([])
    start = column("start_ns")
    return _Segments(
        process=column("copy") * _PROCESSES_APART + column("process"),
        thread=column("thread"),
        file=column("file"),
        call=np.asarray(calls.indices.to_numpy(zero_copy_only=False), dtype=np.int64),
        names=[str(name) for name in calls.dictionary.to_pylist()],
        offset=column("offset"),
        length=column("length"),
        result=column("result"),
        start=start,
        end=start + column("duration_ns"),
    )


def _paths(tables: TraceTables) -> tuple[list[str], dict[int, int]]:
    """Paths, each once, and the place in them of each of the trace's numbers of files."""
    places: dict[str, int] = {}
    number_of: dict[int, int] = {}
    columns = tables.files.select(["file", "path"]).to_pydict()
    for number, path in zip(columns["file"], columns["path"], strict=True):
        number_of[number] = places.setdefault(path, len(places))
    return list(places), number_of


def _looked_up(files: Ints, number_of: dict[int, int]) -> Ints:
    used, inverse = np.unique(files, return_inverse=True)
    found = np.array([number_of.get(int(number), -1) for number in used], dtype=np.int64)
    return found[inverse] if len(used) else files


@cache
def vocabulary() -> dict[str, Any]:
    """`calls.yaml`."""
    return table_of("leadline.workloads.replay", "calls.yaml")


def _call_kinds(names: Sequence[str]) -> tuple[Ints, dict[str, str]]:
    """The kind of each call (-1: not replayed), and why those are not."""
    replayed = {call: KINDS.index(kind) for kind, calls in vocabulary()["replayed"].items() for call in calls}
    reasons = {call: why for why, calls in vocabulary()["not_replayed"].items() for call in calls}
    return np.array([replayed.get(name, -1) for name in names] or [-1], dtype=np.int64), reasons


_REASONS = (
    "no counterpart in a replay",
    "on no file that the trace names",
    "not on a file: pipes, sockets, devices, /proc",
    "left out by --only",
    "they failed in the traced program",
    "the trace does not hold the size",
    "at an offset beyond any file",
)
_OFFSET_MAX = 1 << 56


def _refused(
    every: _Segments, kind: Ints, absent: Flags, paths: Sequence[str], only: Sequence[str]
) -> npt.NDArray[np.int8]:
    """For each segment the number of the reason not to replay it; -1 for those that are replayed."""
    refused = np.full(len(kind), -1, dtype=np.int8)

    def refuse(reason: int, where: Flags) -> None:
        refused[(refused < 0) & where] = reason

    refuse(0, kind < 0)
    refuse(1, every.file < 0)
    prefixes = tuple(vocabulary()["not_files"])
    special = np.array([path.startswith(prefixes) for path in paths] + [False])
    wanted = np.array([not only or any(fnmatch.fnmatch(p, o) for o in only) for p in paths] + [True])
    refuse(2, special[every.file])
    refuse(3, ~wanted[every.file])
    refuse(4, (every.result < 0) & ~absent)
    refuse(6, (every.offset > _OFFSET_MAX) | (every.length > _OFFSET_MAX) | (every.result > _OFFSET_MAX))
    refuse(5, (kind == KINDS.index("truncate")) & (every.offset < 0) & (every.length < 0))
    return refused


def _coverage(
    every: _Segments, kind: Ints, refused: npt.NDArray[np.int8], reasons: dict[str, str]
) -> Coverage:
    moves = np.isin(kind, [KINDS.index("read"), KINDS.index("write")])
    copies = [place for place, name in enumerate(every.names) if name in _COPYING]
    moved = np.where(moves | np.isin(every.call, copies), np.maximum(every.result, 0), 0)
    skipped = []
    for place, name in enumerate(every.names):
        for reason, words in enumerate(_REASONS):
            mask = (every.call == place) & (refused == reason)
            if mask.any():
                why = reasons.get(name, "unknown to this version") if reason == 0 else words
                skipped.append(Skipped(name, why, int(mask.sum()), int(moved[mask].sum())))
    skipped.sort(key=lambda item: (-item.calls, item.call))
    kept = refused < 0
    return Coverage(len(kind), int(kept.sum()), int(moved.sum()), int(moved[kept].sum()), tuple(skipped))


_COPYING = ("copy_file_range", "sendfile", "sendfile64", "splice")


def _why_nothing(coverage: Coverage) -> str:
    if not coverage.skipped:
        return "the trace has no call at all: trace a command that does I/O"
    most = coverage.skipped[0]
    return f"most are {most.call}: {most.reason}"


def _named(kept: _Segments, names: Sequence[str]) -> Flags:
    return np.isin(kept.call, [place for place, name in enumerate(kept.names) if name in set(names)])


def _lanes(kept: _Segments) -> Ints:
    """The thread of each call; what was in flight beside another call of its thread has one of its own."""
    prefixes = tuple(vocabulary()["asynchronous"])
    chosen = np.flatnonzero(_named(kept, [name for name in kept.names if name.startswith(prefixes)]))
    if not len(chosen):
        return kept.thread
    found = kept.thread.copy()
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    lowest = min(-1, int(kept.thread.min()))
    for row in chosen[np.argsort(kept.start[chosen], kind="stable")]:
        free = lanes.setdefault((int(kept.process[row]), int(kept.thread[row])), [])
        if free and free[0][0] <= kept.start[row]:
            lane = heapq.heappop(free)[1]
        else:
            lowest -= 1
            lane = lowest
        heapq.heappush(free, (int(kept.end[row]), lane))
        found[row] = lane
    return found


def _through_buffers(kept: _Segments, kind: Ints) -> Flags:
    """Turns calls of the C library's buffered files into what it reads and writes: whole blocks, in place.

    False for the calls that the buffer answers. Of each file the last write is as long as it was.
    """
    chosen = np.flatnonzero(_named(kept, vocabulary()["buffered"]) & (kept.result > 0))
    kept_rows = np.ones(len(kind), dtype=bool)
    if not len(chosen):
        return kept_rows
    begin, end = kept.offset[chosen], kept.offset[chosen] + kept.result[chosen]
    write = kind[chosen] == KINDS.index("write")
    group = kept.file[chosen] * 2 + write
    order = np.lexsort((kept.start[chosen], kept.process[chosen], group))
    last = np.zeros(len(chosen), dtype=bool)
    ends = np.append(np.diff(group[order]) != 0, True)
    last[order[ends]] = True
    block = _BUFFER_BYTES
    first = np.where(write, begin // block * block, -(-begin // block) * block)
    until = np.where(write & ~last, end // block * block, np.where(write, end, -(-end // block) * block))
    fresh = np.concatenate(([True], (np.diff(group[order]) != 0) | (begin[order][1:] != end[order][:-1])))
    # A read that does not go on where the one before ended fills the buffer anew.
    jumped = np.zeros(len(chosen), dtype=bool)
    jumped[order[fresh]] = True
    first = np.where(~write & jumped, begin // block * block, first)
    kept.offset[chosen] = first
    kept.length[chosen] = np.maximum(until - first, 0)
    # As far as the file is known to go, a block was whole.
    extent = np.zeros(int(kept.file.max()) + 1, dtype=np.int64)
    np.maximum.at(extent, kept.file[chosen], end)
    kept.result[chosen] = np.maximum(np.minimum(until, extent[kept.file[chosen]]) - first, 0)
    kept_rows[chosen] = until > first
    return kept_rows


def _offsets(kept: _Segments, kind: Ints) -> Ints:
    """Where each read or write begins: recorded, or followed from opens, seeks and what was moved before."""
    data = np.isin(kind, [KINDS.index("read"), KINDS.index("write")])
    implicit = data & (kept.offset < 0)
    seek = kind == KINDS.index("seek")
    offset = np.where(seek & (kept.offset < 0), kept.result, kept.offset)
    if implicit.any():
        holder = _holders(kept, kind)
        order = np.lexsort((kept.start, kept.file, holder))
        rows = kept.where(order)
        rows.process = holder[order]
        followed = np.empty_like(offset)
        followed[order] = _followed(rows, kind[order], implicit[order])
        offset = np.where(implicit, followed, offset)
    return np.maximum(offset, 0)


def _holders(kept: _Segments, kind: Ints) -> Ints:
    """Whose position a call moves: its thread's where that opened the file itself, else its process's."""
    threads = np.unique(np.stack((kept.process, kept.thread)), axis=1, return_inverse=True)[1].ravel()
    processes = np.unique(kept.process, return_inverse=True)[1]
    key = threads * (int(kept.file.max()) + 1) + kept.file
    own = np.isin(key, key[kind == KINDS.index("open")])
    found: Ints = np.where(own, threads, -1 - processes)
    return found


def _followed(rows: _Segments, kind: Ints, implicit: Flags) -> Ints:
    """The position before each row, of rows that are sorted by holder (`process`), file and time."""
    new = np.ones(len(kind), dtype=bool)
    new[1:] = (np.diff(rows.process) != 0) | (np.diff(rows.file) != 0)
    seek = (kind == KINDS.index("seek")) & (rows.result >= 0)
    opened = kind == KINDS.index("open")
    advance = np.where(implicit, np.maximum(rows.result, 0), 0)
    before = np.concatenate(([0], np.cumsum(advance)[:-1]))
    # The last row that set the position: the first of a file, an open (0), a seek (what it returned).
    at = np.maximum.accumulate(np.where(new | opened | seek, np.arange(len(kind)), 0))
    base = np.where(seek, rows.result, 0)
    return base[at] + before - before[at]


def _layout(kept: _Segments, kind: Ints, absent: Flags, files: int) -> _Layout:
    """What must be in each file beforehand, what kind of file it is, and how much of it is read cold."""
    names = {name: kind == KINDS.index(name) for name in KINDS}
    end = kept.offset + np.maximum(kept.result, 0)
    order = np.lexsort((kept.start, kept.file))
    extends = names["write"] & (kept.result > 0)  # a write of nothing makes no file longer, wherever it is
    written_before = _largest_before(kept.file[order], np.where(extends, end, 0)[order])
    uncovered = names["read"][order] & (kept.result[order] > 0) & (end[order] > written_before)
    needed = np.zeros(files, dtype=np.int64)
    np.maximum.at(needed, kept.file[order][uncovered], end[order][uncovered])

    def any_of(mask: Flags) -> Flags:
        found = np.zeros(files, dtype=bool)
        found[kept.file[mask]] = True
        return found

    first = np.full(files, -1, dtype=np.int64)
    real = order[~absent[order]]
    first[kept.file[real][::-1]] = kind[real][::-1]
    writes = any_of(names["write"] | names["truncate"])
    directory = any_of(names["mkdir"] | names["rmdir"] | names["list"])
    made = (first == KINDS.index("open")) & writes & (needed == 0) & ~directory
    made |= (first == KINDS.index("mkdir")) | (first < 0)
    gone = any_of((names["unlink"] | names["rename"] | names["rmdir"]) & ~absent)
    sizes = np.where(made, np.uint64(NOT_LAID_OUT), needed.astype(np.uint64))
    flags = directory * DIRECTORY + writes * WRITTEN + (made | gone) * CREATED
    cold = _union(kept.where(order[uncovered]))
    return sizes.astype(np.uint64), flags.astype(np.uint32), cold


def _union(reads: _Segments) -> int:
    """Bytes that are read at least once."""
    order = np.lexsort((reads.offset, reads.file))
    rows = reads.where(order)
    end = rows.offset + np.maximum(rows.result, 0)
    new = np.maximum(rows.offset, _largest_before(rows.file, end))
    return int(np.maximum(end - new, 0).sum())


def _largest_before(group: Ints, value: Ints) -> Ints:
    """The largest value of the rows before each one within its group; groups stand together."""
    if not len(value):
        return value
    span = int(value.max()) + 1
    running = np.maximum.accumulate(value + group * span) if span * (int(group.max()) + 1) < 1 << 62 else None
    found = np.zeros_like(value)
    if running is None:  # offsets near the end of what a file can have: slow and right
        for place in range(1, len(value)):
            if group[place] == group[place - 1]:
                found[place] = max(found[place - 1], value[place - 1])
        return found
    same = group[1:] == group[:-1]
    found[1:] = np.where(same, running[:-1] - group[:-1] * span, 0)
    return found


def _assembled(
    kept: _Segments,
    kind: Ints,
    absent: Flags,
    layout: _Layout,
    coverage: Coverage,
) -> ReplayScript:
    sizes, flags, cold = layout
    order = np.lexsort((kept.start, kept.thread, kept.process))
    rows, kind, absent = kept.where(order), kind[order], absent[order]
    new = np.ones(len(kind), dtype=bool)
    new[1:] = (np.diff(rows.process) != 0) | (np.diff(rows.thread) != 0)
    begin, finish = int(rows.start.min()), int(rows.end.max())
    ended = np.concatenate(([begin], rows.end[:-1]))
    calls = np.zeros(len(kind), dtype=CALL)
    calls["pause_ns"] = np.maximum(rows.start - np.where(new, begin, ended), 0)
    calls["offset"] = rows.offset
    length = np.where(rows.length >= 0, rows.length, np.maximum(rows.result, 0))
    moves = np.isin(kind, [KINDS.index("read"), KINDS.index("write")])
    truncates = kind == KINDS.index("truncate")
    length = np.where(truncates, np.maximum(rows.length, rows.offset), length)
    calls["offset"] = np.where(truncates, 0, calls["offset"])
    calls["length"] = np.where(moves | truncates, np.maximum(length, 0), 0)
    calls["expected"] = np.where(moves, np.maximum(rows.result, 0), 0)
    calls["file"], calls["kind"], calls["absent"] = rows.file, kind, absent
    starts = np.flatnonzero(new)
    if len(starts) > THREADS_MAX:
        raise ResultError(
            f"the trace has {len(starts)} threads, more than {THREADS_MAX} can be replayed",
            "replay a part of its files: --only '/data/*'",
        )
    counts = np.diff(np.append(starts, len(kind)))
    process = np.unique(rows.process[starts], return_inverse=True)[1]
    threads = tuple((int(p), int(n)) for p, n in zip(process, counts, strict=True))
    moved = calls["expected"]
    return ReplayScript(
        calls,
        threads,
        sizes,
        flags,
        finish - begin,
        int(moved[kind == KINDS.index("read")].sum()),
        int(moved[kind == KINDS.index("write")].sum()),
        cold,
        coverage,
    )
