"""Names of the files in a result directory, its directories, and what cannot be written there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from leadline.durable import is_unfinished, sync_directory, written_whole
from leadline.errors import LeadlineError, StoreError
from leadline.removal import open_in, remove_entries
from leadline.trusted import require_own_place
from leadline.units import quoted

MANIFEST = "manifest.json"
JOURNAL = "events.jsonl"
RECORDS = "records"  # the engine's own files of the trial that is running; empty afterwards
OUTPUT = "output"  # what programs printed, by trial
HOST_FILES = "host_files"  # what they wrote on other hosts, by host
WORKFLOWS = "workflows.json"  # of a result that holds what a media platform noted
PROOF = "proof"  # below the result of a search of settings: the result that proves what it found
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
