"""What is computed of a pipeline's trial besides what an application's has: the time of each stage."""

from __future__ import annotations

import json

from leadline.analysis.statistics.means import typical
from leadline.store.tables import TrialRow

STAGE_TIME = "stage_time_"


def metric_stage(name: str) -> str | None:
    """The stage of a pipeline that a metric is the time of; None for every other metric."""
    return name.removeprefix(STAGE_TIME) if name.startswith(STAGE_TIME) else None


def stage_times(trial: TrialRow) -> dict[str, float]:
    """How long each stage of a pipeline took, the geometric mean over the clients."""
    seconds: dict[str, list[float]] = {}
    for stage in json.loads(trial.summary).get("stages") or ():
        seconds.setdefault(str(stage["stage"]), []).append(float(stage["seconds"]))
    means = {f"{STAGE_TIME}{name}": typical(found) for name, found in seconds.items()}
    return {name: mean for name, mean in means.items() if mean is not None}
