"""Working on a host or client of a lab: which there are, and what a command finds there.

A command enters the member's network only: it sees the machine's files, its mounts and its /sys, whose
class/net shows the machine's devices and not the member's (`ip link` and /proc/net/dev show those).
"""

from __future__ import annotations

import difflib
import os
import shutil
import signal
from collections.abc import Mapping, Sequence

from leadline.errors import CommandError, UsageError
from leadline.lab import mounts, targets
from leadline.lab.cgroups import ControlGroups
from leadline.lab.cluster import process
from leadline.lab.inject import clients
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


def member(lab: LabRecord, name: str) -> LabHost | LabClient:
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


def client(lab: LabRecord, name: str) -> LabClient:
    """As `member`, where it must be one that uses the storage."""
    found = member(lab, name)
    if not isinstance(found, LabClient):
        names = [item.name for item in network_of(lab).topology.clients]
        raise UsageError(
            f"{name} of lab {lab.name} is a storage host: clients use the storage",
            f"Name one of {', '.join(names)}." if names else "Start a lab with --clients.",
        )
    return found


def variables(lab: LabRecord, name: str, inherited: Mapping[str, str]) -> dict[str, str]:
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
    member(lab, name)
    there = variables(lab, name, inherited)
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
