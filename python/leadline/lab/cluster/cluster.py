"""Builds the cluster: monitor, manager, OSDs, metadata server, pools, mount. Reads as the order of events."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from leadline.errors import LabError
from leadline.interpreter import script_command
from leadline.lab import bridge, mounts
from leadline.lab.cgroups import ControlGroups
from leadline.lab.cluster import config, process
from leadline.lab.cluster.command import LabClusterState, parse_state
from leadline.lab.cluster.process import SYSTEM_CLOCK, Clock, choose_port, poll
from leadline.lab.gateways import kinds, starter
from leadline.lab.journal import LabJournal
from leadline.lab.network import make as network
from leadline.lab.network.placement import LabNetwork, failure_domain, metadata_domain, place
from leadline.lab.network.topology import REPLICAS, Topology
from leadline.lab.record import LabRecord
from leadline.lab.spec import LabSpec
from leadline.removal import remove_tree
from leadline.units import format_count

MON, MDS, FUSE = "mon.a", "mds.a", "client.admin"
FILE_SYSTEM, META_POOL, DATA_POOL, ERASURE_POOL = "fs", "meta", "data", "ecdata"
OBJECT_POOL, STRIPED_POOL = "objects", kinds.XROOTD_POOL
REPLICATED_DIRECTORY, ERASURE_DIRECTORY = "replicated", "erasure"
META_CLASS, DATA_CLASS = "metadata", "data"  # of devices, and the names of their rules
META_PGS, DATA_PGS, ERASURE_PGS, OBJECT_PGS = 8, 32, 16, 8

_PORT_ATTEMPTS = 4
_MON_PORT = 3300  # Ceph's own
_MON_DEADLINE_S = 60.0
_CLUSTER_DEADLINE_S = 120.0
_MOUNT_DEADLINE_S = 60.0
_MAKE_TARGET = (
    "import os, sys; os.mkdir(sys.argv[1]); "
    "os.setxattr(sys.argv[1], 'ceph.dir.layout.pool', sys.argv[2].encode())"
)


@dataclass(frozen=True)
class Builder:
    """What every step needs. `say` is told what has been reached; `chance` draws ports."""

    journal: LabJournal
    say: Callable[[str], None]
    chance: random.Random
    clock: Clock = SYSTEM_CLOCK

    @property
    def spec(self) -> LabSpec:
        """What was asked."""
        return self.journal.record.spec


def build(builder: Builder) -> None:
    """Brings the lab up from an empty directory. Raises LabError naming what failed and its log."""
    if builder.spec.bridge:
        _make_bridge(builder)
    if builder.spec.topology is not None:
        _make_network(builder, builder.spec.topology)
    _make_directories(builder)
    config.make_keyring(builder.journal.record, builder.journal.tool)
    _start_monitor(builder)
    for kind in ("mgr", "mds"):
        for name in builder.journal.record.daemons(kind):
            builder.journal.start_daemon(name)
    _start_osds(builder)
    _wait(builder, "all OSDs to be up", "osd.0", lambda state: state.osds_up == builder.spec.osd_count)
    if builder.spec.topology is not None and builder.spec.topology.metadata:
        _set_metadata_apart(builder, builder.spec.topology)
    _make_pools(builder)
    _wait(builder, "the metadata server to be active", MDS, lambda state: state.mds_active)
    _wait(builder, "all placement groups to be active+clean", "osd.0", _is_clean)
    if builder.spec.mount:
        _mount(builder, FUSE, "/", builder.journal.record.paths.mount)
        _make_targets(builder)
    if builder.spec.subvolume:
        _make_subvolume(builder)
    _start_gateways(builder)


def _make_bridge(builder: Builder) -> None:
    journal = builder.journal
    address = str(bridge.choose_network(builder.chance, journal.variables)[1])
    journal.update(bridge=bridge.name_for(journal.record.fsid), spec=replace(builder.spec, address=address))
    bridge.make(journal.record.bridge, address, journal.variables)
    builder.say(f"bridge {journal.record.bridge} has {address}")


def _make_network(builder: Builder, topology: Topology) -> None:
    journal = builder.journal
    base = bridge.choose_network(builder.chance, journal.variables, prefix_bits=23)
    found = LabNetwork(topology, str(base), network.console_for(journal.record.fsid), place(topology))
    journal.update(network=found, spec=replace(builder.spec, address=found.address(found.host_of(MON))))
    network.make(found, journal.record.paths, journal.variables)
    _limit_members(journal.record, topology)
    hosts, clients = format_count(len(topology.hosts), "host"), format_count(len(topology.clients), "client")
    builder.say(f"{hosts}, {clients} and their links are in {base}")


def _limit_members(record: LabRecord, topology: Topology) -> None:
    """A control group for each host and client that may use no more than a part of this machine."""
    groups = ControlGroups(record.fsid)
    for member in topology.members:
        limits = member.limits
        if limits.any:
            rated = limits.disk_read_bytes_s or limits.disk_write_bytes_s
            groups.limit(member.name, limits, groups.device_of(record.directory) if rated else "")


def _start_gateways(builder: Builder) -> None:
    names = builder.journal.record.gateway_names
    if not names:
        return
    starter.start_all(starter.Starter(builder.journal, builder.say, builder.chance), names)
    _wait(builder, "the gateways' placement groups to be active+clean", "osd.0", _is_clean)


def _make_directories(builder: Builder) -> None:
    paths = builder.journal.record.paths
    paths.run.mkdir(mode=0o700)
    daemons = [name for kind in ("mon", "mgr", "mds", "osd") for name in builder.journal.record.daemons(kind)]
    for directory in (paths.logs, paths.mount, paths.crash, *map(paths.data, daemons)):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def _start_monitor(builder: Builder) -> None:
    address, log = builder.spec.address, builder.journal.record.paths.log(MON)
    monitors = builder.journal.record.daemons("mon")
    for _ in range(_PORT_ATTEMPTS):
        # In a network of the lab's own nothing else listens.
        port = _MON_PORT if builder.journal.record.network else choose_port(address, builder.chance)
        builder.journal.update(mon_port=port)
        _make_monitors(builder, monitors)
        for name in monitors:
            builder.journal.start_daemon(name)
        if poll(lambda: _monitor_answers(builder) or bool(builder.journal.ended()), _MON_DEADLINE_S):
            if not builder.journal.ended():
                builder.say(f"monitor answers on {address} port {port}")
                return
            if _port_was_taken(log):
                continue
            builder.journal.require_running()
        raise builder.journal.failure(f"the monitor does not answer within {_MON_DEADLINE_S:.0f} s", MON)
    raise builder.journal.failure(f"no port of {address} stayed free for the monitor", MON)


def _port_was_taken(log: Path) -> bool:
    """True where another program was given the port between our trying it and the monitor's binding it."""
    return any(
        "unable to bind" in line or "already in use" in line for line in process.last_log_lines(log, 20)
    )


def _make_monitors(builder: Builder, names: Sequence[str]) -> None:
    record, paths = builder.journal.record, builder.journal.record.paths
    paths.conf.write_text(config.conf_text(record, uid=os.geteuid(), gid=os.getegid()))
    for client in record.network.topology.clients if record.network else ():
        paths.client_conf(client.name).write_text(config.client_conf_text(record, client.name))
    where = [config.mon_addresses(address, record.mon_port) for address in record.mon_addresses]
    pairs = zip(names, where, strict=True)
    members = [word for name, address in pairs for word in ("--addv", name.partition(".")[2], address)]
    builder.journal.tool(
        "monmaptool", "--create", "--clobber", *members, "--fsid", record.fsid, str(paths.monmap)
    )
    for name in names:
        remove_tree(paths.data(name))
        paths.data(name).mkdir(mode=0o700)
        builder.journal.tool(
            "ceph-mon", "-c", str(paths.conf), "-i", name.partition(".")[2], "--mkfs",
            "--monmap", str(paths.monmap), "--keyring", str(paths.keyring),
        )  # fmt: skip


def _monitor_answers(builder: Builder) -> bool:
    try:
        found = builder.journal.ceph.json("quorum_status", deadline_s=5.0)
    except LabError:
        return False
    return len(found.get("quorum_names", ())) == len(builder.journal.record.daemons("mon"))


def _start_osds(builder: Builder) -> None:
    """Makes the OSDs' stores, as many at once as there are cores, and starts each as soon as it is made."""
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        made: list[Future[int]] = [
            pool.submit(_make_osd, builder) for _ in builder.journal.record.daemons("osd")
        ]
        try:
            for future in as_completed(made):
                builder.journal.start_daemon(f"osd.{future.result()}")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    builder.say(f"{builder.spec.osd_count} OSDs started")


def _make_osd(builder: Builder) -> int:
    paths, identifier = builder.journal.record.paths, str(uuid.uuid4())
    number = int(builder.journal.ceph.run("osd", "new", identifier).strip())
    builder.journal.tool(
        "ceph-osd", "-c", str(paths.conf), "-i", str(number), "--mkfs", "--osd-uuid", identifier
    )
    return number


def _set_metadata_apart(builder: Builder, topology: Topology) -> None:
    """Two classes of devices, and a rule for each: Ceph's own way to a metadata pool on faster ones."""
    ceph, placement = builder.journal.ceph, place(topology)
    osds = builder.journal.record.daemons("osd")
    apart = [name for name in osds if placement[name] in topology.metadata]
    rest = [name for name in osds if name not in apart]
    ceph.run("osd", "crush", "rm-device-class", *osds)  # those that Ceph found by itself
    domains = {META_CLASS: metadata_domain(topology), DATA_CLASS: failure_domain(topology, REPLICAS)}
    for name, members in ((META_CLASS, apart), (DATA_CLASS, rest)):
        ceph.run("osd", "crush", "set-device-class", name, *members)
        ceph.run("osd", "crush", "rule", "create-replicated", name, "default", domains[name], name)
    builder.say(f"metadata lies on {', '.join(apart)}, and nothing else of the lab's")


def _make_pools(builder: Builder) -> None:
    """Side by side: each answer of the monitor waits for the next round of its maps."""
    topology = builder.spec.topology
    coded = topology is not None and topology.striped_erasure
    striped = () if coded else (partial(_make_library_pool, name=STRIPED_POOL),)
    chains: tuple[Callable[[Builder], None], ...] = (
        _make_file_system,
        partial(_make_erasure_pools, striped=coded),
        partial(_make_library_pool, name=OBJECT_POOL),
        *striped,
    )
    with ThreadPoolExecutor(max_workers=len(chains)) as pool:
        for made in [pool.submit(chain, builder) for chain in chains]:
            made.result()
    builder.journal.ceph.run("fs", "add_data_pool", FILE_SYSTEM, ERASURE_POOL)
    spec = builder.spec
    builder.say(f"pools made: {REPLICAS} replicas, erasure-coded {spec.erasure_k}+{spec.erasure_m}")


def _make_replicated_pool(builder: Builder, name: str, groups: int, device_class: str = DATA_CLASS) -> None:
    topology = builder.spec.topology
    apart = topology is not None and bool(topology.metadata)
    replicas = topology.metadata_replicas if topology and device_class == META_CLASS else REPLICAS
    rule = (str(groups), "replicated", device_class) if apart else ()
    builder.journal.ceph.run("osd", "pool", "create", name, str(groups), *rule, "--size", str(replicas))


def _make_file_system(builder: Builder) -> None:
    _make_replicated_pool(builder, META_POOL, META_PGS, META_CLASS)
    _make_replicated_pool(builder, DATA_POOL, DATA_PGS)
    builder.journal.ceph.run("fs", "new", FILE_SYSTEM, META_POOL, DATA_POOL)


def _make_erasure_pools(builder: Builder, striped: bool) -> None:
    ceph, spec = builder.journal.ceph, builder.spec
    profile = f"k{spec.erasure_k}m{spec.erasure_m}"
    domain = failure_domain(spec.topology, spec.erasure_k + spec.erasure_m)
    apart = spec.topology is not None and bool(spec.topology.metadata)
    ceph.run(
        "osd", "erasure-code-profile", "set", profile,
        f"k={spec.erasure_k}", f"m={spec.erasure_m}", f"crush-failure-domain={domain}",
        *([f"crush-device-class={DATA_CLASS}"] if apart else []),
    )  # fmt: skip
    for name, groups in ((ERASURE_POOL, ERASURE_PGS), *([(STRIPED_POOL, OBJECT_PGS)] if striped else [])):
        ceph.run("osd", "pool", "create", name, str(groups), str(groups), "erasure", profile)
        ceph.run("osd", "pool", "set", name, "allow_ec_overwrites", "true")
    if striped:
        ceph.run("osd", "pool", "application", "enable", STRIPED_POOL, "leadline")


def _make_library_pool(builder: Builder, name: str) -> None:
    _make_replicated_pool(builder, name, OBJECT_PGS)
    builder.journal.ceph.run("osd", "pool", "application", "enable", name, "leadline")


def _is_clean(state: LabClusterState) -> bool:
    # Fewer groups than were made: the manager has not counted all pools yet.
    return state.clean and sum(state.pgs.values()) >= META_PGS + DATA_PGS + ERASURE_PGS + 2 * OBJECT_PGS


def _wait(builder: Builder, what: str, daemon: str, reached: Callable[[LabClusterState], bool]) -> None:
    seen: list[LabClusterState] = []

    def ask() -> bool:
        builder.journal.require_running()
        seen[:] = [parse_state(builder.journal.ceph.json("status", deadline_s=30.0))]
        return reached(seen[0])

    if not poll(ask, _CLUSTER_DEADLINE_S, clock=builder.clock):
        state = seen[0]
        raise builder.journal.failure(
            f"waited {_CLUSTER_DEADLINE_S:.0f} s in vain for {what}; "
            f"now {state.osds_up} of {state.osds} OSDs are up, placement groups: {state.pgs or 'none'}, "
            f"{state.health} {'; '.join(state.checks)}",
            daemon,
        )
    builder.say(f"waited for {what}")


def _mount(builder: Builder, client: str, root: str, point: Path) -> None:
    builder.journal.start(client, config.fuse_command(builder.journal.record.paths, client, root, point))

    def mounted() -> bool:
        builder.journal.require_running()
        return mounts.is_mounted(point)

    if not poll(mounted, _MOUNT_DEADLINE_S, clock=builder.clock):
        raise builder.journal.failure(f"{point} was not mounted within {_MOUNT_DEADLINE_S:.0f} s", client)
    builder.say(f"mounted on {point}")


def _make_subvolume(builder: Builder) -> None:
    paths, name = builder.journal.record.paths, builder.spec.subvolume
    path = config.make_subvolume(builder.journal.ceph, FILE_SYSTEM, name)
    config.make_subvolume_client(
        builder.journal.ceph, FILE_SYSTEM, name, paths.client_keyring(config.SUBVOLUME_CLIENT)
    )
    builder.journal.update(subvolume_path=path)
    paths.subvolume_mount.mkdir(mode=0o700)
    _mount(builder, config.SUBVOLUME_PROCESS, path, paths.subvolume_mount)


def _make_targets(builder: Builder) -> None:
    """The two directories, each with its pool as layout. A process of its own can be killed."""
    mount = str(builder.journal.record.paths.mount)
    for name, pool in ((REPLICATED_DIRECTORY, DATA_POOL), (ERASURE_DIRECTORY, ERASURE_POOL)):
        try:
            builder.journal.tool(*script_command("-c", _MAKE_TARGET, f"{mount}/{name}", pool))
        except LabError as error:
            raise builder.journal.failure(f"{name} could not be made: {error.message}", FUSE) from error
