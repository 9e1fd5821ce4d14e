"""The tables of a trace: what every source of traces gives, whether our tracer, Darshan or strace made it.

Counters carry Darshan's names where Darshan has them (its POSIX and STDIO modules, and the same meaning);
what Darshan has not is in lower case. A counter that a source cannot know is null, never 0. A source has a
row an image, and an exec begins an image, not a process: which rows are one process is told here, too.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from leadline.foreign import parse_json

if TYPE_CHECKING:
    import pyarrow as pa


# What a process row is called that stands for files which all processes share.
ALL_RANKS = "all ranks"


class Image(Protocol):
    """What tells images apart: a row of table `processes`, or what is shown of it."""

    @property
    def copy(self) -> int: ...
    @property
    def process(self) -> int: ...
    @property
    def pid(self) -> int: ...
    @property
    def end(self) -> str: ...
    @property
    def command(self) -> str: ...


Place = tuple[int, int]
_Row = TypeVar("_Row", bound=Image)


def lives(rows: Sequence[Image]) -> dict[Place, int]:
    """Of each image (copy, number) the number of the first image of its process.

    A pid's next image goes on with the process where the one before ended by an exec; else the kernel gave
    the number away again.
    """
    found: dict[Place, int] = {}
    latest: dict[Place, Image] = {}
    for row in sorted(rows, key=_place):
        before = latest.get((row.copy, row.pid))
        goes_on = before is not None and before.end == "exec"
        found[_place(row)] = found[_place(before)] if goes_on and before is not None else row.process
        latest[row.copy, row.pid] = row
    return found


def by_life(rows: Sequence[_Row]) -> list[list[_Row]]:
    """The images of each process, in their order; without the row of what all ranks share."""
    first = lives(rows)
    found: dict[Place, list[_Row]] = {}
    for row in sorted(rows, key=_place):
        if row.command != ALL_RANKS:
            found.setdefault((row.copy, first[_place(row)]), []).append(row)
    return list(found.values())


def ranks_behind(rows: Sequence[Image]) -> Mapping[Place, int]:
    """How many processes each row stands for: what all ranks share stands for all of its copy's."""
    ranks: dict[int, int] = {}
    for images in by_life(rows):
        ranks[images[0].copy] = ranks.get(images[0].copy, 0) + 1
    return {_place(row): ranks.get(row.copy, 1) if row.command == ALL_RANKS else 1 for row in rows}


def _place(row: Image) -> Place:
    """Some sources number the images of each copy from 0."""
    return row.copy, row.process


# Of calls on files, as times and latencies are kept by.
KINDS = ("read", "write", "meta", "sync")
TraceMode = Literal["preload", "bpf", "import"]
# The end of a process of which only its last record is known.
LAST_SEEN = "last seen"

# Upper bounds in bytes of Darshan's bins of access sizes; a size of 100 is in the first.
SIZE_BINS: dict[str, int | None] = {
    "0_100": 100,
    "100_1K": 1 << 10,
    "1K_10K": 10 << 10,
    "10K_100K": 100 << 10,
    "100K_1M": 1 << 20,
    "1M_4M": 4 << 20,
    "4M_10M": 10 << 20,
    "10M_100M": 100 << 20,
    "100M_1G": 1 << 30,
    "1G_PLUS": None,
}

# Counts and bytes of one file in one process. All int64.
COUNTERS: tuple[str, ...] = (
    "OPENS",
    "FILENOS",
    "DUPS",
    "READS",
    "WRITES",
    "SEEKS",
    "STATS",
    "MMAPS",
    "FSYNCS",
    "FDSYNCS",
    "RENAME_SOURCES",
    "RENAME_TARGETS",
    "BYTES_READ",
    "BYTES_WRITTEN",
    "MAX_BYTE_READ",  # the highest offset read, as in Darshan
    "MAX_BYTE_WRITTEN",
    "CONSEC_READS",  # began where the one before ended
    "CONSEC_WRITES",
    "SEQ_READS",  # began at or after where the one before ended
    "SEQ_WRITES",
    "RW_SWITCHES",
    "MEM_NOT_ALIGNED",
    "FILE_NOT_ALIGNED",
    "FILE_ALIGNMENT",
    *(f"SIZE_READ_{name}" for name in SIZE_BINS),
    *(f"SIZE_WRITE_{name}" for name in SIZE_BINS),
)

# Seconds. A *_TIMESTAMP counts from the trial's start; a *_TIME counts what threads did at once only once.
TIMES: tuple[str, ...] = (
    "F_OPEN_START_TIMESTAMP",
    "F_READ_START_TIMESTAMP",
    "F_WRITE_START_TIMESTAMP",
    "F_CLOSE_START_TIMESTAMP",
    "F_OPEN_END_TIMESTAMP",
    "F_READ_END_TIMESTAMP",
    "F_WRITE_END_TIMESTAMP",
    "F_CLOSE_END_TIMESTAMP",
    "F_READ_TIME",
    "F_WRITE_TIME",
    "F_META_TIME",
    "F_MAX_READ_TIME",
    "F_MAX_WRITE_TIME",
)

# What Darshan does not count. All int64.
OWN_COUNTERS: tuple[str, ...] = (
    "unlinks",
    "mkdirs",
    "rmdirs",
    "readdirs",
    "links",
    "truncates",
    "allocates",
    "advises",
    "closes",
    "mapped_bytes",  # of data: mappings of programs and libraries are in MMAPS only
    "write_mmaps",  # mappings through which what is written reaches the file
    "copied_in_bytes",  # arrived by copy_file_range, sendfile or splice; counted in BYTES_WRITTEN too
    "copied_out_bytes",  # left by them; counted in BYTES_READ too
    "rewritten_bytes",  # written below MAX_BYTE_WRITTEN, as far as known
    "failed",  # calls on it that returned an error
    "empty_reads",  # reads that brought no byte: most look for the end of the file
)

# Those of both kinds that count calls which neither read nor write, and change or ask what a directory shows.
METADATA_COUNTERS: tuple[str, ...] = (
    *("OPENS", "STATS", "RENAME_SOURCES", "unlinks", "mkdirs", "rmdirs", "readdirs", "links"),
    *("truncates", "allocates", "closes"),
)


@dataclass(frozen=True)
class ProcessRow:
    """Table `processes`: one process image. An exec ends one and begins the next, with the same pid.

    `process` counts from 0 within a trial, `parent` is such a number. Times count from the trial's start.
    `end` is `exit`, `signal`, `exec`, `running` (it outlived the trace), `unknown` (when is known, how is
    not) or `last seen` (neither is: `ended_ns` is the last that its records show of it); `status` is the
    exit code or the signal.

    JSON: `command`; `calls` (name -> count); `seconds` (read, write, meta, sync -> the sum over its threads,
    null where requests were not seen: `seconds_json`); `lost` (kind -> records dropped); `notes`, a list of
    what the reader must know: `io_uring`, `asynchronous I/O`, `static child PATH`, `mmap`,
    `record truncated`.
    `bytes_read` and `bytes_written` are the process's whole, files that were dropped included.
    `unseen_read` and `unseen_written` are bytes of any descriptor that the kernel counts beyond what was
    recorded, below 0 for fewer; null where it was not asked. `tracer_ns` is what recording took beside its
    calls; null where that was not measured.
    """

    copy: int
    process: int
    parent: int | None
    pid: int
    executable: str
    command: str
    mode: TraceMode
    started_ns: int
    ended_ns: int | None
    end: str
    status: int | None
    threads: int | None
    bytes_read: int
    bytes_written: int
    calls: str
    seconds: str
    lost: str
    notes: str
    cpu_user_ns: int | None = None
    cpu_system_ns: int | None = None
    unseen_read: int | None = None
    unseen_written: int | None = None
    tracer_ns: int | None = None


def seconds_json(seconds: Mapping[str, float | None], *, unseen: bool) -> str:
    """A process's `seconds`. `unseen`: it made requests that the source does not see.

    Then only the time of metadata is known.
    """
    known = {kind: None if unseen and kind != "meta" else value for kind, value in seconds.items()}
    return json.dumps(known)


@dataclass(frozen=True)
class TraceLatencyRow:
    """Table `call_latency`: one histogram of a process (HdrHistogram V2, ns).

    `kind` is read, write, meta or sync: what the seconds of a process are split into.
    """

    copy: int
    process: int
    kind: str
    operations: int
    histogram: bytes


@dataclass(frozen=True)
class SegmentRow:
    """Table `segments`: one call. `file` is a number of table `files`, `call` the function (`pread64`).

    `offset` and `length` (asked for) are null where the call has none; `result` is what it returned, or the
    negative errno. Times count from the trial's start; `thread` is the thread's id in the kernel.
    """

    copy: int
    process: int
    thread: int
    file: int | None
    call: str
    offset: int | None
    length: int | None
    result: int
    start_ns: int
    duration_ns: int


@dataclass(frozen=True)
class TraceTables:
    """One trial's trace. `files` and `segments` are Arrow tables, as they may have millions of rows.

    `mode` says where it comes from; `source` in words ("Darshan 3.4.4, job 4478"), and `warnings` says loudly
    what the source did not keep.
    """

    mode: TraceMode
    processes: tuple[ProcessRow, ...]
    files: pa.Table
    latency: tuple[TraceLatencyRow, ...] = ()
    segments: pa.Table | None = None
    source: str = ""
    warnings: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    def commands(self) -> list[list[str]]:
        """The words of each command that a process was started with, once."""
        return [command_list(text) for text in dict.fromkeys(row.command for row in self.processes)]


def command_words(command: str) -> str:
    """A process's command line; sources give it as text, or as a JSON list of its arguments."""
    return shlex.join(command_list(command)) if command.startswith("[") else command


def command_list(command: str) -> list[str]:
    """The same as its words."""
    with suppress(ValueError):
        if command.startswith("["):
            return [str(word) for word in parse_json(command)]
        return shlex.split(command)
    return command.split()


def files_schema() -> pa.Schema:
    """Table `files`: one row a file, process and module (`POSIX`, `STDIO`, `MPI-IO`).

    Columns: copy, process, file (the number that `segments` uses, from 0 in a trial), module, path (bytes
    that are no UTF-8 as backslash escapes), then COUNTERS, TIMES and OWN_COUNTERS. Every counter may be null.
    Rows of one path in several modules describe the same bytes at two layers: they are never added.
    """
    import pyarrow as pa

    fixed = [
        pa.field("copy", pa.int32(), nullable=False),
        pa.field("process", pa.int32(), nullable=False),
        pa.field("file", pa.int32(), nullable=False),
        pa.field("module", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
    ]
    counters = [pa.field(name, pa.int64()) for name in COUNTERS]
    times = [pa.field(name, pa.float64()) for name in TIMES]
    return pa.schema(fixed + counters + times + [pa.field(name, pa.int64()) for name in OWN_COUNTERS])


def segments_schema() -> pa.Schema:
    """Table `segments`: as SegmentRow, `call` dictionary-encoded."""
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("copy", pa.int32(), nullable=False),
            pa.field("process", pa.int32(), nullable=False),
            pa.field("thread", pa.int32(), nullable=False),
            pa.field("file", pa.int32()),
            pa.field("call", pa.dictionary(pa.int16(), pa.string()), nullable=False),
            pa.field("offset", pa.int64()),
            pa.field("length", pa.int64()),
            pa.field("result", pa.int64(), nullable=False),
            pa.field("start_ns", pa.int64(), nullable=False),
            pa.field("duration_ns", pa.int64(), nullable=False),
        ]
    )
