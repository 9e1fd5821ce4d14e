"""Makes a result of ours of what another program measured: its plan, its study, and a row for each trial."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline import _core
from leadline.counters.catalogue import trial_figures
from leadline.errors import UsageError
from leadline.imported.job import ImportedJob
from leadline.plan.model import Plan, PlannedCell, Trial
from leadline.store.reader import KIND_STUDY
from leadline.store.tables import LatencyRow, TrialRow
from leadline.store.writer import create_result
from leadline.study.study import CELLS_MAX, STUDY_FORMAT, Study
from leadline.study.target import Target, TargetFacts

TRIALS_MAX = 9_999
BLOCKS_MAX = 1_000
_WHOLE = -1
_TITLE_MAX = 200
_COUNT_MAX = (1 << 63) - 1


@dataclass(frozen=True)
class Histogram:
    """The latencies of one direction by one clock; mean, least and largest as that program has them."""

    direction: str
    clock: str
    min_ns: int
    mean_ns: float
    max_ns: int
    blob: bytes


@dataclass(frozen=True)
class ForeignTrial:
    """One execution of a job. `amounts` are (bytes, operations) by direction; `said` is kept as it is."""

    block: int
    started_unix_ns: int
    ramp_ns: int
    measured_ns: int
    first_done_ns: int
    error: str | None
    amounts: Mapping[str, tuple[int, int]]
    syncs: int
    cpu_user_ns: int
    cpu_system_ns: int
    start_skew_ns: int | None
    histograms: tuple[Histogram, ...]
    said: Mapping[str, Any]


@dataclass(frozen=True)
class ForeignCell:
    """A job with its trials. Those of one `group` ran at the same time."""

    name: str
    job: ImportedJob
    trials: tuple[ForeignTrial, ...]
    group: str | None


@dataclass(frozen=True)
class ForeignSource:
    """What was read: the program, the names of its files and a digest of all that is in them."""

    program: str
    version: str
    files: tuple[str, ...]
    digest: str


def source_of(program: str, version: str, texts: Mapping[str, str]) -> ForeignSource:
    """The identity of a result: the same files give the same."""
    digest = hashlib.sha256("\0".join(texts.values()).encode("utf-8", "replace")).hexdigest()
    return ForeignSource(program, version, tuple(texts), digest)


def write_imported(
    path: Path,
    source: ForeignSource,
    cells: Sequence[ForeignCell],
    target: str,
    details: Mapping[str, Any],
    now_ns: Callable[[], int],
) -> None:
    """Make the result directory. Raises UsageError where it exists, or there is too much for one."""
    manifest, trials = imported_trials(source, cells, target)
    with closing(create_result(path, {**manifest, **details}, now_ns)) as writer:
        for row, latency in trials:
            writer.write_trial(row, latency, ())
        failed = [row.trial for row, _ in trials if row.error]
        writer.journal("study_finished", failed=failed, not_run={})
        writer.bundle()


def imported_trials(
    source: ForeignSource, cells: Sequence[ForeignCell], target: str
) -> tuple[dict[str, Any], list[tuple[TrialRow, list[LatencyRow]]]]:
    """What a manifest says, and the rows of every trial. Raises UsageError."""
    blocks = max(trial.block for cell in cells for trial in cell.trials)
    count = sum(len(cell.trials) for cell in cells)
    if len(cells) > CELLS_MAX or count > TRIALS_MAX or blocks > BLOCKS_MAX:
        raise UsageError(
            f"{len(cells)} jobs in {blocks} files are more than one result has"
            f" ({CELLS_MAX} jobs, {TRIALS_MAX} trials, {BLOCKS_MAX} files)",
            "import fewer files at a time",
        )
    study = _study(source, cells, blocks)
    plan, pairs = _plan(study, cells, Target(target, f"imported://{source.program}"))
    facts = TargetFacts("imported", "unknown", f"what {source.version} measured, as it says")
    manifest = {
        "kind": KIND_STUDY,
        "id": source.digest[:8],
        "plan": plan.as_json(),
        "targets": {target: facts.as_json()},
        "options": {},
        "study": study.as_json(),
        "imported": {"kind": source.program, "files": list(source.files), "sha256": source.digest},
    }
    together: dict[tuple[str, int], list[ForeignTrial]] = {}
    for trial, planned, made in pairs:
        if planned.group:
            together.setdefault((planned.group, trial.block), []).append(made)
    trials = []
    for trial, planned, made in pairs:
        beside = together.get((planned.group or "", trial.block), ())
        row = _row(trial, planned, made, beside)
        if any(isinstance(value, int) and value > _COUNT_MAX for value in vars(row).values()):
            raise UsageError(f"a sum of {planned.work} is beyond all bounds", "import the jobs one by one")
        trials.append((row, _latency(trial.id, made)))
    return manifest, trials


def _study(source: ForeignSource, cells: Sequence[ForeignCell], blocks: int) -> Study:
    names = ", ".join(source.files)
    return Study.model_validate(
        {
            "format": STUDY_FORMAT,
            "name": source.program,
            "title": f"{source.program}: {names}"[:_TITLE_MAX],
            "workloads": {cell.name: {} for cell in cells},
            "blocks": blocks,
        }
    )


def _plan(
    study: Study, cells: Sequence[ForeignCell], target: Target
) -> tuple[Plan, list[tuple[Trial, PlannedCell, ForeignTrial]]]:
    planned = [
        PlannedCell(
            id=f"{target.name}.{cell.name}",
            target=target.name,
            work=cell.name,
            factors={},
            job=cell.job,
            layout=None,
            seconds=cell.trials[0].measured_ns / 1e9,
            group=None if cell.group is None else f"{target.name}.{cell.group}",
            order=None if cell.group is None else "together",
        )
        for cell in cells
    ]
    every = [
        (made.block, one, made) for one, cell in zip(planned, cells, strict=True) for made in cell.trials
    ]
    every.sort(key=lambda one: one[0])
    pairs = [
        (Trial(f"t{order:04d}", order, block, one.id, target.name, 0), one, made)
        for order, (block, one, made) in enumerate(every, start=1)
    ]
    trials = tuple(trial for trial, _, _ in pairs)
    seconds = sum(made.measured_ns for _, _, made in pairs) / 1e9
    plan = Plan(
        study.name,
        study.title,
        study.about,
        study.seed,
        study.blocks,
        (target,),
        tuple(planned),
        trials,
        seconds=seconds,
        bytes_needed={target.name: 0},
    )
    return plan, pairs


def _row(trial: Trial, planned: PlannedCell, made: ForeignTrial, beside: Sequence[ForeignTrial]) -> TrialRow:
    reads, writes = (made.amounts.get(name, (0, 0)) for name in ("read", "write"))
    end_ns = made.ramp_ns + made.measured_ns
    program = str(made.said.get("program"))
    return TrialRow(
        trial=trial.id,
        cell=planned.id,
        target=planned.target,
        work=planned.work,
        block=trial.block,
        order=trial.order,
        seed=trial.seed,
        state="error" if made.error else "complete",
        error=made.error,
        started_unix_ns=made.started_unix_ns,
        ramp_ns=made.ramp_ns,
        measured_ns=made.measured_ns,
        first_done_ns=made.first_done_ns,
        last_done_ns=end_ns,
        read_bytes=reads[0],
        read_operations=reads[1],
        write_bytes=writes[0],
        write_operations=writes[1],
        sync_operations=made.syncs,
        total_read_bytes=reads[0],
        total_write_bytes=writes[0],
        cpu_user_ns=made.cpu_user_ns,
        cpu_system_ns=made.cpu_system_ns,
        busy_share_max=None,
        late_ns_max=None,
        late_ns_mean=None,
        unwritten_blocks=0,
        verified_blocks=0,
        caches_dropped=False,
        job=json.dumps(planned.job.as_json()),
        factors="{}",
        threads="[]",
        summary=json.dumps({"imported": dict(made.said)}),
        reasons=json.dumps({one.name: f"{program} measured it, not leadline" for one in trial_figures()}),
        sources="{}",
        start_state=json.dumps(None),
        end_state=json.dumps(None),
        group=planned.group,
        start_skew_ns=made.start_skew_ns,
        group_read_bytes=_moved(beside, "read") if planned.group else None,
        group_written_bytes=_moved(beside, "write") if planned.group else None,
    )


def _moved(trials: Sequence[ForeignTrial], direction: str) -> int:
    return sum(one.amounts.get(direction, (0, 0))[0] for one in trials)


def _latency(trial: str, made: ForeignTrial) -> list[LatencyRow]:
    rows = []
    for one in made.histograms:
        p50, p99 = _core.histogram_percentiles(one.blob, [50.0, 99.0])
        rows.append(
            LatencyRow(
                trial=trial,
                direction=one.direction,
                clock=one.clock,
                interval=_WHOLE,
                start_ns=made.ramp_ns,
                end_ns=made.ramp_ns + made.measured_ns,
                measured=True,
                operations=int(_core.histogram_summary(one.blob)["count"]),
                min_ns=one.min_ns,
                mean_ns=one.mean_ns,
                max_ns=one.max_ns,
                p50_ns=p50,
                p99_ns=p99,
                histogram=one.blob,
            )
        )
    return rows
