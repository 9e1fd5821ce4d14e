"""How every report prints numbers and foreign text: three significant digits, the unit in the heading.

`units` prints one value in its own unit; here a whole column shares one, so that its numbers can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from leadline import units
from leadline.units import NO_VALUE, printable
from leadline.units import format_count as plural
from leadline.verdict.model import Quantity

__all__ = ["NO_VALUE", "plural", "printable"]  # besides what is defined here


@dataclass(frozen=True)
class Scale:
    """A unit to print in: the base value divided by `divisor` is in units of `label`.

    Of `whole` ones no digit before the point is rounded: times stand beside times of day.
    """

    label: str
    divisor: float
    whole: bool = False


# Smallest first, per base unit of `Quantity`.
_SCALES: dict[str, tuple[Scale, ...]] = {
    "B/s": (Scale("KiB/s", 2.0**10), Scale("MiB/s", 2.0**20), Scale("GiB/s", 2.0**30)),
    "B": (
        Scale("B", 1),
        Scale("KiB", 2.0**10),
        Scale("MiB", 2.0**20),
        Scale("GiB", 2.0**30),
        Scale("TiB", 2.0**40),
    ),
    "ns": (Scale("ns", 1), Scale("us", 1e3), Scale("ms", 1e6), Scale("s", 1e9)),
    "s": (Scale("ms", 1e-3), Scale("s", 1, whole=True), Scale("min", 60, whole=True)),
    "b/s": (Scale("kb/s", 1e3), Scale("Mb/s", 1e6), Scale("Gb/s", 1e9)),
    "1/s": (Scale("1/s", 1),),
    "1": (Scale("%", 0.01),),
}
# A study that reproduces a published table keeps the table's SI units.
_SCALES_SI: dict[str, tuple[Scale, ...]] = {
    "B/s": (Scale("kB/s", 1e3), Scale("MB/s", 1e6), Scale("GB/s", 1e9)),
    "B": (Scale("B", 1), Scale("kB", 1e3), Scale("MB", 1e6), Scale("GB", 1e9), Scale("TB", 1e12)),
}


def scale_for(unit: str, values: Iterable[float | None], *, si: bool = False) -> Scale:
    """The one unit that suits a whole column: chosen so that its middle value prints as 1 or more."""
    ladder = (_SCALES_SI.get(unit) if si else None) or _SCALES.get(unit, (Scale(unit, 1),))
    sizes = sorted(abs(value) for value in values if value is not None and math.isfinite(value) and value)
    if not sizes:
        return ladder[min(1, len(ladder) - 1)]
    middle = sizes[len(sizes) // 2]
    fitting = [scale for scale in ladder if scale.divisor <= middle]
    return fitting[-1] if fitting else ladder[0]


PLAIN = Scale("", 1)
_WHOLE_FROM = 999.5  # below it three digits are whole ones at least


def number(value: float | None, scale: Scale = PLAIN) -> str:
    """Three significant digits with thousands separated; an en dash for what is not a number."""
    if value is None or not math.isfinite(value):
        return NO_VALUE
    shown = value / scale.divisor
    return f"{shown:,.0f}" if scale.whole and abs(shown) >= _WHOLE_FROM else units.format_number(shown)


def with_unit(value: float | None, unit: str, *, si: bool = False) -> str:
    """`value` in the best unit, with the unit behind it."""
    if value is None or not math.isfinite(value):
        return NO_VALUE
    scale = scale_for(unit, [value], si=si)
    return f"{number(value, scale)} {scale.label}".rstrip()


ONE_SAMPLE, TOO_NOISY = "one sample", "too noisy"


def spread(item: Quantity) -> str:
    """How far the 95 % confidence interval reaches from the value: `± 2.1 %`; empty where none is asked for.

    The interval of few blocks is lopsided: the longer side counts. One block has no interval, and from 100 %
    on an interval says nothing: both have words.
    """
    if item.value is not None and item.blocks == 1:
        return ONE_SAMPLE
    return _relative(item.value, item.low, item.high)


def ratio_spread(value: float | None, low: float | None, high: float | None) -> str:
    """How far a ratio's interval reaches; the exact bounds stand in the table of comparisons."""
    return _relative(value, low, high)


def _relative(value: float | None, low: float | None, high: float | None) -> str:
    if low is None or high is None or not value:
        return ""
    half = max(high - value, value - low) / abs(value)
    if not half < 0.995:
        return TOO_NOISY
    if half < 0.0005:
        return "± < 0.1 %"
    return f"± {100 * half:.0f} %" if half >= 0.0995 else f"± {100 * half:.1f} %"


def interval(item: Quantity, scale: Scale) -> str:
    """The 95 % interval in the column's unit: `1,190 to 1,260`; empty where there is none, `unbounded` where
    its ends say nothing."""
    if item.low is None or item.high is None:
        return ""
    if item.low > 0 and units.unbounded(item.low, item.high):
        return "unbounded"
    return f"{number(item.low, scale)} to {number(item.high, scale)}"


def ratio(value: float | None) -> str:
    """How many times: `5.1x`."""
    return NO_VALUE if value is None else units.format_times(value)


def ratio_interval(low: float | None, high: float | None) -> str:
    """The interval of a ratio: `1.12 to 1.31`, `at least 8.1`."""
    return "" if low is None or high is None else units.format_ratio_interval(low, high)


def moment(stamp: str) -> str:
    """An ISO 8601 time for a person: `2026-11-20 22:15:00 UTC`."""
    text = stamp.replace("T", " ", 1)
    return f"{text.removesuffix('Z').removesuffix('+00:00')} UTC" if text.endswith(("Z", "+00:00")) else text


def sentence(text: str) -> str:
    """`text` with a capital first letter."""
    return text[:1].upper() + text[1:]
