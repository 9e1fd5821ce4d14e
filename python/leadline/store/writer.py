"""Writing a result: created once, one trial at a time, each durable before the next begins."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from leadline.durable import private_opener, write_whole
from leadline.errors import LeadlineError, ResultError, UsageError
from leadline.foreign import parse_json, read_plain, reading
from leadline.removal import discard_tree, open_in
from leadline.store.bundles import FEW, bundle_trials
from leadline.store.files import (
    JOURNAL,
    MANIFEST,
    RECORDS,
    RESULT_FORMAT,
    RESULT_VERSION,
    checked_id,
    discard_unfinished,
    make_directory,
    storing,
    unwritable,
    write_table,
)
from leadline.store.journal import Event, Journal, read_journal
from leadline.store.making import made_result
from leadline.store.reader import (
    KIND_TRACE,
    MANIFEST_BYTES_MAX,
    check_manifest,
    finished_trials,
    require_study,
)
from leadline.store.tables import TABLES, LatencyRow, SeriesRow, TrialRow, to_arrow
from leadline.units import quoted

_LEDGER = ".ledger"


class HeldResultError(ResultError):
    """Another process writes this result."""


StoredTrial = tuple[TrialRow, Sequence[LatencyRow], Sequence[SeriesRow]]


class ResultWriter:
    """An open result directory, held by a lock on its journal: one run at a time.

    `directory` is a descriptor of it: whatever has its path later, nothing is removed elsewhere.
    """

    def __init__(
        self, path: Path, manifest: dict[str, Any], lock: int, directory: int, now_ns: Callable[[], int]
    ) -> None:
        self.path = path
        self.manifest = manifest
        self._lock = lock
        self._directory = directory
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

    def check_written(self, file: str | None, code: int | None, message: str) -> None:
        """A failure that names a file of the result is no failure of a trial. Raises StoreError."""
        if file and Path(file).is_relative_to(self.path):
            raise unwritable(self.path, OSError(code or 0, message if code is None else os.strerror(code)))

    def ledger_path(self, files: str) -> Path:
        """Where the engine keeps, from trial to trial of a run, what it knows that it wrote to files."""
        return self.path / RECORDS / f"{files}{_LEDGER}"

    def discard(self, trial: str) -> None:
        """Remove what was recorded of a trial that is not stored."""
        with suppress(FileNotFoundError):
            records = open_in(self._directory, self.path / RECORDS)
            try:
                discard_tree(self.logs_path(trial), beneath=records)
                os.unlink(self.record_path(trial).name, dir_fd=records)
            finally:
                os.close(records)

    def discard_all(self) -> None:
        """Remove the result itself, if it is still where it was made."""
        discard_tree(self.path, made=self._directory)

    def write_trial(self, row: TrialRow, latency: Sequence[LatencyRow], series: Sequence[SeriesRow]) -> None:
        """Store one trial. The journal's `trial_finished` is what makes it count."""
        self.write_trials([(row, latency, series)])

    def write_trials(self, trials: Sequence[StoredTrial]) -> None:
        """Store the trials of one slot: all count from one line of the journal on, or none does."""
        with storing(self.path):
            for row, latency, series in trials:
                for name, rows in (("latency", latency), ("series", series), ("trials", [row])):
                    write_table(self.path / name, row.trial, to_arrow(list(rows), TABLES[name]))
        found = [row for row, _, _ in trials]
        if len(found) == 1:
            row = found[0]
            self.journal("trial_finished", trial=row.trial, cell=row.cell, state=row.state)
        else:
            self.journal("trials_finished", trials={row.trial: row.state for row in found})
        for row in found:
            self.discard(row.trial)

    def bundle(self, at_least: int = FEW, most: int | None = None) -> None:
        """Have what is stored in few files besides: `bundle_trials`. A run goes on without that, too."""
        with suppress(LeadlineError):
            bundle_trials(self.path, self.finished(), at_least, most)

    def close(self) -> None:
        """Release the lock; the records' directory goes when it is empty."""
        with suppress(OSError):
            records = open_in(self._directory, self.path / RECORDS)
            try:
                for name in os.listdir(records):  # noqa: PTH208 - of a descriptor
                    if _LEDGER in name:
                        os.unlink(name, dir_fd=records)
            finally:
                os.close(records)
        with suppress(OSError):
            os.rmdir(RECORDS, dir_fd=self._directory)
        os.close(self._directory)
        os.close(self._lock)


def create_result(
    path: Path, manifest: dict[str, Any], now_ns: Callable[[], int], *, opening: str | None = None
) -> ResultWriter:
    """Make a new result directory; it appears whole or not at all. An existing one is never touched.

    `opening`: the event that its journal opens with, so that an empty one can only have been emptied.
    """
    if path.exists() or path.is_symlink():
        raise UsageError(
            f"{path} exists already",
            f"name another --out, or go on with it: leadline run --resume {quoted(path)}",
        )
    whole = {"format": f"{RESULT_FORMAT}/{RESULT_VERSION}", **manifest}
    held: list[int] = []
    try:
        with made_result(path, private=_is_private(manifest)) as (partial, descriptor):
            held += [_take_lock(partial), os.dup(descriptor)]
            make_directory(partial / RECORDS)
            write_whole(partial / MANIFEST, json.dumps(whole, indent=1).encode())
            if opening is not None:
                Journal(partial / JOURNAL, now_ns).append(opening)
    except (OSError, LeadlineError) as error:
        for one in held:
            os.close(one)
        why, remedy = (error.strerror, "") if isinstance(error, OSError) else (error.message, error.remedy)
        raise UsageError(
            f"cannot make the result directory {path}: {why}",
            remedy or "free space there, or name another --out",
        ) from None
    lock, directory = held
    return ResultWriter(path, whole, lock, directory, now_ns)


def _is_private(manifest: Mapping[str, Any]) -> bool:
    """Command lines may hold secrets: results of programs are for their owner alone."""
    cells = (manifest.get("plan") or {}).get("cells") or ()
    runs_programs = any({"command", "pipeline"} & set(cell.get("job") or ()) for cell in cells)
    return runs_programs or manifest.get("kind") == KIND_TRACE


def reopen_result(path: Path, now_ns: Callable[[], int], *, to_run: bool = True) -> ResultWriter:
    """To go on with an interrupted result; not `to_run`: for its journal alone, on full disks too."""
    manifest = check_manifest(path)
    require_study(path, manifest)
    checked_id(manifest.get("id"))
    if not os.path.lexists(path / JOURNAL):  # it says what was made, and an empty one would say: nothing
        raise ResultError(
            f"{path} has no {JOURNAL}", "restore it from a copy: it lists what was made on the targets"
        )
    lock = _take_lock(path)
    try:
        directory = _open_same(path, manifest)
    except BaseException:
        os.close(lock)
        raise
    # Left by a run that died: of a trial that is stored already, or of one that is measured anew.
    discard_tree(path / RECORDS, beneath=directory)
    discard_unfinished(path, directory)
    if to_run:
        with storing(path):
            make_directory(path / RECORDS)
    return ResultWriter(path, manifest, lock, directory, now_ns)


def _open_same(path: Path, manifest: dict[str, Any]) -> int:
    """The directory that this manifest was read from: something is going to be removed in it."""
    directory = -1
    try:
        with reading(path / MANIFEST):
            directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            found = parse_json(read_plain(Path(f"/proc/self/fd/{directory}/{MANIFEST}"), MANIFEST_BYTES_MAX))
        if found != manifest:
            raise ResultError(f"{path} was exchanged while leadline looked at it", "nothing was done")
    except BaseException:
        if directory >= 0:
            os.close(directory)
        raise
    return directory


def _take_lock(path: Path) -> int:
    try:
        descriptor = private_opener(str(path / JOURNAL), os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise ResultError(
            f"cannot write in {path}: {error.strerror}", "check its owner and the space left"
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise HeldResultError(
            f"{path} is being written by another leadline run", "wait for it to end, or end it first"
        ) from None
    return descriptor
