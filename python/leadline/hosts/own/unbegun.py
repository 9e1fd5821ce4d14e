"""What a host keeps of a study that began nothing there goes at once: nobody may ever come to ask for it.

A command that is lost while its hosts open has no result to be undone by.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from leadline.errors import LeadlineError
from leadline.hosts.own.attempts import Attempts
from leadline.hosts.own.directory import hosts_in, require_private
from leadline.removal import remove_tree
from leadline.store.files import JOURNAL, MANIFEST
from leadline.store.making import remove_leftovers
from leadline.store.writer import ResultWriter, reopen_result

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
