"""Memory modules by the firmware's own table (SMBIOS type 17), and channels in use by the kernel's EDAC."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path

from leadline.check.reading.texts import text_of
from leadline.knowledge.tables import Value

_MIB = 1 << 20
_UNKNOWN_WORD, _EXTENDED = 0xFFFF, 0x7FFF
_CHANNEL = re.compile(r"channel (\d+)")
NAMES = ("memory_modules", "memory_slots", "memory_modules_alike", "memory_speed_share", "memory_channels")


@dataclass(frozen=True)
class MemoryModule:
    """A slot: bytes in it (0: empty), MT/s that it could do and does; 0 where the firmware does not say."""

    size_bytes: int
    rated: int
    configured: int


def memory_facts(sys: Path = Path("/sys")) -> tuple[dict[str, Value], dict[str, str]]:
    """Facts, and reasons of those without a value."""
    values: dict[str, Value] = dict.fromkeys(NAMES)
    slots, why = _slots(sys / "firmware/dmi/entries")
    reasons = dict.fromkeys(NAMES, why)
    modules = [one for one in slots if one.size_bytes]
    if modules:
        values["memory_modules"], values["memory_slots"] = len(modules), len(slots)
        values["memory_modules_alike"] = len({(one.size_bytes, one.rated) for one in modules}) == 1
        shares = [one.configured / one.rated for one in modules if one.configured and one.rated]
        values["memory_speed_share"] = min(shares) if shares else None
        reasons["memory_speed_share"] = "the firmware does not say at which speed it runs its memory"
    values["memory_channels"] = _channels(sys / "devices/system/edac/mc")
    reasons["memory_channels"] = "the kernel has no EDAC driver for this memory controller"
    return values, reasons


def _slots(entries: Path) -> tuple[list[MemoryModule], str]:
    if not entries.is_dir():
        return [], "the firmware has no SMBIOS table here"
    found = []
    for place in sorted(entries.glob("17-*")):
        try:
            module = module_in((place / "raw").read_bytes())
        except PermissionError:
            return [], "only root may read the SMBIOS table"
        except OSError as error:
            return [], f"the SMBIOS table cannot be read: {error.strerror}"
        if module is not None:
            found.append(module)
    return found, "" if any(one.size_bytes for one in found) else "the SMBIOS table lists no memory module"


def module_in(raw: bytes) -> MemoryModule | None:
    """A structure of type 17 (System Management BIOS, 7.18); None where it is too short to be one."""
    if len(raw) < 0x17 or raw[0] != 17:
        return None
    length = raw[1]
    (size,) = struct.unpack_from("<H", raw, 0x0C)
    if size == _UNKNOWN_WORD:
        size_bytes = 0
    elif size == _EXTENDED and length >= 0x20:
        size_bytes = (struct.unpack_from("<I", raw, 0x1C)[0] & 0x7FFFFFFF) * _MIB
    else:
        size_bytes = (size & 0x7FFF) * (1024 if size & 0x8000 else _MIB)
    speeds = [_word(raw, place) if length >= place + 2 else 0 for place in (0x15, 0x20)]
    return MemoryModule(size_bytes, *speeds)


def _word(raw: bytes, place: int) -> int:
    value: int = struct.unpack_from("<H", raw, place)[0]
    return 0 if value == _UNKNOWN_WORD else value


def _channels(controllers: Path) -> int | None:
    """Of all controllers together, those with a module; None where the kernel counts none."""
    found = set()
    for place in controllers.glob("mc*/*/dimm_location"):
        channel = _CHANNEL.search(text_of(place) or "")
        if channel:
            found.add((place.parent.parent.name, channel[1]))
    return len(found) or None
