"""What the guest's kernel mounts, from what the lab is: sources and options as mount(2) takes them.

A key is among the options, which reach the guest through a line of its own: they are never printed,
and no command line, file or result holds them.
"""

from __future__ import annotations

from configparser import ConfigParser
from configparser import Error as ConfigParserError
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from leadline.errors import LabError, UsageError
from leadline.lab.cluster.cluster import FILE_SYSTEM
from leadline.lab.gateways import kinds
from leadline.lab.gateways.gateway import url_host
from leadline.lab.guest.kernel import CLIENTS
from leadline.lab.lab import Lab
from leadline.lab.record import LabRecord

BASE = "/mnt/leadline"
USER = "admin"


@dataclass(frozen=True)
class GuestMount:
    """One mount in the guest. `reason` says why it cannot be there; then it is not tried."""

    name: str
    source: str = ""
    kind: str = ""
    options: str = field(default="", repr=False)
    reason: str = ""

    @property
    def point(self) -> str:
        """Where it is, in the guest."""
        return f"{BASE}/{self.name}"

    def as_json(self) -> dict[str, Any]:
        """For the guest's agent."""
        return asdict(self) | {"point": self.point}


def parse_clients(text: str) -> tuple[str, ...]:
    """`ceph,nfs` as names. Raises UsageError for others."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    unknown = [name for name in names if name not in CLIENTS]
    if unknown:
        raise UsageError(
            f"--kernel-mounts {text}: {', '.join(unknown)} is no client of the guest",
            f"Choose of {', '.join(CLIENTS)}.",
        )
    return names


def ceph_mount(record: LabRecord) -> GuestMount:
    """CephFS by the kernel's client, as the lab's administrator."""
    host = url_host(record.spec.address)
    # The monitor speaks version 2 of the protocol only; checksums on the wire, as ceph-fuse has them.
    options = [f"name={USER}", "ms_mode=prefer-crc", f"mds_namespace={FILE_SYSTEM}", "mount_timeout=30"]
    if record.spec.auth == "cephx":
        options.append(f"secret={secret(record.paths.keyring, f'client.{USER}')}")
    return GuestMount("ceph", f"{host}:{record.mon_port}:/", "ceph", ",".join(options))


def secret(keyring: Path, entity: str) -> str:
    """An entity's key. Raises LabError, without any key, where the keyring has none."""
    sections = ConfigParser(interpolation=None)
    try:
        sections.read_string(keyring.read_text())
        return sections[entity]["key"]
    except OSError as error:
        raise LabError(
            f"{keyring} cannot be read: {error.strerror}", "Use the account that started the lab."
        ) from error
    except (KeyError, ConfigParserError):
        raise LabError(f"{keyring} has no key of {entity}", "Start the lab anew.") from None


def nfs_mount(host: str, port: int) -> GuestMount:
    """The lab's NFS export by the kernel's client."""
    options = f"vers=4.2,addr={host},port={port},proto=tcp,sec=sys,hard,timeo=100,retrans=2"
    return GuestMount("nfs", f"{url_host(host)}:{kinds.NFS_EXPORT}", "nfs", options)


def smb_mount(host: str, port: int) -> GuestMount:
    """The lab's SMB share by the kernel's client, as its guest, who has neither name nor password."""
    options = f"vers=3.1.1,ip={host},port={port},sec=none"
    return GuestMount("smb", f"//{host}/{kinds.SMB_SHARE}", "cifs", options)


_GATEWAYS = {"nfs": nfs_mount, "smb": smb_mount}


def mounts_of(lab: Lab, names: tuple[str, ...]) -> list[GuestMount]:
    """The mounts with these names, each with its reason where the lab does not offer it."""
    return [ceph_mount(lab.record) if name == "ceph" else _of_gateway(lab.record, name) for name in names]


def _of_gateway(record: LabRecord, name: str) -> GuestMount:
    found = next((item for item in record.gateways if item.name == name), None)
    if found is None:
        return GuestMount(name, reason=f"the lab was started without --gateways {name}")
    if found.reason:
        return GuestMount(name, reason=f"its gateway does not run: {found.reason}")
    return _GATEWAYS[name](record.spec.address, found.port)
