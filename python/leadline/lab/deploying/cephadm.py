"""A lab's or topology's cluster as service specifications that `ceph orch apply -i` takes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from leadline.errors import UsageError
from leadline.escapes import yaml_text
from leadline.lab.cluster.cluster import DATA_CLASS, FILE_SYSTEM, META_CLASS
from leadline.lab.network.topology import LabHost, Topology

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
