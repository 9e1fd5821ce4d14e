"""Faults of daemons: OSDs, metadata servers, monitors and managers, gateways."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from leadline.errors import LabError, SpecError, UsageError
from leadline.lab.cgroups import ControlGroups, Controller
from leadline.lab.cluster.cluster import DATA_POOL, OBJECT_POOL
from leadline.lab.inject.fault import FaultKind, FaultOption, FaultScene, nothing, processes, setting
from leadline.lab.inject.injection import FaultPlan, FaultStep, LabAction
from leadline.lab.network.placement import failure_domain
from leadline.lab.network.topology import REPLICAS
from leadline.lab.record import LabRecord
from leadline.units import format_rate, format_size, parse_duration, parse_percent, parse_rate, parse_size

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
    step = FaultStep(LabAction("signal", (scene.on, "SIGSTOP")), LabAction("signal", (scene.on, "SIGCONT")))
    return FaultPlan(f"{scene.on} stands still (SIGSTOP)", (step,), (f"{scene.on}/running",))


def down(scene: FaultScene) -> FaultPlan:
    """Killed; undone by starting it as it was started. All other faults of it would end with it."""
    step = FaultStep(LabAction("kill", (scene.on,)), LabAction("start", (scene.on, *command_of(scene))))
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
    do = LabAction("limit", (scene.on, str(share), *disk))
    step = FaultStep(do, LabAction("unlimit", (scene.on, controller, back)))
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


_AN_OSD, _OSDS = "an OSD, such as osd.1", processes("osd.")
_FILL_OBJECT_BYTES, _FILL_BYTES_MAX = 4 << 20, 1 << 30
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
    return FaultStep(
        LabAction("ceph", ("osd", "out", scene.number)), LabAction("ceph", ("osd", "in", scene.number))
    )


def _row(scene: FaultScene) -> dict[str, Any]:
    rows: list[dict[str, Any]] = scene.ask("osd", "dump")["osds"]
    for row in rows:
        if str(row["osd"]) == scene.number:
            return row
    raise LabError(f"the cluster knows no {scene.on}", "See `ceph osd tree`.")


def _fullness(state: str) -> Callable[[FaultScene], FaultPlan]:
    """The OSD says of itself that it is so full, as it says when it is."""

    def plan(scene: FaultScene) -> FaultPlan:
        do = LabAction("tell", (scene.on, "injectfull", state))
        step = FaultStep(do, LabAction("untell", (scene.on, "injectfull", "none")))
        return FaultPlan(f"{scene.on} says that it is {state}", (step,), (f"{scene.on}/fullness",))

    return plan


def _fill_bytes(text: str) -> int:
    size = parse_size(text)
    if not _FILL_OBJECT_BYTES <= size <= _FILL_BYTES_MAX:
        raise SpecError(f"{text!r}: between 4 MiB and 1 GiB can be written for a fault", "Use data=128M.")
    return size


def _seconds(text: str) -> float:
    return parse_duration(text) / 1e9


def _filled(scene: FaultScene) -> FaultStep:
    prefix, size = f"leadline-fault-{scene.on}", _fill_bytes(scene.options["data"])
    count = str(-(-size // _FILL_OBJECT_BYTES))
    fill = LabAction("fill", (OBJECT_POOL, prefix, count, str(_FILL_OBJECT_BYTES)))
    return FaultStep(fill, LabAction("empty", (OBJECT_POOL, prefix)))


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
    command = command_of(scene)
    back = LabAction("start", (scene.on, *command))
    down = FaultStep(LabAction("kill", (scene.on,)), back)
    gone = FaultStep(LabAction("ceph", ("osd", "down", scene.number)))
    steps = (_slow_recovery(scene), down, gone, _filled(scene), FaultStep(back))
    words = (
        f"{scene.on} was killed, {format_size(_fill_bytes(scene.options['data']))} were written, it came back"
    )
    return FaultPlan(words, steps, (scene.on, "recovery"))


def _scrub(scene: FaultScene) -> FaultPlan:
    settings = tuple(setting(scene, scene.on, name, value) for name, value in _SCRUB.items())
    begin = FaultStep(LabAction("ceph", ("osd", "deep-scrub", scene.on)))
    words = f"{scene.on} scrubs the groups that it leads deeply, again and again"
    return FaultPlan(words, (*settings, begin), (f"{scene.on}/scrub",))


def _crowd(scene: FaultScene) -> FaultPlan:
    group, source = _movable(scene)
    do = LabAction("ceph", ("osd", "pg-upmap-items", group, source, scene.number))
    step = FaultStep(do, LabAction("ceph", ("osd", "rm-pg-upmap-items", group)))
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
            LabAction("tell", (scene.on, "config", "set", f"debug_{name}", "10/10")),
            LabAction("untell", (scene.on, "config", "unset", f"debug_{name}")),
        )
        for name in _DEBUG
    )
    return FaultPlan(f"{scene.on} writes a debug log", steps, (f"{scene.on}/debug",))


_DATA = FaultOption("data", "64M", _fill_bytes, "written into pool objects first, to have something to move")
_SLEEP = FaultOption("sleep", "500ms", _seconds, "pause between two objects, on every OSD")


_A_SERVER, _SERVERS = "a metadata server, such as mds.a", processes("mds.")
_CACHE = "mds_cache_memory_limit"


def _fail_over(scene: FaultScene) -> FaultPlan:
    ranks = scene.ask("status")["fsmap"]["by_rank"]
    active = next((rank["name"] for rank in ranks if rank["status"] == "up:active"), "")
    if not active:
        raise UsageError("no metadata server is active", "Wait until one is: see `leadline lab status`.")
    step = FaultStep(LabAction("fail-over", (active,)))
    return FaultPlan(f"another metadata server takes over from mds.{active}", (step,), ("mds",))


def _no_stand_in(record: LabRecord) -> str:
    if len(_SERVERS(record)) > 1:
        return ""
    return "the lab has one metadata server; with --hosts 2 or more it has another that stands by"


def _cache_bytes(text: str) -> int:
    size = parse_size(text)
    if not 64 << 10 <= size <= 1 << 32:
        raise SpecError(f"{text!r}: a metadata cache is given 64 KiB to 4 GiB", "For example: size=1M")
    return size


def _tiny_cache(scene: FaultScene) -> FaultPlan:
    size = _cache_bytes(scene.options["size"])
    step = setting(scene, scene.on, _CACHE, str(size))
    return FaultPlan(f"{scene.on} may cache {format_size(size)}", (step,), (f"{scene.on}/cache",))


_SIZE = FaultOption("size", "1M", _cache_bytes, "of the cache")


_A_MONITOR, _MONITORS, _MANAGERS = "a monitor, such as mon.b", processes("mon."), processes("mgr.")
_A_GATEWAY = "a gateway, such as nfs or xrootd-2"


def _too_few(record: LabRecord) -> str:
    if len(_MONITORS(record)) > 2:
        return ""
    return "without its only monitor nothing could be undone; with --hosts 3 or more the lab has three"


def _gateways(record: LabRecord) -> list[str]:
    return [gateway.name for gateway in record.gateways if not gateway.reason]


def _gateway_down(scene: FaultScene) -> FaultPlan:
    """Killed; undone by starting it on its port, once what it held of the file system was taken from it."""
    step = FaultStep(LabAction("kill", (scene.on,)), LabAction("gateway", (scene.on,)))
    return FaultPlan(f"{scene.on} was killed", (step,), (scene.on,))


def _no_gateway(record: LabRecord) -> str:
    return "" if _gateways(record) else "no gateway runs; start a lab with --gateways, or one on a host"


def _no_gateway_cpu(record: LabRecord) -> str:
    return _no_gateway(record) or no_cpu_limit(record)


KINDS = (
    FaultKind("osd-down", "An OSD that ended", _AN_OSD, _OSDS, down),
    FaultKind("osd-out", "An OSD that is marked out", _AN_OSD, _OSDS, _out),
    FaultKind("osd-paused", "An OSD that hangs: it neither works nor dies", _AN_OSD, _OSDS, paused),
    FaultKind(
        "osd-slow-cpu", "An OSD with too little CPU", _AN_OSD, _OSDS, slow_cpu,
        (CPU,), no_cpu_limit,
    ),
    FaultKind(
        "osd-slow-disk", "An OSD with a slow disk", _AN_OSD, _OSDS, slow_disk,
        (RATE,), no_disk_limit,
    ),
    FaultKind("osd-nearfull", "An OSD that warns of its space", _AN_OSD, _OSDS, _fullness("nearfull")),
    FaultKind("osd-full", "An OSD without space: nothing can be written", _AN_OSD, _OSDS, _fullness("full")),
    FaultKind("osd-backfill", "Data on its way to other OSDs", _AN_OSD, _OSDS, _backfill, (_DATA, _SLEEP)),
    FaultKind("osd-recovery", "An OSD that catches up", _AN_OSD, _OSDS, _recovery, (_DATA, _SLEEP)),
    FaultKind("osd-scrub", "Deep scrubs without end", _AN_OSD, _OSDS, _scrub),
    FaultKind("osd-crowd", "An OSD with one placement group too many", _AN_OSD, _OSDS, _crowd),
    FaultKind("osd-debug-log", "An OSD with a debug log", _AN_OSD, _OSDS, _debug, limit_s=600.0),
    FaultKind("mds-down", "A metadata server that ended", _A_SERVER, _SERVERS, down),
    FaultKind("mds-paused", "A metadata server that hangs", _A_SERVER, _SERVERS, paused),
    FaultKind(
        "mds-slow-cpu", "A metadata server with too little CPU", _A_SERVER, _SERVERS, slow_cpu,
        (CPU,), no_cpu_limit,
    ),
    FaultKind("mds-tiny-cache", "A metadata server that forgets", _A_SERVER, _SERVERS, _tiny_cache, (_SIZE,)),
    FaultKind(
        "mds-failover", "The active metadata server fails, another takes over", "", nothing, _fail_over,
        lacking=_no_stand_in, lasting=False,
    ),
    FaultKind("mon-down", "A monitor that ended", _A_MONITOR, _MONITORS, down, lacking=_too_few),
    FaultKind("mon-paused", "A monitor that hangs", _A_MONITOR, _MONITORS, paused, lacking=_too_few),
    FaultKind("mgr-down", "A manager that ended", "a manager, such as mgr.x", _MANAGERS, down),
    FaultKind(
        "gateway-down", "A gateway or proxy that ended", _A_GATEWAY, _gateways, _gateway_down,
        lacking=_no_gateway,
    ),
    FaultKind(
        "gateway-paused", "A gateway or proxy that hangs", _A_GATEWAY, _gateways, paused, lacking=_no_gateway
    ),
    FaultKind(
        "gateway-slow-cpu", "A gateway or proxy with too little CPU", _A_GATEWAY, _gateways, slow_cpu,
        (CPU,), _no_gateway_cpu,
    ),
)  # fmt: skip
