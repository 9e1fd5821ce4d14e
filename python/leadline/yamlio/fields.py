"""Types of values that people write: each reads fio's notation and refuses with a remedy.

A validator turns the SpecError of `units` into pydantic's own error, so that the place is not lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from leadline import units
from leadline.errors import SpecError

AUTO = "auto"
OTHER = "other"
SIZE_PATTERN = r"^\s*[0-9]+(\.[0-9]+)?\s*([kKmMgGtTpPeE]?([iI]?[bB])?)\s*$"
DURATION_PATTERN = r"^\s*([0-9]+(\.[0-9]+)?\s*(ns|nsec|us|usec|ms|msec|s|sec|m|min|h|hr|d)?\s*)+$"


def refuse(message: str, remedy: str) -> PydanticCustomError:
    """An error that `problems.translate` turns back into a SpecError with the same words."""
    return PydanticCustomError("leadline", "{message}", {"message": message, "remedy": remedy})


def guarded(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`parse`, whose SpecError pydantic can carry."""

    def validate(value: Any) -> Any:
        try:
            return parse(value)
        except SpecError as error:
            raise refuse(error.message, error.remedy) from error

    return validate


def _auto_or(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: AUTO if value == AUTO else parse(value)


def _other_or_truth(value: object) -> object:
    return OTHER if value == OTHER else parse_truth(value, "true, false or other")


def _auto_truth(value: object) -> object:
    return AUTO if value == AUTO else parse_truth(value, "true, false or auto")


def parse_truth(value: object, words: str = "true or false") -> bool:
    """A truth value; `yes` and `on` are plain words in YAML 1.2 and are not guessed at."""
    if isinstance(value, bool):
        return value
    if value in ("true", "false", 0, 1):
        return value in ("true", 1)
    raise SpecError(f"{value!r} is neither true nor false", f"write {words}")


@dataclass(frozen=True)
class Whole:
    """Annotation of an int: a whole number from `low` to `high`, digits in quotes included."""

    low: int
    high: int

    def _parse(self, value: object) -> int:
        remedy = f"write a whole number from {self.low} to {self.high}"
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise SpecError(f"{value!r} is not a whole number", remedy)
        if not self.low <= value <= self.high:
            raise SpecError(f"{value} is out of range", remedy)
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Pydantic's hook: parse first, then the int."""
        return core_schema.no_info_before_validator_function(guarded(self._parse), handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Pydantic's hook: what an editor is told."""
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


def _schema(pattern: str, *alternatives: dict[str, Any]) -> WithJsonSchema:
    number = {"type": "number", "minimum": 0}
    return WithJsonSchema({"anyOf": [{"type": "string", "pattern": pattern}, number, *alternatives]})


_AUTO_SCHEMA = {"const": AUTO}
_exact_size = PlainSerializer(lambda value: units.exact_size(value) if isinstance(value, int) else value)
_exact_duration = PlainSerializer(units.exact_duration)

Size = Annotated[int, BeforeValidator(guarded(units.parse_size)), _exact_size, _schema(SIZE_PATTERN)]
SizeOrAuto = Annotated[
    int | str,
    BeforeValidator(guarded(_auto_or(units.parse_size))),
    _exact_size,
    _schema(SIZE_PATTERN, _AUTO_SCHEMA),
]
Duration = Annotated[
    int, BeforeValidator(guarded(units.parse_duration)), _exact_duration, _schema(DURATION_PATTERN)
]
Rate = Annotated[
    int,
    BeforeValidator(guarded(units.parse_rate)),
    _exact_size,
    _schema(SIZE_PATTERN[:-1] + r"(/\s*[sS])?\s*$"),
]
Iops = Annotated[
    float,
    BeforeValidator(guarded(units.parse_iops)),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),
]
Truth = Annotated[bool, BeforeValidator(guarded(parse_truth)), WithJsonSchema({"type": "boolean"})]
TruthOrAuto = Annotated[
    bool | str,
    BeforeValidator(guarded(_auto_truth)),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, _AUTO_SCHEMA]}),
]
TruthOrOther = Annotated[
    bool | str,
    BeforeValidator(guarded(_other_or_truth)),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "string", "enum": [OTHER]}]}),
]


def _parse_resolution(value: object) -> str:
    found = re.fullmatch(r"\s*([1-9][0-9]{1,4})\s*[xX]\s*([1-9][0-9]{1,4})\s*", str(value))
    if not isinstance(value, str) or found is None or int(found[1]) % 2 or int(found[2]) % 2:
        raise SpecError(f"{value!r} is no picture size", "write WIDTHxHEIGHT, both even, such as 1920x1080")
    return f"{int(found[1])}x{int(found[2])}"


Resolution = Annotated[
    str,
    BeforeValidator(guarded(_parse_resolution)),
    WithJsonSchema({"type": "string", "pattern": r"^\s*[1-9][0-9]{1,4}\s*[xX]\s*[1-9][0-9]{1,4}\s*$"}),
]


def _parse_command(value: object) -> list[str]:
    if not isinstance(value, list | tuple):
        raise SpecError(
            "a command is a list of words", "write [program, word, …]: no shell reads it, unless you name one"
        )
    for word in value:
        if isinstance(word, bool) or not isinstance(word, str | int | float):
            raise SpecError(f"{word!r} is no word of a command", 'put it in quotes, for example "{input}"')
    return [str(word) for word in value]


Command = Annotated[
    tuple[str, ...],
    BeforeValidator(guarded(_parse_command)),
    WithJsonSchema({"type": "array", "items": {"type": ["string", "number"]}}),
]


def _parse_share(value: object) -> float:
    if not isinstance(value, str) or not value.strip().endswith("%"):
        raise SpecError(f"{value!r} is not a percentage", "write it with its sign, for example 5%")
    return units.parse_percent(value) / 100


Share = Annotated[
    float,
    BeforeValidator(guarded(_parse_share)),
    PlainSerializer(lambda share: f"{share * 100:.12g}%"),
    WithJsonSchema({"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$"}),
]
