"""Writing a result: created once, one trial at a time, each durable before the next begins."""

from __future__ import annotations

import fcntl
import io
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from leadline.errors import ResultError, UsageError
from leadline.removal import discard_tree
from leadline.store.files import (
    JOURNAL,
    MANIFEST,
    RECORDS,
    RESULT_FORMAT,
    RESULT_VERSION,
    make_result_directory,
    sync_directory,
    write_whole,
)
from leadline.store.journal import Event, Journal, read_journal
from leadline.store.names import checked_id
from leadline.store.reader import check_manifest, finished_trials, require_study
from leadline.store.tables import TABLES, LatencyRow, Row, SeriesRow, TrialRow, to_arrow

StoredTrial = tuple[TrialRow, Sequence[LatencyRow], Sequence[SeriesRow]]


class ResultWriter:
    """An open result directory, held by a lock on its journal: one run at a time."""

    def __init__(self, path: Path, manifest: dict[str, Any], lock: int, now_ns: Callable[[], int]) -> None:
        self.path = path
        self.manifest = manifest
        self._lock = lock
        self._journal = Journal(path / JOURNAL, now_ns)

    def journal(self, event: str, **details: Any) -> None:
        """Record an event; it is on disk when this returns."""
        self._journal.append(event, **details)

    def events(self) -> tuple[Event, ...]:
        """All events so far."""
        return read_journal(self.path / JOURNAL)

    def finished(self) -> frozenset[str]:
        """The trials that are stored whole."""
        return finished_trials(self.path, self.events())

    def record_path(self, trial: str) -> Path:
        """Where the engine writes while this trial runs."""
        return self.path / RECORDS / f"{trial}.llrec"

    def logs_path(self, trial: str) -> Path:
        """Where a tracer writes while this trial runs."""
        return self.path / RECORDS / f"{trial}-logs"

    def discard(self, trial: str) -> None:
        """Remove what was recorded of a trial that is not stored."""
        self.record_path(trial).unlink(missing_ok=True)
        discard_tree(self.logs_path(trial))

    def write_trial(self, row: TrialRow, latency: Sequence[LatencyRow], series: Sequence[SeriesRow]) -> None:
        """Store one trial. The journal's `trial_finished` is what makes it count."""
        self.write_trials([(row, latency, series)])

    def write_trials(self, trials: Sequence[StoredTrial]) -> None:
        """Store the trials of one slot: all count from one line of the journal on, or none does."""
        for row, latency, series in trials:
            for name, rows in (("latency", latency), ("series", series), ("trials", [row])):
                self._write_part(name, row.trial, list(rows))
        found = [row for row, _, _ in trials]
        if len(found) == 1:
            row = found[0]
            self.journal("trial_finished", trial=row.trial, cell=row.cell, state=row.state)
        else:
            self.journal("trials_finished", trials={row.trial: row.state for row in found})
        for row in found:
            self.discard(row.trial)

    def _write_part(self, table: str, trial: str, rows: list[Row]) -> None:
        import pyarrow.parquet as pq

        directory = self.path / table
        directory.mkdir(exist_ok=True)
        buffer = io.BytesIO()
        pq.write_table(to_arrow(rows, TABLES[table]), buffer, compression="zstd")
        write_whole(directory / f"{trial}.parquet", buffer.getvalue())

    def close(self) -> None:
        """Release the lock; the records' directory goes when it is empty."""
        records = self.path / RECORDS
        if records.is_dir() and not any(records.iterdir()):
            records.rmdir()
        os.close(self._lock)


def create_result(path: Path, manifest: dict[str, Any], now_ns: Callable[[], int]) -> ResultWriter:
    """Make a new result directory; it appears whole or not at all. An existing one is never touched."""
    if path.exists() or path.is_symlink():
        raise UsageError(
            f"{path} exists already", f"name another --out, or go on with it: leadline run --resume {path}"
        )
    whole = {"format": f"{RESULT_FORMAT}/{RESULT_VERSION}", **manifest}
    partial = path.with_name(f".{path.name}.partial")
    try:
        discard_tree(partial)  # of a run that died within these few lines
        make_result_directory(partial, parents=True)
        lock = _take_lock(partial)
        (partial / RECORDS).mkdir()
        write_whole(partial / MANIFEST, json.dumps(whole, indent=1).encode())
        partial.rename(path)
        sync_directory(path.parent)
    except OSError as error:
        raise UsageError(
            f"cannot make the result directory {path}: {error.strerror}", "name another --out"
        ) from None
    return ResultWriter(path, whole, lock, now_ns)


def reopen_result(path: Path, now_ns: Callable[[], int]) -> ResultWriter:
    """Open an interrupted result to go on with it."""
    manifest = check_manifest(path)
    require_study(path, manifest)
    checked_id(manifest.get("id"))
    lock = _take_lock(path)
    # Left by a run that died: of a trial that is stored already, or of one that is measured anew.
    discard_tree(path / RECORDS)
    (path / RECORDS).mkdir(exist_ok=True)
    return ResultWriter(path, manifest, lock, now_ns)


def _take_lock(path: Path) -> int:
    try:
        descriptor = os.open(path / JOURNAL, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise ResultError(
            f"cannot write in {path}: {error.strerror}", "check its owner and the space left"
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise ResultError(
            f"{path} is being written by another leadline run", "wait for it to end, or end it first"
        ) from None
    return descriptor
