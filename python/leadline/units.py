"""Sizes, times, rates and shares, and text from outside: how they are read and how they are printed.

Read as fio reads them (kb_base=1024: `k`, `kb` and `kib` are all 1024 bytes; a bare time is seconds).
Printed in IEC units, with three significant digits. Knows nothing of studies.
"""

from __future__ import annotations

import math
import re
import shlex
from decimal import Decimal

from leadline.errors import SpecError

NO_VALUE = "\u2013"  # en dash
KIB = 1024
MIB = 1024**2
GIB = 1024**3
NS_PER_S = 1_000_000_000

SIZE_MAX_BYTES = 2**63 - 1  # what a file offset can hold
DURATION_MAX_NS = 366 * 86_400 * NS_PER_S

_SIZE_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}
_IEC_NAMES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_TIME_UNITS_NS = {
    "ns": 1,
    "nsec": 1,
    "us": 1_000,
    "µs": 1_000,
    "usec": 1_000,
    "ms": 1_000_000,
    "msec": 1_000_000,
    "": NS_PER_S,
    "s": NS_PER_S,
    "sec": NS_PER_S,
    "m": 60 * NS_PER_S,
    "min": 60 * NS_PER_S,
    "h": 3_600 * NS_PER_S,
    "hr": 3_600 * NS_PER_S,
    "d": 86_400 * NS_PER_S,
}
_NUMBER = r"\d{1,20}(?:\.\d{1,20})?"
_SIZE = re.compile(rf"({_NUMBER})\s*([kmgtpe]?)(?:i?b)?", re.IGNORECASE)
_TIME_PART = re.compile(rf"({_NUMBER})\s*([a-zµ]*)\s*")
_PLAIN = re.compile(_NUMBER)

_SIZE_EXAMPLES = "write a number of bytes with a unit of 1024, for example 4k, 64KiB, 1M or 1.5G"
_TIME_EXAMPLES = "write a number with a unit, for example 2s, 500ms, 1m30s or 1h (a bare number is seconds)"
_BIT_RATE = re.compile(rf"({_NUMBER})\s*([kmgt]?)(?:bit(?:/s)?|bps)", re.IGNORECASE)
_BIT_RATE_EXAMPLES = "write bits per second with a unit of 1000, for example 100Mbit, 1Gbit or 2.5Gbit/s"
_RATE_EXAMPLES = "write bytes per second with a unit of 1024, for example 100M, 100MiB/s or 1.5G"
_IOPS_EXAMPLES = "write operations per second as a plain number above 0, for example 2000 or 0.5"
_PERCENT_EXAMPLES = "write a percentage from 0 to 100, for example 5% or 12.5%"


def _text(value: object, what: str, examples: str) -> str:
    """The text of a scalar as it was written; a truth value or a collection is no number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise SpecError(f"{_quote(value)} is not {what}", examples)
    return str(value).strip()


def _quote(value: object) -> str:
    shown = repr(value) if isinstance(value, str) else str(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


def parse_size(value: object) -> int:
    """Bytes of `4k`, `64KiB`, `1.5G` or `4096`. Raises SpecError that names the text."""
    text = _text(value, "a size", _SIZE_EXAMPLES)
    match = _SIZE.fullmatch(text)
    if match is None:
        raise SpecError(f"{_quote(value)} is not a size", _SIZE_EXAMPLES)
    exact = Decimal(match[1]) * 1024 ** _SIZE_POWERS[match[2].lower()]
    if exact != exact.to_integral_value():
        raise SpecError(f"{_quote(value)} is not a whole number of bytes", _SIZE_EXAMPLES)
    if exact > SIZE_MAX_BYTES:
        raise SpecError(f"{_quote(value)} is larger than a file can be", _SIZE_EXAMPLES)
    return int(exact)


def parse_duration(value: object) -> int:
    """Nanoseconds of `2s`, `500ms`, `1m30s`, `1h` or `2` (seconds, as fio's runtime). Raises SpecError."""
    text = _text(value, "a time", _TIME_EXAMPLES).lower()
    total, position = Decimal(0), 0
    while position < len(text):
        match = _TIME_PART.match(text, position)
        if match is None or match[2] not in _TIME_UNITS_NS or (match[2] == "" and position > 0):
            raise SpecError(f"{_quote(value)} is not a time", _TIME_EXAMPLES)
        total += Decimal(match[1]) * _TIME_UNITS_NS[match[2]]
        position = match.end()
        if match[2] == "" and position < len(text):
            raise SpecError(f"{_quote(value)} is not a time", _TIME_EXAMPLES)
    if not text:
        raise SpecError("an empty text is not a time", _TIME_EXAMPLES)
    if total > DURATION_MAX_NS:
        raise SpecError(f"{_quote(value)} is longer than a year", _TIME_EXAMPLES)
    if total != total.to_integral_value():
        raise SpecError(f"{_quote(value)} is finer than a nanosecond", _TIME_EXAMPLES)
    return int(total)


def parse_rate(value: object) -> int:
    """Bytes per second of `100M`, `100MiB/s` or `1048576`. Raises SpecError; 0 is no rate."""
    text = _text(value, "a rate", _RATE_EXAMPLES)
    try:
        rate = parse_size(re.sub(r"\s*/\s*s$", "", text, flags=re.IGNORECASE))
    except SpecError as error:
        raise SpecError(f"{_quote(value)} is not a rate", _RATE_EXAMPLES) from error
    if rate == 0:
        raise SpecError("a rate of 0 would never end", _RATE_EXAMPLES)
    return rate


def parse_bit_rate(value: object) -> int:
    """Bits per second of `100Mbit`, `1Gbit` or `2.5Gbit/s`, of 1000 as tc(8) counts. Raises SpecError."""
    text = _text(value, "a rate of a link", _BIT_RATE_EXAMPLES)
    match = _BIT_RATE.fullmatch(text)
    if match is None:
        raise SpecError(f"{_quote(value)} is not a rate of a link", _BIT_RATE_EXAMPLES)
    rate = Decimal(match[1]) * 1000 ** _SIZE_POWERS[match[2].lower()]
    if rate < 1:
        raise SpecError(f"{_quote(value)}: nothing would pass such a link", _BIT_RATE_EXAMPLES)
    return int(rate)


def format_bit_rate(bit_s: float) -> str:
    """`1 Gbit/s`, `96.4 Mbit/s`: bits per second with a unit of 1000 and three significant digits."""
    for factor, name in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bit_s >= factor * 0.9995:
            return f"{format_number(bit_s / factor)} {name}"
    return f"{format_number(bit_s)} bit/s"


def parse_iops(value: object) -> float:
    """Operations per second. No unit is taken: whether `10k` means 10000 or 10240 is not said anywhere."""
    text = _text(value, "a number of operations per second", _IOPS_EXAMPLES)
    if _PLAIN.fullmatch(text) is None or not 0 < float(text) <= 1e9:
        raise SpecError(f"{_quote(value)} is not a number of operations per second", _IOPS_EXAMPLES)
    return float(text)


def parse_percent(value: object) -> float:
    """Percent (0 to 100) of `5%` or `12.5`. Raises SpecError."""
    text = _text(value, "a percentage", _PERCENT_EXAMPLES).removesuffix("%").strip()
    if _PLAIN.fullmatch(text) is None or not 0 <= float(text) <= 100:
        raise SpecError(f"{_quote(value)} is not a percentage", _PERCENT_EXAMPLES)
    return float(text)


def exact_size(size_bytes: int) -> str:
    """The shortest text that `parse_size` reads back to the same bytes: 4096 is `4k`, 1000 is `1000`."""
    for letter, power in sorted(_SIZE_POWERS.items(), key=lambda pair: -pair[1]):
        if size_bytes and size_bytes % 1024**power == 0:
            return f"{size_bytes // 1024**power}{letter}"
    return str(size_bytes)


def exact_duration(duration_ns: int) -> str:
    """A text that `parse_duration` reads back to the same nanoseconds: `90s`, `500ms`, `1500us`."""
    for unit in ("s", "ms", "us", "ns"):
        if duration_ns % _TIME_UNITS_NS[unit] == 0:
            return f"{duration_ns // _TIME_UNITS_NS[unit]}{unit}"
    raise AssertionError("every whole number is divisible by one")


def format_number(value: float, digits: int = 3) -> str:
    """Rounded to `digits` significant digits, thousands set apart: `12,300`, `0.0123`."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    rounded = round(value, digits - 1 - magnitude)
    if rounded and math.floor(math.log10(abs(rounded))) > magnitude:
        magnitude += 1  # 999.6 became 1000
    return f"{rounded:,.{max(0, digits - 1 - magnitude)}f}"


def format_times(factor: float) -> str:
    """How many times: `1.08x`, `1.3x`, `5.1x`, `75x`, `1,200x`. Two digits; three below 2."""
    if not math.isfinite(factor):
        return NO_VALUE
    number = format_number(factor, 3 if factor < 1.995 else 2)
    short = len(number) == len("1.30") and number.startswith("1.") and number != "1.00"
    return f"{number.removesuffix('0') if short else number}x"


def format_ratio_interval(low: float, high: float) -> str:
    """The interval of a ratio as far as it says something: `1.12 to 1.31`; `at least 8.1` where its other end
    is ten times as far; `unbounded` where it spans more than a thousand times.
    """
    if low > 1 and high > _ONE_ENDED * low:
        return f"at least {_end(low)}"
    if high < 1 and high > _ONE_ENDED * low:
        return f"at most {_end(high)}"
    if unbounded(low, high):
        return "unbounded"
    return f"{_end(low)} to {_end(high)}"


def unbounded(low: float, high: float) -> bool:
    """True of an interval of a ratio or a rate that spans a thousand times: its ends say nothing."""
    return not low > 0 or high > TELLS * low


def _end(ratio: float) -> str:
    """As many digits as `format_times` has. No row of zeros: below a thousandth it is said by its inverse."""
    if ratio < 0.001:
        return f"1 / {format_number(1 / ratio)}"
    return format_number(ratio, 3 if 0.1 <= ratio < 1.995 else 2)


_ONE_ENDED = 10.0
TELLS = 1000.0  # an interval whose ends are further apart says only that it is wide


def format_size(size_bytes: float) -> str:
    """`4 KiB`, `1.5 GiB`, `123 MiB`: IEC, three significant digits, no trailing zeros."""
    value, power = float(size_bytes), 0
    while abs(value) >= 999.5 and power < len(_IEC_NAMES) - 1:
        value, power = value / 1024, power + 1
    number = format_number(value)
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {_IEC_NAMES[power]}"


def format_rate(bytes_per_s: float) -> str:
    """`123 MiB/s`."""
    return f"{format_size(bytes_per_s)}/s"


def format_iops(operations_per_s: float) -> str:
    """`12,300 IOPS`."""
    return f"{format_number(operations_per_s)} IOPS"


def format_latency(latency_ns: float) -> str:
    """`850 ns`, `12.3 us`, `4.56 ms`, `1.20 s`."""
    for unit, unit_ns in (("ns", 1), ("us", 1_000), ("ms", 1_000_000)):
        if abs(latency_ns) < 999.5 * unit_ns:
            return f"{format_number(latency_ns / unit_ns)} {unit}"
    return f"{format_number(latency_ns / NS_PER_S)} s"


def format_percent(share: float) -> str:
    """A share (1 is everything) as `12.3 %`."""
    return f"{format_number(share * 100)} %"


def format_duration(duration_s: float) -> str:
    """In words, the two largest units: `2 minutes 5 seconds`, `1 hour`, `500 milliseconds`."""
    if 0 < duration_s < 0.9995:
        return f"{format_number(duration_s * 1000)} milliseconds"
    if duration_s < 9.995 and duration_s != round(duration_s):
        return f"{format_number(duration_s)} seconds"
    left, parts = round(duration_s), []
    for name, length_s in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, length_s)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
        elif parts:
            break
        if len(parts) == 2:
            break
    return " ".join(parts) or "0 seconds"


def format_quantity(value: float | None, unit: str) -> str:
    """A metric in its base unit (`B/s`, `1/s`, `ns`, `B`, `s`, `1`) for a person; None is "not measured"."""
    if value is None:
        return "not measured"
    forms = {
        "B/s": format_rate,
        "1/s": format_iops,
        "ns": format_latency,
        "B": format_size,
        "s": format_duration,
        "1": format_percent,
    }
    form = forms.get(unit)
    return form(value) if form else f"{format_number(value)} {unit}"


def whole_percent(share: float | None) -> str:
    """Whole percents, but never 100 % or 0 % of what is not all or nothing."""
    if share is None:
        return "unknown"
    if 0 < share < 0.005:
        return "below 0.5 %" if share >= 0.0001 else "below 0.01 %"
    text = f"{share:.0%}" if share == 1 or f"{share:.0%}" != "100%" else "above 99.5%"
    return text.replace("%", " %")


def format_count(count: int, noun: str) -> str:
    """`1 block`, `3 blocks`, `1,200 operations`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def quoted(word: object) -> str:
    """A word of a command that is printed for a user to run: as a shell takes it for one."""
    return shlex.quote(str(word))


def printable(text: object) -> str:
    """Text from outside made safe to print on one line.

    Control characters, line ends and characters that reverse the reading direction are shown as
    escapes: a file name must not move a terminal's cursor or disguise itself.
    """
    plain = str(text)
    if (
        type(plain) is str and plain.isprintable()
    ):  # nearly all; text that is marked as safe stays not so marked
        return plain
    return "".join(map(_visible, plain))


def _visible(character: str) -> str:
    # Not printable are controls, line and paragraph ends, format characters (bidirectional overrides,
    # zero width), lone surrogates, every space but the plain one, and what Unicode does not define.
    if character.isprintable():
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
