"""The plan and the study of a replay: one work, on each target, block after block. Nothing is run here."""

from __future__ import annotations

from collections.abc import Mapping

from leadline import units
from leadline.errors import TargetError
from leadline.plan.make import order_trials
from leadline.plan.model import TRIAL_OVERHEAD_S, Plan, PlannedCell
from leadline.study.kind.interface import NOMINAL_BYTES_PER_S
from leadline.study.study import STUDY_FORMAT, Study
from leadline.study.target import Target, TargetFacts
from leadline.workloads.replay.job import ReplayJob
from leadline.workloads.replay.planner import ReplayPlanned

WORK = "replay"


def replay_study(title: str, about: str, blocks: int, seed: int) -> Study:
    """A study that holds what reports and comparisons ask of one; its work's job is in the plan."""
    return Study.model_validate(
        {
            "format": STUDY_FORMAT,
            "name": WORK,
            "title": title[:200],
            "about": about,
            "workloads": {WORK: {}},
            "blocks": blocks,
            "seed": seed,
        }
    )


def replay_plan(
    study: Study, job: ReplayJob, targets: Mapping[str, Target], facts: Mapping[str, TargetFacts]
) -> Plan:
    """Every trial of a replay. Raises TargetError for a target without files."""
    for target in targets.values():
        if not target.is_path:
            raise TargetError(
                f"a trace cannot be replayed on {target.url}: it has no files",
                "name a directory: --target here=/var/tmp",
            )
    seconds = ReplayPlanned().seconds(job)
    cells = [
        PlannedCell(
            f"{name}.{WORK}",
            name,
            WORK,
            {},
            job.model_copy(update={"layout_direct": _direct(facts[name])}),
            None,
            seconds,
            measures_caches=True,
        )
        for name in targets
    ]
    trials = order_trials(cells, study.blocks, study.seed)
    each = seconds + job.layout_bytes / NOMINAL_BYTES_PER_S + TRIAL_OVERHEAD_S
    return Plan(
        study.name,
        study.title,
        study.about,
        study.seed,
        study.blocks,
        tuple(targets.values()),
        tuple(cells),
        trials,
        seconds=each * len(trials),
        bytes_needed=dict.fromkeys(targets, job.data_set_bytes),
        notes=(f"files of {units.format_size(job.layout_bytes)} are prefilled again before each trial",),
    )


def _direct(facts: TargetFacts) -> bool:
    """Blocks of 4 KiB are what files are laid out in."""
    return facts.direct_io and facts.direct_alignment_bytes <= 4096 and not facts.in_memory
