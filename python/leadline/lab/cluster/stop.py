"""Takes a lab down from any state: half started, running, crashed, killed, with a dead mount. Repeatable."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from leadline.errors import LabError, UsageError
from leadline.lab import bridge, mounts, record, registry
from leadline.lab.cluster import process
from leadline.lab.cluster.process import ProcessIdentity
from leadline.lab.cluster.wait import SYSTEM_CLOCK, Clock, poll
from leadline.lab.paths import RUN_PREFIX
from leadline.lab.record import LabRecord

_UNMOUNT_DEADLINE_S = 5.0
_FUSE_GRACE_S = 5.0
_DAEMON_GRACE_S = 2.0


def remove(directory: Path, variables: Mapping[str, str], say: Callable[[str], None]) -> bool:
    """Removes the lab in `directory` with its processes, mounts and files; False where there is none.

    Raises UsageError for a directory that is no lab's (it is left alone), LabError for what could not
    be removed: repeating the call goes on from there.
    """
    if not directory.exists():
        registry.release(directory, variables)
        return False
    if directory.is_dir() and record.is_unborn(directory):
        with record.locked(directory):
            if record.is_unborn(directory):
                shutil.rmtree(directory)
                registry.release(directory, variables)
                return True
    record.read_record(directory)
    with record.locked(directory):
        lab = record.read_record(directory)
        if lab.owner_uid != os.geteuid() and os.geteuid() != 0:
            raise UsageError(f"the lab in {directory} belongs to user {lab.owner_uid}", "Use that account.")
        with suppress(OSError):  # the disk may be full, which is a reason to go on
            record.write_record(replace(lab, state="stopping"))
        stop_processes(lab, variables, say)
        remove_files(lab)
        registry.release(directory, variables)
    return True


def stop_processes(lab: LabRecord, variables: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Unmounts and ends everything of this lab, leaves its files. Raises LabError for what does not end.

    Its bridge goes last: what hangs on it belongs to processes.
    """
    _unmount_all(lab, variables, SYSTEM_CLOCK)
    clients = [
        item for item in own_processes(lab) if item.name == "ceph-fuse" or item.name.startswith("client.")
    ]
    process.end(clients, grace_s=_FUSE_GRACE_S)
    # Twice: what a process started while it was being ended is found the second time.
    left: list[ProcessIdentity] = []
    for _ in range(2):
        own = own_processes(lab)
        if own:
            say(f"ending {len(own)} processes")
        left = process.end(own, grace_s=_DAEMON_GRACE_S)
    if left:
        names = ", ".join(f"{item.name} (pid {item.pid})" for item in left)
        raise LabError(
            f"lab {lab.name}: could not be ended even with SIGKILL: {names}",
            f"They wait in the kernel for I/O. Repeat `leadline lab down {lab.directory}` later.",
        )
    bridge.remove(lab.bridge, variables)


def own_processes(lab: LabRecord) -> list[ProcessIdentity]:
    """Running processes of this lab: those recorded, and those that carry its mark, each once."""
    recorded = [item for item in lab.processes if process.is_running(item)]
    known = {item.pid for item in recorded}
    return recorded + [item for item in process.find_marked(lab.fsid) if item.pid not in known]


def _unmount_all(lab: LabRecord, variables: Mapping[str, str], clock: Clock) -> None:
    for point, kind in mounts.mounts_below(lab.directory):
        if point == lab.directory or not kind.startswith("fuse"):
            raise LabError(
                f"lab {lab.name}: something else ({kind}) is mounted on {point}",
                f"Unmount it first: umount {point}",
            )
        reasons: list[str] = []

        def gone(point: Path = point, reasons: list[str] = reasons) -> bool:
            reasons[:] = [mounts.unmount(point, variables, lazy=False)]
            return not mounts.is_mounted(point)

        if not poll(gone, _UNMOUNT_DEADLINE_S, interval_s=0.5, clock=clock):
            mounts.unmount(point, variables, lazy=True)
        if mounts.is_mounted(point):
            raise LabError(
                f"lab {lab.name}: {point} cannot be unmounted: {reasons[0]}",
                "See `fuser -m` for who uses it.",
            )


def remove_files(lab: LabRecord) -> None:
    """Removes the files of a lab whose processes have ended. Raises LabError where one would not go."""
    inside = mounts.mounts_below(lab.directory)
    if inside:
        raise LabError(f"lab {lab.name}: still mounted: {inside[0][0]}", "Unmount it and repeat `lab down`.")
    run = lab.run_directory
    # The lab's file could have been edited: only a directory of our own making is removed elsewhere.
    if run.parent != lab.directory and run.name.startswith(RUN_PREFIX) and _is_own_directory(run):
        shutil.rmtree(run)
    try:
        _empty(lab.directory)
        if lab.made_directory:
            lab.directory.rmdir()
    except OSError as error:
        raise LabError(
            f"lab {lab.name}: {error.filename or lab.directory} cannot be removed: {error.strerror}",
            f"Repeat `leadline lab down {lab.directory}` when it can.",
        ) from error


def _empty(directory: Path) -> None:
    """Removes the contents, the lab's file and its lock last: until then, the directory is still a lab."""
    for entry in directory.iterdir():
        if entry.name not in (record.FILE, record.LOCK):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
    (directory / record.FILE).unlink()
    (directory / record.LOCK).unlink()


def _is_own_directory(path: Path) -> bool:
    try:
        return (
            path.is_dir()
            and not path.is_symlink()
            and path.stat().st_uid in (os.geteuid(), path.parent.stat().st_uid)
        )
    except OSError:
        return False
