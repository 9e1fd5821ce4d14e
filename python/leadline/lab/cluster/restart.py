"""Restarts one daemon of a lab, as an administrator would restart its unit."""

from __future__ import annotations

from leadline.errors import LabError, UsageError
from leadline.lab.cluster import process
from leadline.lab.journal import LabJournal

_GRACE_S = 30.0


def restart(journal: LabJournal, name: str) -> None:
    """Ends it, if it runs, and starts it anew. The lab's lock is held."""
    kind, _, identity = name.partition(".")
    if kind not in ("mon", "mgr", "mds", "osd") or name not in journal.record.daemons(kind):
        raise UsageError(f"lab {journal.record.name} has no daemon {name}", "See `leadline lab status`.")
    running = [one for one in journal.record.processes if one.name == name and process.is_own(one)]
    if process.end(running, grace_s=_GRACE_S):
        raise LabError(f"{name} does not end", "It waits in the kernel for I/O.")
    journal.start(name, [f"ceph-{kind}", "-f", "-c", str(journal.record.paths.conf), "-i", identity])
