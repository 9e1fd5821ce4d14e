"""Executes a plan: trial after trial, each stored as it ends, and leaves nothing below the targets.

Everything that touches a target happens in a worker process with a deadline (`child`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leadline import units
from leadline.errors import StudyError
from leadline.observe.client import Observer
from leadline.observe.model import delta
from leadline.plan import Layout, PlannedCell, Trial, with_block
from leadline.run.child import Answer, Worker
from leadline.run.model import Display, Growth, Outcome, RunRequest, Stopping, no_growth
from leadline.run.rows import (
    build_latency_rows,
    build_series_rows,
    build_trial_row,
    read_engine_record,
    trial_state,
)
from leadline.run.watch import Watch
from leadline.run.workspace import workspace_path
from leadline.store.writer import ResultWriter

_SMALL_DEADLINE_S = 60.0  # making a directory, unlinking a trial's files
_SLOWEST_BYTES_PER_S = 1 << 20  # below 1 MiB/s a transfer without a runtime counts as hung
_MARK_DEADLINE_S = 4.0
_LAYOUT_GENERATION = 0
_SHORTEST_INTERVAL_NS = 100_000_000


class _StopStudyError(StudyError):
    """The study must not go on (cluster in error, slow operations): it ends here and can be resumed."""


class Executor:
    """One run of one plan into one result."""

    def __init__(
        self,
        request: RunRequest,
        writer: ResultWriter,
        observer: Observer,
        display: Display,
        stopping: Stopping,
        growth: Growth = no_growth,
    ) -> None:
        self._request = request
        self._plan = request.plan
        self._growth = growth
        self._writer = writer
        self._observer = observer
        self._watch = Watch(observer, ignore_health=request.options.ignore_health)
        self._display = display
        self._stopping = stopping
        self._made: dict[str, str] = {}  # target -> workspace
        self._laid_out: set[tuple[str, str]] = set()
        self._lost: dict[str, str] = {}  # target -> why nothing more is tried on it
        self._failed: list[str] = []
        self._not_run: dict[str, str] = {}
        self._run = 0

    def run(self) -> Outcome:
        """Run every trial that is not stored yet. Always removes what was made below the targets."""
        finished = self._writer.finished()
        remaining = [trial for trial in self._request.plan.trials if trial.id not in finished]
        self._writer.journal("run_started", remaining=len(remaining))
        self._display.begin(self._request.plan, len(remaining))
        stopped: str | None = None
        left: tuple[str, ...] = ()
        try:
            for trial in self._trials(remaining):
                if self._stopping():
                    break
                self._run_or_skip(trial)
        except _StopStudyError as error:
            stopped = error.message
            self._writer.journal("stopped", reason=stopped)
        finally:
            left = self._clean_up()
        interrupted = self._stopping()
        if stopped is None and not interrupted:
            self._writer.journal("study_finished", failed=self._failed, not_run=self._not_run)
        elif interrupted:
            self._writer.journal("interrupted")
        return Outcome(self._run, tuple(self._failed), dict(self._not_run), stopped, interrupted, left)

    def _trials(self, remaining: Sequence[Trial]) -> Iterator[Trial]:
        """What remains of the plan, then the blocks by which it grows, each journalled before it begins."""
        yield from remaining
        while not self._stopping():
            cells = self._growth(self._plan, self._request.options)
            if not cells:
                return
            self._writer.journal("block_added", cells=list(cells))
            before = len(self._plan.trials)
            self._plan = with_block(self._plan, cells)
            added = self._plan.trials[before:]
            self._display.grown(added)
            yield from added

    def _run_or_skip(self, trial: Trial) -> None:
        cell = self._request.plan.cell(trial.cell)
        if trial.target in self._lost:
            self._skip(trial, self._lost[trial.target])
            return
        self._display.trial(trial, cell)
        with Worker(self._must_end) as worker:
            problem = self._prepare(worker, cell)
            if problem is None:
                self._measure(worker, trial, cell)
            elif problem.outcome != "interrupted":
                self._skip(trial, problem.message)
                self._lose_when_gone(trial.target, problem)
        if worker.stuck:
            self._lose(trial.target, f"process {worker.pid} is stuck in the kernel on this target")

    def _skip(self, trial: Trial, reason: str) -> None:
        self._writer.journal("trial_not_run", trial=trial.id, cell=trial.cell, reason=reason)
        if trial.cell not in self._not_run:
            self._display.say(f"{trial.cell} was not run: {reason}")
        self._not_run[trial.cell] = reason

    def _lose_when_gone(self, target: str, answer: Answer) -> None:
        """A hung or unreachable target is left alone from here on: each further try would cost a deadline."""
        if answer.outcome in ("hung", "died") or target not in self._made:
            self._lose(target, answer.message)

    def _lose(self, target: str, reason: str) -> None:
        if target not in self._lost:
            self._lost[target] = reason
            self._writer.journal("target_lost", target=target, reason=reason)

    # -- before a trial ------------------------------------------------------------------------------

    def _prepare(self, worker: Worker, cell: PlannedCell) -> Answer | None:
        """Workspace and files for a cell; the answer that went wrong, or None."""
        if cell.job.engine == "null":
            return None
        problem = self._ensure_workspace(worker, cell.target)
        if problem is None and cell.layout is not None:
            problem = self._ensure_layout(worker, cell, cell.layout)
        return problem

    def _ensure_workspace(self, worker: Worker, target: str) -> Answer | None:
        if target in self._made:
            return None
        url = next(t.url for t in self._request.plan.targets if t.name == target)
        directory = str(workspace_path(url, self._request.id))
        self._writer.journal("workspace_intended", target=target, directory=directory)
        answer = worker.call("make_workspace", _SMALL_DEADLINE_S, directory=directory, id=self._request.id)
        if answer.outcome != "done":
            return answer
        self._made[target] = directory
        return None

    def _ensure_layout(self, worker: Worker, cell: PlannedCell, layout: Layout) -> Answer | None:
        if (cell.target, layout.key) in self._laid_out:
            return None
        free = worker.call("space", _SMALL_DEADLINE_S, directory=self._made[cell.target])
        if free.outcome != "done":
            return free
        reserve = self._request.options.reserve_bytes.get(cell.target, 0)
        if free.value["free_bytes"] - layout.total_bytes < reserve:
            return Answer(
                "failed",
                message=f"laying out {units.format_size(layout.total_bytes)} would leave less than the"
                f" reserve of {units.format_size(reserve)} free on target {cell.target}",
            )
        job = self._engine_job(cell, None, layout)
        deadline_s = layout.total_bytes / _SLOWEST_BYTES_PER_S + self._request.options.grace_s
        answer = worker.call("layout", deadline_s, self._display.progress, job=job)
        if answer.outcome != "done":
            return answer
        self._laid_out.add((cell.target, layout.key))
        self._writer.journal("layout_finished", target=cell.target, key=layout.key, **answer.value)
        return None

    def _engine_job(self, cell: PlannedCell, trial: Trial | None, layout: Layout | None) -> dict[str, Any]:
        """The engine's JSON (format leadline.job/1), for a layout when `trial` is None."""
        prefix = _prefix(cell, trial, layout)
        options = self._request.options
        return {
            "format": "leadline.job/1",
            "trial": trial.id if trial else f"layout-{prefix}",
            "directory": self._made.get(cell.target, "/"),
            "prefix": prefix,
            **cell.job.as_json(),
            "seed": trial.seed if trial else self._request.plan.seed,
            "generation": trial.order if trial else _LAYOUT_GENERATION,
            "interval_ns": _interval_ns(cell, options.interval_s),
            "deadline_ns": int(self._deadline_s(cell) * 1e9),
            "parent_pid": None,
            "layout_rate_bytes_per_s": options.layout_rate_bytes_per_s,
        }

    def _deadline_s(self, cell: PlannedCell) -> float:
        job = cell.job
        planned_s = (job.ramp_time_ns + job.runtime_ns) / 1e9
        if not job.time_based:
            planned_s = max(planned_s, job.data_set_bytes / _SLOWEST_BYTES_PER_S)
        return planned_s + self._request.options.grace_s

    # -- a trial -------------------------------------------------------------------------------------

    def _measure(self, worker: Worker, trial: Trial, cell: PlannedCell) -> None:
        dropped = self._drop_caches(worker)
        self._watch.begin()
        before = self._observer.mark(f"{trial.id}:start", trial.target, worker.pid, _MARK_DEADLINE_S)
        self._watch.check(before.state)
        self._stop_when_in_trouble(trial)
        self._writer.journal("trial_started", trial=trial.id, cell=trial.cell, worker=worker.pid)
        record = self._writer.record_path(trial.id)
        answer = worker.call(
            "trial",
            self._deadline_s(cell) + 5.0,
            self._display.progress,
            job=self._engine_job(cell, trial, cell.layout),
            record=str(record),
        )
        after = self._observer.mark(f"{trial.id}:end", trial.target, worker.pid, _MARK_DEADLINE_S)
        if trial_state(answer) == "interrupted":
            self._writer.journal("trial_interrupted", trial=trial.id)
            record.unlink(missing_ok=True)
            self._stop_when_in_trouble(trial)
            return
        samples = self._watch.samples()
        found = read_engine_record(record)
        row = build_trial_row(trial, cell, answer, found, delta(before, after), dropped)
        latency = build_latency_rows(trial.id, found)
        self._writer.write_trial(
            row, latency, build_series_rows(trial.id, found, samples, row.started_unix_ns)
        )
        self._run += 1
        if row.state != "complete":
            self._failed.append(trial.id)
            self._display.say(f"{trial.id} {trial.cell}: {row.error}")
            self._lose_when_gone(trial.target, answer)
        self._display.finished(row)
        if row.state != "hung" and cell.layout is None and cell.target in self._made:
            worker.call(
                "remove_files",
                _SMALL_DEADLINE_S,
                directory=self._made[cell.target],
                prefix=_prefix(cell, trial, None),
            )
        self._watch.check(after.state)
        self._stop_when_in_trouble(trial)

    def _drop_caches(self, worker: Worker) -> bool:
        if not self._request.options.drop_caches:
            return False
        answer = worker.call("drop_caches", _SMALL_DEADLINE_S)
        if answer.outcome != "done":
            raise StudyError(
                f"the host's caches could not be dropped: {answer.message}",
                "run as root, or without --drop-caches",
            )
        return True

    def _stop_when_in_trouble(self, trial: Trial) -> None:
        if self._watch.trouble is not None:
            raise _StopStudyError(f"{self._watch.trouble}, at trial {trial.id}")

    def _must_end(self) -> bool:
        """What a worker is asked to end for in the middle of a trial."""
        return self._stopping() or self._watch.in_trouble()

    # -- afterwards ----------------------------------------------------------------------------------

    def _clean_up(self) -> tuple[str, ...]:
        """Remove the workspaces; those that could not be removed are named."""
        places = {target: path for target, path in self._made.items() if target not in self._lost}
        left = [path for target, path in self._made.items() if target in self._lost]
        left += remove_workspaces(self._request.id, places, self._writer)
        return tuple(left)


def _interval_ns(cell: PlannedCell, interval_s: float) -> int:
    """The asked interval, but short enough that even a short trial has ten of them; at least 100 ms."""
    planned_ns = cell.job.ramp_time_ns + cell.job.runtime_ns
    asked_ns = int(interval_s * 1e9)
    return min(asked_ns, max(planned_ns // 10, _SHORTEST_INTERVAL_NS)) if planned_ns else asked_ns


def _prefix(cell: PlannedCell, trial: Trial | None, layout: Layout | None) -> str:
    """How a target's files begin; two targets may be one directory (a study of it against itself)."""
    kind = f"data-{layout.key}" if layout is not None else f"fresh-{trial.id if trial else ''}"
    return f"{cell.target}-{kind}"


def remove_workspaces(study_id: str, places: Mapping[str, str], writer: ResultWriter) -> list[str]:
    """Remove a study's directories below its targets, each in a worker of its own; returns what is left."""
    left = []
    for target, directory in places.items():
        with Worker() as worker:
            answer = worker.call("remove_workspace", 10 * _SMALL_DEADLINE_S, directory=directory, id=study_id)
        if answer.outcome == "done":
            writer.journal("workspace_removed", target=target, directory=directory)
        else:
            writer.journal("workspace_left", target=target, directory=directory, reason=answer.message)
            left.append(directory)
    return left


def left_workspaces(writer: ResultWriter) -> dict[str, str]:
    """Directories that the journal says may still exist below the targets: target -> directory."""
    open_places: dict[str, str] = {}
    for event in writer.events():
        if event.event == "workspace_intended":
            open_places[event.details["target"]] = event.details["directory"]
        elif event.event == "workspace_removed":
            open_places.pop(event.details["target"], None)
    return open_places
