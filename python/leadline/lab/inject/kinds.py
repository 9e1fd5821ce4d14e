"""Every kind of fault, in the order in which they are listed; and those of the cluster as a whole."""

from __future__ import annotations

import difflib

from leadline.errors import UsageError
from leadline.interpreter import script_command
from leadline.lab.cluster import cluster, process
from leadline.lab.inject import clients, daemons, links
from leadline.lab.inject.fault import FaultKind, FaultScene, nothing
from leadline.lab.inject.injection import FaultPlan, FaultStep, LabAction
from leadline.lab.record import LabRecord

_FLAGS = (
    "noout", "nodown", "noup", "noin", "norecover", "norebalance", "nobackfill", "noscrub", "nodeep-scrub",
    "pause",
)  # fmt: skip
_POOLS = (
    cluster.META_POOL,
    cluster.DATA_POOL,
    cluster.ERASURE_POOL,
    cluster.OBJECT_POOL,
    cluster.STRIPED_POOL,
)
_DIRECTORIES = (cluster.REPLICATED_DIRECTORY, cluster.ERASURE_DIRECTORY)
# What an OSD compares its use with, in the order in which they must grow.
_RATIOS = ("nearfull", "backfillfull", "full")
_DEADLINE_S = 20.0
_READ_QUOTA = """
import os, sys
try:
    before = int(os.getxattr(sys.argv[1], "ceph.quota.max_bytes"))
except OSError:
    before = 0
print(before, int(os.getxattr(sys.argv[1], "ceph.dir.rbytes")))
"""


def _flag(scene: FaultScene) -> FaultPlan:
    there = scene.ask("osd", "dump")["flags_set"]
    if scene.on in there or (scene.on == "pause" and "pauserd" in there):
        raise UsageError(f"the flag {scene.on} is set already", "See `ceph osd dump`.")
    step = FaultStep(
        LabAction("ceph", ("osd", "set", scene.on)), LabAction("ceph", ("osd", "unset", scene.on))
    )
    return FaultPlan(f"the cluster has the flag {scene.on}", (step,), (f"flag/{scene.on}",))


def _full(scene: FaultScene) -> FaultPlan:
    return _lowered(scene, _RATIOS, "full: nothing can be written")


def _nearfull(scene: FaultScene) -> FaultPlan:
    return _lowered(scene, _RATIOS[:1], "nearly full")


def _lowered(scene: FaultScene, names: tuple[str, ...], words: str) -> FaultPlan:
    """The ratios are lowered below what the emptiest OSD uses, so that all are over them."""
    before = scene.ask("osd", "dump")
    used = min(float(row["utilization"]) for row in scene.ask("osd", "df")["nodes"]) / 100
    steps = tuple(
        FaultStep(
            LabAction("ceph", ("osd", f"set-{name}-ratio", f"{used * (0.5 + 0.1 * index):.6f}")),
            LabAction("ceph", ("osd", f"set-{name}-ratio", f"{float(before[f'{name}_ratio']):g}")),
        )
        for index, name in enumerate(names)
    )
    return FaultPlan(f"all OSDs count as {words}", steps, ("ratios",))


def _pool_full(scene: FaultScene) -> FaultPlan:
    quota = scene.ask("osd", "pool", "get-quota", scene.on)
    prefix = "leadline-fault-quota"
    step = FaultStep(
        LabAction("ceph", ("osd", "pool", "set-quota", scene.on, "max_objects", "1")),
        LabAction(
            "ceph", ("osd", "pool", "set-quota", scene.on, "max_objects", str(quota["quota_max_objects"]))
        ),
    )
    fill = FaultStep(
        LabAction("fill", (scene.on, prefix, "1", "4096")), LabAction("empty", (scene.on, prefix))
    )
    return FaultPlan(f"pool {scene.on} may hold one object, and has it", (fill, step), (f"pool/{scene.on}",))


def _quota(scene: FaultScene) -> FaultPlan:
    path = scene.record.paths.mount / scene.on
    text = process.run_tool(
        script_command("-c", _READ_QUOTA, str(path)), scene.variables, deadline_s=_DEADLINE_S
    )
    before, used = text.split()
    limit = str(max(1, int(used)))
    step = FaultStep(LabAction("quota", (scene.on, limit)), LabAction("quota", (scene.on, before)))
    return FaultPlan(f"the quota of {path} is what it holds: {limit} B", (step,), (f"quota/{scene.on}",))


def _not_mounted(record: LabRecord) -> str:
    return "" if record.spec.mount else "the lab was started with --no-mount"


_CLUSTER_KINDS = (
    FaultKind("cluster-flag", "A flag of the cluster", "a flag", lambda _: list(_FLAGS), _flag),
    FaultKind("cluster-full", "Every OSD over its full ratio", "", nothing, _full),
    FaultKind("cluster-nearfull", "Every OSD over its nearfull ratio", "", nothing, _nearfull),
    FaultKind("pool-full", "A pool that has reached its quota", "a pool", lambda _: list(_POOLS), _pool_full),
    FaultKind(
        "quota-reached", "A directory that has reached its quota", "a directory of the mount",
        lambda _: list(_DIRECTORIES), _quota, lacking=_not_mounted,
    ),
)  # fmt: skip


KINDS: tuple[FaultKind, ...] = (
    *links.KINDS,
    *daemons.KINDS,
    *clients.KINDS,
    *_CLUSTER_KINDS,
)


def find(name: str, kinds: tuple[FaultKind, ...] = KINDS) -> FaultKind:
    """The kind of this name. Raises UsageError that names those that come near it."""
    names = [kind.name for kind in kinds]
    if name in names:
        return kinds[names.index(name)]
    near = difflib.get_close_matches(name, names, n=3) or [item for item in names if name in item]
    hint = f"Near to it: {', '.join(near)}. " if near else ""
    raise UsageError(f"there is no fault {name!r}", f"{hint}`leadline lab inject --kinds` lists all.")
