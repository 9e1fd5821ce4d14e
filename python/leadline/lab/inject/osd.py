"""Faults of OSDs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leadline.errors import LabError, SpecError, UsageError
from leadline.lab.cluster.cluster import DATA_POOL, OBJECT_POOL
from leadline.lab.inject import daemons
from leadline.lab.inject.deeds import FILL_OBJECT_BYTES
from leadline.lab.inject.fault import FaultKind, FaultOption, FaultScene, processes, setting
from leadline.lab.inject.injection import Deed, FaultPlan, FaultStep
from leadline.lab.network.placement import failure_domain
from leadline.lab.network.topology import REPLICAS
from leadline.units import format_size, parse_duration, parse_size

_ON, _OSDS = "an OSD, such as osd.1", processes("osd.")
_FILL_BYTES_MAX = 1 << 30
# Due again as soon as it was done, whatever the machine's load; the sleep keeps it in sight.
_SCRUB = {
    "osd_scrub_min_interval": "1",
    "osd_deep_scrub_interval": "1",
    "osd_scrub_load_threshold": "1000",
    "osd_scrub_sleep": "0.2",
}
# What a group's log of changes still holds is recovered by it; without, the group is filled anew.
_SHORT_LOG = {"osd_min_pg_log_entries": "1", "osd_max_pg_log_entries": "2", "osd_pg_log_trim_min": "1"}
_DEBUG = ("osd", "ms", "bluestore")


def _out(scene: FaultScene) -> FaultPlan:
    if not _row(scene)["in"]:
        raise UsageError(f"{scene.on} is out already", "See `ceph osd tree`.")
    return FaultPlan(
        f"{scene.on} is out: its data moves elsewhere", (_marked_out(scene),), (f"{scene.on}/in",)
    )


def _marked_out(scene: FaultScene) -> FaultStep:
    return FaultStep(Deed("ceph", ("osd", "out", scene.number)), Deed("ceph", ("osd", "in", scene.number)))


def _row(scene: FaultScene) -> dict[str, Any]:
    rows: list[dict[str, Any]] = scene.ask("osd", "dump")["osds"]
    for row in rows:
        if str(row["osd"]) == scene.number:
            return row
    raise LabError(f"the cluster knows no {scene.on}", "See `ceph osd tree`.")


def _fullness(state: str) -> Callable[[FaultScene], FaultPlan]:
    """The OSD says of itself that it is so full, as it says when it is."""

    def plan(scene: FaultScene) -> FaultPlan:
        do = Deed("tell", (scene.on, "injectfull", state))
        step = FaultStep(do, Deed("untell", (scene.on, "injectfull", "none")))
        return FaultPlan(f"{scene.on} says that it is {state}", (step,), (f"{scene.on}/fullness",))

    return plan


def _fill_bytes(text: str) -> int:
    size = parse_size(text)
    if not FILL_OBJECT_BYTES <= size <= _FILL_BYTES_MAX:
        raise SpecError(f"{text!r}: between 4 MiB and 1 GiB can be written for a fault", "Use data=128M.")
    return size


def _seconds(text: str) -> float:
    return parse_duration(text) / 1e9


def _filled(scene: FaultScene) -> FaultStep:
    prefix, size = f"leadline-fault-{scene.on}", _fill_bytes(scene.options["data"])
    count = str(-(-size // FILL_OBJECT_BYTES))
    fill = Deed("fill", (OBJECT_POOL, prefix, count, str(FILL_OBJECT_BYTES)))
    return FaultStep(fill, Deed("empty", (OBJECT_POOL, prefix)))


def _slow_recovery(scene: FaultScene) -> FaultStep:
    return setting(scene, "osd", "osd_recovery_sleep", f"{_seconds(scene.options['sleep']):g}")


def _backfill(scene: FaultScene) -> FaultPlan:
    short = (setting(scene, "osd", name, value) for name, value in _SHORT_LOG.items())
    steps = (*short, _filled(scene), _slow_recovery(scene), _marked_out(scene))
    size = format_size(_fill_bytes(scene.options["data"]))
    words = f"{size} were written into pool {OBJECT_POOL}, and what of it is on {scene.on} moves elsewhere"
    return FaultPlan(words, steps, (f"{scene.on}/in", "recovery"))


def _recovery(scene: FaultScene) -> FaultPlan:
    """What was written while it was down is recovered when it comes back."""
    command = daemons.command_of(scene)
    back = Deed("start", (scene.on, *command))
    down = FaultStep(Deed("kill", (scene.on,)), back)
    gone = FaultStep(Deed("ceph", ("osd", "down", scene.number)))
    steps = (_slow_recovery(scene), down, gone, _filled(scene), FaultStep(back))
    words = (
        f"{scene.on} was killed, {format_size(_fill_bytes(scene.options['data']))} were written, it came back"
    )
    return FaultPlan(words, steps, (scene.on, "recovery"))


def _scrub(scene: FaultScene) -> FaultPlan:
    settings = tuple(setting(scene, scene.on, name, value) for name, value in _SCRUB.items())
    begin = FaultStep(Deed("ceph", ("osd", "deep-scrub", scene.on)))
    words = f"{scene.on} scrubs the groups that it leads deeply, again and again"
    return FaultPlan(words, (*settings, begin), (f"{scene.on}/scrub",))


def _crowd(scene: FaultScene) -> FaultPlan:
    group, source = _movable(scene)
    do = Deed("ceph", ("osd", "pg-upmap-items", group, source, scene.number))
    step = FaultStep(do, Deed("ceph", ("osd", "rm-pg-upmap-items", group)))
    words = f"placement group {group} of pool {DATA_POOL} is on {scene.on} in place of osd.{source}"
    return FaultPlan(words, (step,), (f"{scene.on}/groups",))


def _movable(scene: FaultScene) -> tuple[str, str]:
    """A group that may be on this OSD instead of another: in a lab with hosts, one of the same host."""
    number, network = int(scene.number), scene.record.network
    apart = network is not None and failure_domain(network.topology, REPLICAS) == "host"
    moved = {item["pgid"] for item in scene.ask("osd", "dump")["pg_upmap_items"]}

    def host(other: int) -> str:
        return network.host_of(f"osd.{other}") if network and apart else f"osd.{other}"

    for row in scene.ask("pg", "ls-by-pool", DATA_POOL)["pg_stats"]:
        up: list[int] = row["up"]
        if number in up or row["pgid"] in moved:
            continue
        # CRUSH's rule holds afterwards, too: else the monitor takes the mapping away at once.
        beside = [other for other in up if host(other) == host(number)]
        return row["pgid"], str(beside[0] if beside else up[-1])
    raise UsageError(f"every placement group is on {scene.on} already", "Start a lab with more OSDs.")


def _debug(scene: FaultScene) -> FaultPlan:
    # By `tell`: what ceph.conf sets is not changed by `config set`.
    steps = tuple(
        FaultStep(
            Deed("tell", (scene.on, "config", "set", f"debug_{name}", "10/10")),
            Deed("untell", (scene.on, "config", "unset", f"debug_{name}")),
        )
        for name in _DEBUG
    )
    return FaultPlan(f"{scene.on} writes a debug log", steps, (f"{scene.on}/debug",))


_DATA = FaultOption("data", "64M", _fill_bytes, "written into pool objects first, to have something to move")
_SLEEP = FaultOption("sleep", "500ms", _seconds, "pause between two objects, on every OSD")

KINDS = (
    FaultKind("osd-down", "An OSD that ended", _ON, _OSDS, daemons.down),
    FaultKind("osd-out", "An OSD that is marked out", _ON, _OSDS, _out),
    FaultKind("osd-paused", "An OSD that hangs: it neither works nor dies", _ON, _OSDS, daemons.paused),
    FaultKind(
        "osd-slow-cpu", "An OSD with too little CPU", _ON, _OSDS, daemons.slow_cpu,
        (daemons.CPU,), daemons.no_cpu_limit,
    ),
    FaultKind(
        "osd-slow-disk", "An OSD with a slow disk", _ON, _OSDS, daemons.slow_disk,
        (daemons.RATE,), daemons.no_disk_limit,
    ),
    FaultKind("osd-nearfull", "An OSD that warns of its space", _ON, _OSDS, _fullness("nearfull")),
    FaultKind("osd-full", "An OSD without space: nothing can be written", _ON, _OSDS, _fullness("full")),
    FaultKind("osd-backfill", "Data on its way to other OSDs", _ON, _OSDS, _backfill, (_DATA, _SLEEP)),
    FaultKind("osd-recovery", "An OSD that catches up", _ON, _OSDS, _recovery, (_DATA, _SLEEP)),
    FaultKind("osd-scrub", "Deep scrubs without end", _ON, _OSDS, _scrub),
    FaultKind("osd-crowd", "An OSD with one placement group too many", _ON, _OSDS, _crowd),
    FaultKind("osd-debug-log", "An OSD with a debug log", _ON, _OSDS, _debug, limit_s=600.0),
)  # fmt: skip
