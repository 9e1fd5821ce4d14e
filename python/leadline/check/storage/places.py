"""What is to be measured: a directory by an unnamed file in it, or a block device by its path."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from leadline.check.reading.texts import text_of
from leadline.check.storage.empty import why_not_empty
from leadline.errors import TargetError

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
