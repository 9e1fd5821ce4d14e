"""Which trials of a result are read from bundles, and which from their own files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.foreign import open_plain
from leadline.store.bundles.form import BundledTable, read_bundles
from leadline.store.parquet import SampleLines, StoredTable, sample_lines_in
from leadline.store.rows import read_rows
from leadline.store.tables import SeriesRow, schema


@dataclass(frozen=True)
class BundlePart:
    """A table of a bundle, and those of its trials whose rows are to be taken from it."""

    table: BundledTable
    trials: frozenset[str]

    @property
    def is_whole(self) -> bool:
        """Whether all its rows are wanted."""
        return len(self.trials) == len(self.table.trials)


class BundledResult:
    """The bundles of a result, looked at once, table by table as they are asked for."""

    def __init__(self, result: Path, finished: frozenset[str]) -> None:
        self._result, self._finished = result, finished
        self._bundles = read_bundles(result)
        self._parts: dict[str, tuple[BundlePart, ...]] = {}
        self._by_trial: Mapping[str, tuple[BundledTable, int]] | None = None
        self._opened: dict[Path, StoredTable | None] = {}

    def parts(self, table: str) -> tuple[BundlePart, ...]:
        """Of each trial at most one part has its rows: that of its own file as it is now."""
        if table not in self._parts:
            self._parts[table] = tuple(self._found(table))
        return self._parts[table]

    def _found(self, table: str) -> list[BundlePart]:
        directory, left, found = str(self._result / table), set(self._finished), []
        for bundle in self._bundles:
            one = bundle.tables.get(table)
            if one is None or not one.is_there():
                continue
            trials = frozenset(
                trial
                for trial, stamp in one.trials.items()
                if trial in left and stamp.fits(f"{directory}/{trial}.parquet")
            )
            if trials and one.is_sound():
                found.append(BundlePart(one, trials))
                left -= trials
        return found

    def rows(
        self, table: str, row_type: Any, sources: Sequence[str]
    ) -> Iterator[tuple[list[Any], frozenset[str]]]:
        """Rows, as `read_rows` has them, and the trials that they are of; of damaged bundles none."""
        parts = self.parts(table)
        whole = [part for part in parts if part.is_whole]
        # Of a trial that was measured anew a bundle has old rows, which are to be left out of it alone.
        for some in (whole, *([part] for part in parts if not part.is_whole)):
            yield from _rows_of(some, row_type, sources)

    def sample_lines(self, trial: str) -> SampleLines | None:
        """A trial's samples, as `store.parquet.sample_lines_of` has them; None where its own file tells."""
        if self._by_trial is None:
            self._by_trial = {
                name: (part.table, group)
                for part in self.parts("series")
                for group, name in enumerate(part.table.trials)
                if name in part.trials
            }
        if trial not in self._by_trial:
            return None
        table, group = self._by_trial[trial]
        try:
            stored = self._series(table)
            return None if stored is None else sample_lines_in(stored, schema(SeriesRow), group, trial)
        except Exception:  # whatever it is: the trial's own file is there
            return None

    def _series(self, table: BundledTable) -> StoredTable | None:
        """Kept open, as its trials are asked for in another order than they are stored in."""
        if table.file not in self._opened:
            self._opened[table.file] = None
            self._opened[table.file] = _opened_series(table)
        return self._opened[table.file]


def _rows_of(
    parts: Sequence[BundlePart], row_type: Any, sources: Sequence[str]
) -> Iterator[tuple[list[Any], frozenset[str]]]:
    """All at once; where something is wrong with that, each half by itself."""
    if not parts:
        return
    trials = frozenset[str]().union(*(part.trials for part in parts))
    only = None if parts[0].is_whole else trials
    files = [str(part.table.file) for part in parts]
    try:
        found = read_rows(files, row_type, trials, sources, only)
    except Exception:  # whatever it is: the trials' own files are there
        middle = len(parts) // 2
        for half in (parts[:middle], parts[middle:]) if middle else ():
            yield from _rows_of(half, row_type, sources)
        return
    yield found, trials


def _opened_series(table: BundledTable) -> StoredTable:
    """Raises whatever is wrong with it."""
    stored = StoredTable(open_plain(table.file), table.size)
    if stored.group_count != len(table.trials):
        raise ValueError("it has not one group of rows a trial")
    return stored
