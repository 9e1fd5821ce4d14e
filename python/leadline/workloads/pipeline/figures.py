"""What is computed of a pipeline's trial besides what an application's has: the time of each stage."""

from __future__ import annotations

import json
from collections.abc import Mapping

from leadline.knowledge.tables import numbers
from leadline.store.tables import TrialRow

STAGE_TIME = "stage_time_"


def metric_stage(name: str) -> str | None:
    """The stage of a pipeline that a metric is the time of; None for every other metric."""
    return name.removeprefix(STAGE_TIME) if name.startswith(STAGE_TIME) else None


def cold_bytes(trial: TrialRow) -> int | None:
    """What its stages read for the first time, bytes; None of a trial that does not say so."""
    found = [stage.get("cold_bytes") for stage in json.loads(trial.summary).get("stages") or ()]
    return None if not found or None in found else sum(found)


def stage_times(trial: TrialRow) -> dict[str, float]:
    """How long each stage of a pipeline took, the plain mean over the clients: stages add up."""
    seconds: dict[str, list[float]] = {}
    for stage in json.loads(trial.summary).get("stages") or ():
        seconds.setdefault(str(stage["stage"]), []).append(float(stage["seconds"]))
    return {f"{STAGE_TIME}{name}": sum(found) / len(found) for name, found in seconds.items()}


def thresholds() -> Mapping[str, float]:
    """The table of `thresholds.yaml`."""
    return numbers(__package__)
