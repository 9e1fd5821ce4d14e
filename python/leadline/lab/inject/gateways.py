"""Faults of gateways and proxies."""

from __future__ import annotations

from leadline.lab.inject import daemons
from leadline.lab.inject.fault import FaultKind, FaultScene
from leadline.lab.inject.injection import Deed, FaultPlan, FaultStep
from leadline.lab.record import LabRecord

_ON = "a gateway, such as nfs or xrootd-2"


def _running(record: LabRecord) -> list[str]:
    return [gateway.name for gateway in record.gateways if not gateway.reason]


def _down(scene: FaultScene) -> FaultPlan:
    """Killed; undone by starting it on its port, once what it held of the file system was taken from it."""
    step = FaultStep(Deed("kill", (scene.on,)), Deed("gateway", (scene.on,)))
    return FaultPlan(f"{scene.on} was killed", (step,), (scene.on,))


def _none(record: LabRecord) -> str:
    return "" if _running(record) else "no gateway runs; start a lab with --gateways, or one on a host"


def _no_cpu_limit(record: LabRecord) -> str:
    return _none(record) or daemons.no_cpu_limit(record)


KINDS = (
    FaultKind("gateway-down", "A gateway or proxy that ended", _ON, _running, _down, lacking=_none),
    FaultKind(
        "gateway-paused", "A gateway or proxy that hangs", _ON, _running, daemons.paused, lacking=_none
    ),
    FaultKind(
        "gateway-slow-cpu", "A gateway or proxy with too little CPU", _ON, _running, daemons.slow_cpu,
        (daemons.CPU,), _no_cpu_limit,
    ),
)  # fmt: skip
