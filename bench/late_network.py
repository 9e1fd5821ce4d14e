"""`python bench/late_network.py SECONDS`: holds each packet that this network namespace sends for so long.

The kernel here need not delay packets itself (netem). The routes to all networks lead into a TUN device
instead; a packet waits in this process, comes out of a second TUN device, and is forwarded by the routes as
they were. What comes in is not held, so a round trip is longer by SECONDS. It says `ready` and ends with its
standard input; the namespace is as it was then. It needs root, and belongs into a namespace of a lab.
"""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
import select
import struct
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_INTO, _OUT_OF = "late0", "late1"
_TABLE = "100"
_PACKET_BYTES_MAX = 1 << 16
_SWITCHES = {"ip_forward": "1", "conf/all/rp_filter": "0", f"conf/{_OUT_OF}/accept_local": "1"}


def _ip(*words: str) -> Any:
    done = subprocess.run(["ip", "-json", *words], check=True, capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout.strip() else None


def _tun(name: str, mtu: int) -> int:
    """A TUN device, which lives as long as the descriptor."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    asked = struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI)
    fcntl.ioctl(descriptor, _TUNSETIFF, asked)
    _ip("link", "set", name, "mtu", str(mtu), "up")
    return descriptor


def _lead_through(routes: list[dict[str, Any]]) -> None:
    """The routes lead into the one device; what comes out of the other takes those that there were."""
    for name, value in _SWITCHES.items():
        Path(f"/proc/sys/net/ipv4/{name}").write_text(value)
    for route in routes:
        Path(f"/proc/sys/net/ipv4/conf/{route['dev']}/rp_filter").write_text("0")
        source = ("src", route["prefsrc"])
        _ip("route", "add", route["dst"], "dev", route["dev"], *source, "table", _TABLE)
        for half in ipaddress.ip_network(route["dst"]).subnets():  # longer prefixes go first
            _ip("route", "add", str(half), "dev", _INTO, *source)
    _ip("rule", "add", "iif", _OUT_OF, "lookup", _TABLE)


def _hold(into: int, out_of: int, seconds: float) -> None:
    """Until the standard input ends."""
    waiting: deque[tuple[float, bytes]] = deque()
    while True:
        left_s = max(waiting[0][0] - time.monotonic(), 0.0) if waiting else None
        ready, _, _ = select.select([into, sys.stdin], [], [], left_s)
        if sys.stdin in ready:
            return
        if into in ready:
            waiting.append((time.monotonic() + seconds, os.read(into, _PACKET_BYTES_MAX)))
        while waiting and waiting[0][0] <= time.monotonic():
            os.write(out_of, waiting.popleft()[1])


def main() -> None:
    """Hold packets until the standard input ends."""
    routes = [one for one in _ip("-4", "route", "show") if one.get("scope") == "link" and "prefsrc" in one]
    mtu = min(
        one["mtu"] for one in _ip("link", "show") if one["ifname"] in {route["dev"] for route in routes}
    )
    into, out_of = _tun(_INTO, mtu), _tun(_OUT_OF, mtu)
    try:
        _lead_through(routes)
        print("ready", flush=True)
        _hold(into, out_of, float(sys.argv[1]))
    finally:
        os.close(into)  # its routes go with it
        os.close(out_of)
        subprocess.run(["ip", "rule", "del", "iif", _OUT_OF, "lookup", _TABLE], check=False)
        subprocess.run(["ip", "route", "flush", "table", _TABLE], check=False)


if __name__ == "__main__":
    main()
