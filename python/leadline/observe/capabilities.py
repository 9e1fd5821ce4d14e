"""What this machine can do for a measurement: checks that change nothing. For `leadline doctor`."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from leadline.errors import TargetError
from leadline.observe.host import host
from leadline.observe.mounts.mounts import inspect
from leadline.units import printable

State = Literal["works", "limited", "missing"]
_SYS_IO_URING_SETUP = 425  # the same on every architecture
_IO_URING_PARAMS_BYTES = 120


@dataclass(frozen=True)
class Capability:
    """One thing that leadline uses: whether it works here, why, what it is for, and what to do."""

    group: str
    name: str
    state: State
    why: str
    used_for: str
    remedy: str = ""


def machine_checks(places: dict[str, str]) -> list[Capability]:
    """The host, its kernel and the libraries; `places` (words -> directory) are tried with O_DIRECT."""
    checks = [_host(), _memory(), _limits(), io_uring(), fuse(), _pressure()]
    checks += [place(words, path) for words, path in places.items()]
    checks += [
        library("librados.so.2", "librados2", "state and counters of a cluster"),
        library("libcephfs.so.2", "libcephfs2", "counters of metadata servers"),
    ]
    return checks


def _host() -> Capability:
    where, emulated = host.virtualisation(), host.emulation()
    virtual = where != "none seen"
    remedy = "Other guests may disturb a virtual machine: steal time is recorded." if virtual else ""
    if emulated != "none seen":
        where, virtual = f"emulated ({emulated})", True
        remedy = "Times of an emulated machine are no evidence: every cell will be DOUBTFUL (emulated_host)."
    return Capability(
        "machine",
        "host",
        "limited" if virtual else "works",
        f"{platform.machine()}, {len(host.cpu_list())} CPUs, Linux {platform.release()}"
        + (f", {where}" if virtual else ""),
        "every measurement",
        remedy,
    )


def _memory() -> Capability:
    gib = host.memory_bytes() / (1 << 30)
    return Capability(
        "machine", "memory", "works", f"{gib:.1f} GiB usable", "file sizes that caches cannot hold"
    )


def _limits() -> Capability:
    limits = host.group_limits()
    if limits.cpus is None and limits.memory_bytes is None:
        return Capability(
            "machine", "control groups", "works", f"{limits.version}, no limit set", "throttling"
        )
    parts = []
    if limits.cpus is not None:
        parts.append(f"{limits.cpus:g} CPUs")
    if limits.memory_bytes is not None:
        parts.append(f"{limits.memory_bytes / (1 << 30):.1f} GiB")
    return Capability(
        "machine",
        "control groups",
        "limited",
        f"{limits.version}, limited to {' and '.join(parts)}",
        "throttling",
        "Trials that are throttled are marked; raise the limit to measure the storage itself.",
    )


def io_uring() -> Capability:
    """Whether this process may create an io_uring; one is created and closed."""
    library_c = ctypes.CDLL(None, use_errno=True)
    parameters = ctypes.create_string_buffer(_IO_URING_PARAMS_BYTES)
    descriptor = library_c.syscall(ctypes.c_long(_SYS_IO_URING_SETUP), ctypes.c_uint(2), parameters)
    name, used_for = "io_uring", "the default engine on block file systems"
    if descriptor >= 0:
        os.close(descriptor)
        return Capability("kernel", name, "works", "a ring could be made", used_for)
    code = ctypes.get_errno()
    reasons = {
        errno.ENOSYS: ("this kernel has none", "Linux 5.1 or later has it; psync is used instead."),
        errno.EPERM: (
            "forbidden by a policy (seccomp, or kernel.io_uring_disabled)",
            "Allow it (`sysctl kernel.io_uring_disabled=0`, the container's seccomp profile), or use psync.",
        ),
    }
    why, remedy = reasons.get(code, (os.strerror(code), "psync is used instead."))
    return Capability("kernel", name, "missing", why, used_for, remedy)


def fuse(device: Path = Path("/dev/fuse")) -> Capability:
    """Whether a FUSE file system can be mounted."""
    used_for = "ceph-fuse mounts"
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        why = f"{device}: {os.strerror(error.errno or 0)}"
        remedy = "Load it (`modprobe fuse`); in a container, pass --device /dev/fuse."
        return Capability("kernel", "FUSE", "missing", why, used_for, remedy)
    return Capability("kernel", "FUSE", "works", f"{device} opens", used_for)


def _pressure() -> Capability:
    if Path("/proc/pressure/io").exists():
        return Capability(
            "kernel", "pressure stall", "works", "/proc/pressure", "seeing what the host waits for"
        )
    return Capability(
        "kernel",
        "pressure stall",
        "missing",
        "this kernel has no /proc/pressure",
        "seeing what the host waits for",
        "Boot with psi=1 to have it; everything else works without.",
    )


def place(words: str, path: str) -> Capability:
    """Whether a directory can be a target, and whether it takes direct I/O."""
    name, used_for = f"direct I/O in {words}", "reads and writes past the page cache"
    try:
        facts = inspect(path, deadline_s=5.0)
    except TargetError as error:
        return Capability("storage", name, "missing", error.message, used_for, error.remedy)
    free = "" if facts.free_bytes is None else f", {facts.free_bytes / (1 << 30):.1f} GiB free"
    if facts.direct_io:
        why = f"{printable(path)}: {facts.words}{free}, blocks of {facts.direct_alignment_bytes} bytes"
        return Capability("storage", name, "works", why, used_for)
    why = f"{printable(path)}: {facts.words}{free}, refuses O_DIRECT"
    return Capability("storage", name, "limited", why, used_for, "The plan uses buffered I/O there.")


def os_release() -> Mapping[str, str]:
    """What the system calls itself (os-release(5)); nothing where it does not."""
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


# What EL calls otherwise than Debian; the second of these brings the library with its programs.
_OF_EL = {"libxrdcl3": "xrootd-client-libs", "libnfs13": "libnfs-utils"}


def installation_of(packages: Sequence[str], release: Callable[[], Mapping[str, str]] = os_release) -> str:
    """The command that installs these packages of Debian, or EL's on a system of that family.

    By what the system calls itself: a directory of PATH may lie on what hangs.
    """
    found = release()
    if {found.get("ID"), *found.get("ID_LIKE", "").split()} & {"rhel", "fedora", "centos"}:
        return f"dnf install {' '.join(_OF_EL.get(package, package) for package in packages)}"
    return f"apt-get install --no-install-recommends {' '.join(packages)}"


def library(
    name: str, package: str, used_for: str, load: Callable[[str], object] = ctypes.CDLL
) -> Capability:
    """Whether a shared library can be opened."""
    try:
        load(name)
    except OSError:
        remedy = installation_of([package])
        return Capability("Ceph", package, "missing", f"{name} cannot be opened", used_for, remedy)
    return Capability("Ceph", package, "works", f"{name} opens", used_for)
