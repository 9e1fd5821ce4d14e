"""Network interfaces of this host that are up: speed, MTU, rings, errors, bonds, and their network.

Asked by netlink (`ip`) and ioctl, not by /sys, which shows another network's where a process has entered one.
"""

from __future__ import annotations

import array
import fcntl
import ipaddress
import socket
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leadline.check.reading.host import text_of
from leadline.check.rows import Fact, told
from leadline.foreign import parse_json
from leadline.knowledge.tables import Value

_SIOCETHTOOL, _GSET, _GRINGPARAM = 0x8946, 0x1, 0x10
# Each asks for one switch, struct ethtool_value.
_OFFLOADS = {
    "receive_checksums": 0x14,
    "send_checksums": 0x16,
    "segmentation_offload": 0x1E,
    "receive_offload": 0x2B,
}
_SWITCH = "2I"
_FAST_MBIT = 10_000  # from here on one processor does not keep up
_RINGS, _SETTINGS = "9I", "3IH6B2IH2BI2I"  # struct ethtool_ringparam, ethtool_cmd
_DUPLEX = {0: "half", 1: "full"}
_UNKNOWN_SPEEDS = (0, 0xFFFF)
_LEAST_FRAMES = 10_000  # fewer say nothing of a share
_ANSWER_S = 5.0
_OPTIONAL = (
    "duplex",
    "rx_ring_share",
    "tx_ring_share",
    "bond_up_share",
    "bond_one_aggregator",
    "bond_hash",
    "bond_partner",
    "speed_mbit",
    "error_share",
    "drop_share",
    "one_receives",
    *_OFFLOADS,
)


def interface_facts(host: str, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> list[Fact]:
    """Every fact of each interface that is up, but the loopback; `host/interface@network` is the subject."""
    try:
        asked = ["ip", "-json", "-details", "-statistics", "link", "show"]
        done = subprocess.run(asked, capture_output=True, check=True, timeout=_ANSWER_S)
        links: list[Mapping[str, Any]] = parse_json(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        why = f"ip (Debian: iproute2) does not answer: {type(error).__name__}"
        return [Fact("interface", f"{host}/all", "mtu", None, why)]
    networks = _networks(proc)
    found: list[Fact] = []
    for link in links:
        name = str(link["ifname"])
        if "LOOPBACK" in link["flags"] or "LOWER_UP" not in link["flags"] or "UP" not in link["flags"]:
            continue
        values = (
            interface_values(link)
            | _asked_of_driver(name)
            | bond_values(text_of(proc / "net/bonding" / name))
        )
        values["one_receives"] = one_receives(link, values["speed_mbit"], sys)
        own = {key: value for key, value in values.items() if value is not None or key not in _OPTIONAL}
        network = networks.get(name, "")
        found += told("interface", f"{host}/{name}" + (f"@{network}" if network else ""), own, {})
    return found


def interface_values(link: Mapping[str, Any]) -> dict[str, Value]:
    """What `ip` says of one link; shares only of enough frames to have any."""
    receive, send = (link.get("stats64", {}).get(way, {}) for way in ("rx", "tx"))
    received = int(receive.get("packets", 0))
    frames = received + int(send.get("packets", 0))
    errors = int(receive.get("errors", 0)) + int(send.get("errors", 0))
    return {
        "mtu": int(link["mtu"]),
        "receive_queues": link.get("num_rx_queues"),
        "error_share": errors / frames if frames >= _LEAST_FRAMES else None,
        "drop_share": int(receive.get("dropped", 0)) / received if received >= _LEAST_FRAMES else None,
    }


def _asked_of_driver(name: str) -> dict[str, Value]:
    """What ethtool would show; the receive ring of the longest that it can have."""
    rings = _ethtool(name, _RINGS, _GRINGPARAM)
    settings = _ethtool(name, _SETTINGS, _GSET)
    speed = duplex = None
    if settings:
        low, high = settings[3], settings[12]
        speed = None if low in _UNKNOWN_SPEEDS and not 0 < high < _UNKNOWN_SPEEDS[1] else low | high << 16
        duplex = _DUPLEX.get(settings[4])
    shares = {
        name: rings[place + 4] / rings[place] if rings and rings[place] else None
        for name, place in {"rx_ring_share": 1, "tx_ring_share": 4}.items()
    }
    offloads = {
        what: None if (found := _ethtool(name, _SWITCH, command)) is None else bool(found[1])
        for what, command in _OFFLOADS.items()
    }
    return {"speed_mbit": speed, "duplex": duplex, **shares, **offloads}


def one_receives(link: Mapping[str, Any], speed_mbit: Value, sys: Path) -> bool | None:
    """Whether all that a fast interface receives is the work of one processor, by its queues and RPS.

    None where it is slow, or /sys shows the interfaces of another network.
    """
    place = sys / "class/net" / str(link["ifname"])
    shown = text_of(place / "ifindex"), text_of(place / "address")
    if shown != (str(link.get("ifindex")), link.get("address")):
        return None
    queues = sorted((place / "queues").glob("rx-*"))
    if not isinstance(speed_mbit, int) or speed_mbit < _FAST_MBIT or not queues:
        return None
    if "link" in link or link.get("linkinfo", {}).get("info_kind"):
        return None  # made of others, or of nothing: a bond, a bridge, a virtual pair
    spread = sum(
        int((text_of(queue / "rps_cpus") or "0").replace(",", ""), 16).bit_count() for queue in queues
    )
    return len(queues) == 1 and spread < 2


def _ethtool(name: str, layout: str, command: int) -> tuple[int, ...] | None:
    buffer = array.array("B", bytes(struct.calcsize(layout)))
    struct.pack_into("I", buffer, 0, command)
    request = struct.pack("16sP", name.encode()[:15], buffer.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            fcntl.ioctl(asked, _SIOCETHTOOL, request)
        except OSError:
            return None
    return struct.unpack(layout, buffer.tobytes())


def bond_values(text: str | None) -> dict[str, Value]:
    """What /proc/net/bonding says: links up; of LACP whether all are in one aggregator, with a partner."""
    names = ("bond_up_share", "bond_one_aggregator", "bond_partner", "bond_hash")
    values: dict[str, Value] = dict.fromkeys(names)
    if text is None:
        return values
    lines = [
        (name.strip(), value.strip())
        for name, _, value in (line.partition(":") for line in text.splitlines())
    ]
    states = [value for name, value in lines if name == "MII Status"][1:]  # the first is the bond's own
    values["bond_up_share"] = sum(state == "up" for state in states) / len(states) if states else None
    known = dict(reversed(lines))  # the first of each name
    values["bond_hash"] = (
        known["Transmit Hash Policy"].split()[0] if "Transmit Hash Policy" in known else None
    )
    if "802.3ad" in known.get("Bonding Mode", ""):
        # The first is the active one's, each further one a link's.
        aggregators = {value for name, value in lines if name == "Aggregator ID"}
        values["bond_one_aggregator"] = len(aggregators) == 1 if aggregators else None
        partner = known.get("Partner Mac Address")
        values["bond_partner"] = None if partner is None else partner != "00:00:00:00:00:00"
    return values


def _networks(proc: Path) -> dict[str, str]:
    """The first network that each interface is in directly, of IPv4's routing table."""
    found: dict[str, str] = {}
    for line in (text_of(proc / "net/route") or "").splitlines()[1:]:
        words = line.split()
        if len(words) < 8 or words[2] != "00000000" or words[1] == "00000000":
            continue
        address, mask = (
            socket.inet_ntoa(int(word, 16).to_bytes(4, "little")) for word in (words[1], words[7])
        )
        found.setdefault(words[0], str(ipaddress.ip_network(f"{address}/{mask}", strict=False)))
    return found
