"""The guest's kernel: one in /boot with its modules, else Debian's package, unpacked once; and what it loads.

The package is not installed: a cache below the user's holds the kernel and the few modules that matter. Which
modules are loaded, and in which order, is read from the modules themselves (`.modinfo`, see modinfo(8)):
neither depmod nor modprobe need be installed.
"""

from __future__ import annotations

import fcntl
import lzma
import os
import platform
import re
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline.errors import LabError
from leadline.lab.cluster import process
from leadline.trusted import why_not_file

# What every guest needs: its bus, its lines to this host and the lab, this host's files, a layer above them.
ALWAYS = ("virtio_pci", "virtio_console", "virtio_net", "9pnet_virtio", "9p", "overlay")
CLIENTS = {"ceph": "ceph", "nfs": "nfsv4", "smb": "cifs"}
# Loaded where the kernel has them as modules: without a modprobe in the guest nothing loads them on
# demand. Checksums and ciphers of the clients' protocols, character sets of SMB, entropy, FUSE.
WISHED = (
    *(
        "crc32c_generic",
        "aes_generic",
        "cbc",
        "hmac",
        "sha256_generic",
        "sha512_generic",
        "gcm",
        "ccm",
        "ctr",
    ),
    *("cmac", "ecb", "md5", "ghash_generic", "nls_utf8", "nls_ascii", "virtio_rng", "fuse", "binfmt_misc"),
)
_SUFFIXES = (".ko", ".ko.xz")
_ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")


@dataclass(frozen=True)
class Chosen:
    """Module files in the order of loading, and why a client's module is not among them."""

    files: tuple[Path, ...]
    lacking: dict[str, str]


@dataclass(frozen=True)
class Tree:
    """The modules of one kernel: files by name, and names of what is built in (always there)."""

    files: dict[str, Path]
    built_in: frozenset[str]


def canonical(name: str) -> str:
    """A module's name as the kernel has it: `virtio-rng.ko` is `virtio_rng`."""
    base = name.rpartition("/")[2]
    for suffix in _SUFFIXES:
        base = base.removesuffix(suffix)
    return base.replace("-", "_")


def read_tree(directory: Path) -> Tree:
    """The modules below a directory such as /lib/modules/VERSION."""
    found = {canonical(path.name): path for path in directory.rglob("*.ko*") if path.name.endswith(_SUFFIXES)}
    try:
        built_in = (directory / "modules.builtin").read_text().split()
    except OSError:
        built_in = []
    return Tree(found, frozenset(map(canonical, built_in)))


def content(path: Path) -> bytes:
    """A module's bytes, decompressed."""
    data = path.read_bytes()
    return lzma.decompress(data) if path.name.endswith(".xz") else data


def needs(data: bytes) -> tuple[str, ...]:
    """The modules that this one needs, from its `.modinfo`. Raises ValueError for what is no module."""
    for item in _section(data, b".modinfo").split(b"\0"):
        name, _, value = item.partition(b"=")
        if name == b"depends":
            return tuple(canonical(part) for part in value.decode().split(",") if part)
    return ()


def _section(data: bytes, wanted: bytes) -> bytes:
    """A section of a 64-bit little-endian ELF file (elf(5)) by name; empty where it has none."""
    if len(data) < _ELF_HEADER.size or data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no 64-bit ELF file")
    header = _ELF_HEADER.unpack_from(data)
    offset, count, names_index = header[6], header[12], header[13]
    try:
        sections = [_SECTION_HEADER.unpack_from(data, offset + index * 64) for index in range(count)]
        names_at = sections[names_index][4]
    except (struct.error, IndexError):
        raise ValueError("a damaged ELF file") from None
    for section in sections:
        start = names_at + section[0]
        if data[start : start + len(wanted) + 1] == wanted + b"\0":
            return data[section[4] : section[4] + section[5]]
    return b""


def choose_modules(tree: Tree, clients: Sequence[str], read: Callable[[Path], bytes] = content) -> Chosen:
    """What a guest with these clients loads. Raises LabError where one of `ALWAYS` lacks."""
    order: dict[str, Path] = {}
    for name in ALWAYS:
        if lack := _add(name, tree, order, read):
            raise LabError(
                f"the guest's kernel has no {lack}",
                "Use Debian's kernel: apt-get install linux-image-amd64, or let leadline fetch it.",
            )
    for name in WISHED:
        _add(name, tree, order, read)
    lacking = {}
    for client in clients:
        if lack := _add(CLIENTS[client], tree, order, read):
            lacking[client] = f"the guest's kernel has no {lack}"
    return Chosen(tuple(order.values()), lacking)


def _add(name: str, tree: Tree, order: dict[str, Path], read: Callable[[Path], bytes]) -> str:
    """Enter a module after all that it needs; returns what lacks, in words, or ""."""
    new: dict[str, Path] = {}
    for module in _walk(name, tree, read, set(order)):
        if module not in tree.files:
            return f"module {module}" if module == name else f"module {module}, which {name} needs"
        new[module] = tree.files[module]
    order.update(new)
    return ""


def _walk(name: str, tree: Tree, read: Callable[[Path], bytes], seen: set[str]) -> Iterator[str]:
    """Names in the order of loading, each once; one that is nowhere is yielded, too."""
    if name in seen or name in tree.built_in:
        return
    seen.add(name)
    if name in tree.files:
        for needed in needs(read(tree.files[name])):
            yield from _walk(needed, tree, read, seen)
    yield name


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


def find_kernel(variables: Mapping[str, str], say: Callable[[str], None], root: Path = Path("/")) -> Kernel:
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
        return not choose_modules(kernel.tree(), tuple(CLIENTS)).lacking
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
    for path in (*choose_modules(kernel.tree(), tuple(CLIENTS)).files, kernel.modules / "modules.builtin"):
        shutil.copyfile(path, target.modules / path.name)
    new = target.image.with_name("new")
    shutil.copyfile(kernel.image, new)
    new.rename(target.image)
    return target
