"""Asks the engine itself whether it would take a planned job, so that what plans also runs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

from leadline import _core, units
from leadline.errors import SpecError
from leadline.study.target import Target

# What only a run decides; any value within the engine's bounds stands in for it.
_STAND_INS = {
    "trial": "planned",
    "directory": "/",
    "prefix": "planned",
    "seed": 0,
    "generation": 1,
    "interval_ns": units.NS_PER_S,
    "parent_pid": None,
}
_GRACE_NS = 3600 * units.NS_PER_S
_REFUSAL = re.compile(r"(?P<key>[a-z_]+): (?P<message>.*?)(?:; (?P<remedy>.*))?", re.DOTALL)
# A study writes these with units.
_WRITTEN = {
    "runtime_ns": "runtime",
    "ramp_time_ns": "ramp_time",
    "thinktime_ns": "thinktime",
    "rate_bytes_per_s": "rate",
}


class EngineJob(Protocol):
    """What is asked of a job here."""

    @property
    def engine_format(self) -> str:
        """The format of its JSON."""

    @property
    def runtime_ns(self) -> int:
        """How long it is measured."""

    @property
    def ramp_time_ns(self) -> int:
        """Before that."""


def check_runs(work: str, target: Target, job: EngineJob, told: Mapping[str, Any] | None) -> None:
    """Raise SpecError where the engine would refuse the job; what the engine does not run is not asked.

    `told` is what the engine is told of it; None: it has no part in it.
    """
    if told is None or job.engine_format not in _core.job_formats():
        return
    asked = {
        "format": job.engine_format,
        **_STAND_INS,
        "deadline_ns": job.ramp_time_ns + job.runtime_ns + _GRACE_NS,
        **told,
    }
    if target.location is not None:
        asked["location"] = target.location
    try:
        _core.check_job(json.dumps(asked))
    except ValueError as error:
        raise _refused(str(error), f"work {work} on target {target.name}") from None


def _refused(words: str, source: str) -> SpecError:
    found = _REFUSAL.fullmatch(words)
    if found is None:
        return SpecError(words, "choose other values", source=source)
    key, message, remedy = found["key"], found["message"], found["remedy"]
    return SpecError(message, remedy or "choose another value", source=source, key=_WRITTEN.get(key, key))
