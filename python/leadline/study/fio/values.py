"""Values in fio's notation: switches, numbers, sizes, times, percentages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from leadline import units
from leadline.errors import SpecError
from leadline.study.fio.sections import FioOption
from leadline.written.yaml_source import shorten

_Value = TypeVar("_Value")
_PLAIN = re.compile(r"[0-9]+(\.[0-9]+)?")


def switch(option: FioOption) -> bool:
    """`name`, `name=1` and `name=0`."""
    if option.value in ("", "1"):
        return True
    if option.value == "0":
        return False
    raise option.fail(f"{shorten(option.value)!r} is neither 0 nor 1", "write 1 or 0")


def whole(option: FioOption, least: int = 0, most: int = 2**31 - 1) -> int:
    """A plain number."""
    if not re.fullmatch(r"[0-9]{1,12}", option.value) or not least <= int(option.value) <= most:
        words = f"{shorten(option.value)!r} is no whole number from {least} to {most}"
        raise option.fail(words, f"write for example {option.name}={max(least, 1)}")
    return int(option.value)


def percent(option: FioOption) -> int:
    """A share in percent, with or without the sign."""
    plain = option.value.removesuffix("%").strip()
    if not re.fullmatch(r"[0-9]{1,3}", plain) or int(plain) > 100:
        raise option.fail(f"{shorten(option.value)!r} is no percentage", "write a number from 0 to 100")
    return int(plain)


def size(option: FioOption, text: str | None = None) -> int:
    """Bytes; `k` is 1024, whatever its case, and so are the others."""
    written = option.value if text is None else text
    if written.endswith("%"):
        raise option.fail("is a share of a file that exists", "write bytes, for example size=1g")
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,15}", written):
        return int(written, 16)
    return _read(option, lambda: units.parse_size(written), "write bytes, for example 4k or 1g")


def time_ns(option: FioOption, unit: str) -> int:
    """Nanoseconds; a plain number is in `unit`, the option's own."""
    written = option.value + unit if _PLAIN.fullmatch(option.value) else option.value
    return _read(option, lambda: units.parse_duration(written), "write for example 30s or 5m")


def _read(option: FioOption, read: Callable[[], _Value], remedy: str) -> _Value:
    try:
        return read()
    except SpecError as error:
        raise option.fail(error.message, remedy) from None
