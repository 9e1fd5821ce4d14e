"""Where a host keeps what it did for a study: a result of its own, for this account alone.

`STATE/leadline/hosts/<study id>/<host>`, which the study's parent reads in pieces, and then has forgotten. By
its journal a host begins no attempt twice: whoever hands out work may hand it out twice, as a scheduler does
once it has lost an answer. What is kept of a study that began nothing goes at once: nobody may ever come to
ask for it, as a command that is lost while its hosts open has no result to be undone by.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from leadline.errors import LeadlineError, ResultError, UsageError
from leadline.removal import discard_tree, remove_tree
from leadline.store.files import JOURNAL, MANIFEST, RECORDS, checked_id, checked_name
from leadline.store.journal import Event, read_journal
from leadline.store.making import remove_leftovers
from leadline.store.writer import ResultWriter, reopen_result
from leadline.trusted import why_not_file

BEGUN = "attempt_begun"
ENDED = "attempt_ended"
FORGOTTEN = "attempt_forgotten"
HELD_MAX = 64  # attempts whose tables nobody has fetched: more of them would fill the host's disk


class Attempts:
    """What became of each attempt; `take` is told every event as it is journalled."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.begun: dict[str, tuple[str, ...]] = {}
        self.ended: dict[str, Mapping[str, Any]] = {}
        self._forgotten: set[str] = set()
        self._finished: dict[str, str] = {}  # trial -> the attempt that has its tables
        self._current = ""
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """One more event."""
        attempt = str(event.details.get("attempt", ""))
        if event.event == BEGUN:
            self._current = attempt
            self.begun[attempt] = tuple(map(str, event.details["trials"]))
        elif event.event == ENDED:
            self.ended[attempt] = event.details
        elif event.event == FORGOTTEN:
            self._forgotten.add(attempt)
            self._finished = {trial: by for trial, by in self._finished.items() if by != attempt}
        for trial in event.finished:
            self._finished[trial] = self._current

    def why_not(self, attempt: str, trials: Sequence[str]) -> str:
        """Why an attempt is refused; "" where it is new and none of its trials is held."""
        if attempt in self.begun:
            return f"attempt {attempt} was begun here before, and is not begun twice"
        for trial in trials:
            if trial in self._finished:
                return (
                    f"trial {trial} was finished here by attempt {self._finished[trial]}, which is still held"
                )
        if len(set(self._finished.values())) >= HELD_MAX:
            return f"{HELD_MAX} attempts are held here that nobody has fetched"
        return ""

    def unended(self) -> tuple[str, ...]:
        """Those that were begun and whose end nobody noted, as their session was killed."""
        return tuple(attempt for attempt in self.begun if attempt not in self.ended)

    def held(self) -> dict[str, tuple[str, ...]]:
        """The finished trials of every attempt that was not forgotten, by attempt."""
        found: dict[str, tuple[str, ...]] = {attempt: () for attempt in self.begun}
        for trial, attempt in self._finished.items():
            found[attempt] = (*found.get(attempt, ()), trial)
        return {attempt: trials for attempt, trials in found.items() if attempt not in self._forgotten}

    def has_finished(self, attempt: str) -> bool:
        """Whether its tables are here: those of its trials count from one line of the journal on."""
        return attempt in self._finished.values()


PIECE_BYTES_MAX = 8 << 20
LINE_BYTES_MAX = 256 << 20  # between a session and who asks it: a manifest with its plan
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


_JOURNAL_BYTES_MAX = 64 << 10  # one of a study that was begun may be long; it is not read in vain


def remove_all(writer: ResultWriter) -> None:
    """Remove what a host keeps of a study, and the study's directory with the last of its hosts."""
    writer.discard_all()
    with suppress(OSError):
        writer.path.parent.rmdir()


def finish_removal(place: Path) -> bool:
    """Remove what is left of a host's directory whose removal was killed; whether there was any.

    A result appears whole: one without a manifest was being removed. Raises OSError and LeadlineError.
    """
    if os.path.lexists(place / MANIFEST) or not os.path.lexists(place):
        return False
    require_private(place.parent)
    remove_tree(place)
    with suppress(OSError):
        place.parent.rmdir()
    return True


def discard_unbegun(writer: ResultWriter) -> None:
    """Remove it if the study began nothing here."""
    with suppress(LeadlineError, OSError):  # it is gone already, or damaged and says nothing of the kind
        events = writer.events()
        if events and not Attempts(events).begun:
            remove_all(writer)


def tidy(place: Path) -> None:
    """The same for a host's directory whose session was killed; also if it is half made, or half removed."""
    with suppress(LeadlineError, OSError):
        finish_removal(place)
    with suppress(LeadlineError, OSError):
        require_private(place.parent)
        if (place / JOURNAL).lstat().st_size <= _JOURNAL_BYTES_MAX:
            with closing(reopen_result(place, time.time_ns, to_run=False)) as writer:
                discard_unbegun(writer)
    with suppress(LeadlineError, OSError):
        require_private(place.parent)
        remove_leftovers(place.parent)
        place.parent.rmdir()


def places_below(home: Path) -> Iterator[Path]:
    """What hosts keep of any study in that directory."""
    with suppress(OSError):
        for study in sorted(home.iterdir()):
            with suppress(OSError):
                yield from hosts_in(study)
