"""The parent's side of an application's trial: what its worker is told, and where its traces lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leadline.plan.model import PlannedCell, Trial
from leadline.workloads.application.job import ApplicationJob

OUTPUT = "output"  # directory of a result: what programs printed, by trial


def worker_job(
    cell: PlannedCell,
    job: ApplicationJob,
    trial: Trial | None,
    prefixes: tuple[str, str],
    places: dict[str, str],
) -> dict[str, Any]:
    """The JSON of a trial, or of staging its input when `trial` is None.

    `prefixes` are those of the input's and of the trial's own files; `places` names the directories on the
    target and of the result.
    """
    name = trial.id if trial else f"layout-{prefixes[0]}"
    return {
        "format": job.engine_format,
        "trial": name,
        "cell": cell.id,
        "directory": places["directory"],
        "prefix": prefixes[0],
        "own_prefix": prefixes[1],
        "result": places["result"],
        "output": str(Path(places["result"]) / OUTPUT / name),
        "logs": places["logs"],
        **job.as_json(),
    }


def deadline_s(job: ApplicationJob) -> float:
    """The longest that a trial may take: the worker ends it at its limit, the parent somewhat later."""
    return job.runtime_ns / 1e9 * job.runs
