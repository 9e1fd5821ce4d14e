"""The guest's first files: a busybox, modules, and the script that hands over to this host's root.

Written here, as `newc` cpio (the kernel's initramfs format): no tool of a distribution is needed.
"""

from __future__ import annotations

import shlex
import shutil
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Interface
from pathlib import Path

from leadline.errors import LabError
from leadline.lab.guest.kernel import canonical, content

ROOT_TAG, SHARE_TAG = "hostroot", "share"
OWN_DIRECTORY = "/run/leadline-guest"
ALIVE = "leadline-guest: the root of the host is there"
FAILED = "leadline-guest: failed:"
_MAGIC = "070701"
_TRAILER = "TRAILER!!!"


@dataclass(frozen=True)
class Entry:
    """One file, directory or device of the archive."""

    name: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def archive(entries: Iterable[Entry]) -> bytes:
    """A cpio archive in `newc` format, as the kernel's initramfs wants it."""
    parts = []
    for number, entry in enumerate((*entries, Entry(_TRAILER, 0)), 1):
        name = entry.name.encode() + b"\0"
        links = 0 if entry.name == _TRAILER else 1
        fields = (
            *(number, entry.mode, 0, 0, links, 0, len(entry.data)),
            *(0, 0, *entry.device, len(name), 0),
        )
        head = _MAGIC.encode() + b"".join(b"%08X" % field for field in fields)
        parts += [_padded(head + name), _padded(entry.data)]
    return b"".join(parts)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def first_script(modules: Sequence[str], network: IPv4Interface | None) -> str:
    """`/init`: modules, network, this host's root below a layer in memory; then the second script."""
    lines = [
        "#!/bin/busybox sh",
        "export PATH=/bin",
        "fail() { echo '" + FAILED + '\' "$@"; poweroff -f; }',
        "mount -t proc proc /proc; mount -t sysfs sys /sys",
        f"for module in {' '.join(modules)}; do",
        '  insmod "/modules/$module.ko" 2>/dev/null || echo "leadline-guest: $module was not loaded"',
        "done",
        "ip link set lo up",
    ]
    if network is not None:
        lines += [f"ip address add {network} dev eth0 && ip link set eth0 up || fail no network"]
    nine = "trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro"
    lines += [
        f"mount -t 9p -o {nine} {ROOT_TAG} /lower || fail the root of the host cannot be mounted",
        "mount -t tmpfs -o mode=0755 memory /upper && mkdir /upper/files /upper/work",
        "mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work root /root ||"
        " fail no layer above the root of the host",
        f"mkdir -p /root{OWN_DIRECTORY} && cp /bin/busybox /second /root{OWN_DIRECTORY}/ || fail no space",
        "umount /sys /proc",
        f"exec switch_root /root {OWN_DIRECTORY}/busybox sh {OWN_DIRECTORY}/second",
    ]
    return "\n".join(lines) + "\n"


def second_script(agent: Sequence[str], host_name: str) -> str:
    """What the guest's first process does in this host's root: the kernel's file systems, then the agent."""
    box = f"{OWN_DIRECTORY}/busybox"
    mounts = (
        *("proc proc /proc", "sysfs sys /sys", "devtmpfs dev /dev", "tmpfs memory /dev/shm"),
        *("devpts pts /dev/pts", "debugfs debug /sys/kernel/debug", "tracefs trace /sys/kernel/tracing"),
        *("cgroup2 cgroup /sys/fs/cgroup",),
    )
    lines = [f"echo '{ALIVE}'"]
    for kind, source, point in (words.split() for words in mounts):
        lines.append(f"{box} mkdir -p {point} 2>/dev/null; {box} mount -t {kind} {source} {point}")
    lines += [
        f"{box} hostname {shlex.quote(host_name)}",
        f"{shlex.join(agent)} </dev/null >/dev/console 2>&1 || echo '{FAILED}' the agent ended with code $?",
        f"{box} sync",
        f"{box} poweroff -f",
        f"while true; do {box} sleep 60; done",  # the first process may not end
    ]
    return "\n".join(lines) + "\n"


def build_initrd(
    modules: Sequence[Path], network: IPv4Interface | None, agent: Sequence[str], host_name: str
) -> bytes:
    """The whole archive. Raises LabError where this host has no busybox to put into it."""
    directories = ("bin", "dev", "proc", "sys", "modules", "lower", "upper", "root")
    entries = [Entry(name, stat.S_IFDIR | 0o755) for name in directories]
    entries += [
        Entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)),
        Entry("dev/null", stat.S_IFCHR | 0o666, device=(1, 3)),
        Entry("bin/busybox", stat.S_IFREG | 0o755, _busybox().read_bytes()),
    ]
    applets = ("sh", "mount", "umount", "insmod", "ip", "mkdir", "cp", "switch_root", "poweroff")
    entries += [Entry(f"bin/{name}", stat.S_IFLNK | 0o777, b"busybox") for name in applets]
    names = [canonical(path.name) for path in modules]
    entries += [
        Entry(f"modules/{name}.ko", stat.S_IFREG | 0o644, content(path))
        for name, path in zip(names, modules, strict=True)
    ]
    scripts = {"init": first_script(names, network), "second": second_script(agent, host_name)}
    entries += [Entry(name, stat.S_IFREG | 0o755, text.encode()) for name, text in scripts.items()]
    return archive(entries)


def _busybox() -> Path:
    """A busybox that needs no library: in the guest's first minute there is none."""
    found = shutil.which("busybox")
    if found is None:
        raise LabError("a guest needs busybox", "Run as root: apt-get install busybox-static")
    path = Path(found).resolve()
    if b"/ld-linux" in path.read_bytes()[:4096]:
        raise LabError(
            f"{path} needs libraries, which a guest does not have when it starts",
            "Run as root: apt-get install busybox-static",
        )
    return path
