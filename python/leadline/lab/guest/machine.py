"""The virtual machine: QEMU's command line, its console, and its lines to this program, which serves them."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from leadline.errors import LabError
from leadline.foreign import parse_json
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


OUTPUT_BYTES_MAX = 64 << 20  # of each stream of the command: a runaway program must not fill a disk
_READ_BYTES = 1 << 16
_TURN_S = 0.1
_LAST_WORDS_S = 2.0
_MESSAGE_BYTES_MAX = 1 << 20


@dataclass
class GuestState:
    """What the guest has said of itself. `uptime_s` is by what was reached, on the guest's own clock."""

    uptime_s: dict[str, float] = field(default_factory=dict)
    kernel: str = ""
    mounts: dict[str, str] = field(default_factory=dict)
    exit_code: int | None = None
    why: str = ""
    left: tuple[str, ...] = ()

    def take(self, message: Mapping[str, Any]) -> None:
        """One message of the guest's agent."""
        if "reached" in message:
            self.uptime_s[str(message["reached"])] = float(message["uptime_s"])
        if "mount" in message:
            self.mounts[str(message["mount"])] = str(message["reason"])
        if "exit" in message:
            self.exit_code, self.why = int(message["exit"]), str(message["why"])
            self.left = tuple(map(str, message["left"]))
        self.kernel = str(message.get("kernel", self.kernel))


class GuestSession:
    """All lines of one guest, served in one thread.

    `output` is given the command's words, by stream. `stop` is the signal that asks to end, or 0.
    """

    def __init__(
        self, lines: Lines, console: Console, output: Callable[[str, bytes], None], stop: Callable[[], int]
    ) -> None:
        self.told, self.ended = GuestState(), False
        self._lines, self._console, self._output, self._stop = lines, console, output, stop
        self._left = {STDOUT: OUTPUT_BYTES_MAX, STDERR: OUTPUT_BYTES_MAX}
        self._rest = b""
        self._selector = selectors.DefaultSelector()
        for name, line in lines.ours.items():
            line.setblocking(False)
            self._selector.register(line, selectors.EVENT_READ, name)

    def close(self) -> None:
        """Stop serving."""
        self._selector.close()

    def tell(self, message: Mapping[str, Any]) -> None:
        """A message to the guest's agent; one that is gone hears nothing."""
        line = self._lines.ours[CONTROL]
        line.setblocking(True)
        try:
            line.settimeout(10.0)
            line.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise self.failure(f"does not take messages: {error.strerror or error}") from error
        finally:
            line.setblocking(False)

    def wait(self, reached: Callable[[], bool], deadline: Deadline, *, stoppable: bool = True) -> int:
        """Serves until `reached`; returns 0, or the signal that asked to stop before that.

        Raises LabError where the guest is lost, TimeoutError where the deadline is over.
        """
        while not reached():
            if stoppable and (number := self._stop()):
                return number
            if deadline.over:
                raise TimeoutError(f"did not {deadline.what} within {deadline.seconds:g} s")
            self._turn()
            self._require_alive(reached)
        return 0

    def drain(self, deadline: Deadline) -> None:
        """Serves what still comes until the machine has ended or the deadline is over."""
        while not self.ended and not deadline.over:
            self._turn()

    def failure(self, what: str) -> LabError:
        """An error that quotes the console's last words and names its log."""
        quoted = "".join(f"\n    {line}" for line in self._console.last_lines())
        return LabError(f"the guest {what}{quoted}", f"Its console is in {self._console.log}.")

    def _require_alive(self, reached: Callable[[], bool]) -> None:
        if self._console.panicked:
            self.drain(Deadline.of("end", _LAST_WORDS_S))
            raise self.failure("has ended: its kernel panicked")
        if self._console.failure:
            raise self.failure(f"could not start: {self._console.failure}")
        if self.ended and not reached():
            raise self.failure("has ended before it was done")

    def _turn(self) -> None:
        for key, _ in self._selector.select(_TURN_S):
            line = key.fileobj
            assert isinstance(line, socket.socket)  # noqa: S101 - for the type checker
            try:
                data = line.recv(_READ_BYTES)
            except OSError:
                data = b""
            if data:
                self._take(key.data, data)
            else:
                self._selector.unregister(line)
                self.ended = not self._selector.get_map()

    def _take(self, name: str, data: bytes) -> None:
        if name == CONSOLE:
            self._console.take(data)
        elif name == CONTROL:
            self._hear(data)
        else:
            self._pass_on(name, data)

    def _hear(self, data: bytes) -> None:
        *messages, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _MESSAGE_BYTES_MAX:
            raise self.failure("speaks without end on its control line")
        for message in messages:
            try:
                self.told.take(parse_json(message))
            except (ValueError, KeyError, TypeError) as error:
                raise self.failure(f"said what is no message: {message[:100]!r}") from error

    def _pass_on(self, name: str, data: bytes) -> None:
        left = self._left[name]
        if left <= 0:
            return
        self._left[name] = left - len(data)
        self._output(name, data[:left])
        if len(data) >= left:
            self._output(
                STDERR, f"\nleadline: more than {OUTPUT_BYTES_MAX >> 20} MiB on {name}: cut\n".encode()
            )
