"""Values in fio's notation, as its own parser reads them: switches, numbers, sizes, times, percentages.

Where fio takes less than what is written (`1.5m` as 1, `1min` as a microsecond), it is an error here.
"""

from __future__ import annotations

import re

from leadline import units
from leadline.study.fio.sections import FioOption
from leadline.yamlio.yaml_source import shorten

_SIZE = re.compile(r"(0x[0-9a-f]{1,16}|[0-9]{1,19})([kmgtp]?)(ib|i|b)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_TIME = re.compile(r"([0-9]{1,15})(us|usec|ms|msec|s|m|h|d)?", re.IGNORECASE)
_TIME_UNITS_NS = {
    "us": 1_000,
    "usec": 1_000,
    "ms": 1_000_000,
    "msec": 1_000_000,
    "s": units.NS_PER_S,
    "m": 60 * units.NS_PER_S,
    "h": 3_600 * units.NS_PER_S,
    "d": 86_400 * units.NS_PER_S,
}
_PREFIX_POWERS = (1000, 1024)  # what kb_base may be


def switch(option: FioOption) -> bool:
    """`name`, `name=1` and `name=0`."""
    if option.value in ("", "1"):
        return True
    if option.value == "0":
        return False
    raise option.fail(f"{shorten(option.value)!r} is neither 0 nor 1", "write 1 or 0")


def whole(option: FioOption, least: int = 0, most: int = 2**31 - 1) -> int:
    """A plain number; fio reads the prefixes of sizes here, too."""
    found = _bytes(option.value, option.prefix_power)
    if found is None or not least <= found <= most:
        words = f"{shorten(option.value)!r} is no whole number from {least} to {most}"
        raise option.fail(words, f"write for example {option.name}={max(least, 1)}")
    return found


def percent(option: FioOption) -> int:
    """A share in percent, with or without the sign."""
    plain = option.value.removesuffix("%").strip()
    if not re.fullmatch(r"[0-9]{1,3}", plain) or int(plain) > 100:
        raise option.fail(f"{shorten(option.value)!r} is no percentage", "write a number from 0 to 100")
    return int(plain)


def size(option: FioOption, text: str | None = None) -> int:
    """Bytes: `k`, `kb` and `ki` are 1024 and `kib` is 1000, or with kb_base=1000 the reverse."""
    written = option.value if text is None else text
    if written.endswith("%"):
        raise option.fail("is a share of a file that exists", "write bytes, for example size=1g")
    found = _bytes(written, option.prefix_power)
    if found is None:
        words = f"{shorten(written)!r} is not a size that fio reads whole"
        raise option.fail(words, "write bytes, for example 4k, 1g or 1536k; no fraction and no blank")
    if found > units.SIZE_MAX_BYTES:
        raise option.fail(f"{shorten(written)!r} is larger than a file can be", "write for example 1g")
    return found


def power(option: FioOption) -> int:
    """kb_base."""
    if option.value not in map(str, _PREFIX_POWERS):
        raise option.fail(f"{shorten(option.value)!r} is neither 1000 nor 1024", "write kb_base=1024")
    return int(option.value)


def _bytes(text: str, prefix_power: int) -> int | None:
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    number = int(match[1], 16 if match[1][:2].lower() == "0x" else 10)
    binary = match[2] and (match[3] or "").lower() == "ib"
    base = sum(_PREFIX_POWERS) - prefix_power if binary else prefix_power
    return number * int(base ** _POWERS[match[2].lower()])


def time_ns(option: FioOption, unit: str) -> int:
    """Nanoseconds; a plain number is in `unit`, the option's own."""
    match = _TIME.fullmatch(option.value)
    if match is None:
        words = f"{shorten(option.value)!r} is not a time that fio reads whole"
        raise option.fail(words, "write a whole number with us, ms, s, m, h or d: 30s, 5m, 1500ms")
    found = int(match[1]) * _TIME_UNITS_NS[(match[2] or unit).lower()]
    if found > units.DURATION_MAX_NS:
        raise option.fail(f"{shorten(option.value)!r} is longer than a year", "write for example 30s")
    return found


def split(option: FioOption, text: str) -> str:
    """One direction of bssplit in a study's notation: bytes, and the shares as they were written."""
    parts = (part.partition("/") for part in text.split(":"))
    return ":".join(f"{size(option, name.strip())}{slash}{share}" for name, slash, share in parts)
