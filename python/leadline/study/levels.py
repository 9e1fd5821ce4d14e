"""How the level of a factor reads, in a table and in the name of the work that it makes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from leadline.study.kinds import ASKED, JOB_OPTIONS, PLANNED, JobOptions
from leadline.study.yaml_source import suggest
from leadline.yamlio.yaml_source import Document

CPUS, ONE_BEYOND, DOUBLING = "cpus", "cpus+1", ".."
WORK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]*)\}")
_PLAIN = {option for face in PLANNED.values() for option in face.plain_levels}


def level_words(option: str, value: Any) -> Any:
    """A factor's level as it is written in a study: `4k`, `2s`, 16, true."""
    owner = next(PLANNED[kind] for kind, options in ASKED.items() if option in options.model_fields)
    words = owner.level_words(option, value)
    if words is not value:
        return words
    written = JobOptions.model_construct(**{option: value}).model_dump(mode="json", include={option})[option]
    return ",".join(str(part) for part in written) if isinstance(written, list) else written


def with_cpus(document: Document, cpus: int) -> Document:
    """The document with numbers where a factor counts the host's CPUs: of [1, .., cpus, cpus+1] on four of
    them 1, 2, 4 and 5. `..` doubles the level before it as long as that is less than the one after it.

    Raises SpecError where `..` does not stand between two numbers, the second the larger.
    """
    value = document.value if isinstance(document.value, dict) else {}
    factors = value.get("factors")
    if not isinstance(factors, dict):
        return document
    counted = {
        option: _counted(document, option, levels, cpus)
        for option, levels in factors.items()
        if isinstance(levels, list) and {CPUS, ONE_BEYOND, DOUBLING}.intersection(map(str, levels))
    }
    return document.with_value({**value, "factors": {**factors, **counted}}, document.places)


def _counted(document: Document, option: str, levels: list[Any], cpus: int) -> list[Any]:
    numbers = [{CPUS: cpus, ONE_BEYOND: cpus + 1}.get(str(level), level) for level in levels]
    found: list[Any] = []
    for place, level in enumerate(numbers):
        if level != DOUBLING:
            found.append(level)
            continue
        ends = (*found[-1:], *numbers[place + 1 : place + 2])
        if len(ends) < 2 or not all(isinstance(end, int) for end in ends) or not 0 < ends[0] <= ends[1]:
            document.fail(
                ("factors", option, place),
                f"{DOUBLING!r} of {option} does not stand between a number and a larger one",
                "write for example [1, .., cpus, cpus+1]",
            )
        while found[-1] * 2 < ends[1]:
            found.append(found[-1] * 2)
    return list(dict.fromkeys(found))


def label_of(label: str, base: str, options: JobOptions, factors: Iterable[str], written: Document) -> str:
    """The name of a work with these levels, by the study's label or by all of its factors."""
    template = label or "_".join(["{workload}", *(_default_part(option) for option in factors)])

    def one(match: re.Match[str]) -> str:
        option = match[1]
        if option in ("workload", "work"):
            return base
        if option not in JOB_OPTIONS:
            written.fail(("label",), f"{{{option}}} is unknown", suggest(option, ("workload", *JOB_OPTIONS)))
        value = getattr(options, option)
        if value is None:
            written.fail(
                ("label",),
                f"workload {base} has no {option}",
                f"add {option} to it, or take {{{option}}} out",
            )
        return _level_in_name(option, value)

    name = _PLACEHOLDER.sub(one, template)
    if not WORK_NAME.fullmatch(name):
        written.fail(("label",), f"{name!r} is no name of a workload", "write for example {workload}_{bs}")
    return name


def _default_part(option: str) -> str:
    return f"{{{option}}}" if option in _PLAIN else f"{option}{{{option}}}"


def _level_in_name(option: str, value: Any) -> str:
    if option == "direct" and isinstance(value, bool):
        return "direct" if value else "buffered"
    words = level_words(option, value)
    text = (
        str(words).lower()
        if isinstance(words, bool)
        else f"{words:g}"
        if isinstance(words, float)
        else str(words)
    )
    return re.sub(r"[^A-Za-z0-9_-]", "-", text)
