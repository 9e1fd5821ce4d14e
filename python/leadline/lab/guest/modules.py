"""Which kernel modules a guest loads, and in which order: read from the modules themselves.

No depmod, no modprobe: a module says in its `.modinfo` section what it needs (modinfo(8)), and neither
program nor their index need be installed.
"""

from __future__ import annotations

import lzma
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline.errors import LabError

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


def choose(tree: Tree, clients: Sequence[str], read: Callable[[Path], bytes] = content) -> Chosen:
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
