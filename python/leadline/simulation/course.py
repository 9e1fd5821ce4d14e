"""What each work gives over the phases of a failure, as steps to be drawn in shares of time and best rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leadline.simulation.phases import Phase

LAST_SHARE = 0.2  # of the width for the last phase, which has no end


@dataclass(frozen=True)
class CourseStep:
    """A phase of a work: from `begins` to `ends` of the width, and its rate with its interval of the most."""

    begins: float
    ends: float
    rate: float
    low: float
    high: float
    operations_s: float
    bound: str


@dataclass(frozen=True)
class Course:
    """One work over all phases; `most_operations_s` is its highest rate, by the interval's end."""

    work: str
    most_operations_s: float
    steps: tuple[CourseStep, ...]


def courses(phases: Sequence[Phase]) -> tuple[Course, ...]:
    """A course for each work; none of a cluster in which nothing fails."""
    if len(phases) < 2:
        return ()
    spans = list(_spans(phases))
    return tuple(_course(number, phases, spans) for number in range(len(phases[0].found.predicted)))


def _course(number: int, phases: Sequence[Phase], spans: Sequence[tuple[float, float]]) -> Course:
    found = [phase.found.predicted[number] for phase in phases]
    most = max(one.high for one in found) or 1.0
    steps = tuple(
        CourseStep(
            begins,
            ends,
            one.operations_s / most,
            one.low / most,
            one.high / most,
            one.operations_s,
            one.bound,
        )
        for one, (begins, ends) in zip(found, spans, strict=True)
    )
    return Course(found[0].work.name, most, steps)


def _spans(phases: Sequence[Phase]) -> Iterator[tuple[float, float]]:
    """Of each phase, in shares of the width; the last one is as wide as LAST_SHARE, however long it lasts."""
    whole = phases[-1].begins_s[0] or 1.0
    for phase in phases[:-1]:
        ends = whole if phase.ends_s is None else phase.ends_s[0]
        yield phase.begins_s[0] / whole * (1 - LAST_SHARE), ends / whole * (1 - LAST_SHARE)
    yield phases[-1].begins_s[0] / whole * (1 - LAST_SHARE), 1.0
