"""Where a host keeps what it did for a study: a result of its own, for this account alone.

`STATE/leadline/hosts/<study id>/<host>`, which the study's parent reads in pieces, and then has forgotten.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from leadline.errors import ResultError, UsageError
from leadline.hosts.own.attempts import Attempts
from leadline.removal import discard_tree
from leadline.store.files import JOURNAL, RECORDS, checked_id, checked_name
from leadline.store.journal import read_journal
from leadline.trusted import why_not_file

PIECE_BYTES_MAX = 8 << 20
FILES_MAX = 10_000  # of one attempt
_NUMBER_MAX = 0xFFFF
_TRIAL = re.compile(r"(t[0-9]{4,9})(?:[.-]|\Z)")
_ONES_OWN = 0o700


def host_id(study_id: str, number: int) -> str:
    """The id by which a host's workspaces are called: hosts that share a file system never share one."""
    if not 0 <= number <= _NUMBER_MAX:
        raise UsageError(f"{number} is no number of a host", f"hosts are counted from 0 to {_NUMBER_MAX}")
    return checked_id(f"{checked_id(study_id)}{number:04x}")


def state_home(variables: Mapping[str, str], directory: str | None = None) -> Path:
    """Where hosts keep studies: the `directory` named, or one below $XDG_STATE_HOME, else ~/.local/state."""
    if directory is not None:
        if not directory.startswith("/"):
            raise UsageError(f"{directory} is not absolute", "name a directory from the root of the host on")
        return Path(os.path.normpath(directory))
    state = variables.get("XDG_STATE_HOME", "")
    home = Path(variables.get("HOME") or "~").expanduser()
    return (Path(state) if state.startswith("/") else home / ".local/state") / "leadline" / "hosts"


def place_of(home: Path, study_id: str, host: str) -> Path:
    """The directory of one host of one study."""
    return home / checked_id(study_id) / checked_name(host)


def make_private(home: Path, study_id: str) -> None:
    """Have a study's directory, for this account alone. Raises UsageError where others could write it."""
    study = home / checked_id(study_id)
    try:
        study.parent.mkdir(mode=_ONES_OWN, parents=True, exist_ok=True)
        study.mkdir(mode=_ONES_OWN, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{study} cannot be made: {error.strerror}", "name another directory") from None
    require_private(study)


def require_private(study: Path) -> None:
    """Raises UsageError where another account could read or exchange what this host keeps."""
    why = why_not_file(str(study))
    if not why:
        found = study.lstat()
        if not stat.S_ISDIR(found.st_mode) or stat.S_IMODE(found.st_mode) & 0o077:
            why = f"{study} is not for its owner alone (mode {stat.S_IMODE(found.st_mode):03o})"
    if why:
        raise UsageError(
            f"what a host keeps of a study is not safe in {study}: {why}",
            "name one of this account's",
        )


def places_in(home: Path, study_id: str) -> list[Path]:
    """What hosts keep of a study in that directory."""
    study = home / checked_id(study_id)
    with suppress(FileNotFoundError):
        require_private(study)
        return hosts_in(study)
    return []


def hosts_in(study: Path) -> list[Path]:
    """The directories of a study's hosts, also one whose removal was killed. Raises OSError."""
    return sorted(path for path in study.iterdir() if not path.name.startswith("."))


def attempts_of(place: Path) -> Attempts:
    """What the journal of a host's directory says of its attempts."""
    return Attempts(read_journal(place / JOURNAL))


def files_of(place: Path, trials: Iterable[str]) -> dict[str, int]:
    """Every plain file of these trials in a result: its path in it, and its bytes."""
    wanted, found = frozenset(trials), {}
    for path in _of_trials(place, wanted):
        for file in _files(path):
            found[str(file.relative_to(place))] = file.lstat().st_size
            if len(found) > FILES_MAX:
                raise ResultError(
                    f"{place} has more than {FILES_MAX:,} files of {', '.join(sorted(wanted))}",
                    "fetch them by hand: they are not moved to the study's result",
                )
    return found


def remove_trials(place: Path, trials: Iterable[str]) -> None:
    """Remove every file of these trials."""
    for path in _of_trials(place, frozenset(trials)):
        if path.is_dir() and not path.is_symlink():
            discard_tree(path)
        else:
            path.unlink(missing_ok=True)


def _of_trials(place: Path, trials: frozenset[str]) -> Iterator[Path]:
    """Entries of tables that are a trial's: `TABLE/tNNNN`, `TABLE/tNNNN.parquet` and their like."""
    for table in sorted(place.iterdir()):
        if table.name == RECORDS or table.is_symlink() or not table.is_dir():
            continue
        for path in sorted(table.iterdir()):
            named = _TRIAL.match(path.name)
            if named and named[1] in trials:
                yield path


def _files(path: Path) -> Iterator[Path]:
    mode = path.lstat().st_mode
    if stat.S_ISREG(mode):
        yield path
    elif stat.S_ISDIR(mode):
        for inner in sorted(path.iterdir()):
            yield from _files(inner)


def read_piece(place: Path, path: str, offset: int) -> bytes:
    """At most `PIECE_BYTES_MAX` bytes of a file from `offset` on; none at its end."""
    descriptor = os.open(place / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return os.pread(descriptor, PIECE_BYTES_MAX, offset)
    finally:
        os.close(descriptor)
