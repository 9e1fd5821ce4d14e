"""What a work may say besides the options of its job: several jobs, when it is steady, which rate to search.

Only values and the pure rule of steadiness; `plan` orders what they ask for and `run` does it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from leadline import units
from leadline.errors import SpecError
from leadline.study.kinds import PLANNED, JobOptions
from leadline.study.sweep import Sweep, Swept
from leadline.yamlio.fields import AUTO, Duration, Iops, Share, Whole, guarded

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
    ] = Field(AUTO, description="highest rate to try; auto: what the work reaches without a rate")
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
        None, description="factors of the study that hold for this work, [] for none; all of them"
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
        "works": tuple(WorkOptions.model_fields),
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
