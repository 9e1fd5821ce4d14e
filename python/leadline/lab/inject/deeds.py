"""Everything that a fault may do to a lab, and undo: a closed set, as it is done on the word of a file.

Each touches only what is beyond doubt this lab's: a process that carries its mark, a group or device whose
name follows from its fsid, a cluster that answers with that. What undoes may be done again, and where there
is nothing to undo.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from leadline.errors import LabError, LeadlineError
from leadline.lab.cgroups import ControlGroups, Controller
from leadline.lab.cluster import process
from leadline.lab.cluster.command import CephCommand
from leadline.lab.cluster.process import ProcessIdentity
from leadline.lab.cluster.wait import poll
from leadline.lab.inject.injection import Deed
from leadline.lab.journal import LabJournal
from leadline.lab.network.topology import MachineLimits
from leadline.lab.record import LabRecord

_CEPH_DEADLINE_S = 20.0
_FAILOVER_DEADLINE_S = 60.0
_SIGNALS = {"SIGSTOP": signal.SIGSTOP, "SIGCONT": signal.SIGCONT}
_CONTROLLERS: dict[str, Controller] = {"cpu": "cpu", "memory": "memory", "disk": "disk"}
FILL_OBJECT_BYTES = 4 << 20
# A process of its own can be given up where the file system does not answer.
_SET_QUOTA = "import os, sys; os.setxattr(sys.argv[1], 'ceph.quota.max_bytes', sys.argv[2].encode())"


@dataclass
class DeedPlace:
    """The lab that deeds are done to; its lock is held."""

    journal: LabJournal

    def own_process(self, name: str) -> ProcessIdentity | None:
        """The lab's process of this name, where it runs and carries the lab's mark."""
        found = [item for item in self.journal.record.processes if item.name == name]
        return next((item for item in found if process.is_own(item)), None)

    def require_process(self, name: str) -> ProcessIdentity:
        """The same. Raises LabError where there is none."""
        found = self.own_process(name)
        if found is None:
            raise LabError(f"{name} does not run", "See `leadline lab status`.")
        return found

    @property
    def groups(self) -> ControlGroups:
        """The lab's control groups."""
        return ControlGroups(self.journal.record.fsid)

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

    def rados(self, *words: str, text: str | None = None) -> str:
        """What `rados WORDS` printed, of the same cluster."""
        command = ["rados", "-c", str(self.ceph.conf), "--id", "admin", *words]
        return process.run_tool(command, self.journal.variables, deadline_s=_CEPH_DEADLINE_S, text=text)


def _signal(place: DeedPlace, name: str, number: str) -> None:
    if number != "SIGCONT" or place.own_process(name):
        process.send(place.require_process(name), _SIGNALS[number])


def _kill(place: DeedPlace, name: str) -> None:
    found = place.require_process(name)
    process.send(found, signal.SIGKILL)
    if not poll(lambda: not process.is_running(found), 10.0):
        raise LabError(f"{name} (pid {found.pid}) does not end", "It waits in the kernel for I/O.")


def _start(place: DeedPlace, name: str, *command: str) -> None:
    """Where it was: a lab with hosts knows the host of each daemon."""
    if place.own_process(name) is None:
        place.journal.start(name, command)


def _ceph(place: DeedPlace, *words: str) -> None:
    place.ceph.run(*words, deadline_s=_CEPH_DEADLINE_S)


def _tell(place: DeedPlace, daemon: str, *words: str) -> None:
    place.require_process(daemon)
    _ceph(place, "tell", daemon, *words)


def _untell(place: DeedPlace, daemon: str, *words: str) -> None:
    """A daemon that has ended has forgotten what it was told."""
    if place.own_process(daemon) is not None:
        _ceph(place, "tell", daemon, *words)


def _limit(place: DeedPlace, name: str, cpu: str, read: str, write: str, device: str) -> None:
    """A process into a group of its own, beside that of its host."""
    limits = MachineLimits(float(cpu), disk_read_bytes_s=int(read), disk_write_bytes_s=int(write))
    found = place.require_process(name)
    place.groups.limit(_group_of(name), limits, device)
    place.groups.enter(_group_of(name), found.pid)
    if not process.is_own(found):  # its pid may be another's by now
        raise LabError(f"{name} ended meanwhile", "See its log.")


def _unlimit(place: DeedPlace, name: str, controller: str, back: str) -> None:
    place.groups.leave(_group_of(name), _CONTROLLERS[controller], back)


def _group_of(name: str) -> str:
    """No host or client is called so."""
    return f"fault:{name}"


def _fill(place: DeedPlace, pool: str, prefix: str, count: str, size_bytes: str) -> None:
    for number in range(int(count)):
        place.rados("-p", pool, "put", f"{prefix}.{number}", "-", text="x" * int(size_bytes))


def _empty(place: DeedPlace, pool: str, prefix: str) -> None:
    names = [name for name in place.rados("-p", pool, "ls").splitlines() if name.startswith(f"{prefix}.")]
    if names:
        place.rados("-p", pool, "rm", *names, "--force-full")


def _fail_over(place: DeedPlace, active: str) -> None:
    """Until another serves: only then is it over."""
    _ceph(place, "mds", "fail", active)

    def served() -> bool:
        ranks = place.ceph.json("status", deadline_s=_CEPH_DEADLINE_S).get("fsmap", {}).get("by_rank", [])
        return any(rank.get("status") == "up:active" and rank.get("name") != active for rank in ranks)

    if not poll(served, _FAILOVER_DEADLINE_S):
        raise LabError(f"nobody took over from mds.{active}", "See `leadline lab status`.")


def _quota(place: DeedPlace, directory: str, size_bytes: str) -> None:
    path = place.journal.record.paths.mount / directory.replace("/", "_")
    command = [sys.executable, "-I", "-c", _SET_QUOTA, str(path), str(int(size_bytes))]
    process.run_tool(command, place.journal.variables, deadline_s=_CEPH_DEADLINE_S)


DEEDS: dict[str, Callable[..., None]] = {
    "signal": _signal,
    "kill": _kill,
    "start": _start,
    "ceph": _ceph,
    "tell": _tell,
    "untell": _untell,
    "limit": _limit,
    "unlimit": _unlimit,
    "fill": _fill,
    "empty": _empty,
    "fail-over": _fail_over,
    "quota": _quota,
}
# What `lab down` undoes first: without it processes would not end. The rest goes with the lab.
_BEFORE_DOWN = frozenset({"signal", "unlimit"})


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


def release(record: LabRecord, variables: Mapping[str, str]) -> None:
    """What must be undone before a lab's processes are ended; what fails is left to their end."""
    place = DeedPlace(LabJournal(record, variables))
    for item in reversed(record.injections):
        for deed in item.undo:
            if deed.kind in _BEFORE_DOWN:
                with suppress(LeadlineError):
                    do(place, deed)
