"""Copies of results from other machines: read whole before, compared after, never over anything."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from leadline.durable import written_whole
from leadline.errors import ResultError, UsageError
from leadline.registry import offered
from leadline.store.bundles import bundle_trials
from leadline.store.by_host import BY_HOST, read_by_host
from leadline.store.files import (
    DOCUMENT,
    HOST_FILES,
    JOURNAL,
    MANIFEST,
    OUTPUT,
    PROOF,
    SCRIPT,
    TRACE_TABLES,
    WORKFLOWS,
    make_directory,
)
from leadline.store.making import made_result
from leadline.store.own import ACKS, PROPOSALS, STAGES, read_proposals, read_stages
from leadline.store.reader import Result, find_results, open_result
from leadline.store.tables import TABLES

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def check_whole(path: Path) -> Result:
    """Open a result and read every table of it. Raises ResultError where it is damaged or newer.

    Each trial's own files are read: they are what is copied.
    """
    for file in path.rglob("*"):
        if file.is_symlink() or not (file.is_file() or file.is_dir()):
            raise ResultError(
                f"{path} holds {file.name}, which is no plain file", "copy the result without links"
            )
    result = open_result(path)
    if result.published or result.workflows:
        offered("values of a document" if result.published else "stored workflows")(result)
        return result
    offered("checks of traces")(result)
    named = [str(event.details.get("trial")) for event in result.events if event.event == "trial_finished"]
    lost = sorted(set(named) - result.finished)
    if lost:
        raise ResultError(f"{path} lacks tables of {lost[0]}", "copy the result again")
    own = replace(result, bundled=False)
    for read in () if result.traced else (own.trials, own.latency, own.series):
        read()
    read_stages(result)
    read_by_host(result)
    read_proposals(path)
    if "search" in result.manifest and (path / PROOF / MANIFEST).is_file():
        check_whole(path / PROOF)
    return result


def known_ids(directory: Path, enter: Callable[[Path], bool] = lambda _: True) -> dict[str, Path]:
    """The results below a directory by their ids; what cannot be read is left out."""
    found = {}
    for path in find_results(directory, enter=enter):
        try:
            found[str(open_result(path).manifest["id"])] = path
        except ResultError:
            continue
    return found


def copy_result(result: Result, directory: Path) -> Path:
    """Copy a checked result below `directory`; it appears whole or not at all. Raises UsageError."""
    name = _UNSAFE.sub("_", result.path.resolve().name).lstrip(".") or "result"
    place = directory / name
    if place.exists() or place.is_symlink():
        place = directory / f"{name}-{_UNSAFE.sub('_', str(result.manifest['id']))}"
    if place.exists() or place.is_symlink():
        raise UsageError(f"{place} exists already", "name another directory with -o")
    try:
        private = not result.path.stat().st_mode & 0o077
        with made_result(place, private=private) as (partial, _):
            for source in _files(result.path):
                target = partial / source.relative_to(result.path)
                for above in reversed(source.relative_to(result.path).parents[:-1]):
                    make_directory(partial / above)
                with source.open("rb") as data, written_whole(target) as file:
                    shutil.copyfileobj(data, file)
            _compare(result, partial)
            _bundle(partial)
    except OSError as error:
        raise UsageError(
            f"{place} cannot be written: {error.strerror}", "name another directory with -o"
        ) from None
    return place


def _files(path: Path) -> Iterator[Path]:
    """The files that make a result; summary and bundles are made anew, and what is not ours stays behind."""
    for name in (MANIFEST, JOURNAL, DOCUMENT, PROPOSALS, WORKFLOWS, SCRIPT):
        if (path / name).is_file():
            yield path / name
    if (path / PROPOSALS).is_file() and (path / PROOF / MANIFEST).is_file():  # of a search: a result itself
        yield from _files(path / PROOF)
    for table in (*TABLES, *TRACE_TABLES, STAGES, ACKS, *(f"{BY_HOST}/{name}" for name in TABLES)):
        yield from sorted((path / table).glob("*.parquet"))
    for tree in (OUTPUT, HOST_FILES):  # their names are the programs' own
        yield from sorted(file for file in (path / tree).rglob("*") if file.is_file())


def _bundle(copy: Path) -> None:
    for place in (copy, copy / PROOF):
        if (place / MANIFEST).is_file() and not (result := open_result(place)).traced:
            bundle_trials(place, result.finished)


def _compare(result: Result, copy: Path) -> None:
    for source in _files(result.path):
        if source.read_bytes() != (copy / source.relative_to(result.path)).read_bytes():
            raise ResultError(f"{source} changed while it was copied", "wait until its run has ended")


def merge(
    source: Path,
    directory: Path,
    done: Callable[[Path, Path | None, str], None],
    enter: Callable[[Path], bool] = lambda _: True,
) -> tuple[int, int, int]:
    """Copy every result at or below `source`: how many were copied, known already, refused.

    `done` is told of each: where it was, where it is now (None: it was not copied), and why not.
    """
    known = known_ids(directory, enter) if directory.is_dir() else {}
    copied = present = refused = 0
    for path in find_results(source, enter=enter):
        try:
            result = check_whole(path)
            name = str(result.manifest["id"])
            if name in known:
                present += 1
                done(path, None, f"is there already: {known[name]}")
                continue
            known[name] = copy_result(result, directory)
        except ResultError as error:
            refused += 1
            done(path, None, f"refused: {error.message}")
            continue
        copied += 1
        done(path, known[name], "")
    return copied, present, refused
