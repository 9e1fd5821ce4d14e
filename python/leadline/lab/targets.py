"""The ways by which a lab's storage can be reached, each as a target that can be measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from leadline.lab import mounts
from leadline.lab.cluster.cluster import OBJECT_POOL, REPLICATED_DIRECTORY, STRIPED_POOL
from leadline.lab.gateways import nfs as gateway_nfs
from leadline.lab.gateways import rgw as gateway_rgw
from leadline.lab.gateways import smb as gateway_smb
from leadline.lab.gateways.gateway import url_host
from leadline.lab.record import GatewayRecord, LabRecord

FORMAT = "leadline.lab-targets/1"
CEPHFS, SUBVOLUME, STRIPED, RADOS, S3 = "cephfs", "subvolume", "rados-striped", "rados", "s3"
_KERNEL_WAYS = {"kernel-ceph": "ceph", "kernel-nfs": "nfs", "kernel-smb": "smb"}


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

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def targets_of(lab: LabRecord) -> list[LabTarget]:
    """Every way to this lab, there or not."""
    return [_mounted(lab), *_subvolume(lab), *_libraries(lab), *_gateways(lab), *_kernel()]


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


def _libraries(lab: LabRecord) -> list[LabTarget]:
    conf, variables = f"conf={lab.paths.conf}", cluster_variables(lab)
    # The directory is made through the mount.
    directory = REPLICATED_DIRECTORY if lab.spec.mount else ""
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


def gateway_variables(lab: LabRecord) -> dict[str, str]:
    """What the users of the gateways that run need."""
    file = gateway_rgw.credentials(lab.paths.gateway("rgw"))
    running = any(item.name == "rgw" and not item.reason for item in lab.gateways)
    return {"AWS_SHARED_CREDENTIALS_FILE": str(file)} if running else {}


def _gateways(lab: LabRecord) -> list[LabTarget]:
    found = {item.name: item for item in lab.gateways}
    directory = REPLICATED_DIRECTORY if lab.spec.mount else ""

    def target(way: str, gateway: str, url: str, same_bytes: str, variables: dict[str, str]) -> LabTarget:
        item = found.get(gateway, GatewayRecord(gateway, reason=f"started without --gateways {gateway}"))
        where = (
            ""
            if item.reason
            else url.format(endpoint=f"{url_host(lab.address_of(gateway))}:{item.port}", directory=directory)
        )
        return LabTarget(way, way, where, same_bytes, variables, item.reason)

    return [
        target("nfs", "nfs", f"nfs://{{endpoint}}{gateway_nfs.EXPORT}/{{directory}}", CEPHFS, {}),
        _nfs3(lab, found.get("nfs"), directory),
        target("smb", "smb", f"smb://{{endpoint}}/{gateway_smb.SHARE}/{{directory}}", CEPHFS, {}),
        target("xrootd", "xrootd", "root://{endpoint}//", STRIPED, {}),
        target(
            "s3", "rgw", f"s3://{gateway_rgw.BUCKET}?endpoint=http://{{endpoint}}", S3, gateway_variables(lab)
        ),
    ]


def _nfs3(lab: LabRecord, nfs: GatewayRecord | None, directory: str) -> LabTarget:
    if nfs is None or nfs.reason:
        reason = "started without --gateways nfs" if nfs is None else nfs.reason
        return LabTarget("nfs", "nfs3", "", CEPHFS, reason=reason)
    if not nfs.mount_port:
        return LabTarget("nfs", "nfs3", "", CEPHFS, reason="; ".join(nfs.notes))
    endpoint = f"{url_host(lab.address_of(nfs.name))}:{nfs.port}"
    url = f"nfs://{endpoint}{gateway_nfs.EXPORT}/{directory}?version=3&mountport={nfs.mount_port}"
    return LabTarget("nfs", "nfs3", url, CEPHFS)


def _kernel() -> list[LabTarget]:
    reason = "its kernel client runs in a guest: `leadline lab guest --kernel-mounts {mount} -- COMMAND`"
    return [
        LabTarget(way, way, "", CEPHFS, reason=reason.format(mount=mount))
        for way, mount in _KERNEL_WAYS.items()
    ]
