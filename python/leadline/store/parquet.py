"""Reading Parquet that somebody else may have written, by Arrow: nothing that a file claims is believed.

A few kilobytes can claim a billion rows, or unpack to all memory there is, and can hold more than they claim.
So claims are checked first, and memory is bounded while a file is unpacked.

Only Arrow opens stored files, by a descriptor: DuckDB, for one, takes a path for a pattern or an address.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.foreign import open_plain, parse_json, within_memory
from leadline.in_memory import arrow_column
from leadline.store.tables import TrialRow, schema

if TYPE_CHECKING:
    from pyarrow import ChunkedArray, DataType, RecordBatch, Schema, Table


_MIB = 1 << 20
# Tables of ours stay far below: encodings and zstd make 20 times of a file's bytes, rarely 50 times.
_ROWS_FREE, _ROWS_A_BYTE, _ROWS_MAX = 1 << 20, 64, 1 << 26
_BYTES_FREE, _BYTES_A_BYTE, _BYTES_MAX = 256 * _MIB, 256, 1 << 35
_GROUPS_MAX = 1 << 16
_WHOLE_BYTES_MAX = 1 << 20
_FITTED_TIMES = 8  # of a table's bytes: numbers and texts become wider as they are fitted to our columns
_FLOAT_MAX = 1e100  # beyond all that is measured, and far from where sums overflow


def unpacked_max(file_bytes: int) -> int:
    """Bytes that a file of this size may unpack to."""
    return min(_BYTES_FREE + _BYTES_A_BYTE * file_bytes, _BYTES_MAX)


def check_claims(rows: int, unpacked_bytes: int, file_bytes: int) -> None:
    """Raises ValueError where a file claims more than files of its size hold."""
    if rows < 0 or rows > min(_ROWS_FREE + _ROWS_A_BYTE * file_bytes, _ROWS_MAX):
        raise ValueError(f"it claims {rows} rows in {file_bytes} bytes")
    if unpacked_bytes < 0 or unpacked_bytes > unpacked_max(file_bytes):
        raise ValueError(f"it claims to unpack {file_bytes} bytes to {unpacked_bytes}")


class StoredTable:
    """An open Parquet file: whatever is read of it stays within the memory that files of its size need."""

    def __init__(self, source: Any, file_bytes: int) -> None:
        import pyarrow.parquet as pq

        self._bytes_max = unpacked_max(file_bytes)
        with within_memory(self._bytes_max):
            self._file = pq.ParquetFile(source, pre_buffer=False)
        found = self._file.metadata
        if found.num_row_groups > _GROUPS_MAX:
            raise ValueError(f"it claims {found.num_row_groups} groups of rows")
        groups = [found.row_group(number) for number in range(found.num_row_groups)]
        self.group_count = len(groups)
        self.row_count = int(max(found.num_rows, sum(group.num_rows for group in groups)))
        check_claims(self.row_count, sum(group.total_byte_size for group in groups), file_bytes)

    @property
    def schema(self) -> Schema:
        """Its columns, and what was noted with them."""
        return self._file.schema_arrow

    def read(self, columns: Sequence[str] | None = None) -> Table:
        """All rows; of the columns those that are there. ValueError, or what Arrow raises."""
        with within_memory(self._bytes_max):
            return self._file.read(self._having(columns), use_threads=False)

    def read_group(self, group: int, columns: Sequence[str]) -> Table:
        """The same of one group of rows."""
        with within_memory(self._bytes_max):
            return self._file.read_row_group(group, self._having(columns), use_threads=False)

    def batches(self, rows_max: int, columns: Sequence[str] | None = None) -> Iterator[RecordBatch]:
        """The same part by part."""
        parts = self._file.iter_batches(rows_max, columns=self._having(columns), use_threads=False)
        while True:
            with within_memory(self._bytes_max):
                part = next(parts, None)
            if part is None:
                return
            yield part

    def _having(self, columns: Sequence[str] | None) -> list[str] | None:
        if columns is None:
            return None
        there = set(self.schema.names)
        return [name for name in columns if name in there]

    def close(self) -> None:
        """Let go of what it was opened from."""
        self._file.close(force=True)


@contextmanager
def opened(path: Path) -> Iterator[StoredTable]:
    """A file for Arrow. Raises OSError, ValueError and what Arrow raises."""
    import pyarrow as pa

    with open_plain(path) as plain:
        size = plain.seek(0, 2)
        plain.seek(0)
        # Of a small file Arrow would ask Python for each part.
        yield StoredTable(plain if size > _WHOLE_BYTES_MAX else pa.BufferReader(plain.read(size)), size)


def fitted(table: Table, wanted: Schema) -> Table:
    """The columns that are wanted; one that an older version did not write is null. Raises ValueError."""
    # What its buffers hold: to count its own part of them takes longer than all that follows.
    with within_memory(_BYTES_FREE + _FITTED_TIMES * table.get_total_buffer_size()):
        return _fitted(table, wanted)


def _fitted(table: Table, wanted: Schema) -> Table:
    import pyarrow as pa

    if table.schema.equals(wanted):  # as this version writes it: nothing is missing, and nothing to cast
        table.validate(full=True)
        table = table.combine_chunks()  # each column costs by its parts, here and where rows are made of it
        for field, column in zip(wanted, table.columns, strict=True):
            if not field.nullable and column.null_count:
                raise ValueError(f"the column {field.name} lacks a value")
            _sound(field.name, column)
        return table
    columns = []
    for field in wanted:
        if field.name not in table.column_names:
            if not field.nullable:
                raise ValueError(f"it lacks the column {field.name}")
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        column = table.column(field.name)
        column.validate(full=True)  # text that is UTF-8, indexes within their dictionary
        found, asked = (_plain_type(one.type) for one in (column, field))
        alike = (pa.types.is_integer, pa.types.is_floating, asked.equals)
        if not (pa.types.is_null(found) or any(of(found) and of(asked) for of in alike)):
            raise ValueError(f"the column {field.name} is of type {column.type}")
        if not field.nullable and column.null_count:
            raise ValueError(f"the column {field.name} lacks a value")
        if pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(column.type):
            column = column.cast(asked).dictionary_encode()
        columns.append(_sound(field.name, column.cast(field.type)))
    return pa.table(columns, schema=wanted)


SampleKey = tuple[str, str, str]  # source, subject and metric
SampleLine = tuple[Sequence[int], Sequence[float]]  # times in ns, and what was sampled at each
SampleLines = dict[SampleKey, SampleLine]
_SAMPLED = ("t_ns", "source", "subject", "metric", "value")


def sample_lines_of(path: Path, columns: Schema) -> SampleLines:
    """Samples of a trial line by line, without those that have no value or are of before its start.

    `columns` are those of the table. They are not made rows: to make an object of each of a million samples
    takes longer than all that is made of them. Raises what `opened` and `fitted` do.
    """
    wanted = _only(columns, _SAMPLED)
    with opened(path) as stored:
        return _lines_of(fitted(stored.read(wanted.names), wanted))


def sample_lines_in(stored: StoredTable, columns: Schema, group: int, trial: str) -> SampleLines:
    """The same of one group of rows of an open file, which are to be those of this trial alone."""
    wanted = _only(columns, ("trial", *_SAMPLED))
    found = fitted(stored.read_group(group, wanted.names), wanted)
    if found.num_rows and found["trial"].unique().to_pylist() != [trial]:
        raise ValueError(f"its rows are not those of {trial}")
    return _lines_of(found)


def _only(columns: Schema, names: Sequence[str]) -> Schema:
    import pyarrow as pa

    return pa.schema([columns.field(name) for name in names])


def _lines_of(table: Table) -> SampleLines:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    start = arrow_column([0], pa.int64())[0]
    known = table.filter(pc.and_(pc.is_valid(table["value"]), pc.greater(table["t_ns"], start)))
    if not known.num_rows:
        return {}
    numbers, names = np.zeros(known.num_rows, dtype=np.int64), []
    for column in ("source", "subject", "metric"):
        encoded = known[column].combine_chunks().dictionary_encode()
        names.append(encoded.dictionary.to_pylist())
        numbers = numbers * len(names[-1]) + np.from_dlpack(encoded.indices)
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=-1)).tolist()
    times, values = (
        np.from_dlpack(known[column].combine_chunks())[order].data for column in ("t_ns", "value")
    )
    found: SampleLines = {}
    for begin, end in zip(begins, [*begins[1:], len(ordered)], strict=True):
        rest, metric = divmod(int(ordered[begin]), len(names[2]))
        source, subject = divmod(rest, len(names[1]))
        found[names[0][source], names[1][subject], names[2][metric]] = times[begin:end], values[begin:end]
    return found


def _sound(name: str, column: ChunkedArray) -> ChunkedArray:
    """The column itself. Raises ValueError where sums of its numbers would be none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        least, most = pc.min_max(column).as_py().values()
        beyond = most is not None and not (-_FLOAT_MAX < least <= most < _FLOAT_MAX)
        if beyond or pc.any(pc.is_nan(column)).as_py():
            raise ValueError(f"the column {name} holds what is no measured number")
    return column


def _plain_type(of: DataType) -> DataType:
    """Of a dictionary: what its values are."""
    return getattr(of, "value_type", of)


_JSON_STATES = ("start_state", "end_state")
_JSON_COLUMNS = (
    "job",
    "factors",
    "threads",
    "summary",
    "reasons",
    "sources",
    *_JSON_STATES,
    "faults",
    "states",
)


def read_rows(
    paths: Sequence[str],
    row_type: Any,
    trials: frozenset[str],
    sources: Sequence[str] = (),
    only: Collection[str] | None = None,
) -> list[Any]:
    """The rows of these files, of samples those of some `sources`; `only` those of some trials.

    Raises ValueError and what Arrow raises where a file is damaged, or has rows of no trial of `trials`.
    """
    import pyarrow as pa

    wanted = schema(row_type)
    alike: list[
        list[pa.Table]
    ] = []  # files of the same columns, which are fitted together: it costs by column
    for path in paths:
        with opened(Path(path)) as stored:
            table = stored.read()  # nearly all columns are wanted, and to choose them takes time
        if alike and table.schema.equals(alike[-1][0].schema):
            alike[-1].append(table)
        else:
            alike.append([table])
    rows: list[Any] = []
    for tables in alike:
        found = fitted(pa.concat_tables(tables), wanted)
        for column, values in (("source", sources or None), ("trial", only)):
            found = found if values is None else _having(found, column, values)
        rows += _as_rows(row_type, found)
    _check_rows(rows, trials)
    return rows


def _having(table: Table, column: str, values: Collection[str]) -> Table:
    """The rows with one of these values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return table.filter(pc.is_in(table[column], value_set=arrow_column(sorted(values), pa.string())))


def _as_rows(row_type: Any, table: Table) -> list[Any]:
    values = {name: table[name].to_pylist() for name in table.column_names}
    ordered = [values[field.name] for field in fields(row_type) if not field.kw_only]
    names = [field.name for field in fields(row_type) if field.kw_only]
    named = zip(*(values[name] for name in names), strict=True) if names else repeat(())
    return [
        row_type(*record, **dict(zip(names, rest, strict=True)))
        for record, rest in zip(zip(*ordered, strict=True), named, strict=False)
    ]


def _check_rows(rows: Sequence[Any], finished: frozenset[str]) -> None:
    """Raises ValueError where a row is of no trial of the result, or its JSON is none."""
    strangers = {row.trial for row in rows} - finished
    if strangers:
        raise ValueError(f"it has rows of {sorted(strangers)[0]!r}, which is no trial of the result")
    if rows and isinstance(rows[0], TrialRow):
        for name in _JSON_COLUMNS:
            _check_json(name, rows)


def _check_json(name: str, rows: Sequence[TrialRow]) -> None:
    """Each text once: most trials say the same."""
    known: set[str | None] = {None}
    for row in rows:
        text = getattr(row, name)
        if text in known:
            continue
        if not isinstance(parse_json(text), dict | list | None):
            raise ValueError(f"{name} of {row.trial} is no object of JSON")
        known.add(text)
