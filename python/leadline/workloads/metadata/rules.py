"""Contradictions in a work of metadata operations: foreign options, phases that cannot follow each other."""

from __future__ import annotations

from collections.abc import Iterator

from leadline import units
from leadline.study.kind.rule import BS_DEFAULT_BYTES, Problem
from leadline.workloads.metadata.job import (
    DIRECTORIES_MAX,
    FIRST_BYTE,
    NEEDS_FILES,
    tree_directories,
)
from leadline.workloads.metadata.options import MetadataOptions

_TREE = ("branch", "depth", "private")
_FILE_MAX_BYTES = units.GIB
_LAID_OUT_FILES_MAX = 1 << 20  # the engine's limit of files of one job


def metadata_rules(options: MetadataOptions) -> Iterator[Problem]:
    """All that can be wrong with a work that has operations."""
    yield from _times(options)
    yield from _phases(options)
    if FIRST_BYTE in (options.operations or ()):
        yield from _first_byte(options)
    else:
        yield from _tree(options)


def _times(options: MetadataOptions) -> Iterator[Problem]:
    if options.time_based and not options.runtime:
        yield Problem("time_based", "needs a runtime above 0", "add runtime, for example runtime: 30s")
    if options.runtime and not options.time_based:
        yield Problem(
            "runtime",
            "operations end when each file was met once",
            "add time_based: true for whole passes until runtime is over, or leave it out",
        )


def _phases(options: MetadataOptions) -> Iterator[Problem]:
    """Follows what exists from phase to phase; what was never said to be made is made beforehand."""
    names = options.operations or []
    if not names:
        yield Problem("operations", "names no operation", "write for example [create, stat, unlink]")
    exists: dict[str, bool] = {}
    for place, name in enumerate(names):
        if name in names[:place]:
            yield Problem("operations", f"{name} is given twice", "keep one; phases have one place each")
        kind = "directories" if name in ("mkdir", "rmdir") else "files"
        if name in ("create", "mkdir"):
            if exists.get(kind):
                yield Problem(
                    "operations",
                    f"{name} comes when the {kind} are there already",
                    f"put {name} before what needs them",
                )
            exists[kind] = True
        elif name in (*NEEDS_FILES, "rmdir"):
            if exists.get(kind) is False:
                gone = "rmdir" if kind == "directories" else "unlink"
                yield Problem("operations", f"{name} comes after {gone}", f"put {gone} last")
            exists[kind] = name not in ("unlink", "rmdir")


def _first_byte(options: MetadataOptions) -> Iterator[Problem]:
    if len(options.operations or ()) > 1:
        yield Problem(
            "operations",
            "first_byte reads cold files that are laid out beforehand, so it stands alone",
            "make a work of its own of it",
        )
    for key in _TREE:
        if getattr(options, key) is not None:
            yield Problem(key, "means nothing with first_byte, whose files lie side by side", "leave it out")
    file_size = options.file_size or 0
    bs = BS_DEFAULT_BYTES if options.bs is None else options.bs
    if file_size == 0:
        yield Problem("file_size", "first_byte needs files with data", "add file_size, for example 64k")
    elif isinstance(bs, tuple) or not 1 <= bs <= file_size:
        yield Problem("bs", "first_byte reads one block of at most file_size", "write a smaller bs")
    if (options.files or 1) * (options.numjobs or 1) > _LAID_OUT_FILES_MAX:
        yield Problem("files", f"more than {_LAID_OUT_FILES_MAX:,} files in all are laid out", "write fewer")
    if file_size > _FILE_MAX_BYTES:
        yield Problem("file_size", f"{units.exact_size(file_size)} is above 1g", "write at most 1g")


def _tree(options: MetadataOptions) -> Iterator[Problem]:
    if options.bs is not None:
        yield Problem("bs", "means nothing but with first_byte", "leave it out; file_size is what is written")
    if options.direct is not None:
        yield Problem("direct", "means nothing but with first_byte, which reads data", "leave it out")
    if options.branch is not None and not options.depth:
        yield Problem("branch", "means nothing without depth", "add depth, for example depth: 2")
    branch, depth = options.branch or 1, options.depth or 0
    if tree_directories(branch, depth) > DIRECTORIES_MAX:
        yield Problem(
            "depth",
            f"branch {branch} and depth {depth} make more than {DIRECTORIES_MAX:,} directories",
            "lower one of them",
        )
    if (options.file_size or 0) > _FILE_MAX_BYTES:
        yield Problem(
            "file_size", f"{units.exact_size(options.file_size or 0)} is above 1g", "write at most 1g"
        )
