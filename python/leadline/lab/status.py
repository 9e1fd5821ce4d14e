"""What a lab is doing now: its daemons, its cluster, its mount, its space. Asks, changes nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leadline.errors import LabError
from leadline.lab import mounts
from leadline.lab.cluster import process
from leadline.lab.cluster.cluster import ERASURE_DIRECTORY, FUSE, REPLICATED_DIRECTORY
from leadline.lab.cluster.command import CephCommand, LabClusterState, parse_state
from leadline.lab.cluster.config import SUBVOLUME_PROCESS
from leadline.lab.inject.injection import Injection
from leadline.lab.record import GUEST, GatewayRecord, LabRecord

FORMAT = "leadline.lab-status/1"


@dataclass(frozen=True)
class DaemonStatus:
    """One process of the lab. `memory_bytes` is resident; None where the process runs no more."""

    name: str
    pid: int
    running: bool
    memory_bytes: int | None
    log: Path
    socket: Path


@dataclass(frozen=True)
class GatewayStatus:
    """One gateway that was asked for. `reason` says why it does not serve; "" where it runs."""

    name: str
    address: str
    running: bool
    reason: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class LabStatus:
    """One lab now. `cluster` is None where it does not answer, and `cluster_reason` says why.

    `client_mounts` says of each client that was told to mount whether its mount is there.
    `disk_bytes` is what the lab's files really take: its OSDs' files are sparse.
    """

    name: str
    directory: Path
    state: str
    fsid: str
    conf: Path
    keyring: Path
    mon_address: str
    auth: str
    erasure: str
    daemons: tuple[DaemonStatus, ...]
    cluster: LabClusterState | None
    cluster_reason: str
    mount: Path
    mounted: bool
    targets: dict[str, Path]
    gateways: tuple[GatewayStatus, ...]
    bridge: str
    disk_bytes: int
    free_bytes: int
    injections: tuple[Injection, ...] = ()
    client_mounts: dict[str, bool] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """True where every daemon runs, the cluster is clean, and mount and gateways asked for are there."""
        # A guest comes and goes: one that has ended without its `leadline` is no part that lacks.
        running = bool(self.daemons) and all(item.running or item.name == GUEST for item in self.daemons)
        running = running and all(gateway.running for gateway in self.gateways)
        names = {daemon.name for daemon in self.daemons}
        lost_mount = FUSE in names and not self.mounted
        lost_mount |= SUBVOLUME_PROCESS in names and "subvolume" not in self.targets
        lost_mount |= not all(self.client_mounts.values())
        clean = self.cluster is not None and self.cluster.clean
        return running and clean and self.state == "up" and not lost_mount

    def as_json(self) -> dict[str, Any]:
        """Plain values, with the format's version."""
        from pydantic_core import to_jsonable_python

        plain: dict[str, Any] = {"format": FORMAT} | to_jsonable_python(self) | {"healthy": self.healthy}
        if self.cluster is not None:
            plain["cluster"]["clean"] = self.cluster.clean
        return plain


def inspect(lab: LabRecord, variables: Mapping[str, str]) -> LabStatus:
    """The status of a lab; what does not answer within seconds is said to be so."""
    paths, mounted = lab.paths, mounts.is_mounted(lab.paths.mount)
    cluster, reason = _ask_cluster(lab, variables)
    space = os.statvfs(lab.directory)
    return LabStatus(
        name=lab.name,
        directory=lab.directory,
        state=lab.state,
        fsid=lab.fsid,
        conf=paths.conf,
        keyring=paths.keyring,
        mon_address=f"{lab.spec.address}:{lab.mon_port}",
        auth=lab.spec.auth,
        erasure=f"{lab.spec.erasure_k}+{lab.spec.erasure_m}",
        daemons=tuple(_daemon(lab, item) for item in lab.processes),
        cluster=cluster,
        cluster_reason=reason,
        mount=paths.mount,
        mounted=mounted,
        targets=_targets(lab, mounted),
        gateways=tuple(_gateway(lab, item) for item in lab.gateways),
        bridge=lab.bridge,
        disk_bytes=disk_bytes(lab.directory, skip=paths.mount_points(lab.spec)),
        free_bytes=space.f_bavail * space.f_frsize,
        injections=lab.injections,
        client_mounts={name: mounts.is_mounted(paths.client_mount(name)) for name in lab.client_mounts},
    )


def _ask_cluster(lab: LabRecord, variables: Mapping[str, str]) -> tuple[LabClusterState | None, str]:
    monitors = [item for item in lab.processes if item.name.startswith("mon.")]
    running = sum(map(process.is_running, monitors))
    if not running:
        return None, "the monitor does not run" if len(monitors) < 2 else "no monitor runs"
    if 2 * running <= len(monitors):
        return None, f"{running} of {len(monitors)} monitors run, which is no majority"
    try:
        return parse_state(CephCommand(lab.paths.conf, variables).json("status", deadline_s=8.0)), ""
    except LabError as error:
        return None, error.message


def _targets(lab: LabRecord, mounted: bool) -> dict[str, Path]:
    """Directories on the lab's mounts that can be measured."""
    found = {}
    if mounted:
        found = {name: lab.paths.mount / name for name in (REPLICATED_DIRECTORY, ERASURE_DIRECTORY)}
    if mounts.is_mounted(lab.paths.subvolume_mount):
        found["subvolume"] = lab.paths.subvolume_mount
    return found


def _gateway(lab: LabRecord, item: GatewayRecord) -> GatewayStatus:
    own = [found for found in lab.processes if found.name == item.name]
    running = any(process.is_running(found) for found in own)
    reason = item.reason or ("" if running else f"has ended; log: {lab.paths.log(item.name)}")
    address = f"{lab.address_of(item.name)}:{item.port}" if item.port else ""
    return GatewayStatus(item.name, address, running, reason, item.notes)


def _daemon(lab: LabRecord, item: process.ProcessIdentity) -> DaemonStatus:
    running = process.is_running(item)
    return DaemonStatus(
        name=item.name,
        pid=item.pid,
        running=running,
        memory_bytes=_resident_bytes(item.pid) if running else None,
        log=lab.paths.log(item.name),
        socket=lab.paths.socket(item.name),
    )


def _resident_bytes(pid: int) -> int | None:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def disk_bytes(directory: Path, *, skip: tuple[Path, ...]) -> int:
    """Bytes that the files below `directory` take on disk; `skip` (mounts, perhaps dead) is not entered."""
    total = 0
    with os.scandir(directory) as entries:
        for entry in entries:
            if Path(entry.path) in skip:
                continue
            try:
                total += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    total += disk_bytes(Path(entry.path), skip=skip)
            except OSError:  # removed meanwhile, or not ours to read
                continue
    return total
