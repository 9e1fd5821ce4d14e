"""Who may have written a result, and what would be executed by it: looked at before anything is done."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.errors import ResultError
from leadline.foreign import parse_json
from leadline.store.files import JOURNAL, MANIFEST, SCRIPT
from leadline.store.reader import MANIFEST_BYTES_MAX, check_manifest
from leadline.trusted import why_not_file

_ROOT = 0
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True)
class SeenManifest:
    """A manifest as it was when its owner was looked at, and why others may have written the result."""

    manifest: dict[str, Any]
    doubts: tuple[str, ...]

    def require_same(self, manifest: dict[str, Any]) -> None:
        """Refuse a manifest that took this one's place since."""
        if manifest != self.manifest:
            raise ResultError("the manifest was changed while leadline looked at it", "nothing was done")


def look_at(path: Path) -> SeenManifest:
    """Read the manifest from the very file whose owner is looked at: names may lead elsewhere soon."""
    whole = check_manifest(path)
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        doubts = list(_doubts(path, os.fstat(directory))) or list(_doubts_of_way(path))
        for name in (JOURNAL, SCRIPT):
            with contextlib.suppress(FileNotFoundError):
                doubts += _doubts(path / name, os.stat(name, dir_fd=directory, follow_symlinks=False))
        manifest = os.open(MANIFEST, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
        with open(manifest, "rb") as file:  # noqa: PTH123 - of a descriptor
            doubts += _doubts(path / MANIFEST, os.fstat(manifest))
            seen = SeenManifest(parse_json(file.read(MANIFEST_BYTES_MAX)), tuple(doubts))
    except (OSError, ValueError) as error:
        raise ResultError(
            f"{path / MANIFEST} cannot be read: {error}", "it has to be a file of the result's directory"
        ) from None
    finally:
        os.close(directory)
    seen.require_same(whole)
    return seen


def _doubts(file: Path, found: os.stat_result) -> Iterator[str]:
    """Owners and modes that let somebody else write it."""
    if found.st_uid not in (os.geteuid(), _ROOT):
        yield f"{file} is owned by {_user(found.st_uid)}"
    elif stat.S_ISLNK(found.st_mode):
        yield f"{file} is a link"
    elif found.st_mode & _OTHERS_WRITE:
        yield f"{file} may be written by others (mode {stat.S_IMODE(found.st_mode):03o})"


def _doubts_of_way(path: Path) -> Iterator[str]:
    """Who may rename what lies above could exchange it: for root a doubt, as it acts with all rights.

    Not for others, whose groups often share directories.
    """
    if os.geteuid() == _ROOT and (why := why_not_file(str(path.absolute()))):
        yield f"{path} could be exchanged: {why}"


def _user(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def commands_of(manifest: dict[str, Any]) -> tuple[str, ...]:
    """The commands that a plan has executed, each once, as JSON: no character acts on a terminal."""
    found: dict[str, None] = {}
    rest = [manifest["plan"]] if isinstance(manifest.get("plan"), dict) else []
    while rest:
        part = rest.pop()  # whatever is called `command`, in whatever part of a job a kind of work keeps it
        if isinstance(part, dict):
            if part.get("command"):
                found[json.dumps(part["command"])] = None
            rest += reversed(part.values())
        elif isinstance(part, list):
            rest += reversed(part)
    return tuple(found)
