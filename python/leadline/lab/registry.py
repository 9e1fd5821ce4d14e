"""Which labs there are: directories below the state home, or links from there to labs elsewhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from leadline.errors import UsageError
from leadline.lab.cluster import process
from leadline.lab.network import make as network
from leadline.lab.paths import labs_home
from leadline.lab.record import FILE, is_unborn
from leadline.lab.spec import DEFAULT_NAME, check_name
from leadline.trusted import why_not_place


def resolve(name_or_directory: str, variables: Mapping[str, str]) -> Path:
    """The directory of a lab given by name, or by a path (what holds a `/`, or `.`). It need not exist."""
    if "/" in name_or_directory or name_or_directory in (".", ".."):
        return place_of(Path(name_or_directory))
    check_name(name_or_directory)
    return (labs_home(variables) / name_or_directory).resolve()


def place_of(path: Path) -> Path:
    """The path from the root, with no link in it but perhaps the last part: it could be somebody else's."""
    path = Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute keeps ".."
    return path.parent.resolve() / path.name


def directories(variables: Mapping[str, str]) -> dict[str, Path]:
    """Name and directory of every lab of this account, sorted by name. Links to nothing are passed over."""
    home = labs_home(variables)
    entries = sorted(home.iterdir()) if home.is_dir() else []
    found = {entry.name: entry.resolve() for entry in entries}
    return {name: path for name, path in found.items() if path.is_dir() and _is_lab(path)}


def lost() -> list[Path]:
    """Directories in which no lab is found though processes of one run that this account started, or its
    network is there; sorted."""
    return sorted(place for place in process.directories() | network.directories() if not _is_lab(place))


def default_directory(variables: Mapping[str, str]) -> Path | None:
    """The lab meant where none is named: the only one, or the one called `lab`; None where there is none.

    Raises UsageError where several could be meant.
    """
    labs = directories(variables)
    if len(labs) > 1 and DEFAULT_NAME not in labs:
        raise UsageError(f"there are several labs: {', '.join(labs)}", "Name one.")
    return labs.get(DEFAULT_NAME) or next(iter(labs.values()), None)


def claim(name: str, directory: Path, variables: Mapping[str, str]) -> None:
    """Enters a lab outside the state home under its name. Raises UsageError where the name is taken."""
    home = labs_home(variables)
    if why := why_not_place(home / name):
        raise UsageError(
            f"the names of labs are not kept in {home}: {why}",
            "Set XDG_STATE_HOME to a directory of this account's.",
        )
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    entry = home / name
    if entry.resolve() == directory:
        return
    forget_gone(variables)
    try:
        entry.symlink_to(directory)
    except FileExistsError as error:
        raise UsageError(
            f"there is already a lab named {name} in {entry.resolve()}",
            "Choose another NAME, or remove that one with `leadline lab down`.",
        ) from error


def free_name(directory: Path, variables: Mapping[str, str]) -> str:
    """A name for a lab in `directory`: its last part, with a number where that is taken."""
    base = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in directory.name)[:56]
    base = base if base and base[0].isalnum() and base.isascii() else DEFAULT_NAME
    home, name, number = labs_home(variables), base, 1
    while (home / name).exists() and (home / name).resolve() != directory:
        number += 1
        name = f"{base}-{number}"
    return name


def forget_gone(variables: Mapping[str, str], directory: Path | None = None) -> None:
    """Removes the links to labs that are gone, and to `directory`."""
    home = labs_home(variables)
    for entry in home.iterdir() if home.is_dir() and not why_not_place(home) else ():
        if entry.is_symlink() and (not entry.exists() or entry.resolve() == directory):
            entry.unlink(missing_ok=True)


def release(directory: Path, variables: Mapping[str, str]) -> None:
    """Removes the links to `directory` and to labs that are gone, and the state home where it is empty."""
    forget_gone(variables, directory)
    home = labs_home(variables)
    for empty in (home, home.parent):
        try:
            empty.rmdir()
        except OSError:
            return


def _is_lab(path: Path) -> bool:
    try:
        return (path / FILE).is_file() or is_unborn(path)
    except OSError:
        return False
