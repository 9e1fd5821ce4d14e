"""Finds a kernel for the guest: one in /boot with its modules, else Debian's package, unpacked once.

The package is not installed: a cache below the user's holds the kernel and the few modules that matter.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from leadline.errors import LabError
from leadline.lab.cluster import process
from leadline.lab.guest.modules import CLIENTS, Tree, choose, read_tree
from leadline.trusted import why_not_file

META_PACKAGE = "linux-image-amd64"
_DOWNLOAD_DEADLINE_S = 300.0
_UNPACK_DEADLINE_S = 120.0
_FETCHING = ".fetching-"
_NUMBERS = re.compile(r"[0-9]+")


@dataclass(frozen=True)
class Kernel:
    """A kernel image and its modules."""

    version: str
    image: Path
    modules: Path

    def tree(self) -> Tree:
        """Its modules."""
        return read_tree(self.modules)


def cache_home(variables: Mapping[str, str]) -> Path:
    """Where unpacked kernels are kept: below $XDG_CACHE_HOME, else below ~/.cache."""
    cache = variables.get("XDG_CACHE_HOME", "")
    home = Path(variables.get("HOME") or "~").expanduser()
    return (Path(cache) if cache.startswith("/") else home / ".cache") / "leadline" / "guest"


def find(variables: Mapping[str, str], say: Callable[[str], None], root: Path = Path("/")) -> Kernel:
    """A kernel that can be a guest. Raises LabError where none is here and none can be fetched."""
    if platform.machine() != "x86_64":
        raise LabError(
            f"a guest on {platform.machine()} is not supported", "Use a host with an x86-64 processor."
        )
    here = installed(root)
    return here if here is not None else _cached(cache_home(variables), say)


def installed(root: Path) -> Kernel | None:
    """The newest kernel in /boot whose modules are installed and suffice; None where there is none."""
    for image in sorted((root / "boot").glob("vmlinuz-*"), key=_newest, reverse=True):
        version = image.name.removeprefix("vmlinuz-")
        kernel = Kernel(version, image, root / "lib/modules" / version)
        if kernel.modules.is_dir() and _suffices(kernel):
            return kernel
    return None


def _newest(image: Path) -> tuple[list[int], str]:
    return [int(number) for number in _NUMBERS.findall(image.name)], image.name


def _suffices(kernel: Kernel) -> bool:
    try:
        return not choose(kernel.tree(), tuple(CLIENTS)).lacking
    except (LabError, OSError, ValueError):
        return False


def _cached(home: Path, say: Callable[[str], None]) -> Kernel:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if why := why_not_file(str(home)):  # what is kept there is run
            raise LabError(f"a guest's kernel is not kept in {home}: {why}", "Set XDG_CACHE_HOME.")
        with (home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another command may be fetching the same
            found = installed(home)
            return found if found is not None else _fetch(home, say)
    except OSError as error:
        raise LabError(
            f"{error.filename or home} cannot be used for the guest's kernel: {error.strerror or error}",
            "Set XDG_CACHE_HOME to a directory with 600 MiB of free space.",
        ) from error


def _fetch(home: Path, say: Callable[[str], None]) -> Kernel:
    """Downloads and unpacks Debian's kernel beside this host's own, and keeps what a guest needs of it."""
    package = _package()
    say(f"there is no kernel with the clients' modules in /boot: fetching {package} (70 MB) into {home}")
    for left in home.glob(f"{_FETCHING}*"):  # by one that was killed: the lock is ours
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_FETCHING, dir=home) as temporary:
        work = Path(temporary)
        # In this directory and unpacked here: nothing of the host is changed.
        command = ("env", f"--chdir={work}", "apt-get", "-o", "APT::Sandbox::User=root", "download", package)
        try:
            process.run_tool(command, os.environ, deadline_s=_DOWNLOAD_DEADLINE_S)
        except LabError as error:
            raise LabError(
                f"the guest's kernel is not here and could not be fetched: {error.message}",
                f"Run as root: apt-get update, and repeat; or apt-get install {META_PACKAGE}.",
            ) from error
        archive = next(work.glob("*.deb"))
        process.run_tool(
            ("dpkg", "-x", str(archive), str(work / "root")), os.environ, deadline_s=_UNPACK_DEADLINE_S
        )
        kernel = installed(work / "root") or installed(work / "root/usr")
        if kernel is None:
            raise LabError(
                f"{package} has no kernel that can be a guest", f"Run as root: apt-get install {META_PACKAGE}"
            )
        return _keep(kernel, home)


def _package() -> str:
    """The package that the meta package stands for now, as apt's lists on this host have it."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise LabError(
            "there is no kernel with modules in /boot, and this is no Debian to fetch one from",
            "Install a kernel whose modules include ceph, nfsv4, cifs, 9p, virtio and overlay.",
        )
    text = process.run_tool(
        ("apt-cache", "depends", "--important", META_PACKAGE), os.environ, deadline_s=60.0
    )
    names = re.findall(r"Depends: (linux-image-\S+)", text)
    if not names:
        raise LabError(
            f"apt knows no {META_PACKAGE}", f"Run as root: apt-get update, or apt-get install {META_PACKAGE}"
        )
    return str(names[0])


def _keep(kernel: Kernel, home: Path) -> Kernel:
    """Copies image and modules to where `installed` finds them, the image last: half a copy is none."""
    target = Kernel(kernel.version, home / "boot" / kernel.image.name, home / "lib/modules" / kernel.version)
    shutil.rmtree(target.modules, ignore_errors=True)
    target.modules.mkdir(parents=True)
    target.image.parent.mkdir(exist_ok=True)
    for path in (*choose(kernel.tree(), tuple(CLIENTS)).files, kernel.modules / "modules.builtin"):
        shutil.copyfile(path, target.modules / path.name)
    new = target.image.with_name("new")
    shutil.copyfile(kernel.image, new)
    new.rename(target.image)
    return target
