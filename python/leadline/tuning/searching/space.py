"""The space of a search: which values of which settings may be proposed. Values and words, no system."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.errors import RefusedChangeError
from leadline.tuning.access.interface import same_value

_WIDE = 8.0  # a range that spans more than this factor is searched by factors
_ALIGNED_BYTES = 4096
SPACE_BYTES_MAX = 1 << 20


@dataclass(frozen=True)
class SpaceWords:
    """A part of a space as somebody wrote it: a range, or two choices or more."""

    name: str
    low: str = ""
    high: str = ""
    choices: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        """Every value that was named."""
        return self.choices or (self.low, self.high)


@dataclass(frozen=True)
class SearchDimension:
    """Values of one setting: `choices`, or a range from `low` to `high`.

    `whole`: of whole numbers, multiples of `step`; `logarithmic`: equal factors are equally likely.
    """

    name: str
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = True
    logarithmic: bool = False
    step: int = 1

    def text(self, value: Any) -> str:
        """A proposed number or word as it is set."""
        if self.choices:
            return str(value)
        if not self.whole:
            return f"{value:.6g}"
        stepped = round(int(value) / self.step) * self.step
        return str(min(max(stepped, int(self.low)), int(self.high)))

    def number(self, text: str) -> Any | None:
        """The inverse of `text`; None for a value outside of it."""
        if self.choices:
            return next((one for one in self.choices if same_value(one, text)), None)
        try:
            value = float(text)
        except ValueError:
            return None
        if not self.low <= value <= self.high:
            return None
        return int(value) if self.whole else value

    @property
    def count(self) -> float:
        """How many values there are; infinity where they are not counted."""
        if self.choices:
            return len(self.choices)
        return (
            math.floor(self.high / self.step) - math.ceil(self.low / self.step) + 1
            if self.whole
            else math.inf
        )

    @property
    def words(self) -> str:
        """As a person reads it."""
        if self.choices:
            return "|".join(self.choices)
        ends = (f"{int(one)}" if self.whole else f"{one:g}" for one in (self.low, self.high))
        return "..".join(ends) + (" by factors" if self.logarithmic else "")

    def as_json(self) -> dict[str, Any]:
        """What a manifest keeps."""
        return {**vars(self), "choices": list(self.choices)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SearchDimension:
        """The inverse of `as_json`."""
        return cls(**{**value, "choices": tuple(value["choices"])})


def split_space(words: Sequence[str]) -> tuple[SpaceWords, ...]:
    """`NAME=lo..hi`, `NAME=a|b`, or a YAML file of such. Raises RefusedChangeError, SpecError."""
    found: list[SpaceWords] = []
    for word in words:
        name, sign, value = word.partition("=")
        found += [_part(name, value)] if sign else _of_file(Path(word))
    for name in {one.name for one in found}:
        if sum(one.name == name for one in found) > 1:
            raise RefusedChangeError(f"--space has {name} twice", "name each setting once")
    if not found:
        raise RefusedChangeError("the space is empty", "write: --space client_oc_size=16M..1G")
    return tuple(found)


def _part(name: str, text: str) -> SpaceWords:
    low, dots, high = text.partition("..")
    choices = tuple(one.strip() for one in text.split("|"))
    if not name or not text.isprintable() or not all(choices):
        raise RefusedChangeError(
            f"--space {name}={text} has no values", "write NAME=lo..hi, or NAME=a|b|c with two or more"
        )
    if dots and len(choices) > 1:
        raise RefusedChangeError(f"--space {name}={text} is both a range and a list", "write one of them")
    if dots:
        if not low.strip() or not high.strip():
            raise RefusedChangeError(f"--space {name}={text} lacks an end", "write NAME=lo..hi")
        return SpaceWords(name, low.strip(), high.strip())
    for at, one in enumerate(choices):
        if any(same_value(one, other) for other in choices[:at]):
            raise RefusedChangeError(f"--space {name} has {one} twice", "name each value once")
    if len(choices) == 1:
        raise RefusedChangeError(
            f"--space {name}={text} has one value only: there is nothing to choose",
            f"write a range or a list, or prove the value: leadline tune prove … --with {name}={text}",
        )
    return SpaceWords(name, choices=choices)


def _of_file(path: Path) -> list[SpaceWords]:
    from leadline.foreign import read_plain, reading
    from leadline.yamlio.yaml_source import read_yaml

    with reading(path, "give NAME=lo..hi, NAME=a|b|c, or a YAML file of such lines"):
        text = read_plain(path, SPACE_BYTES_MAX).decode("utf-8", "replace")
    found = read_yaml(text, str(path), {}).value
    if not isinstance(found, dict) or not found:
        raise RefusedChangeError(f"{path} has no settings", "write a line each: client_oc_size: 16M..1G")
    return [_part(str(name), _as_text(value)) for name, value in found.items()]


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "|".join(map(_as_text, value)) if isinstance(value, list | tuple) else str(value)


def dimension_of(words: SpaceWords, values: Sequence[str], *, is_size: bool) -> SearchDimension:
    """A part with its values as they are set; `is_size`: in bytes. Raises RefusedChangeError."""
    if words.choices:
        return SearchDimension(words.name, tuple(values))
    try:
        low, high = (float(one) for one in values)
    except ValueError:
        raise RefusedChangeError(
            f"--space {words.name}={words.low}..{words.high} is no range of numbers",
            f"list its values: --space {words.name}=a|b",
        ) from None
    if not low < high:
        raise RefusedChangeError(
            f"--space {words.name}={words.low}..{words.high} has nothing in between",
            "the lower end comes first",
        )
    if is_size and low <= 0:
        raise RefusedChangeError(
            f"--space {words.name}={words.low}..{words.high}: sizes are searched by factors, which 0 has not",
            "begin above 0, or list the values: a|b|c",
        )
    whole = low.is_integer() and high.is_integer() and "." not in "".join(values)
    # Sizes that can be read: no finer than a sixteenth of the least, in whole pages.
    step = max(_ALIGNED_BYTES, 1 << int(math.log2(low / 16))) if is_size and low >= _ALIGNED_BYTES else 1
    return SearchDimension(
        words.name,
        low=low,
        high=high,
        whole=whole,
        logarithmic=is_size or (low > 0 and high / low > _WIDE),
        step=step,
    )
