"""Faults that are the same for every kind of process: paused, down, short of CPU, short of disk."""

from __future__ import annotations

from pathlib import Path

from leadline.errors import LabError, SpecError
from leadline.lab.cgroups import ControlGroups, Controller
from leadline.lab.inject.fault import FaultOption, FaultScene
from leadline.lab.inject.injection import Deed, FaultPlan, FaultStep
from leadline.lab.record import LabRecord
from leadline.units import format_rate, parse_percent, parse_rate

_CPU_PERCENT_MIN = 1.0


def _share(text: str) -> float:
    """A share of one core. Raises SpecError."""
    percent = parse_percent(text)
    if percent < _CPU_PERCENT_MIN:
        raise SpecError(f"{text!r}: nothing works with less than 1 % of a core", "For example: cpu=5%")
    return percent / 100


CPU = FaultOption("cpu", "5%", _share, "of one core")
RATE = FaultOption("rate", "10MB/s", parse_rate, "reads and writes each")


def paused(scene: FaultScene) -> FaultPlan:
    """It neither works nor ends: its peers and clients see a process that hangs."""
    step = FaultStep(Deed("signal", (scene.on, "SIGSTOP")), Deed("signal", (scene.on, "SIGCONT")))
    return FaultPlan(f"{scene.on} stands still (SIGSTOP)", (step,), (f"{scene.on}/running",))


def down(scene: FaultScene) -> FaultPlan:
    """Killed; undone by starting it as it was started. All other faults of it would end with it."""
    step = FaultStep(Deed("kill", (scene.on,)), Deed("start", (scene.on, *command_of(scene))))
    return FaultPlan(f"{scene.on} was killed", (step,), (scene.on,))


def command_of(scene: FaultScene) -> list[str]:
    """The command line of the process. Raises LabError where it does not run."""
    try:
        words = Path(f"/proc/{scene.process.pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    except OSError:
        words = []
    if not words:
        raise LabError(f"{scene.on} does not run", "See `leadline lab status`.")
    return words


def slow_cpu(scene: FaultScene) -> FaultPlan:
    """All its threads together get a share of one core."""
    share = _share(scene.options["cpu"])
    return _limited(scene, "cpu", f"{share:.0%} of a core", ("0", "0", ""), share)


def slow_disk(scene: FaultScene) -> FaultPlan:
    """What it reads and writes of the disk under the lab's files is held back; other disks are not."""
    rate = parse_rate(scene.options["rate"])
    device = ControlGroups(scene.record.fsid).device_of(scene.record.directory)
    return _limited(scene, "disk", f"{format_rate(rate)} of disk {device}", (str(rate), str(rate), device))


def _limited(
    scene: FaultScene, controller: Controller, words: str, disk: tuple[str, str, str], share: float = 0.0
) -> FaultPlan:
    back = ControlGroups(scene.record.fsid).place_of(controller, scene.process.pid)
    do = Deed("limit", (scene.on, str(share), *disk))
    step = FaultStep(do, Deed("unlimit", (scene.on, controller, back)))
    return FaultPlan(f"{scene.on} is held to {words}", (step,), (f"{scene.on}/{controller}",))


def no_cpu_limit(record: LabRecord) -> str:
    """Why no CPU can be taken away here; "" where it can."""
    return ControlGroups(record.fsid).lacking("cpu")


def no_disk_limit(record: LabRecord) -> str:
    """The same of a disk's rate."""
    groups = ControlGroups(record.fsid)
    try:
        return groups.lacking("disk") or (groups.device_of(record.directory) and "")
    except LabError as error:
        return error.message
