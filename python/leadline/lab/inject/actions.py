"""Everything that a fault may do to a lab, and undo: a closed set, as it is done on the word of a file.

Each touches only what is beyond doubt this lab's: a process that carries its mark, a group or device whose
name follows from its fsid, a cluster that answers with that. What undoes may be done again, and where there
is nothing to undo.
"""

from __future__ import annotations

import _multiprocessing  # type: ignore[import-not-found]  # no other names a semaphore
import random
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from leadline.errors import LabError, LeadlineError
from leadline.interpreter import script_command
from leadline.lab.cgroups import CONTROLLERS, ControlGroups, Controller
from leadline.lab.cluster import process
from leadline.lab.cluster.command import CephCommand
from leadline.lab.cluster.process import ProcessIdentity, poll
from leadline.lab.gateways import starter
from leadline.lab.inject import wires
from leadline.lab.inject.clients import clock_name
from leadline.lab.inject.injection import LabAction
from leadline.lab.journal import LabJournal
from leadline.lab.network.topology import LabClient, LabHost, MachineLimits
from leadline.lab.record import LabRecord

_CEPH_DEADLINE_S = 20.0
_FAILOVER_DEADLINE_S = 60.0
_ANSWER_DEADLINE_S, _END_GRACE_S = 5.0, 3.0
_SIGNALS = {"SIGSTOP": signal.SIGSTOP, "SIGCONT": signal.SIGCONT}
_CONTROLLERS: dict[str, Controller] = {name: name for name in CONTROLLERS}
_SEMAPHORE, _SHARED_MEMORY = 1, Path("/dev/shm")  # noqa: S108 - where POSIX shared memory is
_CLOCK_BYTES = 4096  # more than libfaketime uses
_HOG = Path(__file__).with_name("hog.py")
_HOG_STARTS_S = 20.0
# The last one, once an OSD has it, says that all are in force.
_MESSAGE_DELAY = ("ms_inject_delay_type", "ms_inject_delay_max", "ms_inject_delay_probability")
# A process of its own can be given up where the file system does not answer.
_SET_QUOTA = "import os, sys; os.setxattr(sys.argv[1], 'ceph.quota.max_bytes', sys.argv[2].encode())"


@dataclass
class ActionContext:
    """The lab that actions are done to; its lock is held."""

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
        ceph = self.journal.ceph
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


def _signal(place: ActionContext, name: str, number: str) -> None:
    if number != "SIGCONT" or place.own_process(name):
        process.send(place.require_process(name), _SIGNALS[number])


def _kill(place: ActionContext, name: str) -> None:
    found = place.require_process(name)
    process.send(found, signal.SIGKILL)
    if not poll(lambda: not process.is_running(found), 10.0):
        raise LabError(f"{name} (pid {found.pid}) does not end", "It waits in the kernel for I/O.")


def _start(place: ActionContext, name: str, *command: str) -> None:
    """Where it was: a lab with hosts knows the host of each daemon."""
    if place.own_process(name) is None:
        place.journal.start(name, command)


def _ceph(place: ActionContext, *words: str) -> None:
    place.ceph.run(*words, deadline_s=_CEPH_DEADLINE_S)


def _tell(place: ActionContext, daemon: str, *words: str) -> None:
    place.require_process(daemon)
    _ceph(place, "tell", daemon, *words)


def _untell(place: ActionContext, daemon: str, *words: str) -> None:
    """A daemon that has ended has forgotten what it was told."""
    if place.own_process(daemon) is not None:
        _ceph(place, "tell", daemon, *words)


def _limit(place: ActionContext, name: str, cpu: str, read: str, write: str, device: str) -> None:
    """A process into a group of its own, beside that of its host."""
    limits = MachineLimits(float(cpu), disk_read_bytes_s=int(read), disk_write_bytes_s=int(write))
    found = place.require_process(name)
    place.groups.limit(_group_of(name), limits, device)
    place.groups.enter(_group_of(name), found.pid)
    if not process.is_own(found):  # its pid may be another's by now
        raise LabError(f"{name} ended meanwhile", "See its log.")


def _unlimit(place: ActionContext, name: str, controller: str, back: str) -> None:
    place.groups.leave(_group_of(name), _CONTROLLERS[controller], back)


def _group_of(name: str) -> str:
    """No host or client is called so."""
    return f"fault:{name}"


def _fill(place: ActionContext, pool: str, prefix: str, count: str, size_bytes: str) -> None:
    for number in range(int(count)):
        place.rados("-p", pool, "put", f"{prefix}.{number}", "-", text="x" * int(size_bytes))


def _empty(place: ActionContext, pool: str, prefix: str) -> None:
    names = [name for name in place.rados("-p", pool, "ls").splitlines() if name.startswith(f"{prefix}.")]
    if names:
        place.rados("-p", pool, "rm", *names, "--force-full")


def _fail_over(place: ActionContext, active: str) -> None:
    """Until another serves: only then is it over."""
    _ceph(place, "mds", "fail", active)

    def served() -> bool:
        ranks = place.ceph.json("status", deadline_s=_CEPH_DEADLINE_S).get("fsmap", {}).get("by_rank", [])
        return any(rank.get("status") == "up:active" and rank.get("name") != active for rank in ranks)

    if not poll(served, _FAILOVER_DEADLINE_S):
        raise LabError(f"nobody took over from mds.{active}", "See `leadline lab status`.")


def _quota(place: ActionContext, directory: str, size_bytes: str) -> None:
    path = place.journal.record.paths.mount / directory.replace("/", "_")
    command = script_command("-c", _SET_QUOTA, str(path), str(int(size_bytes)))
    process.run_tool(command, place.journal.variables, deadline_s=_CEPH_DEADLINE_S)


def _on_wires(action: Callable[..., None]) -> Callable[..., None]:
    return lambda place, *words: action(place.journal, *words)


def _delay_messages(place: ActionContext, thing: str, max_s: str) -> None:
    """OSDs hold each message of OSDs, clients and metadata servers: on connections made afterwards.

    So all are made anew, once the OSDs have heard of it.
    """
    who, host, osds = wires.osds_of(place.journal.record, thing)
    for option, text in zip(_MESSAGE_DELAY, ("osd client mds", max_s, "1"), strict=True):
        _ceph(place, "config", "set", who, option, text)
    last = _MESSAGE_DELAY[-1]
    if not poll(lambda: all(_setting_of(place, osd, last) == 1 for osd in osds), _CEPH_DEADLINE_S):
        raise LabError(f"{', '.join(osds)} do not take a delay of messages", "See the lab's logs.")
    wires.lose_connections(place.journal, host)


def _delay_messages_no_more(place: ActionContext, thing: str) -> None:
    """An OSD that does not answer forgets it when it starts again."""
    who, host, osds = wires.osds_of(place.journal.record, thing)
    for option in _MESSAGE_DELAY:
        _ceph(place, "config", "rm", who, option)
    last = _MESSAGE_DELAY[-1]
    there = [osd for osd in osds if place.own_process(osd)]
    poll(lambda: not any(_setting_of(place, osd, last) for osd in there), _ANSWER_DEADLINE_S)
    wires.lose_connections(place.journal, host, undoing=True)


def _setting_of(place: ActionContext, osd: str, name: str) -> float | None:
    """A number of an OSD's configuration in force; None where it does not answer."""
    with suppress(LabError):
        return float(place.ceph.json("tell", osd, "config", "get", name, deadline_s=_ANSWER_DEADLINE_S)[name])
    return None


def _restart_gateway(place: ActionContext, name: str) -> None:
    if place.own_process(name) is None:
        chance = random.Random()  # noqa: S311 - ports, not secrets
        starter.restart(starter.Starter(place.journal, lambda _: None, chance), name)


def _limit_member(place: ActionContext, name: str, cpu: str, memory_bytes: str) -> None:
    """All that runs on a host or client now; what is started there later joins by itself."""
    _member(place, name)
    place.groups.limit(name, MachineLimits(float(cpu), int(memory_bytes)))
    for found in wires.processes_on(place.journal.record, name):
        place.groups.enter(name, found.pid)


def _unlimit_member(place: ActionContext, name: str, controller: str) -> None:
    """Back to what the topology says of it."""
    made = _member(place, name).limits
    if controller == "cpu" and made.cpu:
        place.groups.limit(name, MachineLimits(made.cpu))
    elif controller == "memory" and made.memory_bytes:
        place.groups.limit(name, MachineLimits(memory_bytes=made.memory_bytes))
    else:
        place.groups.leave(name, _CONTROLLERS[controller], "/")


def _member(place: ActionContext, name: str) -> LabHost | LabClient:
    record = place.journal.record
    found = record.network.topology.member(name) if record.network else None
    if found is None:
        raise LabError(f"lab {record.name} has no host or client {name}", "Nothing was changed.")
    return found


def _clock(place: ActionContext, member: str) -> None:
    """What `lab exec` starts finds its offset in its environment; here is made what libfaketime shares."""
    _member(place, member)
    _clock_no_more(place, member)
    name = clock_name(place.journal.record.fsid, member)
    _multiprocessing.SemLock(_SEMAPHORE, 1, 1, name, False)
    with (_SHARED_MEMORY / name[1:]).open("xb") as memory:
        memory.truncate(_CLOCK_BYTES)


def _clock_no_more(place: ActionContext, member: str) -> None:
    name = clock_name(place.journal.record.fsid, member)
    with suppress(FileNotFoundError):
        _multiprocessing.sem_unlink(name)
    (_SHARED_MEMORY / name[1:]).unlink(missing_ok=True)


def _hog(place: ActionContext, name: str, member: str, *words: str) -> None:
    """Starts a process that does nothing but use up something, as a neighbour would."""
    _member(place, member)
    if place.own_process(name) is None:
        place.journal.start(name, script_command(str(_HOG), name, *words), host=member)
        # Until it has become this program, its command line is its starter's, and nobody finds it by that.
        poll(lambda: bool(_hogs(place, name)), _HOG_STARTS_S)


def _hogs(place: ActionContext, name: str) -> list[ProcessIdentity]:
    """By their command line: whoever started one may have been killed before it was recorded."""
    marked = process.find_marked(place.journal.record.fsid)
    return [item for item in marked if [str(_HOG), name] == process.words_of(item)[2:4]]


def _hog_no_more(place: ActionContext, name: str) -> None:
    left = process.end(_hogs(place, name), grace_s=_END_GRACE_S)
    if left:
        raise LabError(f"{name} (pid {left[0].pid}) does not end", "Repeat it later.")
    place.journal.forget([name])


ACTIONS: dict[str, Callable[..., None]] = {
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
    "link-rate": _on_wires(wires.rate),
    "link-delay": _on_wires(wires.delay),
    "carrier": _on_wires(wires.carrier),
    "drop": _on_wires(wires.drop),
    "drop-end": _on_wires(wires.drop_no_more),
    "message-delay": _delay_messages,
    "message-delay-end": _delay_messages_no_more,
    "gateway": _restart_gateway,
    "member-limit": _limit_member,
    "member-unlimit": _unlimit_member,
    "clock": _clock,
    "clock-end": _clock_no_more,
    "hog": _hog,
    "hog-end": _hog_no_more,
}
# What `lab down` undoes first: without it processes would not end. The rest goes with the lab.
_BEFORE_DOWN = frozenset(
    {"signal", "unlimit", "member-unlimit", "clock-end", "carrier", "drop-end", "link-rate"}
)


def do(place: ActionContext, action: LabAction) -> None:
    """Does one. Raises LabError where it cannot be done, or is of a newer leadline."""
    doing = ACTIONS.get(action.kind)
    if doing is None:
        raise LabError(f"nothing is known of {action.kind!r}", "Use the leadline that injected it.")
    try:
        doing(place, *action.words)
    except OSError as error:
        raise LabError(
            f"{action.kind} {' '.join(action.words)}: {error.filename or ''} {error.strerror or error}",
            "See `leadline lab status`.",
        ) from error


def release(record: LabRecord, variables: Mapping[str, str]) -> None:
    """What must be undone before a lab's processes are ended; what fails is left to their end."""
    place = ActionContext(LabJournal(record, variables))
    for item in reversed(record.injections):
        for action in item.undo:
            if action.kind in _BEFORE_DOWN:
                with suppress(LeadlineError):
                    do(place, action)
