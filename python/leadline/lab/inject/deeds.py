"""Everything that a fault may do to a lab, and undo: a closed set, as it is done on the word of a file.

Each touches only what is beyond doubt this lab's: a process that carries its mark, a cluster that answers
with its fsid. What undoes may be done again, and where there is nothing to undo.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from leadline.errors import LabError
from leadline.lab.cluster import process
from leadline.lab.cluster.command import CephCommand
from leadline.lab.cluster.process import ProcessIdentity
from leadline.lab.inject.injection import Deed
from leadline.lab.journal import LabJournal

_CEPH_DEADLINE_S = 20.0
_SIGNALS = {"SIGSTOP": signal.SIGSTOP, "SIGCONT": signal.SIGCONT}


@dataclass
class DeedPlace:
    """The lab that deeds are done to; its lock is held."""

    journal: LabJournal

    def own_process(self, name: str) -> ProcessIdentity | None:
        """The lab's process of this name, where it runs and carries the lab's mark."""
        found = [item for item in self.journal.record.processes if item.name == name]
        return next((item for item in found if process.is_own(item)), None)

    @cached_property
    def ceph(self) -> CephCommand:
        """The lab's cluster, once it has answered with the lab's fsid. Raises LabError otherwise."""
        record = self.journal.record
        ceph = CephCommand(record.paths.conf, self.journal.variables)
        answered = ceph.run("fsid", deadline_s=_CEPH_DEADLINE_S).strip()
        if answered != record.fsid:
            raise LabError(
                f"the cluster that {record.paths.conf} leads to is {answered}, not lab {record.name}",
                "Nothing was changed there.",
            )
        return ceph


Doing = Callable[..., None]


def _signal(place: DeedPlace, name: str, number: str) -> None:
    found = place.own_process(name)
    if found is not None:
        process.send(found, _SIGNALS[number])
    elif number != "SIGCONT":
        raise LabError(f"{name} does not run", "See `leadline lab status`.")


def _ceph(place: DeedPlace, *words: str) -> None:
    place.ceph.run(*words, deadline_s=_CEPH_DEADLINE_S)


DEEDS: dict[str, Doing] = {"signal": _signal, "ceph": _ceph}
# What `lab down` undoes first: without it processes would not end. The rest goes with the lab.
BEFORE_DOWN = frozenset({"signal"})


def do(place: DeedPlace, deed: Deed) -> None:
    """Does one. Raises LabError where it cannot be done, or is of a newer leadline."""
    doing = DEEDS.get(deed.kind)
    if doing is None:
        raise LabError(f"nothing is known of {deed.kind!r}", "Use the leadline that injected it.")
    try:
        doing(place, *deed.words)
    except OSError as error:
        raise LabError(
            f"{deed.kind} {' '.join(deed.words)}: {error.filename or ''} {error.strerror or error}",
            "See `leadline lab status`.",
        ) from error
