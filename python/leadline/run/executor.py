"""Executes a plan: trial after trial, each stored as it ends, and leaves nothing below the targets.

Everything that touches a target happens in a worker process with a deadline (`child`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from leadline import units
from leadline.errors import StudyError
from leadline.observe.client import Observer
from leadline.observe.model import delta
from leadline.observe.patience import patient_s
from leadline.plan.model import Layout, PlannedCell, Trial, with_block
from leadline.run.child import Answer, Worker
from leadline.run.group import Halt, Member, join_rows, run_jobs
from leadline.run.health import Watch, cluster_peaks
from leadline.run.model import Display, Growth, Outcome, Pilot, RunRequest, Stopping, no_growth, no_progress
from leadline.run.probes import Probes
from leadline.run.rows import (
    build_latency_rows,
    build_series_rows,
    build_trial_row,
    read_engine_record,
    trial_state,
)
from leadline.run.steady import SteadyWatch, measure_steady
from leadline.run.workspace import Place, workspace_of
from leadline.store.writer import ResultWriter, StoredTrial
from leadline.study import schemes
from leadline.workloads.application.job import ApplicationJob
from leadline.workloads.application.orders import deadline_s as application_deadline_s
from leadline.workloads.application.orders import worker_job
from leadline.workloads.coherence.conversation import converse
from leadline.workloads.coherence.job import CoherenceJob
from leadline.workloads.coherence.pairs import targets_of
from leadline.workloads.io.job import Job
from leadline.workloads.metadata.job import MetadataJob
from leadline.workloads.replay.job import ReplayJob

_SMALL_DEADLINE_S = 60.0  # making a directory, unlinking a trial's files
_SLOWEST_BYTES_PER_S = 1 << 20  # below 1 MiB/s a transfer without a runtime counts as hung
_SLOWEST_OPERATIONS_PER_S = 20.0  # of metadata; below, a pass counts as hung
_MARK_DEADLINE_S = 4.0
_LAYOUT_GENERATION = 0
_SHORTEST_INTERVAL_NS = 100_000_000
_REMOVE_SLICE_S = 10.0
_REMOVE_DEADLINE_S = _REMOVE_SLICE_S + _SMALL_DEADLINE_S


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
        pilot: Pilot,
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
        self._probes = Probes(writer.path, request.plan.cells, pilot)
        self._made: dict[str, Place] = {}  # target -> workspace
        self._laid_out: set[tuple[str, str]] = set()
        self._lost: dict[str, str] = {}  # target -> why nothing more is tried on it
        self._failed: list[str] = []
        self._not_run: dict[str, str] = {}
        self._run = 0

    def run(self) -> Outcome:
        """Run every trial that is not stored yet. Always removes what was made below the targets."""
        slots = self._request.plan.slots(without=self._writer.finished())
        remaining = sum(map(len, slots))
        self._writer.journal("run_started", remaining=remaining)
        self._display.begin(self._request.plan, remaining)
        stopped: str | None = None
        left: tuple[str, ...] = ()
        try:
            for slot in self._slots(slots):
                if self._stopping():
                    break
                self._run_or_skip(slot)
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

    def _slots(self, planned: Sequence[Sequence[Trial]]) -> Iterator[Sequence[Trial]]:
        """What remains of the plan, then the blocks by which it grows, each journalled before it begins."""
        yield from planned
        while not self._stopping():
            cells = self._growth(self._plan, self._request.options)
            if not cells:
                return
            self._writer.journal("block_added", cells=list(cells))
            before = {trial.id for trial in self._plan.trials}
            self._plan = with_block(self._plan, cells)
            self._display.grown([trial for trial in self._plan.trials if trial.id not in before])
            yield from self._plan.slots(without=before)

    def _run_or_skip(self, slot: Sequence[Trial]) -> None:
        cells = [self._request.plan.cell(trial.cell) for trial in slot]
        lost = next((name for cell in cells for name in targets_of(cell) if name in self._lost), None)
        target = slot[0].target
        if lost is not None:
            self._skip(slot, self._lost[lost])
            return
        self._display.trial(slot[0], cells[0])
        halt = Halt(self._must_end)
        with ExitStack() as stack:
            workers = [stack.enter_context(Worker(halt)) for _ in slot]
            prepared = (self._prepare(*one) for one in zip(workers, cells, slot, strict=True))
            problem = next((found for found in prepared if found is not None), None)
            if problem is None:
                pairs = zip(slot, cells, workers, strict=True)
                self._measure_slot([self._member(*one, shown=one[0] is slot[0]) for one in pairs], halt)
            elif problem.outcome != "interrupted":
                self._skip(slot, problem.message)
                self._lose_when_gone(target, problem)
        for worker in workers:
            if worker.stuck:
                self._lose(target, f"process {worker.pid} is stuck in the kernel on this target")

    def _member(self, trial: Trial, cell: PlannedCell, worker: Worker, *, shown: bool) -> Member:
        chosen = self._probes.with_rate(trial, cell)
        return Member(
            trial,
            chosen,
            worker,
            self._engine_job(chosen, trial, chosen.layout),
            shown or cell.order == "sequence",
        )

    def _skip(self, slot: Sequence[Trial], reason: str) -> None:
        for trial in slot:
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

    def _prepare(self, worker: Worker, cell: PlannedCell, trial: Trial) -> Answer | None:
        """Workspace and files for a cell; the answer that went wrong, or None."""
        if cell.job.engine == schemes.storageless().name:
            return None
        problem = self._ensure_workspace(worker, cell.target)
        if problem is None and isinstance(cell.job, CoherenceJob) and cell.job.reader != cell.target:
            problem = self._ensure_reader(cell.job.reader)
        if problem is None and cell.layout is not None:
            problem = self._ensure_layout(worker, cell, cell.layout)
        if problem is None and isinstance(cell.job, ReplayJob):
            job, total = self._engine_job(cell, trial, None), cell.job.data_set_bytes
            problem = self._lay_out(worker, cell.target, job, total, None)
        return problem

    def _ensure_reader(self, target: str) -> Answer | None:
        """The same where the other side looks; a way that hangs is left alone, and not the writer's."""
        with Worker(self._must_end) as worker:
            problem = self._ensure_workspace(worker, target)
        if problem is not None and problem.outcome != "interrupted":
            self._lose_when_gone(target, problem)
        return problem

    def _ensure_workspace(self, worker: Worker, target: str) -> Answer | None:
        if target in self._made:
            return None
        described = next(t for t in self._request.plan.targets if t.name == target)
        place = workspace_of(described, self._request.id)
        self._writer.journal("workspace_intended", target=target, **place._asdict())
        answer = worker.call(
            "make_workspace", patient_s(_SMALL_DEADLINE_S), id=self._request.id, **place._asdict()
        )
        if answer.outcome != "done":
            return answer
        self._made[target] = place
        return None

    def _ensure_layout(self, worker: Worker, cell: PlannedCell, layout: Layout) -> Answer | None:
        if (cell.target, layout.key) in self._laid_out:
            return None
        job = self._engine_job(cell, None, layout)
        problem = self._lay_out(worker, cell.target, job, layout.total_bytes, layout.key)
        if problem is None:
            self._laid_out.add((cell.target, layout.key))
        return problem

    def _lay_out(
        self, worker: Worker, target: str, job: dict[str, Any], total_bytes: int, key: str | None
    ) -> Answer | None:
        """Have a job's files written; `key` is that of a layout which other cells share."""
        free = worker.call("space", patient_s(_SMALL_DEADLINE_S), **self._made[target]._asdict())
        if free.outcome != "done":
            return free
        reserve = self._request.options.reserve_bytes.get(target, 0)
        free_bytes = free.value["free_bytes"]
        if free_bytes is not None and free_bytes - total_bytes < reserve:
            return Answer(
                "failed",
                message=f"laying out {units.format_size(total_bytes)} would leave less than the"
                f" reserve of {units.format_size(reserve)} free on target {target}",
            )
        deadline_s = total_bytes / _SLOWEST_BYTES_PER_S + self._request.options.grace_s
        answer = worker.call("layout", deadline_s, self._display.progress, job=job)
        if answer.outcome != "done":
            return answer
        self._writer.journal("layout_finished", target=target, key=key, **answer.value)
        return None

    def _engine_job(self, cell: PlannedCell, trial: Trial | None, layout: Layout | None) -> dict[str, Any]:
        """The engine's JSON (format leadline.job/1), for a layout when `trial` is None."""
        prefix = _prefix(cell, trial, layout)
        options = self._request.options
        if isinstance(cell.job, ApplicationJob):
            prefixes = prefix, _prefix(cell, trial, None)
            places = {
                "directory": self._made.get(cell.target, Place("/")).directory,
                "result": str(self._writer.path.resolve()),
                "logs": str(self._writer.logs_path(trial.id if trial else "").resolve()),
            }
            return worker_job(cell, cell.job, trial, prefixes, places)
        place = self._made.get(cell.target, Place("/"))
        job = cell.job
        if trial is None and isinstance(job, MetadataJob):
            job = job.layout_job(place.engine)
        own: dict[str, Any] = {} if place.location is None else {"location": place.location}
        if isinstance(job, Job):  # a job of metadata lays nothing out
            own |= {"layout_rate_bytes_per_s": options.layout_rate_bytes_per_s}
        elif isinstance(job, ReplayJob):
            own |= {"script": str((self._writer.path / job.script).resolve())}
        return {
            "format": job.engine_format,
            "trial": trial.id if trial else f"layout-{prefix}",
            "directory": place.directory,
            "prefix": prefix,
            **job.as_json(),
            "seed": trial.seed if trial else self._request.plan.seed,
            "generation": trial.order if trial else _LAYOUT_GENERATION,
            "interval_ns": _interval_ns(cell, options.interval_s),
            "deadline_ns": int(self._deadline_s(cell) * 1e9),
            "parent_pid": None,
            **own,
        }

    def _deadline_s(self, cell: PlannedCell) -> float:
        job = cell.job
        if isinstance(job, ApplicationJob):
            return application_deadline_s(job) + self._request.options.grace_s
        if isinstance(job, CoherenceJob):
            return job.seconds_max + self._request.options.grace_s
        planned_s = (job.ramp_time_ns + job.runtime_ns) / 1e9
        if isinstance(job, MetadataJob):
            planned_s += job.pass_operations / _SLOWEST_OPERATIONS_PER_S  # a pass is never cut
        elif isinstance(job, ReplayJob):
            planned_s += job.calls / _SLOWEST_OPERATIONS_PER_S + job.moved_bytes / _SLOWEST_BYTES_PER_S
        elif not job.time_based:
            planned_s = max(planned_s, job.data_set_bytes / _SLOWEST_BYTES_PER_S)
        return planned_s + self._request.options.grace_s

    # -- a slot: a trial, or those of a group's jobs ---------------------------------------------------

    def _measure_slot(self, members: Sequence[Member], halt: Halt) -> None:
        """Measure and store; a slot that was interrupted is not stored, and not in part either."""
        shots = [[one] for one in members] if members[0].cell.order == "sequence" else [members]
        stored: list[StoredTrial] = []
        answers: list[Answer] = []
        for shot in shots:
            self._display.trial(shot[0].trial, shot[0].cell)
            found = self._measure(shot, halt, answers)
            if not found:
                for member in members:
                    self._writer.journal("trial_interrupted", trial=member.trial.id)
                    self._writer.discard(member.trial.id)
                self._stop_when_in_trouble(members[-1].trial)
                return
            stored += found
            for member, (row, _, _) in zip(shot, found, strict=True):
                if row.state != "hung":
                    self._remove_fresh_files(member)
            if answers[-1].outcome in ("hung", "died"):
                break
        self._store(members, stored, answers)
        self._stop_when_in_trouble(members[-1].trial)

    def _measure(self, members: Sequence[Member], halt: Halt, answers: list[Answer]) -> list[StoredTrial]:
        """Run jobs at the same time between two marks; nothing where they were interrupted."""
        first = members[0]
        dropped = self._drop_caches(first.worker)
        self._watch.begin()
        trial, pid = first.trial, first.worker.pid
        before = self._observer.mark(f"{trial.id}:start", trial.target, pid, patient_s(_MARK_DEADLINE_S))
        self._watch.check(before.state)
        self._stop_when_in_trouble(trial)
        for member in members:
            self._writer.journal(
                "trial_started", trial=member.trial.id, cell=member.cell.id, worker=member.worker.pid
            )
        found = run_jobs(members, self._call, halt, patient_s(_SMALL_DEADLINE_S))
        halt.clear()
        after = self._observer.mark(f"{trial.id}:end", trial.target, pid, patient_s(_MARK_DEADLINE_S))
        states = [trial_state(answer) for answer in found]
        if "interrupted" in states and (self._must_end() or not {"error", "hung"} & set(states)):
            return []
        self._watch.check(after.state)
        answers += found
        samples = self._watch.samples()
        change = delta(before, after)
        peaks = cluster_peaks(samples) if self._has_one_cluster(trial.target) else {}
        records, rows = [], []
        for member, answer in zip(members, found, strict=True):
            record = read_engine_record(self._writer.record_path(member.trial.id))
            if member.cell.steady is not None and trial_state(answer) == "complete":
                record, value = measure_steady(record, answer.value, member.cell.steady)
                answer = replace(answer, value=value)  # noqa: PLW2901 - the same answer, its interval chosen
            records.append(record)
            rows.append(build_trial_row(member.trial, member.cell, answer, record, change, dropped, peaks))
        return [
            (
                row,
                build_latency_rows(row.trial, record),
                build_series_rows(row.trial, record, samples, row.started_unix_ns),
            )
            for row, record in zip(join_rows(rows), records, strict=True)
        ]

    def _has_one_cluster(self, target: str) -> bool:
        """True where samples of "the cluster" can be of this target's only."""
        facts = self._request.facts
        places = {(one.ceph.conf, one.ceph.name) for one in facts.values() if one.ceph is not None}
        return len(places) == 1 and facts[target].ceph is not None

    def _call(self, member: Member, start_ns: int | None) -> Answer:
        """Run one job in its worker, to its end or until it is steady."""
        cell, record = member.cell, self._writer.record_path(member.trial.id)
        if isinstance(cell.job, CoherenceJob):
            return self._converse(member, cell.job)
        watch = None
        if cell.steady is not None and isinstance(cell.job, Job):
            watch = SteadyWatch(cell.steady, cell.job, record)
        answer = member.worker.call(
            "trial",
            self._deadline_s(cell) + 5.0,
            self._display.progress if member.shown else no_progress,
            (lambda: False) if watch is None else watch.reached,
            job=member.job,
            record=str(record),
            start_at_ns=start_ns,
        )
        if watch is None or self._must_end():
            return answer
        return watch.as_complete(answer, lambda: read_engine_record(record))

    def _converse(self, member: Member, job: CoherenceJob) -> Answer:
        """A coherence trial: the reader has a worker of its own."""
        places = self._made[member.cell.target], self._made[job.reader]
        prefix = _prefix(member.cell, member.trial, None)
        answer, reader_gone = converse(member.worker, job, prefix, places, self._must_end)
        if reader_gone:
            self._lose(job.reader, answer.message)
        return answer

    def _store(
        self, members: Sequence[Member], stored: Sequence[StoredTrial], answers: Sequence[Answer]
    ) -> None:
        self._writer.write_trials(stored)
        for (row, latency, _), answer in zip(stored, answers, strict=True):
            self._run += 1
            self._probes.add(row, latency)
            if row.state != "complete":
                self._failed.append(row.trial)
                self._display.say(f"{row.trial} {row.cell}: {row.error}")
                self._lose_when_gone(row.target, answer)
            self._display.finished(row)
        left = [member.trial for member in members[len(stored) :]]
        if left:
            self._skip(left, f"{stored[-1][0].cell} before it did not end")

    def _remove_fresh_files(self, member: Member) -> None:
        cell = member.cell
        own = cell.layout is None or isinstance(cell.job, ApplicationJob)
        if own and cell.target in self._made:
            place, prefix = self._made[cell.target], _prefix(cell, member.trial, None)
            remove_all(member.worker, "remove_files", prefix=prefix, **place._asdict())

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
        places = {target: place for target, place in self._made.items() if target not in self._lost}
        left = [place.words for target, place in self._made.items() if target in self._lost]
        left += remove_workspaces(self._request.id, places, self._writer)
        return tuple(left)


def _interval_ns(cell: PlannedCell, interval_s: float) -> int:
    """The asked interval, but short enough that even a short trial has twenty of them; at least 100 ms.
    With fewer a shift of level could not be told from noise.

    Where a steady state is looked for, its window.
    """
    if cell.steady is not None:
        return cell.steady.window
    planned_ns = cell.job.ramp_time_ns + cell.job.runtime_ns
    asked_ns = int(interval_s * 1e9)
    return min(asked_ns, max(planned_ns // 20, _SHORTEST_INTERVAL_NS)) if planned_ns else asked_ns


def _prefix(cell: PlannedCell, trial: Trial | None, layout: Layout | None) -> str:
    """How a target's files begin; two targets may be one directory (a study of it against itself)."""
    kind = f"data-{layout.key}" if layout is not None else f"fresh-{trial.id if trial else ''}"
    return f"{cell.target}-{kind}"


def remove_all(worker: Worker, command: str, **arguments: Any) -> Answer:
    """Remove in slices, each with a deadline: millions of files may take their time, a hung mount may not."""
    while True:
        answer = worker.call(command, _REMOVE_DEADLINE_S, slice_s=_REMOVE_SLICE_S, **arguments)
        if answer.outcome != "done" or not answer.value.get("more"):
            return answer


def remove_workspaces(study_id: str, places: Mapping[str, Place], writer: ResultWriter) -> list[str]:
    """Remove a study's directories below its targets, each in a worker of its own; returns what is left."""
    left = []
    for target, place in places.items():
        with Worker() as worker:
            answer = remove_all(worker, "remove_workspace", id=study_id, **place._asdict())
        if answer.outcome == "done":
            writer.journal("workspace_removed", target=target, **place._asdict())
        else:
            writer.journal("workspace_left", target=target, reason=answer.message, **place._asdict())
            left.append(place.words)
    return left


def left_workspaces(writer: ResultWriter) -> dict[str, Place]:
    """Directories that the journal says may still exist below the targets, by target."""
    open_places: dict[str, Place] = {}
    for event in writer.events():
        if event.event == "workspace_intended":
            found = event.details
            open_places[found["target"]] = Place(found["directory"], found.get("location"))
        elif event.event == "workspace_removed":
            open_places.pop(event.details["target"], None)
    return open_places
