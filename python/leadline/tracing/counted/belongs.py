"""Whose a file of a trace is: the user's, or one that any program touches before it does anything.

An SQL expression over the view of files, so that a hundred thousand of them are told apart in one pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

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
        "coalesce(readdirs, 0) + coalesce(mkdirs, 0) + coalesce(rmdirs, 0) > 0 OR path IN (FROM ancestors)"
    )
    quoted = [place.replace("'", "''") for place in named]
    own = " OR ".join(f"path = '{place}' OR starts_with(path, '{place}/')" for place in quoted)
    return (
        "CASE"
        f" WHEN {_any(_STREAM)} THEN 'stream'"
        f" WHEN moved_bytes = 0 AND {done} = 0 THEN if(coalesce(failed, 0) > 0, 'missed', 'untouched')"
        f" WHEN moved_bytes = 0 AND ({directory}) THEN 'directory'"
        f"{f' WHEN {own} THEN {USER!r}' if own else ''}"
        f" WHEN {_any(_MEMORY)} OR ({_SEGMENT}) THEN 'memory'"
        f" WHEN {_any(_LIBRARY)} THEN 'library'"
        f" WHEN {_any(_SYSTEM)} AND NOT starts_with(path, '{_SHARED_MEMORY}') THEN 'system'"
        f" WHEN moved_bytes = 0 AND {worked} = 0 THEN {LOOKED_AT!r}"
        f" ELSE {USER!r} END"
    )


# Each path's directory, its directory, and so on: a path that holds others of the trace.
ANCESTORS_SQL = (
    "WITH RECURSIVE up(path) AS ("
    " SELECT DISTINCT regexp_replace(path, '/[^/]*$', '') FROM {rows} WHERE starts_with(path, '/')"
    " UNION SELECT regexp_replace(path, '/[^/]*$', '') FROM up WHERE path <> ''"
    ") SELECT CASE WHEN path = '' THEN '/' ELSE path END AS path FROM up"
)


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
