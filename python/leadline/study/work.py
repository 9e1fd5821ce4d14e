"""What a work may say besides the options of its job: several jobs, when it is steady, a search, a sweep.

Values, which of them contradict each other, and the pure rule of steadiness, by which the run stops and the
tables are made. Source of that: SNIA Solid State Storage Performance Test Specification, definition of steady
state. `plan` orders what they ask for and `run` does it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from leadline import units
from leadline.errors import SpecError
from leadline.study.kind.interface import Problem
from leadline.study.kinds import JOB_OPTIONS, PLANNED, JobOptions, asked_kind, is_list, problem_of
from leadline.study.yaml_source import suggest
from leadline.yamlio.fields import AUTO, Duration, Iops, Share, Whole, guarded

if TYPE_CHECKING:
    from leadline.study.study import Work


_Found = Iterator[tuple[Problem, "Work"]]


def problem_of_works(own: WorkOptions, works: Sequence[Work]) -> tuple[Problem | None, Work]:
    """The first contradiction in what a work of the study says, with the work or job that is at fault."""
    found = next((one for rule in _RULES for one in rule(own, works)), None)
    return found or (None, works[0])


def _options(_own: WorkOptions, works: Sequence[Work]) -> _Found:
    """A search sets the pace itself, so that an `arrival` means something beside it."""
    for work in works:
        options, face = work.options, asked_kind(work.options)
        if work.search is not None and face is not None and face.paces:
            for key in face.paces:
                if getattr(options, key) is not None:
                    yield Problem(key, "search finds the rate itself", f"leave {key} out, or search"), work
            options = options.model_copy(update={face.paces[-1]: work.search.low})
        problem = problem_of(options)
        if problem is not None:
            yield problem, work


def _jobs(own: WorkOptions, works: Sequence[Work]) -> _Found:
    if own.jobs is None:
        if own.order is not None:
            yield Problem("order", "means nothing without jobs", "add jobs, or leave order out"), works[0]
        return
    for key, part in (("steady_state", works[0].steady), ("search", own.search)):
        if part is not None:
            remedy = f"give the job a workload of its own, or leave {key} out of this one"
            yield Problem(key, "is for one job; this workload has several", remedy), works[0]
    if works[0].order == "together":
        yield from _together(works)


def _together(works: Sequence[Work]) -> _Found:
    first = works[0].options
    for work in works:
        if not work.options.time_based or not work.options.runtime:
            remedy = "add time_based: true and a runtime for all of them, or write order: start_together"
            yield Problem("time_based", "jobs that run together must run for a time", remedy), work
        for key in ("runtime", "ramp_time"):
            times = [getattr(options, key) or 0 for options in (first, work.options)]
            if times[0] != times[1]:
                words = " and ".join(units.exact_duration(time) for time in times)
                message = f"jobs that run together are measured together, not for {words}"
                yield Problem(key, message, f"write {key} once, next to jobs"), work


def _kind(own: WorkOptions, works: Sequence[Work]) -> _Found:
    """What a kind of work cannot be: one of several jobs, steady, or searched for a rate."""
    for work in works:
        face = asked_kind(work.options)
        if face is None:
            continue
        if own.jobs is not None and face.alone is not None:
            yield Problem(face.told_by, face.alone, "give it a workload of its own"), work
        for key, part in (("steady_state", work.steady), ("search", own.search)):
            if part is not None and own.jobs is None and face.no_rate is not None:
                message = f"is of reading and writing, not of {face.no_rate}"
                yield Problem(key, message, f"leave {key} out"), work


def _sweep(own: WorkOptions, works: Sequence[Work]) -> _Found:
    if own.sweep is None:
        return
    for key, part in (("search", own.search), ("jobs", own.jobs), ("steady_state", own.steady_state)):
        if part is not None:
            remedy = f"give each a workload of its own, or leave {key} out of this one"
            yield Problem("sweep", f"goes by plain trials, not by {key}", remedy), works[0]
    for option in own.sweep.over:
        if getattr(own, option, None) is not None:
            yield Problem(option, "the sweep says it", f"leave {option} out of one of the two"), works[0]
    face = asked_kind(works[0].options)
    if face is not None and own.sweep.metric not in face.rates:
        remedy = f"choose one of: {', '.join(face.rates)}" if face.rates else "leave sweep out"
        yield Problem("sweep", f"a workload with {face.told_by} has no {own.sweep.metric}", remedy), works[0]


def _steady(_own: WorkOptions, works: Sequence[Work]) -> _Found:
    for work in works:
        asked, options = work.steady, work.options
        if asked is None:
            continue
        if work.search is not None:
            yield Problem("steady_state", "search has its own trials", "keep one of the two"), work
        if not options.time_based or not options.runtime:
            remedy = "add time_based: true and a runtime: the longest that it may take"
            yield Problem("steady_state", "needs a job that goes on for a time", remedy), work
        elif options.runtime < asked.shortest_ns:
            least = units.exact_duration(asked.shortest_ns)
            message = f"{asked.windows} windows of {units.exact_duration(asked.window)} do not fit"
            yield (
                Problem("runtime", message, f"write a runtime of at least {least}, better several times"),
                work,
            )


def _search(_own: WorkOptions, works: Sequence[Work]) -> _Found:
    for work in works:
        asked, options = work.search, work.options
        if asked is None:
            continue
        if not options.time_based or not options.runtime:
            remedy = "add time_based: true and a runtime: that of each probe"
            yield Problem("search", "needs a job that goes on for a time", remedy), work
        if isinstance(asked.high, float) and asked.high <= asked.low:
            message = f"nothing lies between low {asked.low:g} and high {asked.high:g}"
            yield Problem("search", message, "write a high above low, or high: auto"), work


_RULES: tuple[Callable[[WorkOptions, Sequence[Work]], _Found], ...] = (
    _sweep,
    _kind,
    _jobs,
    _options,
    _steady,
    _search,
)


@dataclass(frozen=True)
class Steadiness:
    """Windows `first` to before `end` of a series. `range` and `slope` are shares of their mean.

    `slope` is how far the line of best fit moves from the first to the last of them. Not `steady`: the last
    windows that there were.
    """

    first: int
    end: int
    steady: bool
    range: float
    slope: float


def find_steady(rates: Sequence[float], asked: SteadyState) -> Steadiness | None:
    """The first windows that are steady, else the last ones; None where there are fewer than asked for."""
    found = None
    for first in range(len(rates) - asked.windows + 1):
        end = first + asked.windows
        spread, moved = _spread(rates[first:end]), _moved(rates[first:end])
        found = Steadiness(first, end, spread <= asked.range and moved <= asked.slope, spread, moved)
        if found.steady:
            break
    return found


def _spread(rates: Sequence[float]) -> float:
    """Largest minus smallest, of the mean; infinite where nothing was done."""
    mean = math.fsum(rates) / len(rates)
    return (max(rates) - min(rates)) / mean if mean > 0 else math.inf


def _moved(rates: Sequence[float]) -> float:
    """How far the least-squares line moves over the windows, of the mean."""
    count = len(rates)
    mean, middle = math.fsum(rates) / count, (count - 1) / 2
    if mean <= 0:
        return math.inf
    rise = math.fsum((place - middle) * (rate - mean) for place, rate in enumerate(rates))
    run = math.fsum((place - middle) ** 2 for place in range(count))
    return abs(rise / run) * (count - 1) / mean


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


JOBS_MAX = 16  # of one composition: each is a process of its own
Order = Literal["together", "start_together", "sequence"]
Latency = Literal["p50", "p95", "p99", "p99.9", "p100", "mean"]


def _parse_window(value: object) -> str:
    window_ns = units.parse_duration(value)
    if not units.NS_PER_S // 10 <= window_ns <= 10 * units.NS_PER_S:
        raise SpecError(f"{value!r} is out of range", "write a time from 100ms to 10s, and more windows")
    return units.exact_duration(window_ns)


def _parse_bound(value: object) -> str:
    bound_ns = units.parse_duration(value)
    if bound_ns == 0:
        raise SpecError("no latency is under 0", "write for example bound: 20ms")
    return units.exact_duration(bound_ns)


def _parse_high(value: object) -> float | str:
    return AUTO if value == AUTO else units.parse_iops(value)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SteadyState(_Part):
    """When a rate counts as steady: over `windows` windows in a row it stays within `range`, and the line of
    best fit through them moves less than `slope`, both of their mean.

    Source: SNIA Solid State Storage Performance Test Specification, "steady state": five rounds, 20 % and
    10 %, which are the defaults here.
    """

    window: Annotated[Duration, BeforeValidator(guarded(_parse_window))] = Field(
        units.NS_PER_S, description="length of one window, 100ms to 10s; 1s"
    )
    windows: Annotated[int, Whole(3, 100)] = Field(5, description="windows in a row that must be steady; 5")
    range: Share = Field(0.2, description="most that they may spread, of their mean; 20%")
    slope: Share = Field(0.1, description="most that their line of best fit may move, of their mean; 10%")

    @property
    def shortest_ns(self) -> int:
        """The least runtime in which it can be seen."""
        return self.window * self.windows


class Search(_Part):
    """Find the highest open-loop rate whose `latency`, from the intended start, stays under `bound`.

    `bound` is ns; `low` and `high` are operations per second, `high: auto` what a first probe without a rate
    reaches. `trials` is the number of probes in each block.
    """

    latency: Latency = Field(
        "p99", description="percentile that is bounded (p100: the largest), or the mean; p99"
    )
    bound: Annotated[Duration, BeforeValidator(guarded(_parse_bound))] = Field(
        description="what it must stay under, for example 20ms"
    )
    low: Iops = Field(100.0, description="lowest rate to try, operations per second; 100")
    high: Annotated[
        float | str,
        BeforeValidator(guarded(_parse_high)),
        WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"const": AUTO}]}),
    ] = Field(AUTO, description="highest rate to try; auto: what the workload reaches without a rate")
    trials: Annotated[int, Whole(2, 32)] = Field(8, description="probes in each block; 8")

    @property
    def metric(self) -> str:
        """The name of what is found, for example `rate_at_p99_20ms`."""
        return f"rate_at_{self.latency}_{units.exact_duration(self.bound)}"

    @property
    def percentile(self) -> float | None:
        """The bounded percentile, 0 to 100; None where the mean is bounded."""
        return None if self.latency == "mean" else float(self.latency[1:])


class SharedOptions(JobOptions):
    """What `defaults` may say: options of a job, and when a work is steady."""

    steady_state: SteadyState | None = Field(
        None, description="stop once the rate is steady, at the latest after runtime"
    )


class WorkOptions(SharedOptions):
    """What a work may say: the options of its job, or those that its jobs have in common."""

    search: Search | None = Field(None, description="find the highest rate under a bound of latency")
    sweep: Sweep | None = Field(None, description="find the least levels of options that are enough")
    jobs: dict[str, JobOptions] | None = Field(
        None, min_length=2, max_length=JOBS_MAX, description="name: options; several jobs in one trial"
    )
    varies: list[str] | None = Field(
        None, description="factors of the study that hold for this workload, [] for none; all of them"
    )
    order: Order | None = Field(
        None,
        description="together: the jobs start at the same time, for one runtime; start_together: each of them"
        " ends by itself; sequence: one after the other; together",
    )


def plain_options(options: JobOptions) -> JobOptions:
    """The options of a job alone, without what only a work can say."""
    return JobOptions().model_copy(update=options.said())


def known_keys() -> dict[str, tuple[str, ...]]:
    """The keys that may stand in each of these sections, by its name."""
    return {
        "workloads": tuple(WorkOptions.model_fields),
        "defaults": tuple(SharedOptions.model_fields),
        "jobs": tuple(JobOptions.model_fields),
        "steady_state": tuple(SteadyState.model_fields),
        "search": tuple(Search.model_fields),
        "sweep": tuple(Sweep.model_fields),
        **{name: keys for face in PLANNED.values() for name, keys in face.sections.items()},
    }


def part_as_json(part: SteadyState | Search | Swept | None) -> dict[str, Any] | None:
    """Plain values that `model_validate` reads back."""
    return None if part is None else part.model_dump(mode="json")
