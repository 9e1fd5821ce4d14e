"""What `leadline model` is told: sizes, rates, protections, and pairs such as 4k=260082."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from leadline.errors import SpecError, UsageError
from leadline.units import parse_bit_rate, parse_duration, parse_rate, parse_size

if TYPE_CHECKING:
    from leadline.analysis.models.closed import Station
    from leadline.analysis.models.simple import Protection

_SHARDS_MAX = 64
_NUMBER_MAX = 1e15


class _Written(click.ParamType[Any]):
    """A value as a person writes it."""

    def __init__(self, name: str, reader: Callable[[object], Any]) -> None:
        self.name = name
        self._reader = reader

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value. Raises what click says of a bad one."""
        if not isinstance(value, str):
            return value
        try:
            return self._reader(value)
        except SpecError as error:
            self.fail(f"{error.message}; {error.remedy}", param, ctx)


def _some_size(value: object) -> int:
    size = parse_size(value)
    if size == 0:
        raise SpecError("a size of 0 is none", "for example: 4M")
    return size


def _some_time(value: object) -> int:
    duration = parse_duration(value)
    if duration == 0:
        raise SpecError("a time of 0 is none", "for example: 200us")
    return duration


def _protection(value: object) -> Protection:
    from leadline.analysis.models.simple import Protection

    text = str(value).strip()
    coded = re.fullmatch(r"([0-9]{1,2})\+([0-9]{1,2})", text)
    if coded and int(coded[1]) and int(coded[2]) and int(coded[1]) + int(coded[2]) <= _SHARDS_MAX:
        return Protection(k=int(coded[1]), m=int(coded[2]))
    if re.fullmatch(r"[1-9]", text):
        return Protection(copies=int(text))
    raise SpecError(f"{text!r} is no protection", "write copies (3) or data and coding shards (8+3)")


SIZE = _Written("size", _some_size)
RATE = _Written("rate", parse_rate)
BIT_RATE = _Written("rate of a link", parse_bit_rate)
DURATION = _Written("time", _some_time)
PROTECTION = _Written("protection", _protection)


def number_pairs(
    words: Sequence[str], what: str, *, whole: bool = False, numbered: bool = False
) -> list[tuple[str, float]]:
    """`name=number` of each word; names once, numbers above 0. Raises UsageError."""
    found: dict[str, float] = {}
    for word in words:
        name, equals, text = word.partition("=")
        number = _number(text, whole)
        if not equals or not name or number is None or (numbered and _number(name, False) is None):
            raise UsageError(f"{word!r} is not {what}", "numbers above 0, for example 4=943")
        if name in found:
            raise UsageError(f"{name} is given twice", "give each once")
        found[name] = number
    return list(found.items())


def size_pairs(words: Sequence[str], what: str, *, rates: bool = False) -> list[tuple[int, float]]:
    """`size=number` of each word, or with `rates` `size=rate`. Raises UsageError."""
    found = []
    for word in words:
        name, _, text = word.partition("=")
        try:
            value = float(parse_rate(text)) if rates else _number(text, False)
            size = _some_size(name)
        except SpecError as error:
            raise UsageError(f"{what} {word}: {error.message}", error.remedy) from None
        if value is None:
            raise UsageError(f"{what} {word}: no number above 0 after '='", "for example: 4k=260082")
        found.append((size, value))
    return found


def stations(words: Sequence[str]) -> list[Station]:
    """`name=time` or `name=timexservers` of each word. Raises UsageError."""
    from leadline.analysis.models.closed import Station

    found = []
    for word in words:
        name, _, text = word.partition("=")
        time_words, times, servers = text.partition("x")
        try:
            if not name or (times and not re.fullmatch(r"[0-9]{1,4}", servers)):
                raise SpecError(
                    f"{word!r} is no station", "for example: mds=120us, journal=1msx8, network=200usx0"
                )
            found.append(Station(name, _some_time(time_words) / 1e9, int(servers) if times else 1))
        except SpecError as error:
            raise UsageError(error.message, error.remedy) from None
    return found


def _number(text: str, whole: bool) -> float | None:
    pattern = r"[0-9]{1,15}" if whole else r"[0-9]{1,15}(\.[0-9]{1,9})?"
    value = float(text) if re.fullmatch(pattern, text) else 0.0
    return value if 0 < value <= _NUMBER_MAX else None
