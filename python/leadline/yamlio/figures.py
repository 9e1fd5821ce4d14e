"""Figures as documents print them: a number with its unit, and how exactly it can have been meant.

A published figure was rounded or cut off, nobody says which: so it stands for everything within one unit
of its last digit. `~` (about) counts from the last digit that is not 0; `>` and `<` are bounds.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from leadline.errors import SpecError

# unit -> (dimension, factor to the base unit). Base units: s, B, B/s, 1/s, 1, and clock (s of the day).
UNITS: dict[str, tuple[str, float]] = {
    **{name: ("s", factor) for name, factor in (("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3))},
    **{name: ("s", factor) for name, factor in (("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", 86400.0))},
    **{f"{p}B": ("B", 1000.0**n) for n, p in enumerate(("", "k", "M", "G", "T", "P"))},
    **{f"{p}iB": ("B", 1024.0**n) for n, p in enumerate(("K", "M", "G", "T", "P"), start=1)},
    **{f"{p}B/s": ("B/s", 1000.0**n) for n, p in enumerate(("", "k", "M", "G", "T"))},
    **{f"{p}iB/s": ("B/s", 1024.0**n) for n, p in enumerate(("K", "M", "G", "T"), start=1)},
    **{f"{p}b/s": ("B/s", 1000.0**n / 8) for n, p in enumerate(("", "k", "M", "G", "T"))},
    **{f"{p}bps": ("B/s", 1000.0**n / 8) for n, p in enumerate(("", "k", "M", "G", "T"))},
    **{name: ("1/s", 1.0) for name in ("1/s", "IOPS", "pps", "fps", "ops/s")},
    "kIOPS": ("1/s", 1000.0),
    **{name: ("1", 1.0) for name in ("1", "x", "times")},
    "%": ("1", 0.01),
    "clock": ("clock", 1.0),
}
DAY_S = 86_400.0

_EXAMPLES = "write a number, or a text such as ~40, >500, 2..3, 1h49m, 4:06:39 or 11:51:23 AM"
_NUMBER = re.compile(r"[+-]?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?")
_SPELLED = re.compile(r"(?:(\d+)\s*h)?\s*(?:(\d+)\s*m(?:in)?)?\s*(?:(\d+(?:\.\d+)?)\s*s)?")
_COLONS = re.compile(r"(?:(\d+):)?(\d{1,2}):(\d{2}(?:\.\d+)?)")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?\s*([AaPp][Mm])?")


@dataclass(frozen=True)
class Figure:
    """A published number in the base unit of `dimension`: `low` to `high` is what it can stand for.

    `text` and `unit` are as published. `slip` says what is wrong with a time of day as it stands.
    `digits` is the number of significant digits.
    """

    value: float
    low: float
    high: float
    dimension: str
    text: str
    unit: str
    digits: int
    slip: str | None = None

    @property
    def words(self) -> str:
        """As published, with its unit where the text has none."""
        bare = self.unit in ("clock", "1") or (self.dimension == "s" and re.search(r"[hms:]", self.text))
        return self.text if bare else f"{self.text} {self.unit}"


def parse_figure(raw: object, unit: str, *, exact: bool = False) -> Figure:
    """A figure of `unit`. `exact` is for counts, which are not rounded. Raises SpecError."""
    if unit not in UNITS:
        raise SpecError(f"{unit!a} is no unit", f"use one of: {', '.join(UNITS)}")
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise SpecError(f"{ascii(raw)[:80]} is not a number", _EXAMPLES)
    text = repr(raw) if isinstance(raw, float) else str(raw).strip()
    dimension, factor = UNITS[unit]
    if dimension == "clock":
        return _clock(text)
    mark, bare = (text[0], text[1:].strip()) if text[:1] in ("~", ">", "<") else ("", text)
    if ".." in bare:
        return _range(text, bare, dimension, unit, about=mark == "~")
    value, step, digits = _parts(bare, dimension, factor, about=mark == "~")
    step = 0.0 if exact and not mark else step
    low, high = value - step, value + step
    if mark == ">":
        low, high = value, math.inf
    if mark == "<":
        low, high = -math.inf, value
    return Figure(value, low, high, dimension, text, unit, digits)


def _range(text: str, bare: str, dimension: str, unit: str, *, about: bool) -> Figure:
    """`2..3`: its ends count as rounded, by half a unit of the last digit."""
    ends = [_parts(end.strip(), dimension, UNITS[unit][1], about=about) for end in bare.split("..", 1)]
    (first, first_step, digits), (last, last_step, _) = ends
    if first > last:
        raise SpecError(f"{text!a} runs backwards", _EXAMPLES)
    low, high = first - first_step / 2, last + last_step / 2
    return Figure((first + last) / 2, low, high, dimension, text, unit, digits)


def _parts(text: str, dimension: str, factor: float, *, about: bool) -> tuple[float, float, int]:
    """Value, one unit of the last digit, and the number of significant digits."""
    plain = text.replace(",", "").replace("_", "")
    if _NUMBER.fullmatch(plain):
        mantissa, _, exponent = plain.lower().partition("e")
        scale = 10.0 ** int(exponent or 0)
        decimals = len(mantissa.partition(".")[2])
        digits = mantissa.replace(".", "").lstrip("+-").lstrip("0")
        step = 10.0**-decimals * scale
        if about:
            zeros = len(digits) - len(digits.rstrip("0"))
            step *= 10.0**zeros if digits.rstrip("0") else 1.0
            digits = digits.rstrip("0")
        value = float(plain)
        if not math.isfinite(value):
            raise SpecError(f"{text!a} is not a number", _EXAMPLES)
        return value * factor, step * factor, max(len(digits), 1)
    if dimension == "s":
        return _duration(text)
    raise SpecError(f"{ascii(text)[:80]} is not a number", _EXAMPLES)


def _duration(text: str) -> tuple[float, float, int]:
    colons, spelled = _COLONS.fullmatch(text), _SPELLED.fullmatch(text)
    if colons:
        value = int(colons[1] or 0) * 3600 + int(colons[2]) * 60 + float(colons[3])
        return value, 1.0, len(str(int(value)))
    if spelled and text:
        hours, minutes, seconds = spelled.groups()
        step = 1.0 if seconds else 60.0 if minutes else 3600.0
        value = int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(seconds or 0)
        return value, step, len(str(int(value / step)))
    raise SpecError(f"{ascii(text)[:80]} is not a duration", _EXAMPLES)


def _clock(text: str) -> Figure:
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise SpecError(f"{ascii(text)[:80]} is not a time of day", _EXAMPLES)
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    half = (match[4] or "").upper()
    if hour > 23 or minute > 59 or second > 59:
        raise SpecError(f"{text!a} is not a time of day", _EXAMPLES)
    slip = None
    if half and not 1 <= hour <= 12:
        slip = f"a clock of 12 hours has no {text}: read as {hour:02}:{minute:02} of 24 hours"
    elif half:
        hour = hour % 12 + (12 if half == "PM" else 0)
    value, step = hour * 3600.0 + minute * 60 + second, 1.0 if match[3] else 60.0
    return Figure(value, value - step, value + step, "clock", text, "clock", 6, slip)
