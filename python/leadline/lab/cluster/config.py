"""Ceph's configuration of a lab as text, its keyring, and the users that reach less than all of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from leadline.lab.cluster.command import CephCommand
from leadline.lab.network.placement import LabNetwork, failure_domain
from leadline.lab.network.topology import REPLICAS
from leadline.lab.paths import LabPaths
from leadline.lab.record import LabRecord
from leadline.lab.spec import LabSpec

SUBVOLUME_CLIENT = "subvolume"  # the part of its Ceph user's name behind `client.`
SUBVOLUME_PROCESS = f"client.{SUBVOLUME_CLIENT}"


def _group_and_name(name: str) -> tuple[str, str]:
    """`GROUP/NAME` or `NAME` as (group, name); the group is "" where there is none."""
    group, _, own = name.rpartition("/")
    return group, own


def make_subvolume(ceph: CephCommand, file_system: str, name: str) -> str:
    """Makes the subvolume, isolated in a namespace; returns its path in the file system."""
    group, own = _group_and_name(name)
    options = ["--group_name", group] if group else []
    if group:
        ceph.run("fs", "subvolumegroup", "create", file_system, group)
    mode = ["--uid", str(os.geteuid()), "--gid", str(os.getegid()), "--mode", "755"]
    ceph.run("fs", "subvolume", "create", file_system, own, *options, "--namespace-isolated", *mode)
    return ceph.run("fs", "subvolume", "getpath", file_system, own, *options).strip()


def make_subvolume_client(ceph: CephCommand, file_system: str, name: str, keyring: Path) -> None:
    """Lets Ceph make a client restricted to the subvolume's path and namespace, and writes its key."""
    group, own = _group_and_name(name)
    options = ["--group_name", group] if group else []
    ceph.run(
        "fs", "subvolume", "authorize", file_system, own, SUBVOLUME_CLIENT, *options, "--access_level=rw"
    )
    keyring.parent.mkdir(mode=0o700, exist_ok=True)
    keyring.touch(mode=0o600)
    ceph.run("auth", "get", f"client.{SUBVOLUME_CLIENT}", "-o", str(keyring))


# Errors are always logged; at level 0 little else is, so that logs stay small.
_QUIET = (
    "asok auth bdev bluefs bluestore buffer client compressor context crush crypto filer finisher fuse "
    "heartbeatmap journal journaler kstore leveldb mds mds_balancer mds_locker mds_log mds_log_expire "
    "mds_migrator memdb mgr mgrc mon monc ms objclass objectcacher objecter optracker osd paxos perfcounter "
    "prioritycache rados reserver rgw rocksdb striper throttle timer tp"
)


_ONE_CLIENT = ("nfs", "rgw")


def mon_addresses(address: str, port: int) -> str:
    """A monitor's address as Ceph writes it, protocol version 2 only."""
    return f"[v2:{f'[{address}]' if ':' in address else address}:{port}]"


def conf_text(record: LabRecord, *, uid: int, gid: int) -> str:
    """ceph.conf for a lab. `uid` and `gid` own the root directory of its file system."""
    spec, paths = record.spec, record.paths
    sections = [
        ("global", _global(record)),
        ("mon", _daemon(paths, "mon") | _mon()),
        ("mgr", _daemon(paths, "mgr") | {"mgr_tick_period": "1"}),
        ("osd", _daemon(paths, "osd") | _osd(spec)),
        ("mds", _daemon(paths, "mds") | {"mds_root_ino_uid": str(uid), "mds_root_ino_gid": str(gid)}),
        *_on_hosts(record.network),
        ("client", _client(uid)),
        *((f"client.{name}", _gateway(paths, name)) for name in record.gateway_names),
        *_subvolume(spec, paths),
    ]
    return _text(sections)


def client_conf_text(record: LabRecord, client: str) -> str:
    """ceph.conf of one client of a lab with hosts: the cluster's, with its own user beside the lab's."""
    paths = record.paths
    own = {"keyring": str(paths.client_keyring(client)), "admin_socket": str(paths.socket("$name.$pid"))}
    sections = [("global", _global(record)), ("client", _client(0)), (f"client.{client}", own)]
    return _text(sections)


def _text(sections: Iterable[tuple[str, dict[str, str]]]) -> str:
    return "".join(
        f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in options.items()) + "\n"
        for name, options in sections
    )


def _on_hosts(network: LabNetwork | None) -> list[tuple[str, dict[str, str]]]:
    """Where each daemon of a lab with hosts listens, and for OSDs where CRUSH shall find them."""
    if network is None:
        return []
    found = []
    for kind in ("mon", "mgr", "mds", "osd"):
        for name in network.daemons(kind):
            host = network.host_of(name)
            options = {"public_addr": network.address(host)}
            if kind == "osd":
                options["cluster_addr"] = network.cluster_address(host)
                options["crush_location"] = crush_location(network, host)
            found.append((name, options))
    return found


def crush_location(network: LabNetwork, host: str) -> str:
    """Where a host's OSDs are in the CRUSH map: a switch is a rack there."""
    member = network.topology.member(host)
    return f"root=default rack={member.switch if member else ''} host={host}"


def _addresses(record: LabRecord) -> dict[str, str]:
    if record.network is not None:
        public, cluster = map(str, record.network.networks)
        apart = any(host.cluster_switch for host in record.network.topology.hosts)
        return {"public_network": public, "cluster_network": f"{public}, {cluster}" if apart else public}
    return {"public_addr": record.spec.address, "cluster_addr": record.spec.address}


def _global(record: LabRecord) -> dict[str, str]:
    spec, paths = record.spec, record.paths
    domain = failure_domain(spec.topology, REPLICAS)
    options = {
        "fsid": record.fsid,
        "mon_host": ",".join(mon_addresses(address, record.mon_port) for address in record.mon_addresses),
        **_addresses(record),
        "ms_bind_ipv6": str(":" in spec.address).lower(),
        "ms_bind_ipv4": str(":" not in spec.address).lower(),
        "ms_bind_msgr1": "false",  # half the ports; every client of these releases speaks version 2
        "auth_cluster_required": spec.auth,
        "auth_service_required": spec.auth,
        "auth_client_required": spec.auth,
        "auth_allow_insecure_global_id_reclaim": "false",
        "keyring": str(paths.keyring),
        "run_dir": str(paths.run),
        "crash_dir": str(paths.crash),
        "log_to_file": "false",
        "mon_cluster_log_to_file": "false",
        "osd_crush_chooseleaf_type": "1"
        if domain == "host"
        else "0",  # without hosts, all OSDs are on this one
        "osd_pool_default_pg_autoscale_mode": "off",
        "osd_pool_default_pg_num": "16",
        # How old what the cluster says of itself may be; by default 5 s each. Everything that waits for it to
        # be clean waits so much longer; the reports themselves are some kB a second here.
        "mgr_stats_period": "1",
        "mon_mgr_digest_period": "1",
    }
    return options | {f"debug_{name}": "0/0" for name in _QUIET.split()}


def _daemon(paths: LabPaths, kind: str) -> dict[str, str]:
    return {
        f"{kind}_data": str(paths.data(f"{kind}.$id")),
        "admin_socket": str(paths.socket("$name")),
        # One log a process, which this program opened: it can be bounded, /var/log is not touched.
        "log_to_stderr": "true",
    }


def _mon() -> dict[str, str]:
    return {
        "mon_allow_pool_size_one": "true",
        "mon_allow_pool_delete": "true",
        # Many machines are fuller than a production monitor may be: 30 % is the default warning.
        "mon_data_avail_warn": "5",
        "mon_data_avail_crit": "1",
    }


def _osd(spec: LabSpec) -> dict[str, str]:
    return {
        "osd_objectstore": "bluestore",
        "bluestore_block_size": str(spec.osd_size_bytes),
        "bluestore_block_create": "true",
        "osd_memory_target": str(1 << 30),
        "bluestore_cache_autotune": "false",
        "bluestore_cache_size": str(64 << 20),
        # Before Quincy the default is four memtables of 256 MiB for every OSD.
        "bluestore_rocksdb_options_annex": f"write_buffer_size={16 << 20}",
    }


def _client(uid: int) -> dict[str, str]:
    if uid == 0:
        return {}
    return {
        # Both need rights that an ordinary user lacks: user_allow_other in /etc/fuse.conf, and remounting.
        "fuse_allow_other": "false",
        "client_die_on_failed_dentry_invalidate": "false",
    }


def _gateway(paths: LabPaths, name: str) -> dict[str, str]:
    """A gateway's Ceph user. Where one process opens the cluster once, its admin socket has a known place."""
    socket = str(paths.socket(name)) if name in _ONE_CLIENT else ""
    return {"keyring": str(paths.gateway(name) / "keyring"), "admin_socket": socket}


def _subvolume(spec: LabSpec, paths: LabPaths) -> list[tuple[str, dict[str, str]]]:
    if not spec.subvolume:
        return []
    return [(f"client.{SUBVOLUME_CLIENT}", {"keyring": str(paths.client_keyring(SUBVOLUME_CLIENT))})]


def fuse_command(paths: LabPaths, client: str, root: str, point: Path, conf: Path | None = None) -> list[str]:
    """Mounts the directory `root` of the lab's file system as `client`, and stays in the foreground."""
    return [
        "ceph-fuse", "-f", "-c", os.fspath(conf or paths.conf), "-n", client,
        f"--admin-socket={paths.socket(client)}", "--log-to-stderr=true",
        f"--client_mountpoint={root}", os.fspath(point),
    ]  # fmt: skip


# The capabilities that Ceph's manual deployment gives each kind of daemon.
_CAPABILITIES = {
    "mon.": {"mon": "allow *"},
    "client.admin": {"mon": "allow *", "osd": "allow *", "mds": "allow *", "mgr": "allow *"},
    "mgr.": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"},
    "mds.": {"mon": "allow profile mds", "osd": "allow rwx", "mds": "allow *", "mgr": "allow profile mds"},
    "osd.": {"mon": "allow profile osd", "osd": "allow *", "mgr": "allow profile osd"},
}

_CLIENT_CAPABILITIES = {"mon": "allow r", "mgr": "allow r", "osd": "allow rwx", "mds": "allow rw"}


def make_keyring(record: LabRecord, tool: Callable[..., str]) -> None:
    """Writes the keyring with `ceph-authtool`, readable by its owner only."""
    path = record.paths.keyring
    path.touch(mode=0o600)
    entities = [
        "mon.",
        "client.admin",
        *(name for kind in ("mgr", "mds", "osd") for name in record.daemons(kind)),
    ]
    for entity in entities:
        kind = entity if entity in _CAPABILITIES else f"{entity.partition('.')[0]}."
        capabilities = [word for pair in _CAPABILITIES[kind].items() for word in ("--cap", *pair)]
        tool("ceph-authtool", str(path), "-n", entity, "--gen-key", *capabilities)
    for client in () if record.network is None else record.network.topology.clients:
        _make_client(record, client.name, tool)


def _make_client(record: LabRecord, client: str, tool: Callable[..., str]) -> None:
    """A key of a client's own, entered in the lab's keyring for the monitors to take it from."""
    own, entity = record.paths.client_keyring(client), f"client.{client}"
    own.parent.mkdir(mode=0o700, exist_ok=True)
    own.touch(mode=0o600)
    capabilities = [word for pair in _CLIENT_CAPABILITIES.items() for word in ("--cap", *pair)]
    tool("ceph-authtool", str(own), "-n", entity, "--gen-key", *capabilities)
    tool("ceph-authtool", str(record.paths.keyring), "--import-keyring", str(own))
