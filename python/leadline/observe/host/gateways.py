"""Gateways of targets that run on this machine, in whatever network namespace: by their names and ports."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from leadline.observe.host.proc_parse import parse_task_stat
from leadline.observe.network.listening import listens

# RADOS gateways are known by their cluster, as Ceph's other daemons are.
_NAMES = frozenset({"xrootd", "ganesha.nfsd", "smbd"})


def gateways_here(ports: Collection[int], proc: Path = Path("/proc")) -> dict[int, str]:
    """`proxy.xrootd.123` by process: those that listen on one of the ports, and their own children."""
    if not ports:
        return {}
    parents: dict[int, tuple[int, str]] = {}
    for entry in os.listdir(proc):  # noqa: PTH208 - names are all it needs
        if not entry.isdigit():
            continue
        try:
            if (proc / entry / "comm").read_text().strip() not in _NAMES:
                continue
            stat = parse_task_stat((proc / entry / "stat").read_text(errors="replace"))
        except OSError:
            continue
        if stat is not None:
            parents[int(entry)] = (stat.parent, stat.name)
    found = {pid for pid in parents if listens(pid, ports, proc)}
    while more := {pid for pid, (parent, _) in parents.items() if parent in found} - found:
        found |= more  # a server of files by SMB starts one process for each client
    return {pid: f"proxy.{parents[pid][1]}.{pid}" for pid in found}
