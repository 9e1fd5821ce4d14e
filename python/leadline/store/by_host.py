"""The tables `by_host`: what each host of a trial did, where a study ran on several.

`by_host/trials` has a row a host; `by_host/latency` the histograms of each host's whole measured interval,
`by_host/series` all samples. They stand beside the trial's own tables, which are the sum of them, and are
written before it counts. Results of one host have none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

from leadline.durable import written_whole
from leadline.foreign import reading
from leadline.in_memory import arrow_column
from leadline.store.files import make_directory, storing
from leadline.store.parquet import SampleLines, fitted, opened, sample_lines_of
from leadline.store.tables import LatencyRow, Row, SeriesRow, TrialRow, columns, schema, to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

    from leadline.store.reader import Result

BY_HOST = "by_host"
HOST_LOST = "(host lost)"  # how the error of a trial ends, one of whose hosts was lost
_BATCH_ROWS = 1 << 16


class HostPart(Protocol):
    """What is stored of a host: `leadline.hosts.model.HostTrial`, which this may not know."""

    @property
    def host(self) -> str:
        """Its name."""

    @property
    def machine(self) -> str:
        """Its machine-id, "" where it is not known."""

    @property
    def row(self) -> TrialRow:
        """Its trial."""

    @property
    def latency(self) -> Sequence[LatencyRow]:
        """Its histograms."""

    @property
    def series(self) -> Sequence[SeriesRow]:
        """Its samples."""

    @property
    def clock(self) -> HostClock:
        """By what its times are corrected."""


class HostClock(Protocol):
    """`leadline.hosts.model.ClockOffset`: the host's time of day less the parent's."""

    @property
    def offset_ns(self) -> int:
        """To be taken from its times."""

    @property
    def error_ns(self) -> int:
        """How far off that may be."""


class StoredRows(Sequence[Any]):
    """The rows of one Parquet file, read when they are asked for and not kept: a host's, of very many."""

    def __init__(self, file: Path, row_type: type[Row]) -> None:
        self._file, self._row_type = file, row_type

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The file part by part. Raises ResultError where it is damaged."""
        wanted = schema(self._row_type)
        with reading(self._file), opened(self._file) as stored:
            for batch in stored.batches(_BATCH_ROWS):
                yield from fitted(_as_table(batch), wanted).to_batches()

    def __iter__(self) -> Iterator[Any]:
        for batch in self.batches():
            yield from _rows_of(batch, self._row_type)

    def __len__(self) -> int:
        with reading(self._file), opened(self._file) as stored:
            return stored.row_count

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return list(self)[index]


def batches_of(rows: Any, row_type: type[Row]) -> Iterator[pa.RecordBatch]:
    """Rows in Arrow's columns, whether they are stored or objects."""
    if isinstance(rows, StoredRows):
        yield from rows.batches()
        return
    remaining = iter(rows)
    while part := list(islice(remaining, _BATCH_ROWS)):
        yield from to_arrow(part, row_type).to_batches()


def write_by_host(result: Path, trial: str, hosts: Sequence[HostPart]) -> None:
    """Store what each host did in a trial, in order of their names; the trial does not count by this.

    Raises StoreError where it cannot be written.
    """
    with keeping_by_host(result, trial) as keep:
        for one in sorted(hosts, key=lambda one: one.host):
            keep.add(one, batches_of(one.latency, LatencyRow), batches_of(one.series, SeriesRow))


@contextmanager
def keeping_by_host(result: Path, trial: str) -> Iterator[ByHostWriter]:
    """Takes the hosts of a trial in one after the other; the tables are there when the block ends well.

    Raises StoreError where one cannot be written.
    """
    with storing(result), ExitStack() as files:
        make_directory(result / BY_HOST)
        yield ByHostWriter(
            _HostTable(files, result, "trials", trial, _trials_schema()),
            _HostTable(files, result, "latency", trial, _with_host(LatencyRow)),
            _HostTable(files, result, "series", trial, _with_host(SeriesRow)),
        )


class ByHostWriter:
    """The three tables of a trial while they are written."""

    def __init__(self, trials: _HostTable, latency: _HostTable, series: _HostTable) -> None:
        self._trials, self._latency, self._series = trials, latency, series

    def add(self, one: HostPart, latency: Iterable[pa.RecordBatch], series: Iterable[pa.RecordBatch]) -> None:
        """A host with its tables in columns; of its histograms those of the whole interval are kept."""
        import pyarrow.compute as pc

        self._trials.add(_trial_of(one))
        for batch in latency:
            whole = batch.filter(pc.less(batch.column("interval"), 0))
            self._latency.add(_named(whole, one.host, LatencyRow))
        for batch in series:
            self._series.add(_named(batch, one.host, SeriesRow))


class _HostTable:
    """One file, in groups of rows that are worth one; whole when `files` are closed."""

    def __init__(self, files: ExitStack, result: Path, table: str, trial: str, wanted: pa.Schema) -> None:
        import pyarrow.parquet as pq

        directory = result / BY_HOST / table
        make_directory(directory)
        file = files.enter_context(written_whole(directory / f"{trial}.parquet"))
        self._wanted, self._waiting = wanted, list[Any]()
        self._writer = files.enter_context(pq.ParquetWriter(file, wanted, compression="zstd"))
        files.push(self._close)

    def add(self, batch: pa.RecordBatch) -> None:
        """Some rows; they are on their way to the file."""
        self._waiting.append(batch)
        if sum(one.num_rows for one in self._waiting) >= _BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting, self._wanted))
            self._waiting = []

    def _close(self, error: object, *_: object) -> None:
        if error is None:
            self._flush()


def _trials_schema() -> pa.Schema:
    import pyarrow as pa

    own = (pa.field("machine", pa.string()), pa.field("clock_offset_ns", pa.int64(), nullable=False))
    return pa.schema([*_with_host(TrialRow), *own])


def _with_host(row_type: type[Row]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([pa.field("host", pa.string(), nullable=False), *schema(row_type)])


def _trial_of(one: HostPart) -> pa.RecordBatch:
    import pyarrow as pa

    found = {field.name: [getattr(one.row, field.name)] for field in columns(TrialRow)}
    found |= {
        "host": [one.host],
        "machine": [one.machine or None],
        "clock_offset_ns": [one.clock.offset_ns],
        "clock_error_ns": [one.clock.error_ns],
    }
    wanted = _trials_schema()
    columns_of = [arrow_column(found[field.name], field.type) for field in wanted]
    return pa.RecordBatch.from_arrays(columns_of, schema=wanted)


def _named(batch: pa.RecordBatch, host: str, row_type: type[Row]) -> pa.RecordBatch:
    import pyarrow as pa

    name = arrow_column([host] * batch.num_rows, pa.string())
    return pa.RecordBatch.from_arrays([name, *batch.columns], schema=_with_host(row_type))


def _as_table(batch: pa.RecordBatch) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches([batch])


def _rows_of(batch: pa.RecordBatch, row_type: type[Row]) -> Iterator[Any]:
    names = batch.schema.names
    for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        yield row_type(**dict(zip(names, values, strict=True)))


@dataclass(frozen=True)
class HostRow:
    """What one host did in one trial, as reports need it. Times in ns.

    `began_ns` is when it began after the trial's start, by corrected clocks, `ended_ns` when it was done;
    None where it never began. `p99_ns` and `mean_ns` are of all its operations of the measured time, from
    their actual start; where it has several kinds of them, of the one with the larger p99.
    """

    host: str
    trial: str
    state: str
    error: str | None
    machine: str | None
    clock_offset_ns: int
    clock_error_ns: int | None
    began_ns: int | None
    ended_ns: int | None
    measured_ns: int
    bytes: int
    operations: int
    p99_ns: int | None
    mean_ns: float | None


_NEEDED = (
    "host",
    "trial",
    "state",
    "error",
    "started_unix_ns",
    "measured_ns",
    "last_done_ns",
    "read_bytes",
    "write_bytes",
    "read_operations",
    "write_operations",
    "clock_error_ns",
    "machine",
    "clock_offset_ns",
)
_NEEDED_LATENCY = ("host", "clock", "operations", "p99_ns", "mean_ns")


def read_by_host(result: Result) -> dict[str, tuple[HostRow, ...]]:
    """Trial -> its hosts, in order of their names; only trials on many hosts are there.

    Histograms and samples are not read. Raises ResultError where a table is damaged.
    """
    found: dict[str, tuple[HostRow, ...]] = {}
    if not os.path.lexists(result.path / BY_HOST / "trials"):  # as of a study on one host
        return found
    for trial in sorted(result.finished):
        file = result.path / BY_HOST / "trials" / f"{trial}.parquet"
        if os.path.lexists(file):
            with reading(file):
                found[trial] = tuple(_hosts_of(result, trial))
    return found


def sample_lines_by_host(result: Result, trial: str) -> SampleLines:
    """What was sampled on the hosts of a trial, line by line; none where it had but one."""
    file = result.path / BY_HOST / "series" / f"{trial}.parquet"
    if not os.path.lexists(file):
        return {}
    with reading(file):
        return sample_lines_of(file, schema(SeriesRow))


def _hosts_of(result: Result, trial: str) -> Iterator[HostRow]:
    latency = _latency_of(result, trial)
    rows = _columns_of(result, "trials", trial, _trials_schema(), _NEEDED)
    if any(row["trial"] != trial for row in rows):
        raise ValueError(f"it has rows of another trial than {trial}")
    starts = [_started(row) for row in rows if row["started_unix_ns"] > 0]
    first = min(starts, default=0)
    for row in sorted(rows, key=lambda one: str(one["host"])):
        began = _started(row) - first if row["started_unix_ns"] > 0 else None
        p99_ns, mean_ns, operations = latency.get(row["host"], (None, None, 0))
        yield HostRow(
            host=row["host"],
            trial=trial,
            state=row["state"],
            error=row["error"],
            machine=row["machine"],
            clock_offset_ns=row["clock_offset_ns"],
            clock_error_ns=row["clock_error_ns"],
            began_ns=began,
            ended_ns=None if began is None else began + row["last_done_ns"],
            measured_ns=row["measured_ns"],
            bytes=row["read_bytes"] + row["write_bytes"],
            operations=row["read_operations"] + row["write_operations"] or operations,
            p99_ns=p99_ns,
            mean_ns=mean_ns,
        )


def _started(row: Mapping[str, Any]) -> int:
    """When it began, by the parent's clock."""
    return int(row["started_unix_ns"]) - int(row["clock_offset_ns"])


def _latency_of(result: Result, trial: str) -> dict[str, tuple[int, float, int]]:
    """host -> p99 and mean of its slowest direction, and how many operations it has in all."""
    found: dict[str, tuple[int, float, int]] = {}
    for row in _columns_of(result, "latency", trial, _with_host(LatencyRow), _NEEDED_LATENCY):
        if row["clock"] == "total":
            p99_ns, mean_ns, count = found.get(row["host"], (0, 0.0, 0))
            slowest = max((p99_ns, mean_ns), (row["p99_ns"], row["mean_ns"]))
            found[row["host"]] = (*slowest, count + row["operations"])
    return found


def _columns_of(
    result: Result, table: str, trial: str, wanted: pa.Schema, names: Sequence[str]
) -> list[dict[str, Any]]:
    """Some columns of a table. Raises what `reading` turns into a ResultError."""
    import pyarrow as pa

    file = result.path / BY_HOST / table / f"{trial}.parquet"
    with reading(file), opened(file) as stored:
        chosen = pa.schema([wanted.field(name) for name in names])
        rows: list[dict[str, Any]] = fitted(stored.read(names), chosen).to_pylist()
        return rows
