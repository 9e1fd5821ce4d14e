"""Trials of pipelines for unit tests: made figures, each field overridable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from application_examples import account
from builders import cell, trial_row

from leadline.plan.model import PlannedCell
from leadline.store.own import StageRow
from leadline.store.tables import TrialRow
from leadline.workloads.pipeline.job import Action, PipelineJob, Stage

S = 10**9


def action(**changes: Any) -> Action:
    values: dict[str, Any] = {
        "step": "ingest",
        "command": (),
        "buffer": 8192,
        "digest": "md5",
        "how": "auto",
        "url": None,
        "timeout_ns": 30 * S,
        "seen_from": None,
    }
    return Action(**{**values, **changes})


def pipeline(*names: str, **changes: Any) -> PipelineJob:
    stages = tuple(
        Stage(stage=name, actions=(action(),), inputs=("source",), output=None, width=None) for name in names
    )
    values: dict[str, Any] = {
        "pipeline": stages,
        "copies": 1,
        "input": None,
        "input_files": 0,
        "input_bytes": 0,
        "cache": "cold",
        "trace": "preload",
        "runtime_ns": 3600 * S,
        "source": "/film.mov",
        "source_bytes": 1000,
        "source_width": 1920,
        "film": None,
        "served": True,
        "buffer": 8192,
        "variant": None,
    }
    return PipelineJob(**{**values, **changes})


def planned(target: str, *names: str, **changes: Any) -> PlannedCell:
    return replace(cell(f"{target}.media"), job=pipeline(*names, **changes), layout=None)


def stage_row(trial: str, place: int, name: str, start_s: float, end_s: float, **changes: Any) -> StageRow:
    values: dict[str, Any] = {
        "trial": trial,
        "client": 1,
        "place": place,
        "stage": name,
        "state": "complete",
        "error": None,
        "started_unix_ns": 1_700_000_000 * S + round(start_s * S),
        "started_ns": round(start_s * S),
        "ended_ns": round(end_s * S),
        "settle_ns": 0,
        "input_bytes": 1000,
        "output_bytes": 1000,
        "read_bytes": 1000,
        "write_bytes": 1000,
        "cpu_user_ns": 0,
        "cpu_system_ns": 0,
        "memory_max_bytes": None,
        "target_read_bytes": 1000,
        "target_written_bytes": 1000,
        "read_s": 0.0,
        "write_s": 0.0,
        "meta_s": 0.0,
        "passes": 1.0,
        "passes_by": "trace",
        "enlarges": False,
        "interfaces": "{}",
        "details": "[]",
        "host_busy_share": 0.5,
        "observed_ns": round((end_s - start_s) * S),
    }
    return StageRow(**{**values, **changes})


def trial(target: str, block: int, seconds: Mapping[str, float], **changes: Any) -> TrialRow:
    """A complete trial whose stages took so long."""
    summary = {
        "copies": [account(1, sum(seconds.values()))],
        "stages": [{"client": 1, "stage": stage, "seconds": took} for stage, took in seconds.items()],
    }
    return trial_row(
        trial=f"{target}{block}",
        cell=f"{target}.media",
        target=target,
        work="media",
        block=block,
        summary=json.dumps(summary),
        **changes,
    )
