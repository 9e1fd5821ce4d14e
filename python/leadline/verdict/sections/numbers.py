"""How a ratio and a value are printed with their confidence intervals (CI): alike wherever they stand.

`5.1x slower (95 % CI 4.2 to 6.0, 5 blocks)`, `equivalent`, `inconclusive`, or of a value `550 IOPS (95 % CI
510 to 590 IOPS, 5 blocks)`. A factor is always 1 or more: the word behind it gives the direction.
"""

from __future__ import annotations

import math

from leadline.units import format_count, format_quantity, format_ratio_interval, format_times, unbounded
from leadline.verdict.model import Comparison, Quantity, outcome_words


def factor_of(found: Comparison) -> float | None:
    """How many times faster or slower; None where it is neither, or has no finite ratio."""
    if found.verdict not in ("faster", "slower"):
        return None
    return times_apart(found.ratio)


def times_apart(ratio: float | None) -> float | None:
    """How many times two values are apart, in either direction; None where there is no finite ratio."""
    if ratio is None or not math.isfinite(ratio) or ratio <= 0:
        return None
    return max(ratio, 1 / ratio)


def outcome(found: Comparison) -> str:
    """`5.1x slower`, `equivalent`, `inconclusive`."""
    factor = factor_of(found)
    words = outcome_words(found.verdict)
    return words if factor is None else f"{format_times(factor)} {words}"


def bounds(found: Comparison) -> str:
    """The CI without its name: `4.2 to 6.0`, `at least 8.1`; empty where there is none.

    Of what is faster or slower it is of that factor, of the rest of the ratio itself.
    """
    if found.low is None or found.high is None:
        return ""
    low, high = found.low, found.high
    if factor_of(found) is not None and (found.ratio or 1.0) < 1:
        low, high = 1 / max(high, 1e-300), 1 / max(low, 1e-300)
    return format_ratio_interval(low, high)


def interval(found: Comparison) -> str:
    """`95 % CI 4.2 to 6.0, 5 blocks`, or `one block: no CI`."""
    return ci(bounds(found), found.blocks, found.confidence)


def ci(ends: str, blocks: int, confidence: float = 0.95) -> str:
    """A CI of printed ends with its blocks; what to say where it has none."""
    number = format_count(blocks, "block")
    if not ends:
        return f"{number}: no CI"
    if ends == "unbounded":
        return f"{number}: too noisy for a CI"
    return f"{confidence_words(confidence)} CI {ends}, {number}"


def compared(found: Comparison) -> str:
    """`5.1x slower (95 % CI 4.2 to 6.0, 5 blocks)`."""
    return f"{outcome(found)} ({interval(found)})"


def value(item: Quantity) -> str:
    """`550 IOPS (95 % CI 510 to 590 IOPS, 5 blocks)`; why there is none, where nothing was measured."""
    if item.value is None:
        return item.reason or "not measured"
    ends = ""
    if item.low is not None and item.high is not None:
        wide = item.low > 0 and unbounded(item.low, item.high)
        low, high = (format_quantity(end, item.unit) for end in (item.low, item.high))
        ends = "unbounded" if wide else f"{_without_unit(low, high)} to {high}"
    return f"{format_quantity(item.value, item.unit)} ({ci(ends, item.blocks)})"


def _without_unit(low: str, high: str) -> str:
    """The lower end without the unit, where the upper end has the same."""
    number, _, unit = low.partition(" ")
    return number if high.partition(" ")[2] == unit else low


def confidence_words(confidence: float) -> str:
    """A confidence in percent, with as many digits as tell it from certainty: `95 %`, `99.64 %`."""
    return f"{100 * confidence:.4g} %"
