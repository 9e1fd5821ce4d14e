"""Faults of OSDs."""

from __future__ import annotations

from leadline.lab.inject.fault import FaultKind, FaultScene, processes
from leadline.lab.inject.injection import Deed, FaultPlan, FaultStep

_ON, _OSDS = "an OSD, such as osd.1", processes("osd.")


def _paused(scene: FaultScene) -> FaultPlan:
    step = FaultStep(Deed("signal", (scene.on, "SIGSTOP")), Deed("signal", (scene.on, "SIGCONT")))
    return FaultPlan(f"{scene.on} stands still (SIGSTOP)", (step,), (f"{scene.on}/running",))


KINDS = (FaultKind("osd-paused", "An OSD that hangs: it neither works nor dies", _ON, _OSDS, _paused),)
