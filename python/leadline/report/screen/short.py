"""Numbers for a table of many columns: two digits, a prefix of their own, marks in the place of words.

Elsewhere a column shares one unit and has three digits; here works with unlike units stand above each other.
"""

from __future__ import annotations

import math

from leadline.report import format as fmt
from leadline.units import format_number
from leadline.verdict.model import UNUSABLE, Comparison, Outcome, Quantity, State, outcome_words
from leadline.verdict.sections.answer import AskedFigure

INVALID = "INVALID"
VERDICT_MARKS: dict[Outcome, str] = {"faster": "+", "slower": "-", "same": "=", "undecided": "?"}
STATE_MARKS: dict[State, str] = {"VALID": "", "DOUBTFUL": "*", "INVALID": "", "NOT_RUN": ""}
_WIDE = "\u00b1?"  # an interval that reaches as far as the figure itself

# Largest first; below the last the number itself.
_PREFIXES: dict[str, tuple[tuple[float, str], ...]] = {
    "B/s": ((2.0**40, "T"), (2.0**30, "G"), (2.0**20, "M"), (2.0**10, "K")),
    "1/s": ((1e9, "G"), (1e6, "M"), (1e3, "k")),
    "ns": ((1e9, "s"), (1e6, "m"), (1e3, "\u00b5"), (1.0, "n")),
    "s": ((60.0, "min"), (1.0, "s"), (1e-3, "ms")),
}
UNITS = {"B/s": "B/s", "1/s": "1/s", "ns": "s", "s": ""}  # what stands behind the prefix, said once a row


def metric_unit(label: str) -> str:
    """The unit of a metric of cells: what is done in a second are operations."""
    return "IOPS" if label == "1/s" else label


def short_number(value: float, unit: str) -> str:
    """`2.3G`, `480k`, `3.5µ`: two digits and a prefix."""
    for divisor, prefix in _PREFIXES.get(unit, ()):
        if abs(value) >= divisor * 0.995:
            return f"{_two(value / divisor)}{prefix}"
    return _two(value)


def _two(value: float) -> str:
    if not math.isfinite(value):
        return fmt.NO_VALUE
    if abs(value) >= 1000:
        return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    return format_number(value, 2)


def short_figure(figure: AskedFigure) -> str:
    """The figure with half its interval in percent; INVALID in its place, and a dash where there is none."""
    item = figure.quantity
    if item.value is None or not math.isfinite(item.value):
        return fmt.NO_VALUE
    if figure.state == "INVALID":
        return INVALID
    return f"{short_number(item.value, item.unit)}{_half(item)}"


def _half(item: Quantity) -> str:
    if item.value is None or item.low is None or item.high is None or not item.value:
        return ""
    half = 100 * max(item.high - item.value, item.value - item.low) / abs(item.value)
    return f"\u00b1{half:.0f}" if half < 99.5 else _WIDE


def short_ratio(figure: AskedFigure) -> str:
    """How many times faster or slower, with the marks of verdict and doubt: `5.1x-*`; else the marks."""
    found = figure.comparison
    shown = found is not None and figure.state not in UNUSABLE and comparable(found)
    return f"{_times(found) if shown and found else ''}{short_marks(figure)}"


def short_marks(figure: AskedFigure) -> str:
    """The marks of verdict and doubt alone."""
    found = figure.comparison
    if figure.state in UNUSABLE or found is None or not comparable(found):
        return STATE_MARKS[figure.state]
    return f"{VERDICT_MARKS[found.verdict]}{STATE_MARKS[doubt_of(figure)]}"


def comparable(comparison: Comparison) -> bool:
    """False where one of its sides cannot be used."""
    return comparison.validity not in ("INVALID", "NOT_RUN") and comparison.ratio is not None


def doubt_of(figure: AskedFigure) -> State:
    """The state of a figure and of what it is held against."""
    found = figure.comparison
    doubtful = found is not None and found.validity == "DOUBTFUL" and figure.state == "VALID"
    return "DOUBTFUL" if doubtful else figure.state


def compared(found: Comparison) -> tuple[str, str]:
    """A comparison in words, and its confidence interval: `5.1x slower` and `4.2 to 6.0`.

    Of what is faster or slower the interval is of that factor, of the rest of the ratio itself.
    """
    factor = _factor(found)
    if factor is None:
        return (outcome_words(found.verdict), fmt.ratio_interval(found.low, found.high))
    low, high = found.low, found.high
    if found.ratio is not None and found.ratio < 1:
        low, high = (None if end is None else 1 / max(end, 1e-300) for end in (found.high, found.low))
    return (f"{format_number(factor)}x {outcome_words(found.verdict)}", fmt.ratio_interval(low, high))


def _factor(found: Comparison) -> float | None:
    """How many times faster or slower; None where it is neither, or has no finite ratio."""
    ratio = found.ratio
    if found.verdict not in ("faster", "slower") or ratio is None or not math.isfinite(ratio) or ratio <= 0:
        return None
    return max(ratio, 1 / ratio)


def _times(found: Comparison) -> str:
    factor = _factor(found)
    if factor is None:
        return ""
    return ">999x" if factor >= 999.5 else f"{_two(factor)}x"
