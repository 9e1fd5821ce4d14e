"""One name for one file: what a path says besides where it leads.

`a//b` and `a/./b` are always `a/b`. `a/../b` is `b` only where `a` is a directory itself: behind a symbolic
link `..` is the parent of what it leads to. So `..` goes where somebody knows that `a` is no link, and stays
where nobody does.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from leadline.tracing.tables import TraceTables

if TYPE_CHECKING:
    import pyarrow as pa

# Rows of what has a path, and is no file: a program waits there for another one. In no sum of files' time.
STREAM = "FIFO"
PATHS_ASKED = 20_000  # of a trace; more stay as they are
SLOWEST_ASKED = 256  # rows, the longest first: whether they are FIFOs
_NAMED_STREAM = re.compile(
    r"^<STD(?:IN|OUT|ERR)>$|/(?:named_?)?(?:pipe|fifo)(?:[._-]*\d+)?$|\.(?:fifo|pipe|sock|socket)$|^(?:pipe|socket):"
)
_TIMES = ("F_READ_TIME", "F_WRITE_TIME", "F_META_TIME")


def tidied(path: str, is_directory: Callable[[str], bool]) -> str:
    """`path` without `//`, `/./`, and each `..` behind what `is_directory` says is one, and no link."""
    if not path.startswith("/") or ("//" not in path and "/." not in path):
        return path
    parts: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part != "..":
            parts.append(part)
        elif parts and parts[-1] != ".." and is_directory("/" + "/".join(parts)):
            parts.pop()
        elif parts:  # the root is its own parent
            parts.append(part)
    return "/" + "/".join(parts)


def is_stream_by_name(path: str) -> bool:
    """Whether a path is called as FIFOs, pipes and sockets are: for sources that keep names only."""
    return _NAMED_STREAM.search(path) is not None


def told(paths: Sequence[str], slowest: Iterable[str], doing: Callable[[str], None]) -> dict[str, str | None]:
    """What this machine says of paths: another name for the same file, or None for a FIFO or a socket.

    Touches the file systems that they are on: ask in a fork. `doing` is told each path before it is touched.
    """
    known: dict[str, int] = {}

    def kind(path: str) -> int:
        if path not in known:
            doing(path)
            known[path] = 0
            with suppress(OSError, ValueError):
                known[path] = stat.S_IFMT(os.lstat(path).st_mode)
        return known[path]

    found: dict[str, str | None] = {}
    for path in paths:
        name = tidied(path, lambda place: kind(place) == stat.S_IFDIR)
        if name != path:
            found[path] = name
    for path in slowest:
        if kind(path) in (stat.S_IFIFO, stat.S_IFSOCK):
            found[path] = None
    return found


def questions(files: pa.Table) -> tuple[list[str], list[str]]:
    """The paths of a table `files` that `told` is to be asked of, and those whose calls took longest."""
    import pyarrow.compute as pc

    dotted = pc.unique(files["path"].filter(pc.match_substring_regex(files["path"], r"//|/\.")))
    spent = None
    for name in _TIMES:
        part = pc.fill_null(files[name], 0.0)
        spent = part if spent is None else pc.add(spent, part)
    order = pc.select_k_unstable(
        files.select(["path"]).append_column("spent", spent),
        k=min(SLOWEST_ASKED, files.num_rows),
        sort_keys=[("spent", "descending")],
    )
    slowest = dict.fromkeys(files["path"].take(order).to_pylist())
    return dotted.to_pylist()[:PATHS_ASKED], [path for path in slowest if path.startswith("/")]


def renamed(tables: TraceTables, names: dict[str, str | None]) -> TraceTables:
    """The tables with what `told` said: rows of FIFOs are marked, other paths have the one name."""
    if not names or not tables.files.num_rows:
        return tables
    import pyarrow as pa

    files = tables.files
    paths, modules = files["path"].to_pylist(), files["module"].to_pylist()
    streams = {path for path, name in names.items() if name is None}
    new = {
        "module": [
            STREAM if path in streams else module for path, module in zip(paths, modules, strict=True)
        ],
        "path": [names.get(path) or path for path in paths],
    }
    for column, values in new.items():
        place = files.schema.get_field_index(column)
        files = files.set_column(place, files.schema.field(column), pa.array(values, pa.string()))
    return without_waiting(replace(tables, files=files))


def without_waiting(tables: TraceTables) -> TraceTables:
    """The tables without the time of FIFOs in their processes' seconds: it was spent waiting for others."""
    import pyarrow.compute as pc

    streams = tables.files.filter(pc.equal(tables.files["module"], STREAM))
    if not streams.num_rows:
        return tables
    sums = streams.group_by(["copy", "process"]).aggregate([(name, "sum") for name in _TIMES]).to_pylist()
    waited = {(row["copy"], row["process"]): [row[f"{name}_sum"] or 0.0 for name in _TIMES] for row in sums}
    rows = []
    for row in tables.processes:
        seconds = json.loads(row.seconds or "null") or {}
        for kind, spent in zip(
            ("read", "write", "meta"), waited.get((row.copy, row.process), ()), strict=False
        ):
            if seconds.get(kind) is not None:
                seconds[kind] = max(0.0, seconds[kind] - spent)
        rows.append(replace(row, seconds=json.dumps(seconds)) if (row.copy, row.process) in waited else row)
    return replace(tables, processes=tuple(rows))
