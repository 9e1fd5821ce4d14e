"""An application as a work: an unchanged command, N copies of it at once, with nothing left open."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from leadline import units
from leadline.study.kind.lookups import Tracer

Cache = Literal["cold", "warm"]
LIMIT_DEFAULT_NS = 3600 * units.NS_PER_S
# What stands in a command for a place that differs from copy to copy.
INPUT, OUTPUT, COPY = "{input}", "{output}", "{copy}"


class ApplicationJob(BaseModel):
    """What one trial does. `runtime_ns` is the longest that it may take; sizes are bytes.

    `command` may hold the places INPUT, OUTPUT and COPY. `input_bytes` are staged once on each target.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: tuple[str, ...] = Field(min_length=1)
    copies: int = Field(gt=0)
    input: str | None
    input_files: int = Field(ge=0)
    input_bytes: int = Field(ge=0)
    cache: Cache
    trace: Tracer
    runtime_ns: int = Field(gt=0)

    # What a plan, an executor and a verdict ask of every job.
    kind: ClassVar[str] = "application"
    engine_format: ClassVar[str] = "leadline.application/1"
    engine: ClassVar[str] = "application"
    direct: ClassVar[bool] = False
    verify: ClassVar[bool] = False
    incompressible: ClassVar[bool] = True
    time_based: ClassVar[bool] = False
    ramp_time_ns: ClassVar[int] = 0
    rate_bytes_per_s: ClassVar[int | None] = None
    rate_iops: ClassVar[float | None] = None
    # The rules on reads and writes are of jobs whose every byte is known; an application has its own.
    reads: ClassVar[bool] = False
    writes: ClassVar[bool] = False
    reads_only: ClassVar[bool] = False

    @property
    def data_set_bytes(self) -> int:
        """The input, which all copies share."""
        return self.input_bytes

    @property
    def runs(self) -> int:
        """Times that the command runs after one another in a trial: the one that warms caches counts."""
        return 2 if self.cache == "warm" else 1

    def as_json(self) -> dict[str, Any]:
        """Plain values, one per field, as a worker and the manifest take them."""
        return self.model_dump(mode="json")


def command_words(job: dict[str, Any]) -> list[str]:
    """The command of a job's JSON; empty for every other kind of job."""
    found = job.get("command")
    return [str(word) for word in found] if isinstance(found, list | tuple) else []
