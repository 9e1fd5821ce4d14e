"""A subvolume with a RADOS namespace and a client that may reach nothing else, as tenants have it."""

from __future__ import annotations

import os
from pathlib import Path

from leadline.lab.cluster.command import CephCommand

CLIENT = "subvolume"  # the part of its Ceph user's name behind `client.`
PROCESS = f"client.{CLIENT}"


def split(name: str) -> tuple[str, str]:
    """`GROUP/NAME` or `NAME` as (group, name); the group is "" where there is none."""
    group, _, own = name.rpartition("/")
    return group, own


def make(ceph: CephCommand, file_system: str, name: str) -> str:
    """Makes the subvolume, isolated in a namespace; returns its path in the file system."""
    group, own = split(name)
    options = ["--group_name", group] if group else []
    if group:
        ceph.run("fs", "subvolumegroup", "create", file_system, group)
    mode = ["--uid", str(os.geteuid()), "--gid", str(os.getegid()), "--mode", "755"]
    ceph.run("fs", "subvolume", "create", file_system, own, *options, "--namespace-isolated", *mode)
    return ceph.run("fs", "subvolume", "getpath", file_system, own, *options).strip()


def make_client(ceph: CephCommand, file_system: str, name: str, keyring: Path) -> None:
    """Lets Ceph make a client restricted to the subvolume's path and namespace, and writes its key."""
    group, own = split(name)
    options = ["--group_name", group] if group else []
    ceph.run("fs", "subvolume", "authorize", file_system, own, CLIENT, *options, "--access_level=rw")
    keyring.parent.mkdir(mode=0o700, exist_ok=True)
    keyring.touch(mode=0o600)
    ceph.run("auth", "get", f"client.{CLIENT}", "-o", str(keyring))
