"""Faults on purpose, for studies of a cluster that is not well; `lab down` undoes them at the latest."""

from __future__ import annotations

import signal

from leadline.errors import UsageError
from leadline.lab.cluster import process
from leadline.lab.cluster.wait import poll
from leadline.lab.lab import Lab
from leadline.lab.record import read_record


def kill_osd(lab: Lab, number: int) -> None:
    """Kills OSD `number` with SIGKILL, returns when it is gone. Raises UsageError where it does not run."""
    kill(lab, f"osd.{number}")


def kill(lab: Lab, name: str) -> None:
    """Kills a process of the lab, such as `osd.1` or `nfs`, with SIGKILL, returns when it is gone.

    Raises UsageError where it does not run.
    """
    found = [
        item for item in read_record(lab.directory).processes if item.name == name and process.is_own(item)
    ]
    if not found:
        raise UsageError(f"lab {lab.record.name}: {name} does not run", "See `leadline lab status`.")
    process.send(found[0], signal.SIGKILL)
    poll(lambda: not process.is_running(found[0]), 10.0)


def mark_out(lab: Lab, number: int) -> None:
    """Marks OSD `number` out, so that its data moves elsewhere."""
    lab.ceph.run("osd", "out", str(number))


def mark_in(lab: Lab, number: int) -> None:
    """Marks OSD `number` in again."""
    lab.ceph.run("osd", "in", str(number))


def set_flag(lab: Lab, flag: str) -> None:
    """Sets a cluster flag such as `noscrub`."""
    lab.ceph.run("osd", "set", flag)


def unset_flag(lab: Lab, flag: str) -> None:
    """Removes a cluster flag."""
    lab.ceph.run("osd", "unset", flag)
