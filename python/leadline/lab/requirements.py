"""What a lab needs of this machine: Debian packages, and what the kernel can do for a network.

No package is started to find out; each feature of the kernel is tried in a namespace that goes at once.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from leadline.errors import LabError
from leadline.lab.cluster.process import run_tool

# program -> the Debian package that carries it
PROGRAMS = {
    "ceph": "ceph-common",
    "ceph-authtool": "ceph-common",
    "monmaptool": "ceph-common",
    "ceph-mon": "ceph-mon",
    "ceph-mgr": "ceph-mgr",
    "ceph-osd": "ceph-osd",
    "ceph-mds": "ceph-mds",
    "ceph-fuse": "ceph-fuse",
}
_UNMOUNT_PACKAGE = "fuse3"


def missing_packages(*, mount: bool = True) -> list[str]:
    """Debian packages to install before a lab can start, sorted; empty where nothing lacks.

    `mount` False leaves out what only a mounted lab needs.
    """
    lacking = {
        package
        for program, package in PROGRAMS.items()
        if (mount or program != "ceph-fuse") and shutil.which(program) is None
    }
    if mount and not any(shutil.which(program) for program in ("fusermount3", "fusermount")):
        lacking.add(_UNMOUNT_PACKAGE)
    return sorted(lacking)


def require_packages(*, mount: bool) -> None:
    """Raises LabError naming the packages that lack and the command that installs them."""
    lacking = missing_packages(mount=mount)
    if lacking:
        raise LabError(
            f"Ceph is not installed in full on this machine; missing: {', '.join(lacking)}",
            f"Run as root: apt-get install --no-install-recommends {' '.join(lacking)}",
        )


_DEADLINE_S = 10.0


@dataclass(frozen=True)
class KernelFeature:
    """One feature: `lines` of `ip` or `tc` that need it, what a lab uses it for, what would allow it."""

    name: str
    program: str
    lines: str
    used_for: str
    remedy: str
    optional: bool = False


FEATURES = (
    KernelFeature(
        "hosts and links", "ip", "link add name left type veth peer name right\n",
        "`leadline lab up --hosts`", "Use a kernel with network namespaces and CONFIG_VETH.",
    ),
    KernelFeature(
        "switches", "ip", "link add name switch type bridge\n",
        "`leadline lab up --hosts`, `--bridge`", "Use a kernel with CONFIG_BRIDGE.",
    ),
    KernelFeature(
        "rates of links (TBF)", "tc", "qdisc add dev lo root tbf rate 1mbit burst 32kb latency 20ms\n",
        "`--link` and `--uplink` of a lab, faults of links", "Use a kernel with CONFIG_NET_SCH_TBF.",
    ),
    KernelFeature(
        "delay and loss (netem)", "tc", "qdisc add dev lo root netem delay 1ms\n", "faults of links",
        "Debian's kernels have it (CONFIG_NET_SCH_NETEM); Ceph's own delays are used instead.", optional=True,
    ),
)  # fmt: skip


def why_lacking(feature: KernelFeature, variables: Mapping[str, str]) -> str:
    """Why this account or kernel cannot do it; "" where it can. Nothing of the machine's own is changed."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    reason = refusal(feature.program, feature.lines, variables)
    return f"it was tried: {reason}" if reason else ""


def refusal(program: str, lines: str, variables: Mapping[str, str]) -> str:
    """What the kernel says against lines of `ip` or `tc`, tried in a namespace that goes at once; or ""."""
    command = ["unshare", "--net", program, "-batch", "-"]
    try:
        run_tool(command, variables, deadline_s=_DEADLINE_S, text=lines)
    except LabError as error:
        return error.message.partition(" | Command failed")[0].rpartition(": ")[2]
    return ""
