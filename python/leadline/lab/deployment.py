"""What a lab or topology stands for, to deploy a cluster of that shape for real. Pure.

cephadm takes hosts and services (`ceph orch apply -i`), and ends where pools begin: those, rules, file system
and layouts are commands. Each may be given a second time: Ceph answers that it is there.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from leadline.errors import UsageError
from leadline.escapes import yaml_text
from leadline.lab.cluster.cluster import (
    DATA_CLASS,
    DATA_POOL,
    ERASURE_DIRECTORY,
    ERASURE_POOL,
    FILE_SYSTEM,
    META_CLASS,
    META_POOL,
    OBJECT_POOL,
    REPLICATED_DIRECTORY,
    STRIPED_POOL,
)
from leadline.lab.network.placement import failure_domain, metadata_domain
from leadline.lab.network.topology import REPLICAS, LabHost, Topology

_CARRIED = ("mon", "mgr", "mds", "nfs", "rgw")
_HOST = re.compile(r"[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*")  # what cephadm takes for a host


def documents(topology: Topology, addresses: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Hosts, then services. Raises UsageError for a host's name that cephadm would refuse."""
    for host in topology.hosts:
        if not _HOST.fullmatch(host.name):
            raise UsageError(
                f"{host.name!r} is no name of a host for cephadm",
                "Use letters, digits and - in the topology's names of hosts.",
            )
        where = {"addr": addresses[host.name]} if host.name in addresses else {}
        yield {"service_type": "host", "hostname": host.name, **where, "labels": _labels(host)}
    for role in _CARRIED:
        homes = [host.name for host in topology.hosts if role in host.runs]
        if homes:
            name = {} if role in ("mon", "mgr") else {"service_id": FILE_SYSTEM}
            yield {"service_type": role, **name, "placement": {"hosts": homes}}
    yield from _drive_groups(topology)


def _labels(host: LabHost) -> list[str]:
    carried = [role for role in host.runs if role in _CARRIED]
    return [*carried, *(["osd"] if host.osds else [])]


def _drive_groups(topology: Topology) -> Iterator[dict[str, Any]]:
    """Hosts with as many OSDs of one class share a group; a device is one OSD."""
    groups: dict[tuple[str, int], list[str]] = {}
    for host in topology.hosts:
        if host.osds:
            kind = META_CLASS if host.name in topology.metadata else DATA_CLASS
            groups.setdefault((kind, host.osds), []).append(host.name)
    for (kind, count), homes in groups.items():
        own_class = {"crush_device_class": kind} if topology.metadata else {}
        yield {
            "service_type": "osd",
            "service_id": f"{kind}-{count}",
            "placement": {"hosts": homes},
            "data_devices": {"all": True, "limit": count},
            **own_class,
        }


def left_out(topology: Topology) -> tuple[str, ...]:
    """What the topology runs and cephadm's specifications of Pacific have no service for."""
    return tuple(role for role in topology.gateways if role not in _CARRIED)


def specification(topology: Topology, addresses: Mapping[str, str]) -> str:
    """All of it as one file of YAML documents."""
    text = "# written by `leadline deploy emit`; apply with: ceph orch apply -i FILE\n"
    for role in left_out(topology):
        homes = ", ".join(host.name for host in topology.hosts if role in host.runs)
        text += f"# not in this file: {role} on {homes}: cephadm of Ceph 16 has no service for it\n"
    return text + "".join(f"---\n{yaml_text(document)}" for document in documents(topology, addresses))


MOUNT_DEFAULT = "/mnt/cephfs"
_HEAD = """\
#!/bin/sh
# written by `leadline deploy emit --format commands`: run where `ceph` has an administrator's key, after the
# services are up (ceph orch apply -i FILE). It may be run again: what is there already stays as it is.
# How many placement groups a pool has is left to Ceph's autoscaler.
set -eu
"""


@dataclass(frozen=True)
class DeploymentStep:
    """One thing that is made: why it is there, and the commands for it."""

    words: str
    commands: tuple[tuple[str, ...], ...]


def actions(
    topology: Topology, erasure: tuple[int, int], mount: str = MOUNT_DEFAULT
) -> Iterator[DeploymentStep]:
    """In the order in which they can be done. `mount` is where the file system's root is mounted."""
    yield from _rules(topology)
    yield _profile(topology, erasure)
    yield from _pools(topology, erasure)
    yield DeploymentStep(
        "the file system: metadata, then the pool that files without a layout go to",
        (
            ("ceph", "fs", "new", FILE_SYSTEM, META_POOL, DATA_POOL),
            ("ceph", "fs", "add_data_pool", FILE_SYSTEM, ERASURE_POOL),
        ),
    )
    for name, pool in ((REPLICATED_DIRECTORY, DATA_POOL), (ERASURE_DIRECTORY, ERASURE_POOL)):
        place = f"{mount.rstrip('/')}/{name}"
        yield DeploymentStep(
            f"new files below {place} lie in pool {pool}; those that are there stay where they are",
            (("mkdir", "-p", place), ("setfattr", "-n", "ceph.dir.layout.pool", "-v", pool, place)),
        )


def _rules(topology: Topology) -> Iterator[DeploymentStep]:
    domain = failure_domain(topology, REPLICAS)
    apart = (DATA_CLASS,) if topology.metadata else ()
    yield DeploymentStep(
        f"copies on {REPLICAS} different {domain}s{_few(domain)}",
        (_rule(DATA_CLASS, domain, *apart),),
    )
    if topology.metadata:
        domain = metadata_domain(topology)
        yield DeploymentStep(
            f"the metadata pool on devices of its own class, on different {domain}s{_few(domain)}",
            (_rule(META_CLASS, domain, META_CLASS),),
        )


def _rule(name: str, domain: str, *device_class: str) -> tuple[str, ...]:
    return ("ceph", "osd", "crush", "rule", "create-replicated", name, "default", domain, *device_class)


def _few(domain: str) -> str:
    return "" if domain == "host" else ": there are too few hosts, so one host's failure may stop it"


def _profile(topology: Topology, erasure: tuple[int, int]) -> DeploymentStep:
    data, coding = erasure
    domain = failure_domain(topology, data + coding)
    apart = (f"crush-device-class={DATA_CLASS}",) if topology.metadata else ()
    command = (
        "ceph", "osd", "erasure-code-profile", "set", _profile_name(erasure),
        f"k={data}", f"m={coding}", f"crush-failure-domain={domain}", *apart,
    )  # fmt: skip
    return DeploymentStep(
        f"{data} chunks of data and {coding} of coding on different {domain}s{_few(domain)}", (command,)
    )


def _profile_name(erasure: tuple[int, int]) -> str:
    return f"k{erasure[0]}m{erasure[1]}"


def _pools(topology: Topology, erasure: tuple[int, int]) -> Iterator[DeploymentStep]:
    copies = topology.metadata_replicas
    meta_rule = META_CLASS if topology.metadata else DATA_CLASS
    yield DeploymentStep(
        f"the file system's metadata, {copies} copies", (_replicated(META_POOL, meta_rule, copies),)
    )
    yield DeploymentStep(f"files, {REPLICAS} copies", (_replicated(DATA_POOL, DATA_CLASS, REPLICAS),))
    yield DeploymentStep("files, erasure-coded", _coded(ERASURE_POOL, erasure))
    yield DeploymentStep(
        "objects for measurements by rados://",
        (_replicated(OBJECT_POOL, DATA_CLASS, REPLICAS), _application(OBJECT_POOL)),
    )
    if topology.striped_erasure:
        striped = _coded(STRIPED_POOL, erasure)
    else:
        striped = (_replicated(STRIPED_POOL, DATA_CLASS, REPLICAS),)
    yield DeploymentStep(
        "striped objects of XRootD and libradosstriper", (*striped, _application(STRIPED_POOL))
    )


def _replicated(name: str, rule: str, copies: int) -> tuple[str, ...]:
    return ("ceph", "osd", "pool", "create", name, "replicated", rule, "--size", str(copies))


def _coded(name: str, erasure: tuple[int, int]) -> tuple[tuple[str, ...], ...]:
    return (
        ("ceph", "osd", "pool", "create", name, "erasure", _profile_name(erasure)),
        ("ceph", "osd", "pool", "set", name, "allow_ec_overwrites", "true"),
    )


def _application(name: str) -> tuple[str, ...]:
    return ("ceph", "osd", "pool", "application", "enable", name, "leadline")


def script(topology: Topology, erasure: tuple[int, int], mount: str = MOUNT_DEFAULT) -> str:
    """All of it as a text for `sh`, each part under the reason for it."""
    parts = [_HEAD]
    for made in actions(topology, erasure, mount):
        lines = "".join(f"{shlex.join(command)}\n" for command in made.commands)
        parts.append(f"\n# {made.words}\n{lines}")
    return "".join(parts)
