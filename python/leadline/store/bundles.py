"""Bundles: the rows of many finished trials in one file a table, so that readers open few files."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from leadline.durable import write_whole
from leadline.errors import LeadlineError
from leadline.foreign import open_plain, parse_json, read_plain
from leadline.store.files import make_directory
from leadline.store.parquet import SampleLines, StoredTable, fitted, read_rows, sample_lines_in
from leadline.store.tables import TABLES, Row, SeriesRow, schema

if TYPE_CHECKING:
    import pyarrow as pa


BUNDLES = "bundles"
FORMAT = "leadline.bundle/1"
_LIST_BYTES_MAX = 16 << 20
_LIST = re.compile(r"([0-9]{4,9})\.json")
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class FileStamp:
    """What a trial's own file was when its rows were taken from it."""

    size: int
    mtime_ns: int
    digest: str

    def fits(self, file: str) -> bool:
        """Whether it still is that: by its time, or, as copies have another, by its bytes."""
        try:
            found = os.stat(file)  # noqa: PTH116 - of thousands of names, which are text
            if not stat.S_ISREG(found.st_mode) or found.st_size != self.size:
                return False
            return found.st_mtime_ns == self.mtime_ns or digest_of(Path(file)) == self.digest
        except OSError:
            return False


@dataclass(frozen=True)
class BundledTable:
    """One table of a bundle; `trials` are in the order of their rows."""

    file: Path
    size: int
    digest: str
    trials: Mapping[str, FileStamp]

    def is_there(self) -> bool:
        """Whether there is a file of that size, which costs nothing to find out."""
        try:
            found = self.file.lstat()
        except OSError:
            return False
        return stat.S_ISREG(found.st_mode) and found.st_size == self.size

    def is_sound(self) -> bool:
        """Whether it is that file to the byte."""
        try:
            return self.is_there() and digest_of(self.file) == self.digest
        except OSError:
            return False


@dataclass(frozen=True)
class TrialBundle:
    """One list, with its tables by name."""

    number: int
    tables: Mapping[str, BundledTable]


def digest_of(file: Path) -> str:
    """Of a plain file's bytes. Raises OSError."""
    found = hashlib.blake2b(digest_size=16)
    with open_plain(file) as opened:
        for part in _parts_of(opened):
            found.update(part)
    return found.hexdigest()


def digest_of_bytes(data: bytes) -> str:
    """The same of bytes at hand."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _parts_of(file: BinaryIO) -> Iterator[bytes]:
    while part := file.read(_CHUNK_BYTES):
        yield part


def numbers_in(result: Path) -> list[int]:
    """The numbers of the lists in a result, in order."""
    try:
        names = os.listdir(result / BUNDLES)  # noqa: PTH208 - names are all that is asked for
    except OSError:
        return []
    return sorted(int(found[1]) for found in map(_LIST.fullmatch, names) if found)


def list_file(result: Path, number: int) -> Path:
    """Where the list of a bundle is."""
    return result / BUNDLES / f"{number:04d}.json"


def table_file(result: Path, number: int, table: str) -> Path:
    """Where a table of a bundle is."""
    return result / BUNDLES / table / f"{number:04d}.parquet"


def list_of(tables: Mapping[str, BundledTable]) -> bytes:
    """A list as it is stored."""
    found = {
        name: {
            "bytes": table.size,
            "digest": table.digest,
            "trials": {trial: [one.size, one.mtime_ns, one.digest] for trial, one in table.trials.items()},
        }
        for name, table in tables.items()
    }
    return json.dumps({"format": FORMAT, "tables": found}).encode()


def read_bundles(result: Path) -> list[TrialBundle]:
    """The bundles of a result, the newest first. What cannot be read is passed over."""
    found = []
    for number in reversed(numbers_in(result)):
        try:
            found.append(_read_list(result, number))
        except Exception:  # noqa: S112 - whatever it is: the trials' own files are there
            continue
    return found


def _read_list(result: Path, number: int) -> TrialBundle:
    """Raises whatever is wrong with it."""
    value = parse_json(read_plain(list_file(result, number), _LIST_BYTES_MAX))
    if value["format"] != FORMAT:
        raise ValueError("it is of another version")
    return TrialBundle(
        number,
        {name: _table(table_file(result, number, name), one) for name, one in value["tables"].items()},
    )


def _table(file: Path, value: Mapping[str, Any]) -> BundledTable:
    trials = {
        trial: FileStamp(_whole(size), _whole(mtime_ns), str(digest))
        for trial, (size, mtime_ns, digest) in value["trials"].items()
    }
    return BundledTable(file, _whole(value["bytes"]), str(value["digest"]), trials)


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    return value


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


TRIALS_MAX = 200  # of one bundle
FEW = 8  # so many files are opened in no time
# To read a larger file takes longer than to open it; and bundles are to cost little space and memory.
_FILE_BYTES_MAX = 64 << 10
_GROUP_ROWS = 1 << 16


def bundle_trials(result: Path, finished: Iterable[str], at_least: int = FEW, most: int | None = None) -> int:
    """Put the trials that are in no bundle into new ones, `most` of them; how many.

    Of fewer than `at_least` finished trials there is none.

    Files that cannot be read, and bundles that cannot be written, are no error: readers do without.
    Only who holds the result's lock, or made it, may call this.
    """
    known = frozenset(finished)
    done = 0
    if len(known) >= at_least:
        rest = _unbundled(result, known)[:most]
        with suppress(OSError, LeadlineError):
            for first in range(0, len(rest), TRIALS_MAX):
                done += _write_bundle(result, rest[first : first + TRIALS_MAX])
    return done


def _unbundled(result: Path, finished: Iterable[str]) -> list[str]:
    """Trials that could be in a bundle and are in none."""
    having: dict[str, list[FileStamp]] = {}
    for bundle in read_bundles(result):
        table = bundle.tables.get("trials")
        if table is not None and all(one.is_there() for one in bundle.tables.values()):
            for trial, stamp in table.trials.items():
                having.setdefault(trial, []).append(stamp)
    return [
        trial
        for trial in sorted(finished)
        if _is_small(file := str(result / "trials" / f"{trial}.parquet"))
        and not any(stamp.fits(file) for stamp in having.get(trial, ()))
    ]


def _is_small(file: str) -> bool:
    try:
        return os.stat(file).st_size <= _FILE_BYTES_MAX  # noqa: PTH116 - of thousands of names, which are text
    except OSError:
        return False


def _write_bundle(result: Path, trials: Sequence[str]) -> int:
    """Tables first, the list of them last. Raises OSError and LeadlineError."""
    number = max(numbers_in(result), default=0) + 1
    make_directory(result / BUNDLES)
    tables = {
        table: _write_table(result, table, row_type, number, trials) for table, row_type in TABLES.items()
    }
    write_whole(list_file(result, number), list_of(tables))
    return len(tables["trials"].trials)


def _write_table(
    result: Path, table: str, row_type: type[Row], number: int, trials: Sequence[str]
) -> BundledTable:
    import pyarrow.parquet as pq

    file, wanted, stamps = table_file(result, number, table), schema(row_type), dict[str, FileStamp]()
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, wanted, compression="zstd") as writer:
        for rows in _groups(_own_rows(result, table, trials, wanted, stamps), table == "series"):
            writer.write_table(rows)
    data = buffer.getvalue()
    make_directory(file.parent)
    write_whole(file, data)
    return BundledTable(file, len(data), digest_of_bytes(data), stamps)


def _groups(tables: Iterable[pa.Table], each: bool) -> Iterator[pa.Table]:
    """Groups of rows: of `each` table one, as samples are asked for by trial; else large ones."""
    import pyarrow as pa

    waiting: list[Any] = []
    for one in tables:
        waiting.append(one)
        if each or sum(rows.num_rows for rows in waiting) >= _GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _own_rows(
    result: Path, table: str, trials: Sequence[str], wanted: pa.Schema, stamps: dict[str, FileStamp]
) -> Iterator[pa.Table]:
    """The rows of each trial whose file is fit for it; `stamps` tells which these are."""
    for trial in trials:
        try:
            stamp, rows = _read(result / table / f"{trial}.parquet", trial, wanted)
        except Exception:  # noqa: S112 - whatever is wrong with it: who reads it by itself is told
            continue
        stamps[trial] = stamp
        yield rows


def _read(file: Path, trial: str, wanted: pa.Schema) -> tuple[FileStamp, pa.Table]:
    """A file as it was, and its rows. Raises whatever keeps it out of bundles."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with open_plain(file) as opened:
        found = os.fstat(opened.fileno())
        if found.st_size > _FILE_BYTES_MAX:
            raise ValueError("it is large")
        data = opened.read(found.st_size + 1)
    if len(data) != found.st_size:
        raise ValueError("it is being written")
    rows = StoredTable(pa.BufferReader(data), len(data)).read()
    if not set(rows.column_names) <= set(wanted.names):
        raise ValueError("it has columns of a newer version, which would be lost")
    if pc.unique(rows.column("trial")).to_pylist() not in ([], [trial]):
        raise ValueError("it has rows of another trial")
    if not rows.schema.equals(wanted):  # of another version
        rows = fitted(rows, wanted)
    return FileStamp(found.st_size, found.st_mtime_ns, digest_of_bytes(data)), rows
