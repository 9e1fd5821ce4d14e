"""Which processes of this host listen on a port: the server of a target, where it runs here."""

from __future__ import annotations

import contextlib
from pathlib import Path

from leadline.observe.network.socket_table import sockets_in

PROC = Path("/proc")
_LISTENS = "0A"  # TCP_LISTEN in /proc/net/tcp (proc(5))


def listeners(port: int, proc: Path = PROC) -> frozenset[int]:
    """Processes that hold a socket listening on this TCP port; none where they are not ours to see."""
    inodes = listening(port, proc / "net")
    if not inodes:
        return frozenset()
    pids = (int(entry.name) for entry in proc.iterdir() if entry.name.isdigit())
    return frozenset(pid for pid in pids if inodes & sockets_in(proc / str(pid) / "fd"))


def listening(port: int, net: Path) -> set[int]:
    """The sockets (inodes) that listen on a port, in the network whose tables are at `net`."""
    found: set[int] = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (net / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(int(fields[9]))
    return found
