"""Reading results: checked first, then as tables through DuckDB, one result or thousands."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from leadline.errors import ResultError
from leadline.store.files import JOURNAL, MANIFEST, RESULT_FORMAT, RESULT_VERSION
from leadline.store.journal import Event, read_journal
from leadline.store.tables import TABLES, LatencyRow, SeriesRow, TrialRow

KIND_STUDY, KIND_PUBLISHED, KIND_TRACE = "study", "published", "trace"
KIND_WORKFLOWS = "workflows"
_TRACED = ("processes", "files")  # the tables that a trial of a trace cannot do without


GUEST = "guest"  # directory of a result: the same study, run in a guest of the same lab


@dataclass(frozen=True)
class Result:
    """A result directory that was found sound. Tables are read when they are asked for."""

    path: Path
    manifest: dict[str, Any]
    events: tuple[Event, ...]
    finished: frozenset[str]

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
        """True for a trace by itself: there is no plan, and its tables are those of `store.traces`."""
        return bool(self.manifest["kind"] == KIND_TRACE)

    def guest(self) -> Result | None:
        """What a guest measured of the same study; None where there is nothing sound of it."""
        try:
            return open_result(self.path / GUEST) if (self.path / GUEST).is_dir() else None
        except ResultError:
            return None

    @property
    def workflows(self) -> bool:
        """True for what a media platform noted itself: there is no plan and no trial."""
        return bool(self.manifest["kind"] == KIND_WORKFLOWS)

    def trials(self) -> list[TrialRow]:
        """Every stored trial in the order of execution."""
        rows = _rows(self, "trials", TrialRow)
        return sorted(rows, key=lambda row: row.order)

    def latency(self) -> list[LatencyRow]:
        """Every stored histogram."""
        return _rows(self, "latency", LatencyRow)

    def series(self, sources: Sequence[str] = ()) -> list[SeriesRow]:
        """The stored samples, of all sources or of those named."""
        condition = f"source IN ({', '.join('?' * len(sources))})" if sources else ""
        return _rows(self, "series", SeriesRow, condition, sources)


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
            f"{path} holds a document's figures, not trials",
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


def check_manifest(path: Path) -> dict[str, Any]:
    """The manifest, or a ResultError that says what is wrong with it."""
    file = path / MANIFEST
    if not path.is_dir():
        raise ResultError(f"{path} is not a directory", "name the directory that `leadline run --out` wrote")
    try:
        manifest: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResultError(
            f"{path} is no result of leadline: it has no {MANIFEST}",
            "name the directory that `leadline run --out` wrote; `leadline list DIR` finds them",
        ) from None
    except (OSError, ValueError) as error:
        raise ResultError(f"{file} cannot be read: {error}", "restore it from a copy of the result") from None
    form = manifest.get("format") if isinstance(manifest, dict) else None
    name, _, version = str(form).partition("/")
    if name != RESULT_FORMAT or not version.isdigit():
        raise ResultError(f"{file} is no manifest of leadline (format {form!r})", "name another directory")
    if int(version) > RESULT_VERSION:
        raise ResultError(
            f"{path} was written by a newer leadline (format {form}; this one reads up to {RESULT_VERSION})",
            "upgrade leadline to read it",
        )
    kind = manifest.get("kind")
    if kind not in (KIND_PUBLISHED, KIND_TRACE, KIND_WORKFLOWS) and (
        kind != KIND_STUDY or not isinstance(manifest.get("plan"), dict)
    ):
        raise ResultError(f"{file} lacks its plan", "restore it from a copy of the result")
    return manifest


def finished_trials(
    path: Path, events: Iterable[Event], tables: Iterable[str] = tuple(TABLES)
) -> frozenset[str]:
    """Trials that the journal calls finished and whose tables are all there."""
    named: set[str] = set()
    for event in events:
        if event.event == "trial_finished":
            named.add(str(event.details.get("trial")))
        elif event.event == "trials_finished":  # jobs of one group: all of them or none
            named.update(event.details.get("trials") or ())
    wanted = tuple(tables)
    return frozenset(t for t in named if all((path / table / f"{t}.parquet").is_file() for table in wanted))


def find_results(
    directory: Path, depth: int = 3, enter: Callable[[Path], bool] = lambda _: True
) -> Iterator[Path]:
    """Result directories below `directory`, itself included, not deeper than `depth`.

    `enter` is asked before a directory below is touched: a mount may be there that hangs.
    """
    if (directory / MANIFEST).is_file():
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


def _rows(
    result: Result, table: str, row_type: Any, condition: str = "", values: Sequence[str] = ()
) -> list[Any]:
    import duckdb

    paths = [str(result.path / table / f"{trial}.parquet") for trial in sorted(result.finished)]
    if not paths:
        return []
    where = f" WHERE {condition}" if condition else ""
    with duckdb.connect() as connection:
        try:
            cursor = connection.execute(
                f"SELECT * FROM read_parquet(?, union_by_name=true){where}",  # noqa: S608 - condition is ours
                [paths, *values],
            )
            names = [column[0] for column in cursor.description]
            records = cursor.fetchall()
        except duckdb.Error as error:
            raise ResultError(
                f"a table `{table}` of {result.path} is damaged: {str(error).splitlines()[0]}",
                "restore the file from a copy, or remove it and run: leadline run --resume DIR",
            ) from None
    index = {name: position for position, name in enumerate(names)}
    ordered = [index.get(field.name) for field in fields(row_type) if not field.kw_only]
    named = [(field.name, index.get(field.name)) for field in fields(row_type) if field.kw_only]

    def read(record: Sequence[Any]) -> Any:
        return row_type(
            *(None if place is None else record[place] for place in ordered),
            **{name: None if place is None else record[place] for name, place in named},
        )

    return [read(record) for record in records]
