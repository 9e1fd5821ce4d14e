"""The ways by which a lab's storage can be reached, each as a target that can be measured."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from leadline.lab import mounts
from leadline.lab.cluster.cluster import OBJECT_POOL, REPLICATED_DIRECTORY, STRIPED_POOL
from leadline.lab.gateways import kinds
from leadline.lab.gateways.gateway import url_host
from leadline.lab.record import GatewayRecord, LabRecord
from leadline.lab.spec import GATEWAYS

FORMAT = "leadline.lab-targets/1"
CEPHFS, SUBVOLUME, STRIPED, RADOS, S3 = "cephfs", "subvolume", "rados-striped", "rados", "s3"
_KERNEL_WAYS = {"kernel-ceph": "ceph", "kernel-nfs": "nfs", "kernel-smb": "smb"}

_ANOTHER = re.compile(r"-[0-9]+$")  # of a gateway's name: not the first of its kind


@dataclass(frozen=True)
class LabTarget:
    """One way to a lab's bytes. Ways with the same `same_bytes` see the same files.

    `where` is a path or URL as leadline takes it, and holds no secret; `variables` are what the environment
    must hold, names of files rather than keys. `reason` says why the way is not there, "" where it is.
    """

    way: str
    name: str
    where: str
    same_bytes: str
    variables: dict[str, str] = field(default_factory=dict)
    reason: str = ""


def targets_of(lab: LabRecord, client: str = "") -> list[LabTarget]:
    """Every way to this lab, there or not: from the machine itself, or from a client of a lab with hosts."""
    if client:
        return [_mounted_by(lab, client), *_libraries(lab, client), *_gateways(lab)]
    return [_mounted(lab), *_subvolume(lab), *_libraries(lab), *_gateways(lab), *_kernel()]


def targets_of_all(lab: LabRecord) -> dict[str, list[LabTarget]]:
    """By client of a lab with hosts, what each has when all work at once.

    Of several gateways of a kind, whose targets have one name then, they take turns.
    """
    clients = [] if lab.network is None else [client.name for client in lab.network.topology.clients]
    return {client: _dealt(targets_of(lab, client), place) for place, client in enumerate(clients)}


def _dealt(ways: list[LabTarget], place: int) -> list[LabTarget]:
    found: dict[str, list[LabTarget]] = {}
    for way in ways:
        found.setdefault(_ANOTHER.sub("", way.name), []).append(way)
    return [replace(same[place % len(same)], name=name) for name, same in found.items()]


def _mounted_by(lab: LabRecord, client: str) -> LabTarget:
    point, root = lab.paths.client_mount(client), lab.client_mounts.get(client, "/")
    reason = "" if mounts.is_mounted(point) else f"not mounted; mount it with: leadline lab mount {client}"
    where = str(point / REPLICATED_DIRECTORY if root == "/" and lab.spec.mount else point)
    return LabTarget("ceph-fuse", "ceph-fuse", where, CEPHFS, reason=reason)


def _mounted(lab: LabRecord) -> LabTarget:
    reason = "" if mounts.is_mounted(lab.paths.mount) else "the lab is not mounted"
    where = str(lab.paths.mount / REPLICATED_DIRECTORY)
    return LabTarget("ceph-fuse", "ceph-fuse", where, CEPHFS, reason=reason)


def _subvolume(lab: LabRecord) -> list[LabTarget]:
    if not lab.spec.subvolume:
        return []
    point = lab.paths.subvolume_mount
    reason = "" if mounts.is_mounted(point) else "the subvolume is not mounted"
    return [LabTarget("ceph-fuse", "subvolume", str(point), SUBVOLUME, reason=reason)]


def _libraries(lab: LabRecord, client: str = "") -> list[LabTarget]:
    conf, variables = f"conf={lab.paths.conf}", cluster_variables(lab)
    if client:
        conf, variables = f"conf={lab.paths.client_conf(client)}&user={client}", member_variables(lab, client)
    directory = _directory(lab)
    return [
        LabTarget("libcephfs", "libcephfs", f"cephfs:///{directory}?{conf}", CEPHFS, variables),
        LabTarget(
            "radosstriper", "radosstriper", f"radosstriper://{STRIPED_POOL}?{conf}", STRIPED, variables
        ),
        LabTarget("rados", "rados", f"rados://{OBJECT_POOL}?{conf}", RADOS, variables),
    ]


def cluster_variables(lab: LabRecord) -> dict[str, str]:
    """What points Ceph's libraries and programs at this lab."""
    return {"CEPH_CONF": str(lab.paths.conf), "CEPH_KEYRING": str(lab.paths.keyring)}


def member_variables(lab: LabRecord, name: str) -> dict[str, str]:
    """What points programs on a host or client at this lab: a client has a user of its own there."""
    paths = lab.paths
    is_client = lab.network is not None and name in (item.name for item in lab.network.topology.clients)
    conf, user = (paths.client_conf(name), name) if is_client else (paths.conf, "admin")
    return {"CEPH_CONF": str(conf), "CEPH_ARGS": f"--id {user}", **gateway_variables(lab)}


def gateway_variables(lab: LabRecord) -> dict[str, str]:
    """What the users of the gateways that run need."""
    running = [item.name for item in lab.gateways if _kind(item.name) == "rgw" and not item.reason]
    if not running:
        return {}
    return {"AWS_SHARED_CREDENTIALS_FILE": str(kinds.rgw_credentials(lab.paths.gateway(running[0])))}


def _kind(gateway: str) -> str:
    return gateway.partition("-")[0]


def _gateways(lab: LabRecord) -> list[LabTarget]:
    """Every gateway that there is, and of those that there are not one of each kind with the reason."""
    found = {item.name: item for item in lab.gateways}
    missing = [kind for kind in GATEWAYS if kind not in found]
    words = "started without --gateways {}" if lab.network is None else "no host of the topology runs {}"
    found |= {kind: GatewayRecord(kind, reason=words.format(kind)) for kind in missing}
    items = sorted(found.values(), key=lambda item: GATEWAYS.index(_kind(item.name)))
    return [target for item in items for target in _GATEWAY_WAYS[_kind(item.name)](lab, item)]


def _endpoint(lab: LabRecord, item: GatewayRecord) -> str:
    return f"{url_host(lab.address_of(item.name))}:{item.port}"


def _directory(lab: LabRecord) -> str:
    """The directory is made through the mount."""
    return REPLICATED_DIRECTORY if lab.spec.mount else ""


def _way(way: str, item: GatewayRecord, url: str, same_bytes: str, **variables: str) -> LabTarget:
    name = f"{way}{item.name.removeprefix(_kind(item.name))}"
    return LabTarget(way, name, "" if item.reason else url, same_bytes, variables, item.reason)


def _nfs(lab: LabRecord, item: GatewayRecord) -> list[LabTarget]:
    url = f"nfs://{_endpoint(lab, item)}{kinds.NFS_EXPORT}/{_directory(lab)}"
    return [_way("nfs", item, url, CEPHFS), _nfs3(item, url)]


def _nfs3(item: GatewayRecord, url: str) -> LabTarget:
    reason = item.reason or ("" if item.mount_port else "; ".join(item.notes))
    where = "" if reason else f"{url}?version=3&mountport={item.mount_port}"
    return LabTarget("nfs", item.name.replace("nfs", "nfs3"), where, CEPHFS, reason=reason)


def _smb(lab: LabRecord, item: GatewayRecord) -> list[LabTarget]:
    return [_way("smb", item, f"smb://{_endpoint(lab, item)}/{kinds.SMB_SHARE}/{_directory(lab)}", CEPHFS)]


def _xrootd(lab: LabRecord, item: GatewayRecord) -> list[LabTarget]:
    return [_way("xrootd", item, f"root://{_endpoint(lab, item)}//", STRIPED)]


def _rgw(lab: LabRecord, item: GatewayRecord) -> list[LabTarget]:
    url = f"s3://{kinds.RGW_BUCKET}?endpoint=http://{_endpoint(lab, item)}"
    return [_way("s3", item, url, S3, **gateway_variables(lab))]


_GATEWAY_WAYS = {"nfs": _nfs, "smb": _smb, "xrootd": _xrootd, "rgw": _rgw}


def _kernel() -> list[LabTarget]:
    reason = "its kernel client runs in a guest: `leadline lab guest --kernel-mounts {mount} -- COMMAND`"
    return [
        LabTarget(way, way, "", CEPHFS, reason=reason.format(mount=mount))
        for way, mount in _KERNEL_WAYS.items()
    ]
