"""A network bridge of the lab's own: guests and other network namespaces cannot reach 127.0.0.1."""

from __future__ import annotations

import ipaddress
import os
import random
import shutil
from collections.abc import Mapping
from pathlib import Path

from leadline.errors import LabError, UsageError
from leadline.foreign import parse_json
from leadline.lab.cluster.process import run_tool

PREFIX = "llbr"
_ATTEMPTS = 100
_DEADLINE_S = 10.0
_DEVICES = Path("/sys/class/net")


def require() -> None:
    """Raises UsageError or LabError where this account cannot make a bridge."""
    if os.geteuid() != 0:
        raise UsageError(
            "--bridge makes a network device, which needs root", "Use --address, or run it as root."
        )
    if shutil.which("ip") is None:
        raise LabError(
            "there is no program ip, which makes the bridge",
            "Run as root: apt-get install --no-install-recommends iproute2",
        )


def name_for(fsid: str) -> str:
    """The device's name for the lab of this identity."""
    return f"{PREFIX}{fsid[:4]}"


def choose_network(
    chance: random.Random, variables: Mapping[str, str], prefix_bits: int = 24
) -> ipaddress.IPv4Network:
    """A private network that no route or address of this host touches. Raises LabError for none."""
    routes = parse_json(
        run_tool(["ip", "-json", "route", "show", "table", "all"], variables, deadline_s=_DEADLINE_S)
    )
    used = [network for item in routes if (network := _network(item.get("dst", ""))) is not None]
    for _ in range(_ATTEMPTS):
        first = f"10.{chance.randint(1, 254)}.{chance.randint(0, 127) * 2}.0"
        found = ipaddress.IPv4Network((first, prefix_bits))
        if not any(found.overlaps(network) for network in used):
            return found
    raise LabError("every private network tried is used by a route of this host", "Use --address.")


def _network(destination: str) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(destination)
    except ValueError:  # "default", or another protocol's
        return None


def make(name: str, address: str, variables: Mapping[str, str]) -> None:
    """Makes the device, with `address` of a network of 254. Raises LabError where the kernel refuses."""
    for words in (
        ["link", "add", name, "type", "bridge"],
        ["address", "add", f"{address}/24", "dev", name],
        ["link", "set", name, "up"],
    ):
        run_tool(["ip", *words], variables, deadline_s=_DEADLINE_S)


def remove(name: str, variables: Mapping[str, str]) -> None:
    """Removes the lab's bridge where it is still there; a device that is no such bridge is left alone."""
    if name.startswith(PREFIX) and (_DEVICES / name / "bridge").is_dir():
        run_tool(["ip", "link", "delete", name, "type", "bridge"], variables, deadline_s=_DEADLINE_S)
