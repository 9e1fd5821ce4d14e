"""Files that programs mapped into memory: what moves through a mapping is no call, and in no sum of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline import units
from leadline.tracing.counted.belongs import USER
from leadline.tracing.tables import TraceTables
from leadline.verdict.codes.catalogue import catalogue

if TYPE_CHECKING:
    import duckdb

SHOWN_MAX = 100
# What the loader and the C library map for every program is none of the user's.
_FILES = (
    "SELECT path, mapped_bytes, MMAPS, write_mmaps FROM files"
    " WHERE MMAPS > 0 AND coalesce(mapped_bytes, 1) > 0 AND belongs = ?"
    " ORDER BY mapped_bytes DESC NULLS LAST, path LIMIT ?"
)


@dataclass(frozen=True)
class MappedFile:
    """A file of data over all processes: bytes of its mappings, their number, and how many are such that
    what is written reaches the file. None is "not known"."""

    path: str
    mapped_bytes: int | None
    mappings: int
    write_mappings: int | None


@dataclass(frozen=True)
class Mapped:
    """Mapped files that matter beside what calls moved, the largest first, at most SHOWN_MAX.

    `faults_major` counts page faults that had to read, of all processes of the command, whatever they mapped;
    None where nobody counted them.
    """

    files: tuple[MappedFile, ...] = ()
    faults_major: int | None = None

    @property
    def mapped_bytes(self) -> int | None:
        """The bytes of all; None where those of one are not known."""
        sizes = [item.mapped_bytes for item in self.files]
        return None if None in sizes else sum(size or 0 for size in sizes)


def mapped_files(connection: duckdb.DuckDBPyConnection, moved_bytes: int) -> tuple[MappedFile, ...]:
    """Those of the view `files` that matter: together they are large beside the `moved_bytes` of calls.

    Small files are left out beside large ones. A size that is not known may be any.
    """
    limits = catalogue()["mapped_files"].thresholds
    rows = connection.execute(_FILES, [USER, SHOWN_MAX]).fetchall()
    files = [MappedFile(*row) for row in rows]
    least = max(limits["bytes"], limits["share"] * moved_bytes)
    sizes = [item.mapped_bytes for item in files]
    if None not in sizes and sum(size or 0 for size in sizes) < least:
        return ()
    small = limits["share"] * least
    return tuple(i for i in files if i.mapped_bytes is None or i.mapped_bytes >= small)


def faults_major(tables: TraceTables) -> int | None:
    """Page faults that had to read, where each copy's were counted."""
    known = [copy.get("faults_major") for copy in tables.extra.get("copies", ())]
    return None if None in known or not known else sum(known)


def mapped_words(found: Mapped, counts_as: str = "") -> str:
    """Which files, how large, and that the time of their page faults is not known. No full stop.

    `counts_as` is the word for the time that is reported and holds it, if any is.
    """
    largest, count = found.files[0], len(found.files)
    which = f"{largest.path} was mapped into memory ({_size(largest)})"
    if count > 1:
        total = "" if found.mapped_bytes is None else f", {units.format_size(found.mapped_bytes)} in all"
        which = f"{count:,} files were mapped into memory{total}, first {largest.path} ({_size(largest)})"
    how = "read and written" if any(item.write_mappings for item in found.files) else "read"
    it, its = ("it", "its") if count == 1 else ("them", "their")
    time = f", and counts as {counts_as}" if counts_as else ""
    majors = found.faults_major
    faults = "" if majors is None else f"; {majors:,} page faults of the whole command had to read"
    return (
        f"{which}: what was {how} through {it} is in no figure of bytes; how long {its} page faults took is"
        f" not known{time}{faults}"
    )


def mapped_size(found: Mapped) -> str:
    """How much of how many files was mapped."""
    size = "an unknown size" if found.mapped_bytes is None else units.format_size(found.mapped_bytes)
    return f"{size} of {len(found.files):,} {'file' if len(found.files) == 1 else 'files'}"


def _size(item: MappedFile) -> str:
    count = f"{item.mappings:,} mapping{'' if item.mappings == 1 else 's'}"
    if item.mapped_bytes is None:
        return f"{count}, of a size that is not known"
    return f"{units.format_size(item.mapped_bytes)} in {count}"
