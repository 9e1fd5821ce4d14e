"""A sweep: a work at some levels of one or two options, to find the least that are as good as the most."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from leadline.errors import SpecError
from leadline.study.kinds import JOB_OPTIONS, JobOptions, is_list
from leadline.study.problems import suggest
from leadline.yamlio.fields import Share, Whole, guarded

OPTIONS_MAX, LEVELS_MAX = 2, 40
_EXAMPLE = "write for example over: {bs: [64k, 256k, 1M, 4M], iodepth: [1, 2, 4, 8]}"


def _parse_over(value: object) -> dict[str, list[Any]]:
    if not isinstance(value, dict) or not 1 <= len(value) <= OPTIONS_MAX:
        raise SpecError(f"a sweep is over one option or {OPTIONS_MAX}, each with its levels", _EXAMPLE)
    for option, levels in value.items():
        if option not in JOB_OPTIONS or is_list(option):
            raise SpecError(f"{option!r} is no option that a sweep can be over", suggest(option, JOB_OPTIONS))
        if not isinstance(levels, list) or not 2 <= len(levels) <= LEVELS_MAX:
            raise SpecError(f"{option} needs 2 to {LEVELS_MAX} levels", _EXAMPLE)
        numbers = [_number(option, level) for level in levels]
        if sorted(set(numbers)) != numbers:
            raise SpecError(f"the levels of {option} do not rise from one to the next", "sort them")
    return value


def _number(option: str, level: object) -> float:
    found = getattr(JobOptions.model_validate({option: level}), option)
    if isinstance(found, bool) or not isinstance(found, int | float) or found <= 0:
        raise SpecError(f"{level!r} of {option} is no number above 0", "sweep over sizes or counts")
    return float(found)


class _SweepPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Sweep(_SweepPart):
    """Find the least levels of the options `over` whose `metric` is the `share` of the most that any give.

    Which of their combinations are tried follows from those before, in at most so many `trials` on each
    target.
    """

    over: Annotated[
        dict[str, list[Any]],
        BeforeValidator(guarded(_parse_over)),
        WithJsonSchema(
            {
                "type": "object",
                "minProperties": 1,
                "maxProperties": OPTIONS_MAX,
                "additionalProperties": {"type": "array", "minItems": 2, "maxItems": LEVELS_MAX},
            }
        ),
    ] = Field(description="option: its levels, rising; one option or two")
    share: Share = Field(0.95, description="of the plateau that is enough; 95%")
    metric: Literal["bandwidth", "iops"] = Field("bandwidth", description="the rate; bandwidth")
    trials: Annotated[int, Whole(10, 1_000)] = Field(60, description="most trials on each target; 60")

    @property
    def levels(self) -> tuple[tuple[float, ...], ...]:
        """The levels of each option as numbers, in base units."""
        return tuple(tuple(_number(name, one) for one in levels) for name, levels in self.over.items())

    def cells(self) -> Iterator[tuple[tuple[int, ...], Mapping[str, Any]]]:
        """Every combination: the number of the level of each option, and the levels by option."""
        for place in itertools.product(*(range(len(levels)) for levels in self.over.values())):
            yield (
                place,
                {name: levels[at] for (name, levels), at in zip(self.over.items(), place, strict=True)},
            )


class Swept(_SweepPart):
    """A cell's place in a sweep: its name, what it asks, and the number of the level in each option."""

    name: str
    sweep: Sweep
    place: tuple[int, ...]
