"""Writing one file that a user named: whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from leadline.errors import ResultError, UsageError


def write_file(path: Path, data: bytes, option: str = "") -> None:
    """A full disk must not leave half a file where a good one was. Raises UsageError."""
    from leadline.store.files import unfinished

    remedy = f"name another file with {option}" if option else "name another file"
    path = _behind_links(path)
    if result := _result_of(path):
        raise UsageError(f"{path} is a file of the result {result}: it was not overwritten", remedy)
    try:
        if path.exists() and not path.is_file():  # a device or a pipe takes what is written, and stays
            with open(os.open(path, os.O_WRONLY | os.O_NOCTTY), "wb") as there:  # noqa: PTH123
                there.write(data)
            return
        partial = unfinished(path)
        with partial.open("xb") as file:  # a new one: whoever may write beside it could have put a link there
            try:
                file.write(data)
                file.flush()
                partial.replace(path)
            except BaseException:
                with suppress(OSError):
                    partial.unlink()
                raise
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", remedy) from None


def _behind_links(path: Path) -> Path:
    """What a link leads to, where that is a file or nothing yet: the link itself stays."""
    leads_to_file = path.is_symlink() and (path.is_file() or not path.exists())
    return Path(os.path.realpath(path)) if leads_to_file else path


def _result_of(path: Path) -> Path | None:
    """The result that a file is a part of, there already or not."""
    from leadline.published.store import DOCUMENT
    from leadline.store.bundles.form import BUNDLES
    from leadline.store.files import JOURNAL, MANIFEST, RECORDS, WORKFLOWS
    from leadline.store.index import INDEX
    from leadline.store.reader import check_manifest
    from leadline.store.replay_script import SCRIPT
    from leadline.store.tables import TABLES
    from leadline.tracing.store import TRACE_TABLES

    place = Path(os.path.realpath(path.parent)) / path.name
    if place.name in (MANIFEST, JOURNAL, INDEX, SCRIPT, DOCUMENT, WORKFLOWS):
        result = place.parent
    elif place.parent.name in TABLES and place.parent.parent.name == BUNDLES:
        result = place.parent.parent.parent
    elif place.parent.name in (BUNDLES, *TABLES, *TRACE_TABLES, RECORDS):
        result = place.parent.parent
    else:
        return None
    if not os.path.lexists(result / MANIFEST):
        return None
    try:
        check_manifest(result)
    except ResultError as error:
        return None if "no manifest of leadline" in error.message else result
    return result
