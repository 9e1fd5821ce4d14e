"""Reading Parquet that somebody else may have written: what it claims is bounded before it is read.

A few kilobytes can claim a billion rows, or unpack to all memory there is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import Field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from leadline.foreign import open_plain

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyarrow import ChunkedArray, DataType, Schema, Table
    from pyarrow.parquet import ParquetFile

_MIB = 1 << 20
# Tables of ours stay far below: encodings and zstd make 20 times of a file's bytes, rarely 50 times.
_ROWS_FREE, _ROWS_A_BYTE, _ROWS_MAX = 1 << 20, 64, 1 << 26
_BYTES_FREE, _BYTES_A_BYTE, _BYTES_MAX = 256 * _MIB, 256, 1 << 35
_FILES_FEW = 40  # fewer are looked at before Arrow is loaded
_FLOAT_MAX = 1e100  # beyond all that is measured, and far from where sums overflow
_SETTINGS = {
    "memory_limit": "2GB",
    "autoinstall_known_extensions": "false",  # a file must not make DuckDB fetch anything
    "autoload_known_extensions": "false",
}
# Of each type of column that `tables` states: what DuckDB may call it.
_TYPES = {
    "str": ("VARCHAR",),
    "TrialState": ("VARCHAR",),
    "int": ("BIGINT", "INTEGER", "UINTEGER", "SMALLINT"),
    "float": ("DOUBLE", "FLOAT", "BIGINT"),
    "bool": ("BOOLEAN",),
    "bytes": ("BLOB",),
}


@contextmanager
def connected() -> Iterator[DuckDBPyConnection]:
    """A DuckDB of our own, with bounded memory, that fetches nothing from anywhere."""
    import duckdb

    process = os.getpid()  # threads of DuckDB do not live on in a fork, so what is kept is not used there
    try:
        connection = _database(process).cursor()
        connection.execute("SELECT 1")
    except duckdb.Error:  # a file that broke it breaks what is read next no more
        _database.cache_clear()
        connection = _database(process).cursor()
    with connection:
        yield connection


@cache
def _database(_process: int) -> DuckDBPyConnection:
    """Kept: to start one takes as long as to read some tables."""
    import duckdb

    return duckdb.connect(config=dict(_SETTINGS))


def check_claims(rows: int, unpacked_bytes: int, file_bytes: int) -> None:
    """Raises ValueError where a file claims more than files of its size hold."""
    if rows < 0 or rows > min(_ROWS_FREE + _ROWS_A_BYTE * file_bytes, _ROWS_MAX):
        raise ValueError(f"it claims {rows} rows in {file_bytes} bytes")
    if unpacked_bytes < 0 or unpacked_bytes > min(_BYTES_FREE + _BYTES_A_BYTE * file_bytes, _BYTES_MAX):
        raise ValueError(f"it claims to unpack {file_bytes} bytes to {unpacked_bytes}")


def check_files(connection: DuckDBPyConnection, paths: Sequence[str]) -> None:
    """The same for many files at once; OSError where one is no plain file."""
    sizes = {}
    for path in paths:
        with open_plain(Path(path)) as file:
            sizes[path] = file.seek(0, 2)
            if len(paths) > _FILES_FEW:
                check_claims(*_claimed(file), sizes[path])
    if len(paths) > _FILES_FEW:
        return
    claims = connection.execute(
        "SELECT file_name, max(num_rows), sum(total_uncompressed_size) FROM ("
        " SELECT file_name, NULL AS num_rows, total_uncompressed_size FROM parquet_metadata(?)"
        " UNION ALL SELECT file_name, num_rows, NULL FROM parquet_file_metadata(?)"
        ") GROUP BY file_name",
        [list(paths), list(paths)],
    ).fetchall()
    for path, rows, unpacked in claims:
        check_claims(int(rows or 0), int(unpacked or 0), sizes.get(path, 0))


def _claimed(file: BinaryIO) -> tuple[int, int]:
    """Rows and unpacked bytes that a file claims: Arrow reads that in a third of DuckDB's time."""
    import pyarrow.parquet as pq

    found = pq.read_metadata(file)
    groups = [found.row_group(number) for number in range(found.num_row_groups)]
    unpacked = sum(
        group.column(number).total_uncompressed_size
        for group in groups
        for number in range(group.num_columns)
    )
    return max(found.num_rows, sum(group.num_rows for group in groups)), unpacked


@contextmanager
def opened(path: Path) -> Iterator[ParquetFile]:
    """A file for Arrow. Raises OSError, ValueError and what Arrow raises."""
    import pyarrow.parquet as pq

    with open_plain(path) as plain:
        size = plain.seek(0, 2)
        with pq.ParquetFile(plain, pre_buffer=False) as file:
            check_parquet(file, size)
            yield file


def check_parquet(file: ParquetFile, size: int) -> None:
    """`check_claims` of a file that is open."""
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    unpacked = sum(group.total_byte_size for group in groups)
    rows = max(file.metadata.num_rows, sum(group.num_rows for group in groups))
    check_claims(rows, unpacked, size)


def check_columns(
    wanted: Sequence[Field[Any]], found: Mapping[str, str], records: Sequence[Sequence[Any]]
) -> None:
    """Raises ValueError where a column is missing, of another type, or without a value that it must have.

    `found` are types by name, in the order of `records`' values.
    """
    columns = dict(zip(found, zip(*records, strict=True), strict=True)) if records else {}
    for field in wanted:
        base = str(field.type).removesuffix(" | None")
        must = base == str(field.type)
        if field.name not in found:
            if must:
                raise ValueError(f"it lacks the column {field.name}")
            continue
        values = columns.get(field.name, ())
        if not must and not any(value is not None for value in values):
            continue  # written where nothing was measured, whatever its type
        if found[field.name] not in _TYPES[base]:
            raise ValueError(f"the column {field.name} is of type {found[field.name]}")
        if must and None in values:
            raise ValueError(f"the column {field.name} lacks a value")


def fitted(table: Table, wanted: Schema) -> Table:
    """The columns that are wanted; one that an older version did not write is null. Raises ValueError."""
    import pyarrow as pa

    columns = []
    for field in wanted:
        if field.name not in table.column_names:
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
    with opened(path) as parquet:
        having = [name for name in wanted.names if name in parquet.schema_arrow.names]
        return _lines_of(fitted(parquet.read(having, use_threads=False), wanted))


def sample_lines_in(parquet: ParquetFile, columns: Schema, group: int, trial: str) -> SampleLines:
    """The same of one group of rows of an open file, which are to be those of this trial alone."""
    wanted = _only(columns, ("trial", *_SAMPLED))
    found = fitted(parquet.read_row_group(group, wanted.names, use_threads=False), wanted)
    if found.num_rows and found["trial"].unique().to_pylist() != [trial]:
        raise ValueError(f"its rows are not those of {trial}")
    return _lines_of(found)


def _only(columns: Schema, names: Sequence[str]) -> Schema:
    import pyarrow as pa

    return pa.schema([columns.field(name) for name in names])


def _lines_of(table: Table) -> SampleLines:
    import numpy as np
    import pyarrow.compute as pc

    known = table.filter(pc.and_(pc.is_valid(table["value"]), pc.greater(table["t_ns"], 0)))
    if not known.num_rows:
        return {}
    numbers, names = np.zeros(known.num_rows, dtype=np.int64), []
    for column in ("source", "subject", "metric"):
        encoded = known[column].combine_chunks().dictionary_encode()
        names.append(encoded.dictionary.to_pylist())
        numbers = numbers * len(names[-1]) + encoded.indices.to_numpy()
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=-1)).tolist()
    times, values = (memoryview(known[column].to_numpy()[order]) for column in ("t_ns", "value"))
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
