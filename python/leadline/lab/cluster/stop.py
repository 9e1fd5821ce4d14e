"""Takes a lab down from any state: half started, running, crashed, killed, with a dead mount. Repeatable."""

from __future__ import annotations

import errno
import math
import operator
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from leadline import removal
from leadline.errors import LabError, TargetError
from leadline.lab import bridge, mounts, record, registry
from leadline.lab.cgroups import ControlGroups
from leadline.lab.cluster import process
from leadline.lab.cluster.process import SYSTEM_CLOCK, Clock, ProcessIdentity
from leadline.lab.inject import actions
from leadline.lab.network import make as network
from leadline.lab.paths import LabPaths, labs_home, run_name
from leadline.lab.record import LabRecord, LostRecordError

_UNMOUNT_DEADLINE_S = 5.0
_FUSE_GRACE_S = 5.0
_DAEMON_GRACE_S = 2.0


def remove(directory: Path, variables: Mapping[str, str], say: Callable[[str], None]) -> bool:
    """Removes the lab in `directory` with its processes, mounts and files; False where there is none.

    Raises UsageError for a directory that is no lab's (it is left alone), LabError for what could not
    be removed: repeating the call goes on from there.
    """
    if not os.path.lexists(directory):
        registry.release(directory, variables)
        return _end_lost(directory, variables, say)
    with record.own_directory(directory) as descriptor:
        if record.is_unborn(directory):
            with record.locked(directory):
                if record.is_unborn(directory):
                    _end_lost(directory, variables, say)
                    _remove_last(descriptor, directory)
                    # Elsewhere, nobody knows whether it was made for the lab or was there.
                    if directory.parent == labs_home(variables).resolve():
                        directory.rmdir()
                    registry.release(directory, variables)
                    return True
        try:
            record.read_at(descriptor, directory)
        except LostRecordError as error:
            if not _end_lost(directory, variables, say):
                raise
            raise LabError(
                f"{error.message}: parts of a lab were there and were ended, its files were left alone",
                f"Look into {directory}, then remove it by hand.",
            ) from error
        with record.locked(directory):
            lab = record.read_at(descriptor, directory)
            process.require_outside(own_processes(lab))
            network.require_outside(lab.paths)
            with suppress(OSError):  # the disk may be full, which is a reason to go on
                record.write_record(replace(lab, state="stopping"))
            stop_processes(lab, variables, say)
            remove_files(lab, say)
            registry.release(directory, variables)
    return True


def stop_processes(lab: LabRecord, variables: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Unmounts and ends everything of this lab, leaves its files. Raises LabError for what does not end.

    Its bridge goes last: what hangs on it belongs to processes.
    """
    actions.release(lab, variables)
    _unmount_all(lab, variables, SYSTEM_CLOCK)
    _end_all(f"lab {lab.name}", lab.directory, lambda: own_processes(lab), say)
    ControlGroups(lab.fsid).remove_all()
    _say_who_stays(lab.paths, say)
    network.remove(lab.fsid, lab.paths, variables)
    # The lab's file could have been edited: a device under another name is not this lab's.
    if lab.bridge == bridge.name_for(lab.fsid):
        bridge.remove(lab.bridge, variables)


def _say_who_stays(paths: LabPaths, say: Callable[[str], None]) -> None:
    """Whoever went into a host by other ways is not the lab's to end; that host's network ends with it."""
    for words in network.inhabitants(paths):
        say(f"not of the lab's, and not ended: {words}, which is there until that ends")


def _end_lost(directory: Path, variables: Mapping[str, str], say: Callable[[str], None]) -> bool:
    """Ends what runs of a lab whose file in `directory` is lost, by its own marks, and its network.

    False where there is nothing of either.
    """
    paths = LabPaths(directory, directory)
    found, there = process.find_in(directory), network.is_held(paths)
    if not found and not there:
        return False
    process.require_outside(found)
    network.require_outside(paths)
    say(f"there is no lab in {directory}, but parts of one that was started there are")
    _end_all(f"the lab of {directory}", directory, lambda: process.find_in(directory), say)
    if there:
        _say_who_stays(paths, say)
        network.release(paths, variables)
    for mark in {item.mark for item in found}:
        ControlGroups(mark).remove_all()
    return True


def _end_all(
    what: str, directory: Path, find: Callable[[], list[ProcessIdentity]], say: Callable[[str], None]
) -> None:
    clients = [item for item in find() if item.name == "ceph-fuse" or item.name.startswith("client.")]
    process.end(clients, grace_s=_FUSE_GRACE_S)
    # Twice: what a process started while it was being ended is found the second time.
    left: list[ProcessIdentity] = []
    for _ in range(2):
        running = find()
        if running:
            say(f"ending {len(running)} processes")
        left = process.end(running, grace_s=_DAEMON_GRACE_S)
    if left:
        names = ", ".join(f"{item.name} (pid {item.pid})" for item in left)
        raise LabError(
            f"{what}: could not be ended even with SIGKILL: {names}",
            f"They wait in the kernel for I/O. Repeat `leadline lab down {directory}` later.",
        )


def own_processes(lab: LabRecord) -> list[ProcessIdentity]:
    """Running processes that carry this lab's mark, each once; those recorded under their names there."""
    recorded = [item for item in lab.processes if process.is_own(item)]
    known = {item.pid for item in recorded}
    return recorded + [item for item in process.find_marked(lab.fsid) if item.pid not in known]


def _unmount_all(lab: LabRecord, variables: Mapping[str, str], clock: Clock) -> None:
    """Undoes the lab's own mounts. Raises LabError, before any is, where something else is mounted there."""
    paths, spec = lab.paths, lab.spec
    own_points = paths.mount_points(spec) if spec.mount else paths.client_mounts(spec)
    below = mounts.mounts_below(lab.directory)
    # What holds a namespace goes with the network, after the processes in it.
    held = (lab.paths.namespaces, network.NAMESPACE_KIND)
    below = [(point, kind) for point, kind in below if (point.parent, kind) != held]
    for point, kind in below:
        if point not in own_points or kind != mounts.FUSE_KIND:
            raise LabError(
                f"lab {lab.name}: something else ({kind}) is mounted on {point}",
                f"Unmount it first: umount {point}",
            )
    for point, _ in below:
        _unmount(lab, point, variables, clock)


def _unmount(lab: LabRecord, point: Path, variables: Mapping[str, str], clock: Clock) -> None:
    reason = mounts.unmount_within(point, variables, _UNMOUNT_DEADLINE_S, clock=clock)
    if reason:
        mounts.unmount(point, variables, lazy=True)
    if mounts.is_mounted(point):
        raise LabError(
            f"lab {lab.name}: {point} cannot be unmounted: {reason}",
            "See `fuser -m` for who uses it.",
        )


def remove_files(lab: LabRecord, say: Callable[[str], None]) -> None:
    """Removes the files of a lab whose processes have ended, and says what it leaves, as it is not the lab's.

    Raises LabError where one would not go.
    """
    run = lab.run_directory
    # The lab's file could have been edited: only a directory of our own making is removed elsewhere.
    elsewhere = run.parent != lab.directory and run.name == run_name(lab.fsid) and os.path.lexists(run)
    inside = mounts.mounts_below(lab.directory) + (mounts.mounts_below(run) if elsewhere else [])
    if inside:
        raise LabError(f"lab {lab.name}: still mounted: {inside[0][0]}", "Unmount it and repeat `lab down`.")
    try:
        if elsewhere:
            with record.own_directory(run) as descriptor:
                _remove_entries(descriptor, run, lambda _: True)
            run.rmdir()
        with record.own_directory(lab.directory) as descriptor:
            left = _remove_made(descriptor, lab)
        if left:
            say(f"left in {lab.directory}, not of the lab's: {', '.join(left)}")
        elif lab.made_directory:
            lab.directory.rmdir()
    except TargetError as error:
        raise LabError(f"lab {lab.name}: {error.message}", error.remedy) from error
    except OSError as error:
        raise LabError(
            f"lab {lab.name}: {error.filename or lab.directory} cannot be removed: {error.strerror}",
            f"Repeat `leadline lab down {lab.directory}` when it can.",
        ) from error


def _remove_made(directory: int, lab: LabRecord) -> list[str]:
    """Removes what the lab made in its open directory; what is left there, sorted."""
    paths, spec = lab.paths, lab.spec
    _remove_entries(directory, lab.directory, lambda name: paths.is_made(name, spec))
    for point in paths.mount_points(spec):
        try:
            os.rmdir(point.name, dir_fd=directory)
        except OSError as error:
            # What lies in it, now that nothing is mounted there, was put there by others.
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.ENOTDIR):
                raise
    _remove_last(directory, lab.directory)
    return sorted(os.listdir(directory))


def _remove_last(directory: int, place: Path) -> None:
    for last in record.LAST:
        _remove_entries(directory, place, partial(operator.eq, last))


def _remove_entries(directory: int, place: Path, chosen: Callable[[str], bool]) -> None:
    """Those of an open directory, with all below them, in no matter what time; no mount is entered."""
    removal.remove_entries(place, math.inf, chosen, opened=directory)
