"""What a lab is asked to be: frozen values, checked before anything is started."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from leadline.errors import UsageError
from leadline.lab.network.topology import REPLICAS, Topology

Auth = Literal["none", "cephx"]

LOOPBACK = "127.0.0.1"
DEFAULT_NAME = "lab"
DEFAULT_OSDS_MIN = 4
GATEWAYS = ("nfs", "smb", "xrootd", "rgw")
# Settings of the servers that a measurement may want to vary, with their defaults.
SETTINGS = {"xrootd.maxbsz": "2m", "xrootd.async": "off"}
OSDS_MAX = 64  # each takes about 100 MiB of memory and eight ports
OSD_SIZE_BYTES_MIN = 1 << 30  # below it BlueStore's own files leave no room for data
OSD_SIZE_BYTES_MAX = 1 << 44

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ERASURE = re.compile(r"([0-9]{1,3})\+([0-9]{1,3})")
_SIZE = re.compile(r"([0-9]{1,12})\s*(?:([KMGT])(?:i?B)?|B)?", re.IGNORECASE)
# ceph.conf has comments, variables and lists, and no way to quote them in every place a path may stand.
_SETTING_VALUES = {
    "xrootd.maxbsz": re.compile(r"[1-9][0-9]{0,3}m"),
    "xrootd.async": re.compile("on|off"),
}
_SUBVOLUME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,63}/)?[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PATH_CHARACTERS = re.compile(r"[A-Za-z0-9/._+@=~-]+")
_FACTOR = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class LabSpec:
    """A lab to start. `osds` 0 means as many as the pools need, at least four. `osd_size_bytes` is sparse.

    `directory` None means below the user's state directory, by name. `name` "" means "lab", or the
    directory's own name. `address` is the IP address that every daemon and gateway binds to; `bridge` makes
    a network bridge of the lab's own and takes an address on it instead. `gateways` names servers of
    `GATEWAYS`, `settings` gives theirs, of `SETTINGS`. `subvolume` (NAME or GROUP/NAME) adds one with a
    client of its own. `topology` puts it all on hosts of its own, which say how many OSDs there are and
    which gateways.
    """

    name: str = ""
    directory: Path | None = None
    osds: int = 0
    erasure_k: int = 2
    erasure_m: int = 1
    auth: Auth = "cephx"
    osd_size_bytes: int = 10 << 30
    mount: bool = True
    address: str = LOOPBACK
    bridge: bool = False
    gateways: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    subvolume: str = ""
    topology: Topology | None = None

    @property
    def osd_count(self) -> int:
        """The number of OSDs to start."""
        if self.topology is not None:
            return self.topology.osd_count
        return self.osds or max(DEFAULT_OSDS_MIN, self.erasure_k + self.erasure_m)

    @property
    def gateway_kinds(self) -> tuple[str, ...]:
        """The kinds of servers that there are: asked for, or on a host of the topology."""
        on_hosts = () if self.topology is None else self.topology.gateways
        return tuple(kind for kind in GATEWAYS if kind in self.gateways or kind in on_hosts)

    def setting(self, name: str) -> str:
        """A server's setting as asked for, or its default."""
        return self.settings.get(name, SETTINGS[name])


def parse_erasure(text: str) -> tuple[int, int]:
    """`k+m` as two numbers. Raises UsageError where it is no such pair or Ceph could not build it."""
    match = _ERASURE.fullmatch(text.strip())
    if not match:
        raise UsageError(f"--ec {text!r} is not K+M", "Write data and coding chunks, for example 2+1 or 6+3.")
    k, m = int(match[1]), int(match[2])
    if k < 2 or m < 1:
        raise UsageError(f"--ec {text}: erasure coding needs K of 2 or more and M of 1 or more", "Use 2+1.")
    return k, m


def parse_gateways(text: str) -> tuple[str, ...]:
    """`nfs,smb` as names, each once; `all` means every one. Raises UsageError for an unknown name."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if names == ["all"]:
        return GATEWAYS
    _check_gateways(names)
    return tuple(name for name in GATEWAYS if name in names)


def parse_settings(words: Iterable[str]) -> dict[str, str]:
    """`NAME=VALUE` words as a dictionary. Raises UsageError for what is no such word."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"--set {word!r} is not NAME=VALUE", f"Names: {', '.join(SETTINGS)}.")
        found[name.strip()] = value.strip()
    return found


def parse_size_bytes(text: str) -> int:
    """A size of an OSD such as `10G` in bytes (K, M, G, T = powers of 1024). Raises UsageError."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise UsageError(f"--osd-size {text!r} is not a size", "Write a number and a unit, for example 10G.")
    return int(match[1]) * _FACTOR[(match[2] or "").upper()]


def check_spec(spec: LabSpec) -> None:
    """Raises UsageError for a lab that could not work, naming the option and what would be right."""
    need = max(REPLICAS, spec.erasure_k + spec.erasure_m)
    erasure = f"{spec.erasure_k}+{spec.erasure_m}"
    if spec.erasure_k < 2 or spec.erasure_m < 1:
        raise UsageError(f"erasure coding {erasure} does not exist", "Use 2+1, 6+3 or 8+3.")
    if spec.topology is None and (spec.osds < 0 or spec.osd_count < need):
        raise UsageError(
            f"--osds {spec.osds} is too few for {erasure} and {REPLICAS} replicas: each chunk needs an OSD",
            f"Use --osds {need} or more.",
        )
    if spec.osd_count > OSDS_MAX:
        raise UsageError(f"{spec.osd_count} OSDs are more than one host can run", f"Use at most {OSDS_MAX}.")
    if not OSD_SIZE_BYTES_MIN <= spec.osd_size_bytes <= OSD_SIZE_BYTES_MAX:
        raise UsageError(f"an OSD of {spec.osd_size_bytes} bytes cannot be made", "Use 1G to 16T.")
    if spec.auth not in ("none", "cephx"):
        raise UsageError(f"--auth {spec.auth!r} is unknown", "Use none or cephx.")
    _check_address(spec)
    _check_servers(spec)
    if spec.name:
        check_name(spec.name)
    if spec.directory is not None:
        check_directory(spec.directory)


def _check_servers(spec: LabSpec) -> None:
    _check_gateways(spec.gateways)
    if "rgw" in spec.gateway_kinds and spec.auth == "none":
        raise UsageError("RGW does not start without authentication", "Use --auth cephx, the default.")
    if spec.subvolume and spec.auth == "none":
        raise UsageError("without authentication no client is restricted", "Use --auth cephx, the default.")
    if spec.subvolume and not spec.mount:
        raise UsageError("--subvolume and --no-mount contradict each other", "Give one of the two.")
    if spec.subvolume and not _SUBVOLUME.fullmatch(spec.subvolume):
        raise UsageError(f"{spec.subvolume!r} is no name for a subvolume", "Use NAME or GROUP/NAME.")
    for name, value in spec.settings.items():
        if name not in SETTINGS:
            raise UsageError(f"there is no setting {name!r}", f"Settings: {', '.join(SETTINGS)}.")
        if not _SETTING_VALUES[name].fullmatch(value):
            raise UsageError(f"--set {name}={value} is not possible", f"The default is {SETTINGS[name]}.")
        if name.partition(".")[0] not in spec.gateway_kinds:
            raise UsageError(f"--set {name} is for a gateway that was not asked for", "Add it to --gateways.")


def _check_gateways(names: Iterable[str]) -> None:
    unknown = [name for name in names if name not in GATEWAYS]
    if unknown:
        raise UsageError(f"there is no gateway {unknown[0]!r}", f"Gateways: {', '.join(GATEWAYS)}, or all.")


def _check_address(spec: LabSpec) -> None:
    try:
        ipaddress.ip_address(spec.address)
    except ValueError as error:
        raise UsageError(
            f"{spec.address!r} is no IP address", "Use 127.0.0.1 or an address of this host."
        ) from error
    if spec.topology is not None and (spec.bridge or spec.address != LOOPBACK):
        raise UsageError("a lab with hosts has addresses of its own", "Leave out --bridge and --address.")
    if spec.bridge and spec.address != LOOPBACK:
        raise UsageError("--bridge and --address contradict each other", "Give one of the two.")


def check_name(name: str) -> None:
    """Raises UsageError where `name` could not be a directory's name everywhere."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a lab",
            "Use letters, digits, '.', '_' and '-', at most 64, the first a letter or digit.",
        )


def check_directory(directory: Path) -> None:
    """Raises UsageError where ceph.conf could not hold the path, or it is `/`."""
    text = str(directory)
    if not _PATH_CHARACTERS.fullmatch(text):
        raise UsageError(
            f"{text!r} cannot be a lab's directory: Ceph's configuration cannot hold such a path",
            "Use a path of letters, digits and / . _ - + @ = ~ only.",
        )
    if directory.parent == directory:
        raise UsageError("a lab cannot have / as its directory", "Name a directory of its own with --dir.")
