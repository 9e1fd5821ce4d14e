"""Whose a file of a trace is, and the user's files that programs mapped into memory.

The owner is an SQL expression over the view of files, so that a hundred thousand are told apart in one pass.
What moves through a mapping is no call, and in no sum of bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline import units
from leadline.tracing.tables import TraceTables
from leadline.verdict.codes.catalogue import catalogue

if TYPE_CHECKING:
    import sqlite3


USER = "user"
_NAMED_MAX = 100
LOOKED_AT = "looked"  # the user's, too, but nothing was opened, moved or changed
# In the order in which they are said; each is a group of files with its words, of one and of several.
OTHERS: Mapping[str, tuple[str, str]] = {
    "missed": ("not found", "not found"),
    "library": ("library, module or program", "libraries, modules and programs"),
    "system": ("of the system", "of the system"),
    "memory": ("in memory that no file system holds", "in memory that no file system holds"),
    "directory": ("directory", "directories"),
    "stream": ("standard stream", "standard streams"),
    "untouched": ("open already, and not used", "open already, and not used"),
}
# What is there for programs wherever it lies. Data of users has these names too rarely to matter.
_LIBRARY = "|".join(
    (
        r"\.so(\.\d+)*$",
        r"\.py[co]$",
        r"/jre/lib/",
        r"/(site-packages|dist-packages|__pycache__|node_modules|lib-dynload|gconv)(/|$)",
        r"/lib(64)?/(python[\d.]+|perl5|ruby|R|tcl[\d.]*|jvm)(/|$)",
        r"/python[\d]+\.zip$",
        r"/pyvenv\.cfg$|/\.python-version$",
        r"/\.(pyenv|rbenv|nvm|asdf|cargo|rustup|sdkman)(/|$)",
        r"/(s?bin|libexec|shims)/[^/]+$",
        r"^/usr/(lib|lib32|lib64|libx32|libexec|include|local/lib)(/|$)",
        r"^/lib(32|64|x32)?(/|$)",
    )
)
_SYSTEM = "|".join(
    (
        r"^/(proc|sys|dev|etc|run|boot)(/|$)",
        r"^/usr(/(share|local/(share|etc)|games)(/.*)?)?$",
        r"^/var/(run|lib/(dpkg|apt|sss|nscd)|cache/(fontconfig|ldconfig|man|nscd))(/|$)",
        r"/share/(locale|zoneinfo|i18n|terminfo|nls)(/|$)",
    )
)
_SHARED_MEMORY = "/dev/shm/"  # noqa: S108 - recognised, not used
# Files without a place (memfd_create, System V segments), and what the C library makes of semaphores.
_MEMORY = r"^/memfd:|^/SYSV[0-9a-f]{8}|^/dev/shm/sem\."
# A file there that is mapped to be written is a segment that processes share. One that is only read and
# written by calls, or mapped to be read, is a file that somebody put there.
_SEGMENT = f"starts_with(path, '{_SHARED_MEMORY}') AND coalesce(write_mmaps, MMAPS, 0) > 0"
_STREAM = r"^<STD(IN|OUT|ERR)>$"
# Any of these says that a file was there; all but STATS and SEEKS that the program worked with it.
_DONE = (
    "OPENS", "READS", "WRITES", "STATS", "SEEKS", "MMAPS", "FSYNCS", "FDSYNCS", "RENAME_SOURCES",
    "RENAME_TARGETS", "unlinks", "mkdirs", "rmdirs", "readdirs", "links", "truncates", "allocates",
)  # fmt: skip


def _any(pattern: str) -> str:
    return f"regexp_matches(path, '{pattern}')"


def belongs_sql(named: Iterable[str]) -> str:
    """Which of USER and OTHERS a row of the view is. Needs a table `ancestors` (path) of directories.

    `named` are paths of the command's own words: what lies there is the user's, wherever that is.
    """
    done = " + ".join(f"coalesce({name}, 0)" for name in _DONE)
    worked = " + ".join(f"coalesce({name}, 0)" for name in _DONE if name not in ("STATS", "SEEKS"))
    directory = (
        "coalesce(readdirs, 0) + coalesce(mkdirs, 0) + coalesce(rmdirs, 0) > 0"
        " OR path IN (SELECT path FROM ancestors)"
    )
    quoted = [place.replace("'", "''") for place in named]
    own = " OR ".join(f"path = '{place}' OR starts_with(path, '{place}/')" for place in quoted)
    return (
        "CASE"
        f" WHEN {_any(_STREAM)} THEN 'stream'"
        f" WHEN moved_bytes = 0 AND {done} = 0 THEN iif(coalesce(failed, 0) > 0, 'missed', 'untouched')"
        f" WHEN moved_bytes = 0 AND ({directory}) THEN 'directory'"
        f"{f' WHEN {own} THEN {USER!r}' if own else ''}"
        f" WHEN {_any(_MEMORY)} OR ({_SEGMENT}) THEN 'memory'"
        f" WHEN {_any(_LIBRARY)} THEN 'library'"
        f" WHEN {_any(_SYSTEM)} AND NOT starts_with(path, '{_SHARED_MEMORY}') THEN 'system'"
        f" WHEN moved_bytes = 0 AND {worked} = 0 THEN {LOOKED_AT!r}"
        f" ELSE {USER!r} END"
    )


def ancestors(paths: Iterable[str]) -> list[str]:
    """Each path's directory, its directory, and so on: a path that holds others of the trace."""
    found: set[str] = set()
    for path in paths:
        up = path
        while up.startswith("/") and (up := up.rpartition("/")[0]) not in found:
            found.add(up)
    return [up or "/" for up in found]


def named_places(commands: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Absolute paths among the words behind the programs' names, but not the root of everything."""
    found: dict[str, None] = {}
    for words in commands:
        for word in words[1:]:
            place = re.sub(r"/+$", "", word.partition("=")[2] if word.startswith("-") else word)
            if place.startswith("/") and "\0" not in place and not re.search(_LIBRARY, place):
                found[place] = None
    return tuple(found)[:_NAMED_MAX]


def others_words(counts: Mapping[str, int]) -> str:
    """`301 others: 250 not found, 51 libraries, modules and programs`; empty without any."""
    parts = [
        f"{counts[kind]:,} {words[0] if counts[kind] == 1 else words[1]}"
        for kind, words in OTHERS.items()
        if counts.get(kind)
    ]
    total = sum(counts.get(kind, 0) for kind in OTHERS)
    return f"{total:,} {'other' if total == 1 else 'others'}: {', '.join(parts)}" if total else ""


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


def whole(number: float | None) -> int | None:
    """A count as it was before it was put into a table of fractions."""
    return None if number is None else int(number)


def mapped_files(connection: sqlite3.Connection, moved_bytes: int) -> tuple[MappedFile, ...]:
    """Those of the view `files` that matter: together they are large beside the `moved_bytes` of calls.

    Small files are left out beside large ones. A size that is not known may be any.
    """
    limits = catalogue()["mapped_files"].thresholds
    rows = connection.execute(_FILES, [USER, SHOWN_MAX]).fetchall()
    files = [
        MappedFile(path, whole(mapped_bytes), int(mappings), whole(write_mappings))
        for path, mapped_bytes, mappings, write_mappings in rows
    ]
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
        f"{which}: totals of bytes lack what was {how} through {it}; the time of {its} page faults is"
        f" unknown{time}{faults}"
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
