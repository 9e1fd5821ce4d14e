"""What is to be measured: a directory by an unnamed file in it, or a block device, each by a child.

A device may be overwritten only where nothing at all is known to be on it or to use it. Each question that
cannot be asked is a refusal: nobody's data are worth a guess.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from leadline.check.reading.host import text_of
from leadline.errors import TargetError
from leadline.foreign import read_plain
from leadline.interpreter import module_command, module_environment

ANSWER_S = 30.0
_END_S = 2.0
_LINE_MAX = 1 << 20


class NotAnsweredError(Exception):
    """Why there is no figure, in words."""


class DeviceChild:
    """One process for one place. After its first failure to answer it is not asked again."""

    def __init__(self, place: DevicePlace) -> None:
        self.place = place
        self.lost = ""
        self._rest = b""
        asked = json.dumps({"path": str(place.path), "raw": place.raw, "writes": place.writes})
        self._process = subprocess.Popen(
            module_command("leadline.check.storage.child", asked),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=module_environment(),
            # Ctrl-C is for the parent, who ends its children.
            start_new_session=True,
        )
        self._input, self._output = _both(self._process)

    def tell(self, **command: Any) -> None:
        """Does not wait."""
        if not self.lost:
            with suppress(BrokenPipeError):
                self._input.write(json.dumps(command).encode() + b"\n")
                self._input.flush()

    def answer(self, seconds: float = ANSWER_S) -> dict[str, Any]:
        """To the last command, or to the start. Raises NotAnsweredError."""
        end = time.monotonic() + seconds
        while not self.lost:
            line = self._line(end)
            if not line:
                continue
            message = json.loads(line)
            if message.get("event") == "failed":
                raise NotAnsweredError(str(message["message"]))
            if message.get("event") == "ready":
                return {}
            if message.get("event") == "done":
                return dict(message["answer"])
        raise NotAnsweredError(self.lost)

    def _line(self, end: float) -> bytes:
        """The next one, or nothing yet; sets `lost` where none will come."""
        line, found, rest = self._rest.partition(b"\n")
        if found:
            self._rest = rest
            return line
        source = self._output.fileno()
        if not select.select([source], [], [], max(0.0, end - time.monotonic()))[0]:
            self._lose("it did not answer in time, and is not asked again")
            return b""
        data = os.read(source, _LINE_MAX)
        if not data:
            self._lose("its process ended")
        self._rest += data
        return b""

    def _lose(self, why: str) -> None:
        self.lost = why
        self._process.kill()

    def end(self) -> None:
        """Killed where it does not end by itself; one that hangs in the kernel is left to its end."""
        with suppress(BrokenPipeError):
            self._input.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
        self._output.close()


def _both(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Its pipes, which are there as they were asked for."""
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a process without pipes")
    return process.stdin, process.stdout


_PROBE_S = 30.0
_NOTHING_FOUND = 2  # blkid's exit code
_MOUNTS_MAX = 64 << 20


def why_not_empty(device: Path, sys: Path = Path("/sys"), proc: Path = Path("/proc")) -> str | None:
    """What is on `device` or uses it, in words; None where it is a block device that nothing is known of."""
    return next(_reasons(device, sys, proc), None)


def _reasons(device: Path, sys: Path, proc: Path) -> Iterator[str]:
    found = device.stat()
    if not stat.S_ISBLK(found.st_mode):
        yield "it is no block device"
        return
    number = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    place = (sys / "dev/block" / number).resolve()
    if not place.is_dir():
        yield f"the kernel shows nothing of it in {sys}/dev/block/{number}"
        return
    if (place / "ro").read_text().strip() != "0":
        yield "it is read-only"
    if parts := sorted(one.parent.name for one in place.glob("*/partition")):
        yield f"it has partitions: {', '.join(parts)}"
    if holders := sorted(one.name for one in (place / "holders").iterdir()):
        yield f"it is a part of {', '.join(holders)}"
    for line in read_plain(proc / "self/mountinfo", _MOUNTS_MAX).decode(errors="replace").splitlines():
        fields = line.split()
        if len(fields) > 4 and fields[2] == number:
            yield f"it is mounted on {fields[4]}"
    for line in (proc / "swaps").read_text().splitlines()[1:]:
        if _is_device(Path(line.split()[0]), found.st_rdev):
            yield "it is swap space"
    yield from _used(found.st_rdev, proc)
    yield from _signature(device)


def _is_device(path: Path, number: int) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISBLK(found.st_mode) and found.st_rdev == number


def _used(number: int, proc: Path) -> Iterator[str]:
    """Processes that have it open, as a virtual machine has its disk; who ends meanwhile does not count."""
    for process in sorted(proc.glob("[0-9]*")):
        try:
            opened = list((process / "fd").iterdir())
            name = (process / "comm").read_text().strip()
        except PermissionError:
            yield f"who has it open cannot be seen: process {process.name} may not be looked at; be root"
            return
        except OSError:
            continue
        if any(_is_device(one, number) for one in opened):
            yield f"process {process.name} ({name}) has it open"


def _signature(device: Path) -> Iterator[str]:
    """What libblkid sees on it: file systems, partition tables, LVM, RAID, LUKS, Ceph's labels and more."""
    if shutil.which("blkid") is None:
        yield "there is no blkid to look for file systems and labels with; install util-linux"
        return
    asked = ["blkid", "--probe", "--output", "export", "--", str(device)]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=_PROBE_S)
    except subprocess.TimeoutExpired:
        yield f"it did not answer blkid for {_PROBE_S:.0f} s"
        return
    values = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    if done.returncode == 0 and (kind := values.get("TYPE") or values.get("PTTYPE")):
        yield f"it has {kind} on it"
    elif done.returncode != _NOTHING_FOUND:
        yield f"blkid cannot tell what is on it (exit code {done.returncode}) {done.stderr.strip()}".rstrip()


_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# Bytes a second of one lane, by its transfers a second in 10^9: 8b/10b until 5, 128b/130b from 8 on.
_VIRTUAL = ("vd", "xvd")  # whose kernel knows nothing of what turns
_LANE = {2.5: 250e6, 5.0: 500e6, 8.0: 984.6e6, 16.0: 1969e6, 32.0: 3938e6, 64.0: 7877e6}


@dataclass(frozen=True)
class DevicePlace:
    """A directory or a block device, `device` the kernel's name of what is below it, or "".

    `upstream`: what is between it and the processor, the nearest first: devices it is made of, PCI functions.
    """

    path: Path
    raw: bool
    writes: bool
    device: str
    media: str  # ssd, hdd, or "" where nobody knows
    upstream: tuple[str, ...]

    @property
    def title(self) -> str:
        """As it is printed; after the @ is what it is compared with."""
        return f"{self.path}@{self.media}" if self.media else str(self.path)


def places_of(
    paths: Iterable[Path], destroyed: Iterable[Path], sys: Path = Path("/sys")
) -> list[DevicePlace]:
    """What was asked for, looked at. Raises TargetError for what cannot or must not be measured."""
    found: list[DevicePlace] = []
    for path, destroy in [*((path, False) for path in paths), *((path, True) for path in destroyed)]:
        place = _place(path, sys, destroy=destroy)
        if any(place.path.samefile(other.path) for other in found):
            raise TargetError(f"{path} is given twice", "give each device or directory once")
        found.append(place)
    return found


def _place(path: Path, sys: Path, *, destroy: bool) -> DevicePlace:
    try:
        facts = path.stat()
    except OSError as error:
        raise TargetError(f"{path}: {error.strerror}", "name a directory or a block device") from None
    raw = stat.S_ISBLK(facts.st_mode)
    if not raw and not stat.S_ISDIR(facts.st_mode):
        raise TargetError(f"{path} is neither a directory nor a block device", "name one of these")
    if destroy:
        why = why_not_empty(path)
        if why is not None:
            raise TargetError(
                f"--destroy {path}: {why}",
                "nothing was written; use a device that carries nothing, or --on to only read it",
            )
    number = facts.st_rdev if raw else facts.st_dev
    upstream = _upstream((sys / f"dev/block/{os.major(number)}:{os.minor(number)}").resolve(), sys)
    device = upstream[0] if upstream else ""
    turning = text_of(sys / "class/block" / device / "queue/rotational") if device else None
    media = {"0": "ssd", "1": "hdd"}.get(turning or "", "") if not device.startswith(_VIRTUAL) else ""
    return DevicePlace(path, raw, destroy or not raw, device, media, upstream)


def _upstream(place: Path, sys: Path) -> tuple[str, ...]:
    """A partition is its disk, a loop device what holds its file; others their parts, then PCI functions."""
    if not (place / "queue").exists() and not (place / "partition").exists():
        return ()
    if (place / "partition").exists():
        place = place.parent
    found = [place.name]
    backing = text_of(place / "loop/backing_file")
    parts = [one.resolve() for one in (place / "slaves").glob("*")]
    if backing is not None:
        try:
            number = os.stat(backing).st_dev  # noqa: PTH116 - the kernel's text, and not a path to work with
        except OSError:
            return tuple(found)
        parts.append((sys / f"dev/block/{os.major(number)}:{os.minor(number)}").resolve())
    for part in parts:
        found += _upstream(part, sys)
    found += reversed(_PCI.findall(str((place / "device").resolve())))
    return tuple(dict.fromkeys(found))


def shared_by(places: Collection[DevicePlace]) -> str:
    """The nearest thing that all of them go through; "" where none is known."""
    chains = [place.upstream for place in places]
    first, *others = chains
    return next((name for name in first if all(name in chain for chain in others)), "")


def link_bytes_s(function: str, sys: Path = Path("/sys")) -> float | None:
    """What the PCI Express link of a function carries at most; None where it has none."""
    place = sys / "bus/pci/devices" / function
    speed, width = text_of(place / "current_link_speed"), text_of(place / "current_link_width")
    if not speed or not width or not width.isdigit():
        return None
    lane = _LANE.get(float(speed.split()[0])) if re.match(r"[0-9.]+ ", speed) else None
    return lane * int(width) if lane and int(width) else None
