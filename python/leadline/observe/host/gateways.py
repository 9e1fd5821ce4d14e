"""Gateways of targets that run on this machine: whatever listens on their ports, in any network namespace.

RADOS gateways are known by their cluster, as Ceph's other daemons are.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from leadline.observe.host.proc_parse import TaskStat, parse_task_stat
from leadline.observe.network.listening import listening
from leadline.observe.network.socket_table import sockets_in

_INIT = 1  # where it listens for others, everything is its child


def gateways_here(ports: Collection[int], proc: Path = Path("/proc")) -> dict[int, str]:
    """`proxy.NAME.PID` by process: those that listen on one of the ports, and what they have started."""
    if not ports:
        return {}
    networks: dict[str, list[int]] = {}
    for pid, network in _networks(proc):
        networks.setdefault(network, []).append(pid)
    found: set[int] = set()
    for pids in networks.values():
        net = proc / str(pids[0]) / "net"
        inodes = {inode for port in ports for inode in listening(port, net)}
        if inodes:
            found |= {pid for pid in pids if pid != _INIT and inodes & sockets_in(proc / str(pid) / "fd")}
    if not found:
        return {}
    stats = {
        pid: stat for pids in networks.values() for pid in pids if (stat := _stat(pid, proc)) is not None
    }
    while more := {pid for pid, stat in stats.items() if stat.parent in found} - found:
        found |= more  # a server of files by SMB starts one process for each client
    return {pid: f"proxy.{stats[pid].name}.{pid}" for pid in found & set(stats)}


def _networks(proc: Path) -> Iterator[tuple[int, str]]:
    for name in os.listdir(proc):  # noqa: PTH208 - names are all it needs
        if name.isdigit():
            try:
                yield int(name), os.readlink(proc / name / "ns" / "net")  # noqa: PTH115 - no path: net:[…]
            except OSError:
                continue


def _stat(pid: int, proc: Path) -> TaskStat | None:
    try:
        return parse_task_stat((proc / str(pid) / "stat").read_text(errors="replace"))
    except OSError:
        return None
