"""Faults of monitors and managers."""

from __future__ import annotations

from leadline.lab.inject import daemons
from leadline.lab.inject.fault import FaultKind, processes
from leadline.lab.record import LabRecord

_MONITORS, _MANAGERS = processes("mon."), processes("mgr.")


def _too_few(record: LabRecord) -> str:
    if len(_MONITORS(record)) > 2:
        return ""
    return "without its only monitor nothing could be undone; with --hosts 3 or more the lab has three"


_ON = "a monitor, such as mon.b"

KINDS = (
    FaultKind("mon-down", "A monitor that ended", _ON, _MONITORS, daemons.down, lacking=_too_few),
    FaultKind("mon-paused", "A monitor that hangs", _ON, _MONITORS, daemons.paused, lacking=_too_few),
    FaultKind("mgr-down", "A manager that ended", "a manager, such as mgr.x", _MANAGERS, daemons.down),
)
