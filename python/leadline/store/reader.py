"""Reading results: checked first, then as tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from leadline.errors import ResultError
from leadline.foreign import RESTORE, parse_json, read_plain, reading
from leadline.store.bundles import BundledResult
from leadline.store.files import JOURNAL, MANIFEST, PROOF, RESULT_FORMAT, RESULT_VERSION
from leadline.store.journal import Event, read_journal
from leadline.store.making import recoverable
from leadline.store.parquet import SampleLines, read_rows, sample_lines_of
from leadline.store.tables import TABLES, LatencyRow, SeriesRow, TrialRow, schema
from leadline.units import quoted

KIND_STUDY, KIND_PUBLISHED, KIND_TRACE = "study", "published", "trace"
KIND_WORKFLOWS = "workflows"
_TRACED = ("processes", "files")  # the tables that a trial of a trace cannot do without
MANIFEST_BYTES_MAX = 256 << 20
GUEST = "guest"  # directory of a result: the same study, run in a guest of the same lab


@dataclass(frozen=True)
class Result:
    """A result directory that was found sound. Tables are read when they are asked for.

    `bundled`: from bundles of many trials where there are some; else each trial from its own files alone.
    """

    path: Path
    manifest: dict[str, Any]
    events: tuple[Event, ...]
    finished: frozenset[str]
    bundled: bool = True

    @property
    def complete(self) -> bool:
        """True when the study ran to its end, or the document or the trace was stored whole."""
        return any(event.event in ("study_finished", "imported", "traced") for event in self.events)

    @property
    def published(self) -> bool:
        """True for the figures of a document: there is no plan and no trial."""
        return bool(self.manifest["kind"] == KIND_PUBLISHED)

    @property
    def traced(self) -> bool:
        """True for a trace by itself: there is no plan, and its tables are those of `tracing.tables`."""
        return bool(self.manifest["kind"] == KIND_TRACE)

    def guest(self) -> Result | None:
        """What a guest measured of the same study; None where there is nothing sound of it."""
        try:
            return open_result(self.path / GUEST) if os.path.isdir(self.path / GUEST) else None  # noqa: PTH112
        except ResultError:
            return None

    @property
    def workflows(self) -> bool:
        """True for what a media platform noted itself: there is no plan and no trial."""
        return bool(self.manifest["kind"] == KIND_WORKFLOWS)

    def trials(self) -> list[TrialRow]:
        """Every stored trial in the order of execution."""
        return list(self._trials)

    @cached_property
    def _trials(self) -> tuple[TrialRow, ...]:
        """Kept: several parts of a report ask, and each table of a trial is a file with many columns."""
        return tuple(sorted(_rows(self, "trials", TrialRow), key=lambda row: row.order))

    def latency(self) -> list[LatencyRow]:
        """Every stored histogram."""
        return _rows(self, "latency", LatencyRow)

    def series(self, sources: Sequence[str] = ()) -> list[SeriesRow]:
        """The stored samples, of all sources or of those named."""
        return _rows(self, "series", SeriesRow, sources)

    def sample_lines(self, trial: str) -> SampleLines:
        """All samples of a trial, line by line. Raises ResultError where its table is damaged."""
        found = self.bundles.sample_lines(trial) if self.bundled else None
        if found is not None:
            return found
        file = self.path / "series" / f"{trial}.parquet"
        with reading(file):
            return sample_lines_of(file, schema(SeriesRow))

    @cached_property
    def bundles(self) -> BundledResult:
        """What of it is bundled."""
        return BundledResult(self.path, self.finished)


def open_result(path: Path) -> Result:
    """Read manifest and journal; ResultError when the directory is no result or a newer one."""
    manifest = check_manifest(path)
    events = read_journal(path / JOURNAL)
    tables = _TRACED if manifest["kind"] == KIND_TRACE else TABLES
    return Result(path, manifest, events, finished_trials(path, events, tables))


def require_study(path: Path, manifest: dict[str, Any]) -> None:
    """Refuse a document's figures, or a trace, where the trials of a study are needed."""
    if manifest["kind"] == KIND_PUBLISHED:
        raise ResultError(
            f"{path} holds a document's values, not trials",
            "see it with: leadline show, report or reproduce",
        )
    if manifest["kind"] == KIND_WORKFLOWS:
        raise ResultError(
            f"{path} holds a platform's own times, not trials", "see it with: leadline show or report"
        )
    if manifest["kind"] == KIND_TRACE:
        raise ResultError(
            f"{path} holds a trace, not the trials of a study",
            "see it with: leadline show, report or compare",
        )


def require_cells(path: Path, manifest: dict[str, Any]) -> None:
    """Refuse what has no cells: what is no study, and a search of settings."""
    require_study(path, manifest)
    refuse_search(path, manifest)


def refuse_search(path: Path, manifest: dict[str, Any]) -> None:
    """Its targets were another proposal in each block: who took them for cells would mix these."""
    if "search" not in manifest:
        return
    raise ResultError(
        f"{path} is a search of settings: its trials are of many proposals, and make no cells",
        f"name the proof of what it found: {path / PROOF}"
        if (path / PROOF / MANIFEST).is_file()
        else f"it has no proof that could be named instead; see it with: leadline show {quoted(path)}",
    )


def check_manifest(path: Path) -> dict[str, Any]:
    """The manifest, or a ResultError that says what is wrong with it."""
    file = path / MANIFEST
    if not os.path.isdir(path):  # noqa: PTH112 - Path's raises where a parent may not be searched
        if recoverable(path):
            raise ResultError(
                f"{path} is not there: the trace that was to be stored in it was killed",
                f"store what it recorded: leadline trace --recover {quoted(path)}",
            )
        raise ResultError(f"{path} is not a directory", "name the directory that `leadline run --out` wrote")
    if not os.path.lexists(file):
        raise ResultError(
            f"{path} is no result of leadline: it has no {MANIFEST}",
            "name the directory that `leadline run --out` wrote; `leadline list DIR` finds them",
        )
    with reading(file):
        manifest = parse_json(read_plain(file, MANIFEST_BYTES_MAX))
    form = manifest.get("format") if isinstance(manifest, dict) else None
    name, _, version = str(form)[:80].partition("/")
    if name != RESULT_FORMAT or not (version.isascii() and version.isdigit()):
        raise ResultError(f"{file} is no manifest of leadline (format {name!r})", "name another directory")
    if int(version) > RESULT_VERSION:
        raise ResultError(
            f"{path} was written by a newer leadline"
            f" (format {name}/{version}; this one reads up to {RESULT_VERSION})",
            "upgrade leadline to read it",
        )
    kind = manifest.get("kind")
    if kind not in (KIND_PUBLISHED, KIND_TRACE, KIND_WORKFLOWS) and (
        kind != KIND_STUDY or not isinstance(manifest.get("plan"), dict)
    ):
        raise ResultError(f"{file} lacks its plan", RESTORE)
    with reading(file):
        from leadline.store.shapes import check_manifest_shape  # pydantic takes its time to load

        check_manifest_shape(manifest)
    found: dict[str, Any] = manifest
    return found


def finished_trials(
    path: Path, events: Iterable[Event], tables: Iterable[str] = tuple(TABLES)
) -> frozenset[str]:
    """Trials that the journal calls finished and whose tables are all there."""
    named = {trial for event in events for trial in event.finished}
    places = [str(path / table) for table in tables]
    return frozenset(
        trial
        for trial in named
        if all(os.path.isfile(f"{place}/{trial}.parquet") for place in places)  # noqa: PTH113
    )


def find_results(
    directory: Path, depth: int = 3, enter: Callable[[Path], bool] = lambda _: True
) -> Iterator[Path]:
    """Result directories below `directory`, itself included, not deeper than `depth`.

    What has anything called a manifest is one: whether it can be read is found out by opening it. `enter` is
    asked before a directory below is touched: a mount may be there that hangs.
    """
    if os.path.lexists(directory / MANIFEST):
        yield directory
        return
    if depth <= 0:
        return
    try:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for child in (directory / name for name in names if not name.startswith(".")):
        if enter(child):
            yield from find_results(child, depth - 1, enter)


def _rows(result: Result, table: str, row_type: Any, sources: Sequence[str] = ()) -> list[Any]:
    """Of what is bundled from there; from its own file where it is in no bundle, or that one is damaged."""
    rows: list[Any] = []
    alone = set(result.finished)
    for found, trials in result.bundles.rows(table, row_type, sources) if result.bundled else ():
        rows += found
        alone -= trials
    bundled = len(alone) < len(result.finished)
    paths = [str(result.path / table / f"{trial}.parquet") for trial in sorted(alone)]
    if paths:
        remedy = "restore the file from a copy, or remove it and run: leadline run --resume DIR"
        with reading(f"the table `{table}` of {result.path}", remedy):
            rows += read_rows(paths, row_type, result.finished, sources)
    if bundled:
        rows.sort(key=lambda row: row.trial)  # as they come from their own files
    return rows
