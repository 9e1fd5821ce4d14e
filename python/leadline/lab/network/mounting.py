"""Mounts the file system as a client of a lab with hosts: by its own user, through its own link.

Only the daemon is in the client's network: the mount is seen from the whole machine.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from leadline.errors import LabError, UsageError
from leadline.lab import mounts
from leadline.lab.cluster import config, logs, process
from leadline.lab.cluster.command import CephCommand
from leadline.lab.cluster.wait import poll
from leadline.lab.gateways.gateway import evict
from leadline.lab.journal import LabJournal
from leadline.lab.network import members

_MOUNT_DEADLINE_S = 60.0
_UNMOUNT_DEADLINE_S = 5.0
_END_GRACE_S = 5.0
# The kernel's file system for a way through a gateway; other ways have none.
_KERNEL_FILE_SYSTEMS = {"nfs": "nfs4", "smb": "cifs"}


def mount(journal: LabJournal, client: str, root: str) -> bool:
    """Mounts the directory `root` of the file system; False where that client has it mounted already.

    Raises UsageError where it has another mounted, LabError where it cannot be mounted: nothing is left then.
    """
    lab, root = journal.record, posixpath.normpath(f"/{root.lstrip('/')}")
    members.client(lab, client)
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
    unmount(journal, client)  # what an earlier one left
    journal.update(client_mounts={**lab.client_mounts, client: root})
    point.mkdir(mode=0o700, exist_ok=True)
    name = process_name(client)
    command = config.fuse_command(lab.paths, name, root, point, lab.paths.client_conf(client))
    identity = journal.start(name, command, host=client)
    poll(lambda: mounts.is_mounted(point) or not process.is_running(identity), _MOUNT_DEADLINE_S)
    if not mounts.is_mounted(point):
        words = _last_words(logs.last_lines(lab.paths.log(name)))
        unmount(journal, client)
        raise LabError(f"{client} could not mount {root}: {words}", f"See {lab.paths.log(name)}.")
    return True


def _last_words(lines: Sequence[str]) -> str:
    """What ceph-fuse itself said last: a thread of its own writes its log, at times after that."""
    own = [line for line in lines if line.startswith("ceph-fuse[")]
    return (own or list(lines) or [""])[-1]


def unmount(journal: LabJournal, client: str) -> bool:
    """Undoes `mount`; False where nothing was mounted. Raises LabError where the mount is in use."""
    lab, name = journal.record, process_name(client)
    point = lab.paths.client_mount(client)
    was, died = mounts.is_mounted(point), not _serves(journal, client)
    if was:
        _unmount(journal, point, lazy=died)  # nobody can use what nobody serves
    if was and died:
        # What it held of the file system others would wait minutes for, unless nobody knows of it just now.
        with suppress(LabError):
            evict(CephCommand(lab.paths.conf, journal.variables), client)
    process.end([item for item in lab.processes if item.name == name], grace_s=_END_GRACE_S)
    journal.forget([name])
    if point.exists():
        point.rmdir()
    journal.update(
        client_mounts={key: root for key, root in journal.record.client_mounts.items() if key != client}
    )
    return was


def _unmount(journal: LabJournal, point: Path, *, lazy: bool) -> None:
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
