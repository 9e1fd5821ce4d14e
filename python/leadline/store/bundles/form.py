"""What bundles look like on disk, and whether they still say what the trials' own files do.

    bundles/0001.json            the list: of each table the bundle's size and digest, and of each trial in it
                                 the size, time and digest that its own file had
    bundles/trials/0001.parquet  the rows of those trials; so `latency`, and `series` with a row group a trial

The list is written last: without it the files beside it are nothing, so a crash leaves a bundle or none.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from leadline.foreign import open_plain, parse_json, read_plain

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
