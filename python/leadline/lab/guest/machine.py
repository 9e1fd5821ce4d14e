"""The virtual machine: QEMU's command line, its lines to this program, and what its console says."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from leadline.lab.guest.initrd import FAILED, ROOT_TAG, SHARE_TAG

PROGRAM, PACKAGE = "qemu-system-x86_64", "qemu-system-x86"
CONSOLE, CONTROL, STDOUT, STDERR = "console", "control", "stdout", "stderr"
LINES = (CONSOLE, CONTROL, STDOUT, STDERR)
_KERNEL_STARTED = b"Linux version"
_PANIC = b"Kernel panic"
_CONSOLE_BYTES_MAX = 1 << 20
_TAIL_BYTES = 8192
_KERNEL_WORDS = "console=ttyS0 earlyprintk=ttyS0 panic=-1 oops=panic loglevel=5"
# Accelerator, processor, words for the kernel. Programs of the host may need every instruction that it has
# (duckdb stops without AVX). What protects a kernel from its programs costs an emulated one much, as do page
# tables of five levels; and its time stamps follow the host's clock, which the kernel cannot know.
_ACCELERATORS = {
    "kvm": ("kvm", "host", ""),
    "tcg": (
        "tcg,thread=multi",
        "max,la57=off,smap=off,smep=off",
        "mitigations=off apparmor=0 audit=0 tsc=reliable clocksource=tsc",
    ),
}


@dataclass(frozen=True)
class Hardware:
    """What the machine is made of. `accelerator` is kvm or tcg (emulation)."""

    accelerator: str
    memory_mib: int
    cpus: int


@dataclass(frozen=True)
class Files:
    """What the machine starts from, and the directory of this host that it may write."""

    kernel: Path
    initrd: Path
    share: Path


def command_line(hardware: Hardware, files: Files, lines: dict[str, int], tap: int | None) -> list[str]:
    """QEMU's words. `lines` and `tap` are descriptors that it inherits."""
    accelerator, processor, kernel_words = _ACCELERATORS[hardware.accelerator]
    words = [
        *(PROGRAM, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-machine", "pc,usb=off,vmport=off", "-accel", accelerator, "-cpu", processor),
        *("-smp", str(hardware.cpus), "-m", f"{hardware.memory_mib}M"),
        *("-kernel", str(files.kernel), "-initrd", str(files.initrd)),
        # Nothing secret: these words are for everybody to see.
        *("-append", f"{_KERNEL_WORDS} {kernel_words}".rstrip()),
        *("-device", "virtio-rng-pci", "-device", "virtio-serial-pci"),
        *_shared("root", Path("/"), ROOT_TAG, "on"),
        *_shared("share", files.share, SHARE_TAG, "off"),
    ]
    for name, descriptor in lines.items():
        words += ["-chardev", f"socket,id={name},fd={descriptor}"]
        words += (
            ["-serial", f"chardev:{name}"]
            if name == CONSOLE
            else ["-device", f"virtserialport,chardev={name},name={name}"]
        )
    if tap is not None:
        words += ["-netdev", f"tap,id=cable,fd={tap}", "-device", "virtio-net-pci,netdev=cable,romfile="]
    return words


def _shared(name: str, path: Path, tag: str, read_only: str) -> tuple[str, ...]:
    quoted = str(path).replace(",", ",,")  # QEMU's way to write a comma in a value
    return (
        "-fsdev",
        f"local,id={name},path={quoted},security_model=passthrough,readonly={read_only},multidevs=remap",
        "-device",
        f"virtio-9p-pci,fsdev={name},mount_tag={tag}",
    )


class Lines:
    """Connected pairs of sockets: `ours` are read here, `theirs` are given to QEMU."""

    def __init__(self) -> None:
        pairs = {name: socket.socketpair() for name in LINES}
        self.ours = {name: pair[0] for name, pair in pairs.items()}
        self._theirs = {name: pair[1] for name, pair in pairs.items()}

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for line in (*self.ours.values(), *self._theirs.values()):
            line.close()

    @contextlib.contextmanager
    def given(self, more: Sequence[int] = ()) -> Iterator[dict[str, int]]:
        """Descriptors that a process started meanwhile inherits; afterwards their ends here are closed."""
        descriptors = {name: line.fileno() for name, line in self._theirs.items()}
        for descriptor in (*descriptors.values(), *more):
            os.set_inheritable(descriptor, True)
        try:
            yield descriptors
        finally:
            for descriptor in more:
                os.set_inheritable(descriptor, False)
            for line in self._theirs.values():
                line.close()


class Console:
    """The kernel's words: kept in a bounded log, and watched for what ends a guest."""

    def __init__(self, log: Path) -> None:
        self.log, self._written, self._tail = log, 0, b""
        self.started = self.panicked = False
        self.failure = ""

    def take(self, data: bytes) -> None:
        """More of it."""
        self._keep(data)
        self._tail = (self._tail + data)[-_TAIL_BYTES:]
        self.started = self.started or _KERNEL_STARTED in self._tail
        self.panicked = self.panicked or _PANIC in self._tail
        _, found, words = self._tail.partition(FAILED.encode())
        if found:
            self.failure = words.split(b"\n")[0].decode(errors="replace").strip()

    def _keep(self, data: bytes) -> None:
        room = _CONSOLE_BYTES_MAX - self._written
        if room <= 0:
            return
        with self.log.open("ab") as stream:
            stream.write(data[:room])
            if len(data) >= room:
                stream.write(b"\n(the console said more: this log holds its first MiB)\n")
        self._written += len(data)

    def last_lines(self, count: int = 4) -> list[str]:
        """Its last words."""
        text = self._tail.decode(errors="replace")
        return [line.strip()[:300] for line in text.splitlines() if line.strip()][-count:]


@dataclass
class Deadline:
    """A moment, what had to happen by it, and how long that was given."""

    what: str
    seconds: float
    until_s: float

    @classmethod
    def of(cls, what: str, seconds: float) -> Deadline:
        """So many seconds from now."""
        return cls(what, seconds, time.monotonic() + seconds)

    @property
    def over(self) -> bool:
        """True once it is past."""
        return time.monotonic() >= self.until_s
