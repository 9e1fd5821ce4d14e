"""What a lab is asked to be: frozen values, checked before anything is started."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from leadline.errors import UsageError

Auth = Literal["none", "cephx"]

DEFAULT_NAME = "lab"
DEFAULT_OSDS_MIN = 4
REPLICAS = 3
OSDS_MAX = 64  # each takes about 100 MiB of memory and eight ports
OSD_SIZE_BYTES_MIN = 1 << 30  # below it BlueStore's own files leave no room for data
OSD_SIZE_BYTES_MAX = 1 << 44

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ERASURE = re.compile(r"([0-9]{1,3})\+([0-9]{1,3})")
_SIZE = re.compile(r"([0-9]{1,12})\s*(?:([KMGT])(?:i?B)?|B)?", re.IGNORECASE)
# ceph.conf has comments, variables and lists, and no way to quote them in every place a path may stand.
_PATH_CHARACTERS = re.compile(r"[A-Za-z0-9/._+@=~-]+")
_FACTOR = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class LabSpec:
    """A lab to start. `osds` 0 means as many as the pools need, at least four. `osd_size_bytes` is sparse.

    `directory` None means below the user's state directory, by name. `name` "" means "lab", or the
    directory's own name. `address` is the IP address that every daemon binds to.
    """

    name: str = ""
    directory: Path | None = None
    osds: int = 0
    erasure_k: int = 2
    erasure_m: int = 1
    auth: Auth = "none"
    osd_size_bytes: int = 10 << 30
    mount: bool = True
    address: str = "127.0.0.1"

    @property
    def osd_count(self) -> int:
        """The number of OSDs to start."""
        return self.osds or max(DEFAULT_OSDS_MIN, self.erasure_k + self.erasure_m)

    def as_json(self) -> dict[str, Any]:
        """Plain values for the lab's file."""
        return asdict(self) | {"directory": None if self.directory is None else str(self.directory)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> LabSpec:
        """The inverse of `as_json`; keys of a newer minor version are dropped."""
        known = {key: value[key] for key in cls.__dataclass_fields__ if key in value}
        directory = known.get("directory")
        return cls(**(known | {"directory": None if directory is None else Path(directory)}))


def parse_erasure(text: str) -> tuple[int, int]:
    """`k+m` as two numbers. Raises UsageError where it is no such pair or Ceph could not build it."""
    match = _ERASURE.fullmatch(text.strip())
    if not match:
        raise UsageError(f"--ec {text!r} is not K+M", "Write data and coding chunks, for example 2+1 or 6+3.")
    k, m = int(match[1]), int(match[2])
    if k < 2 or m < 1:
        raise UsageError(f"--ec {text}: erasure coding needs K of 2 or more and M of 1 or more", "Use 2+1.")
    return k, m


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
    if spec.osds < 0 or spec.osd_count < need:
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
    _check_address(spec.address)
    if spec.name:
        check_name(spec.name)
    if spec.directory is not None:
        check_directory(spec.directory)


def _check_address(address: str) -> None:
    try:
        ipaddress.ip_address(address)
    except ValueError as error:
        raise UsageError(
            f"{address!r} is no IP address", "Use 127.0.0.1 or an address of this host."
        ) from error


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
