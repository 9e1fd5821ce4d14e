"""`random_distribution`: how random blocks are spread, in fio's notation and checked."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from leadline.errors import SpecError
from leadline.yamlio.fields import guarded

MAP = "map"
_EXAMPLES = "write map, random, zipf:THETA (above 0, at most 10, for example zipf:1.2) or pareto:H (0 to 1)"
_THETA_MAX = 10.0


def parse_distribution(value: object) -> str:
    """`map`, `random`, `zipf:1.2` or `pareto:0.2`. Raises SpecError."""
    name, colon, text = str(value).partition(":")
    if isinstance(value, str) and name in (MAP, "random") and not colon:
        return name
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if (name == "zipf" and 0 < number <= _THETA_MAX) or (name == "pareto" and 0 < number < 1):
        return f"{name}:{number:g}"
    raise SpecError(f"{value!r} is no distribution", _EXAMPLES)


Distribution = Annotated[
    str,
    BeforeValidator(guarded(parse_distribution)),
    WithJsonSchema({"type": "string", "pattern": r"^(map|random|(zipf|pareto):[0-9]*\.?[0-9]+)$"}),
]
