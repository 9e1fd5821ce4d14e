"""Working on a host or client of a lab: which there are, what a command finds there, and a client's mount.

A command enters the member's network only: it sees the machine's files, its mounts and its /sys, whose
class/net shows the machine's devices and not the member's (`ip link` and /proc/net/dev show those). Likewise
only the daemon of a mount is in the client's network: the mount is seen from the whole machine.
"""

from __future__ import annotations

import difflib
import os
import posixpath
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from leadline.errors import CommandError, LabError, UsageError
from leadline.lab import mounts, targets
from leadline.lab.cgroups import ControlGroups
from leadline.lab.cluster import config, process
from leadline.lab.cluster.process import poll
from leadline.lab.gateways.gateway import evict
from leadline.lab.inject import clients
from leadline.lab.journal import LabJournal
from leadline.lab.network.make import entered
from leadline.lab.network.placement import LabNetwork
from leadline.lab.network.topology import LabClient, LabHost
from leadline.lab.record import LabRecord

HOST = "LEADLINE_LAB_HOST"  # environment variable of what `enter` became: the member's name
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127  # as shells have it
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)  # what is ignored stays so in the program that follows


def network_of(lab: LabRecord) -> LabNetwork:
    """The network of a lab with hosts that is up. Raises UsageError where there is none."""
    if lab.network is None:
        raise UsageError(
            f"lab {lab.name} has no hosts: all of it is on this machine's own network",
            "Start one that has with: leadline lab up --hosts 3 --clients 2",
        )
    if lab.state != "up":
        raise UsageError(f"lab {lab.name} is not up: {lab.state}", "See `leadline lab status`.")
    return lab.network


def member_of(lab: LabRecord, name: str) -> LabHost | LabClient:
    """The host or client of this name of a lab that is up. Raises UsageError where there is none."""
    topology = network_of(lab).topology
    found = topology.member(name)
    if found is None:
        names = [item.name for item in topology.members]
        near = difflib.get_close_matches(name, names, 1)
        guess = f"Did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"lab {lab.name} has no host or client {name!r}", f"{guess}It has {', '.join(names)}."
        )
    if not mounts.is_mounted(lab.paths.namespace(name)):
        raise UsageError(
            f"lab {lab.name}: the network of {name} is gone: was the machine started anew?",
            f"Remove the lab: leadline lab down {lab.name}",
        )
    return found


def client_of(lab: LabRecord, name: str) -> LabClient:
    """As `member_of`, where it must be one that uses the storage."""
    found = member_of(lab, name)
    if not isinstance(found, LabClient):
        names = [item.name for item in network_of(lab).topology.clients]
        raise UsageError(
            f"{name} of lab {lab.name} is a storage host: clients use the storage",
            f"Name one of {', '.join(names)}." if names else "Start a lab with --clients.",
        )
    return found


def member_variables(lab: LabRecord, name: str, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command there: `inherited`, the lab's marks, whose user of Ceph it is, and what a
    fault in force puts in.

    By the marks `lab down` ends what still runs there.
    """
    own = process.environment(lab.fsid, lab.directory, inherited) | {HOST: name}
    return own | targets.member_variables(lab, name) | clients.environment(lab, name, inherited)


def enter(lab: LabRecord, name: str, words: Sequence[str], inherited: Mapping[str, str]) -> None:
    """Becomes the command `words` on a host or client. Signals and the exit code are the command's then.

    It is held to what the member may use of the machine. Raises UsageError where there is no such member,
    CommandError where the command cannot be started, LabError where the kernel refuses.
    """
    member_of(lab, name)
    there = member_variables(lab, name, inherited)
    program = _program(words[0], there.get("PATH", os.defpath))
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    ControlGroups(lab.fsid).enter(name, os.getpid())
    command = [*entered(lab.paths, name), "--", program, *words[1:]]
    os.execvpe(command[0], command, there)  # noqa: S606 - the user's own command


def _program(word: str, path: str) -> str:
    found = shutil.which(word, path=path)
    if found is not None:
        return found
    if os.path.lexists(word) and "/" in word:
        raise CommandError(
            f"{word} cannot be run: it is no program", "Name a program.", exit_code=_NOT_EXECUTABLE
        )
    raise CommandError(f"{word} was not found", "Is it installed, and on PATH?", exit_code=_NOT_FOUND)


_MOUNT_DEADLINE_S = 60.0
_UNMOUNT_DEADLINE_S = 5.0
_END_GRACE_S = 5.0
# The kernel's file system for a way through a gateway; other ways have none.
_KERNEL_FILE_SYSTEMS = {"nfs": "nfs4", "smb": "cifs"}


def mount_client(journal: LabJournal, client: str, root: str) -> bool:
    """Mounts the directory `root` of the file system; False where that client has it mounted already.

    Raises UsageError where it has another mounted, LabError where it cannot be mounted: nothing is left then.
    """
    lab, root = journal.record, posixpath.normpath(f"/{root.lstrip('/')}")
    client_of(lab, client)
    point = lab.paths.client_mount(client)
    if _serves(journal, client):
        there = lab.client_mounts.get(client, "/")
        if there != root:
            raise UsageError(
                f"{client} has {there} mounted on {point}",
                f"Unmount that first: leadline lab unmount {client}",
            )
        return False
    mounts.require_fuse()
    unmount_client(journal, client)  # what an earlier one left
    journal.update(client_mounts={**lab.client_mounts, client: root})
    point.mkdir(mode=0o700, exist_ok=True)
    name = process_name(client)
    command = config.fuse_command(lab.paths, name, root, point, lab.paths.client_conf(client))
    identity = journal.start(name, command, host=client)
    poll(lambda: mounts.is_mounted(point) or not process.is_running(identity), _MOUNT_DEADLINE_S)
    if not mounts.is_mounted(point):
        words = _last_words(process.last_log_lines(lab.paths.log(name)))
        unmount_client(journal, client)
        raise LabError(f"{client} could not mount {root}: {words}", f"See {lab.paths.log(name)}.")
    return True


def _last_words(lines: Sequence[str]) -> str:
    """What ceph-fuse itself said last: a thread of its own writes its log, at times after that."""
    own = [line for line in lines if line.startswith("ceph-fuse[")]
    return (own or list(lines) or [""])[-1]


def unmount_client(journal: LabJournal, client: str) -> bool:
    """Undoes `mount_client`; False where nothing was mounted. Raises LabError where the mount is in use."""
    lab, name = journal.record, process_name(client)
    point = lab.paths.client_mount(client)
    was, died = mounts.is_mounted(point), not _serves(journal, client)
    if was:
        _unmount_point(journal, point, lazy=died)  # nobody can use what nobody serves
    if was and died:
        # What it held of the file system others would wait minutes for, unless nobody knows of it just now.
        with suppress(LabError):
            evict(journal.ceph, client)
    process.end([item for item in lab.processes if item.name == name], grace_s=_END_GRACE_S)
    journal.forget([name])
    if point.exists():
        point.rmdir()
    journal.update(
        client_mounts={key: root for key, root in journal.record.client_mounts.items() if key != client}
    )
    return was


def _unmount_point(journal: LabJournal, point: Path, *, lazy: bool) -> None:
    reason = mounts.unmount_within(point, journal.variables, _UNMOUNT_DEADLINE_S, lazy=lazy)
    if reason:
        raise LabError(f"{point} cannot be unmounted: {reason}", f"See who uses it: fuser -vm {point}")


def why_not_through(way: str) -> str:
    """Why what a gateway offers is not mounted on a client."""
    kind = _KERNEL_FILE_SYSTEMS.get(way, "")
    if not kind:
        return "no kernel has a client for it"
    if kind in Path("/proc/filesystems").read_text().split():
        return "it would be this machine's own kernel that mounts it, not a client behind its link"
    return f"this machine's kernel has no client for it ({kind} is not in /proc/filesystems)"


def process_name(client: str) -> str:
    """The name of the daemon that holds a client's mount, as in Ceph's list of users."""
    return f"client.{client}"


def _serves(journal: LabJournal, client: str) -> bool:
    name = process_name(client)
    running = any(item.name == name and process.is_running(item) for item in journal.record.processes)
    return running and mounts.is_mounted(journal.record.paths.client_mount(client))
