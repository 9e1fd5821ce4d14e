"""The files of a result: their names, its directories, and what cannot be written there."""

from __future__ import annotations

import errno
import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.durable import is_unfinished, sync_directory, write_whole, written_whole
from leadline.errors import LeadlineError, ResultError, StoreError
from leadline.removal import open_in, remove_entries
from leadline.trusted import require_own_place
from leadline.units import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence


_ID = re.compile(r"[0-9a-f]{8,64}")


def checked_id(value: object) -> str:
    """A study's id, which is part of the name of what is removed: hexadecimal digits, or refused."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ResultError(
            f"the id {value!r} is none of leadline's: it has 8 to 64 of the digits 0-9a-f",
            "nothing was done; the manifest was changed: restore it from a copy of the result",
        )
    return value


def checked_name(value: object) -> str:
    """A name that becomes part of a file's: of one file, in one directory."""
    if not isinstance(value, str) or value in ("", ".", "..") or "/" in value or "\0" in value:
        raise ResultError(
            f"{value!r} is no plain name of a file or directory: it would lead to another place",
            "nothing was done; the result was changed: restore it from a copy",
        )
    return value


MANIFEST = "manifest.json"
JOURNAL = "events.jsonl"
RECORDS = "records"  # the engine's own files of the trial that is running; empty afterwards
OUTPUT = "output"  # what programs printed, by trial
HOST_FILES = "host_files"  # what they wrote on other hosts, by host
DOCUMENT = "published.yaml"  # of a result that holds the figures of a document
WORKFLOWS = "workflows.json"  # of a result that holds what a media platform noted
PROOF = "proof"  # below the result of a search of settings: the result that proves what it found
TRACE_TABLES = ("processes", "files", "call_latency", "segments")  # of a trial that was traced
RESULT_FORMAT = "leadline.result"
RESULT_VERSION = 1
MARK = ".leadline"  # in a directory of ours while it is made
_SMALL_BYTES = 64 << 10
_TABLE_DEPTH = 2  # tables stand in a result, those of each host in `by_host`


def discard_unfinished(path: Path, opened: int) -> None:
    """Remove what a killed run was writing in a result, or in the directory of a table of it."""
    with suppress(OSError, LeadlineError):
        remove_entries(path, float("inf"), lambda name: is_unfinished(name) or name == MARK, opened=opened)
    _discard_in_tables(path, opened, _TABLE_DEPTH)


def _discard_in_tables(path: Path, opened: int, depth: int) -> None:
    with os.scandir(opened) as entries:
        tables = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    for name in tables:
        with suppress(OSError, LeadlineError):
            table = open_in(opened, path / name)
            try:
                remove_entries(path / name, float("inf"), is_unfinished, opened=table)
                if depth > 1:
                    _discard_in_tables(path / name, table, depth - 1)
            finally:
                os.close(table)


def write_table(directory: Path, trial: str, table: Any, **options: Any) -> None:
    """Store a trial's part of a table as Parquet; its directory is made where it is lacking."""
    import pyarrow.parquet as pq

    make_directory(directory)
    with written_whole(directory / f"{trial}.parquet") as file:
        pq.write_table(table, file, compression=compression_of(table), **options)


def compression_of(table: Any) -> str:
    """Of a small table zstd saves a hundredth, and makes two thirds of the time that it takes to be read."""
    return "zstd" if table.nbytes > _SMALL_BYTES else "none"


def make_directory(path: Path) -> None:
    """Have a directory below a result, durable and as private as the result; others may make it, too."""
    with suppress(FileExistsError):
        path.mkdir(mode=path.parent.stat().st_mode & 0o777)
    sync_directory(path.parent)


def make_parents(path: Path) -> None:
    """Have the directories that `path` is to be in, durable. Raises UsageError where others decide there."""
    require_own_place(path)
    missing = [parent for parent in path.parents if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir(exist_ok=True)
        require_own_place(parent)  # another account may have been the first
        sync_directory(parent.parent)


@contextmanager
def storing(result: Path) -> Iterator[None]:
    """What cannot be written is a StoreError that says where, why and how to go on."""
    try:
        yield
    except OSError as error:
        raise unwritable(result, error) from error


def unwritable(result: Path, error: OSError) -> StoreError:
    """The error that says so."""
    why = error.strerror or str(error)
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    mend = "free space there" if full else "see what is wrong with its file system (dmesg)"
    return StoreError(
        f"the result in {result} cannot be written: {why}",
        f"{mend}; what was stored is kept: leadline run --resume {quoted(result)}",
        file=str(getattr(error, "filename", None) or result),
    )


SCRIPT = "replay.script"
_MAGIC, _VERSION = b"LLREPLAY", 1


def write_script(
    directory: Path, calls: Any, threads: Sequence[tuple[int, int]], sizes: Any, flags: Any
) -> None:
    """Write `calls` (NumPy records in the engine's layout), threads as (process, calls), and the files."""
    parts = [_MAGIC, struct.pack("<IIIIQ", _VERSION, len(threads), len(sizes), 0, len(calls))]
    parts += [struct.pack("<QII", int(size), int(flag), 0) for size, flag in zip(sizes, flags, strict=True)]
    parts += [struct.pack("<QII", count, process, 0) for process, count in threads]
    parts.append(calls.tobytes())
    with storing(directory):
        write_whole(directory / SCRIPT, b"".join(parts))
