"""Traces in a result: Parquet tables of one trial each, in a result of the kind `trace` or beside a study's.

`segments` may have millions of rows: it is written and read in row groups, never held whole unless asked for.
A trace keeps which program it is of, so that two of one name are of one program, or are not.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from leadline import units
from leadline.durable import sync_directory
from leadline.errors import ResultError, StoreError, UsageError
from leadline.foreign import parse_json, reading
from leadline.store.files import TRACE_TABLES, make_parents, storing, write_table
from leadline.store.making import making
from leadline.store.parquet import StoredTable, fitted, opened
from leadline.store.reader import KIND_TRACE, Result
from leadline.store.writer import ResultWriter, create_result
from leadline.tracing.tables import (
    ProcessRow,
    TraceLatencyRow,
    TraceMode,
    TraceTables,
    files_schema,
    segments_schema,
)

if TYPE_CHECKING:
    import pyarrow as pa


# What runs another file, which is the program then.
_INTERPRETER = re.compile(
    r"^(?:python[\d.]*|pypy[\d.]*|perl[\d.]*|ruby[\d.]*|(?:ba|da|z|k|c|tc)?sh|node|Rscript|julia|lua[\d.]*)$"
)
_DIGESTED_BYTES = 16 << 20  # of a file; beyond, its size tells


def identity(executable: Path, words: Sequence[str]) -> list[dict[str, Any]]:
    """The executable, and the script that it runs: path, size, change time in ns, SHA-256 of its beginning.

    Reads both files: ask in a fork. What cannot be read is left out.
    """
    found = []
    script = next((word for word in words[1:] if not word.startswith("-")), None)
    runs = _INTERPRETER.match(Path(words[0]).name) and script is not None
    for path in (executable, *([Path(script)] if runs and script else [])):
        with suppress(OSError, ValueError):
            status = path.stat()
            with path.open("rb") as file:
                digest = hashlib.sha256(file.read(_DIGESTED_BYTES)).hexdigest()
            real = str(path.resolve())
            found.append(
                {"path": real, "bytes": status.st_size, "changed_ns": status.st_mtime_ns, "sha256": digest}
            )
    return found


@dataclass(frozen=True)
class TracedProgram:
    """A trace's command, and what `identity` said of its files when it ran; empty where it is not known."""

    words: tuple[str, ...] = ()
    files: tuple[Mapping[str, Any], ...] = ()


def stored_program(manifest: Mapping[str, Any], recorded: Sequence[str]) -> TracedProgram:
    """From a trace's manifest; an import has the words that its source `recorded` of the first process."""
    program = manifest.get("program")
    words = program if isinstance(program, list) else recorded
    kept = manifest.get("program_files")
    known = ("path", "bytes", "sha256")
    files = (
        [one for one in kept if isinstance(one, dict) and all(name in one for name in known)] if kept else []
    )
    return TracedProgram(tuple(str(word) for word in words), tuple(files))


def differences(base: TracedProgram, other: TracedProgram) -> Iterator[str]:
    """What differs between the programs of two traces, and what is not known; nothing where all is alike."""
    if base.words and other.words and base.words != other.words:
        yield f"the commands differ: A ran `{shlex.join(base.words)}`, B ran `{shlex.join(other.words)}`"
    if not (base.words and other.words):
        yield "a trace does not name its command, so whether both ran the same is unknown"
    elif not (base.files and other.files):
        yield "a trace does not keep which file its program was: whether both are of one version is not known"
    for first, second in zip(base.files, other.files, strict=False):
        if (first["sha256"], first["bytes"]) != (second["sha256"], second["bytes"]):
            yield f"the programs differ: A ran {_words(first)}, B ran {_words(second)}"
    if base.files and other.files and len(base.files) != len(other.files):
        yield "the programs differ: one of them ran a script, the other did not"


def _words(item: Mapping[str, Any]) -> str:
    size = units.format_size(float(item["bytes"]))
    return f"{item['path']} ({size}, SHA-256 {str(item['sha256'])[:12]})"


PROCESSES, FILES, LATENCY, SEGMENTS = TRACE_TABLES
_ROW_GROUP = 1 << 17  # segments: 7 MB of columns at once, and enough for the encodings to pay
_NOTE = b"leadline.trace"  # of the table of processes: what is said of the trace as a whole

_REMEDY = "restore it from a copy, or trace the command again"
_JSON_COLUMNS: tuple[tuple[str, Any], ...] = (
    ("calls", dict),
    ("seconds", dict | None),
    ("lost", dict),
    ("notes", list),
)


@dataclass(frozen=True)
class TraceNote:
    """What is said of a trial's trace as a whole; as in TraceTables."""

    mode: TraceMode
    source: str = ""
    warnings: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)


def write_trace(writer: ResultWriter, trial: str, tables: TraceTables) -> None:
    """Store one trial's trace. It counts with its trial, when the journal says `trial_finished`."""
    write_tables(writer.path, trial, tables)


def write_tables(result: Path, trial: str, tables: TraceTables) -> None:
    """The same for a worker, which has the result's directory and not its journal."""
    note = {
        "mode": tables.mode,
        "source": tables.source,
        "warnings": list(tables.warnings),
        "extra": tables.extra,
    }
    processes = _rows_table(tables.processes, ProcessRow, trial)
    processes = processes.replace_schema_metadata({_NOTE: json.dumps(note).encode()})
    parts: list[tuple[str, pa.Table]] = [(LATENCY, _rows_table(tables.latency, TraceLatencyRow, trial))]
    if tables.segments is not None:
        parts.append((SEGMENTS, _with_trial(tables.segments.select(segments_schema().names), trial)))
    parts += [(FILES, _with_trial(tables.files.cast(files_schema()), trial)), (PROCESSES, processes)]
    with storing(result):
        for table, content in parts:
            write_table(result / table, trial, content, row_group_size=_ROW_GROUP)


def create_trace_result(
    path: Path,
    tables: Mapping[str, TraceTables],
    *,
    title: str,
    details: Mapping[str, Any],
    now_ns: Callable[[], int],
) -> None:
    """Make a result of the kind `trace` from the traces of its trials; whole or not at all.

    `details` go into the manifest: `created`, `version`, `command` (a list, where one was run), `host`. What
    a trial's tables know beyond rows is in their `extra`: `wall_s`, the run time in seconds, and `copies`,
    one object a copy (`copy`, `wall_s`, `end`, `status`, `cpu_user_ns`, `cpu_system_ns`, `memory_bytes_max`).
    """
    manifest = {"kind": KIND_TRACE, "id": secrets.token_hex(4), "title": title, **details}
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} exists already", "name another directory with -o")
    try:
        make_parents(path)
        with making(path, 0o700) as (directory, _):
            _write_result(directory / "result", manifest, tables, now_ns)
            (directory / "result").rename(path)
        sync_directory(path.parent)
    except (OSError, StoreError) as error:
        raise UsageError(
            f"the trace cannot be stored in {path}: {getattr(error.__cause__ or error, 'strerror', error)}",
            "free space, or name a directory elsewhere with -o",
        ) from None


def _write_result(
    place: Path, manifest: dict[str, Any], tables: Mapping[str, TraceTables], now_ns: Callable[[], int]
) -> None:
    try:
        writer = create_result(place, manifest, now_ns)
    except UsageError as error:  # which names a place that is gone by now
        raise StoreError(error.message.rpartition(": ")[2], file=str(place)) from None
    try:
        for trial, content in tables.items():
            write_trace(writer, trial, content)
            writer.journal("trial_finished", trial=trial)
        writer.journal("traced", trials=list(tables))
    finally:
        writer.close()


def traced_trials(result: Result) -> tuple[str, ...]:
    """The finished trials that have a trace, in order."""
    return tuple(t for t in sorted(result.finished) if _file(result, PROCESSES, t).is_file())


def read_trace(result: Result, trial: str | None = None) -> TraceTables:
    """One trial's trace, segments included; the first trial's where none is named. Raises ResultError."""
    name = _trial(result, trial)
    note = read_note(result, name)
    segments = None
    if _file(result, SEGMENTS, name).is_file():
        segments = _read(result, SEGMENTS, name, segments_schema())
    return TraceTables(
        mode=note.mode,
        processes=read_processes(result, name),
        files=read_files(result, name),
        latency=cast("tuple[TraceLatencyRow, ...]", _read_rows(result, LATENCY, name, TraceLatencyRow)),
        segments=segments,
        source=note.source,
        warnings=note.warnings,
        extra=note.extra,
    )


def read_trace_without_segments(result: Result, trial: str | None = None) -> TraceTables:
    """The same for reports, which take the segments through `segment_batches`."""
    name = _trial(result, trial)
    note = read_note(result, name)
    latency = cast("tuple[TraceLatencyRow, ...]", _read_rows(result, LATENCY, name, TraceLatencyRow))
    processes, files = read_processes(result, name), read_files(result, name)
    return TraceTables(
        note.mode, processes, files, latency, None, note.source, note.warnings, extra=note.extra
    )


def read_note(result: Result, trial: str) -> TraceNote:
    """What was said of a trial's trace as a whole."""
    with _table(result, PROCESSES, trial) as file:
        note = parse_json((file.schema.metadata or {}).get(_NOTE, b"{}"))
        shape: tuple[tuple[str, type], ...] = (
            ("mode", str),
            ("source", str),
            ("warnings", list),
            ("extra", dict),
        )
        if not isinstance(note, dict) or not all(isinstance(note.get(name), kind) for name, kind in shape):
            raise ValueError("it does not say where it comes from")
        warnings = tuple(str(warning) for warning in note["warnings"])
        return TraceNote(note["mode"], note["source"], warnings, note["extra"])


def read_processes(result: Result, trial: str) -> tuple[ProcessRow, ...]:
    """The process images of a trial."""
    rows = cast("tuple[ProcessRow, ...]", _read_rows(result, PROCESSES, trial, ProcessRow))
    with reading(_file(result, PROCESSES, trial), _REMEDY):
        for name, kind in _JSON_COLUMNS:
            for text in {getattr(row, name) for row in rows}:
                if text and not isinstance(parse_json(text), kind):
                    raise ValueError(f"the column {name} holds other JSON than it should")
    return rows


def read_files(result: Result, trial: str) -> pa.Table:
    """Table `files` of a trial; a column that an older version did not write is null."""
    return _read(result, FILES, trial, files_schema())


def has_segments(result: Result, trial: str) -> bool:
    """Whether every call of a trial was recorded, not only counted."""
    return _file(result, SEGMENTS, trial).is_file()


def segment_batches(result: Result, trial: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The segments of a trial in the order stored, a bounded number at a time."""
    import pyarrow as pa

    wanted = pa.schema([segments_schema().field(name) for name in columns])
    with _table(result, SEGMENTS, trial) as file:
        for batch in file.batches(_ROW_GROUP, columns):
            yield from fitted(pa.Table.from_batches([batch]), wanted).to_batches()


def check_traces(result: Result) -> None:
    """Read every table of all traces, segments by batches. Raises ResultError where one is damaged."""
    for trial in traced_trials(result):
        read_trace_without_segments(result, trial)
        if has_segments(result, trial):
            for _ in segment_batches(result, trial, segments_schema().names):
                pass


def _trial(result: Result, trial: str | None) -> str:
    known = traced_trials(result)
    if trial is None and known:
        return known[0]
    if trial is None or trial not in known:
        what = f"the trial {trial} of {result.path}" if trial else str(result.path)
        raise ResultError(f"{what} has no trace", "trace a command with: leadline trace -- COMMAND")
    return trial


def _file(result: Result, table: str, trial: str) -> Path:
    return result.path / table / f"{trial}.parquet"


@contextmanager
def _table(result: Result, table: str, trial: str) -> Iterator[StoredTable]:
    """One of a trial's tables, open; what is wrong with it is an error that names the file."""
    file = _file(result, table, trial)
    with reading(file, _REMEDY), opened(file) as found:
        yield found


def _read(result: Result, table: str, trial: str, wanted: pa.Schema) -> pa.Table:
    with _table(result, table, trial) as file:
        return fitted(file.read(), wanted)


def _read_rows(result: Result, table: str, trial: str, row_type: type[Any]) -> tuple[Any, ...]:
    columns = _read(result, table, trial, _rows_schema(row_type)).to_pydict()
    names = [item.name for item in fields(row_type)]
    return tuple(row_type(*values) for values in zip(*(columns[name] for name in names), strict=True))


def _rows_table(rows: Sequence[Any], row_type: type[Any], trial: str) -> Any:
    import pyarrow as pa

    schema = _rows_schema(row_type)
    columns = {item.name: [getattr(row, item.name) for row in rows] for item in schema}
    return _with_trial(pa.table(columns, schema=schema), trial)


def _rows_schema(row_type: type[Any]) -> pa.Schema:
    import pyarrow as pa

    types = {"int": pa.int64(), "str": pa.string(), "bytes": pa.binary(), "TraceMode": pa.string()}
    return pa.schema([pa.field(f.name, types[str(f.type).removesuffix(" | None")]) for f in fields(row_type)])


def _with_trial(table: Any, trial: str) -> Any:
    import numpy as np
    import pyarrow as pa

    codes = pa.array(np.zeros(table.num_rows, np.int32))
    column = pa.DictionaryArray.from_arrays(codes, pa.array([trial], pa.string()))
    return table.add_column(0, "trial", column)
