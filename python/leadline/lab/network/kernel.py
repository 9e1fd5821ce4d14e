"""What the kernel can do for a lab's network: each is tried in a namespace that goes at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from leadline.errors import LabError
from leadline.lab.cluster.process import run_tool

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


def lacking(feature: KernelFeature, variables: Mapping[str, str]) -> str:
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
