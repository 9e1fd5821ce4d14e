"""Executes a plan: trial after trial, each stored as it ends, and leaves nothing below the targets.

Everything that touches a target happens in a worker process with a deadline (`child`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from leadline.errors import StudyError
from leadline.observe.client import Observer
from leadline.observe.clock import ClockWatch
from leadline.observe.model import delta
from leadline.observe.patience import patient_s
from leadline.plan.model import PlannedCell, Trial
from leadline.plan.order import with_block
from leadline.run.child import Answer, Worker
from leadline.run.face import SLOWEST_BYTES_PER_S, Assignment, Preparing, ReadingBack, Scene
from leadline.run.failures import CELL_ENDED, Failures
from leadline.run.faulted import FaultWatch
from leadline.run.group import Halt, Member, join_rows, run_jobs
from leadline.run.health import Watch, cluster_peaks
from leadline.run.model import Display, Growth, Outcome, Pilot, RunRequest, Stopping, no_growth, no_progress
from leadline.run.places import SMALL_DEADLINE_S, Places
from leadline.run.probes import Probes
from leadline.run.rows import (
    build_latency_rows,
    build_series_rows,
    build_trial_row,
    read_engine_record,
    trial_state,
)
from leadline.run.steady import SteadyWatch, measure_steady
from leadline.store.writer import ResultWriter, StoredTrial
from leadline.study.kind.face import Layout
from leadline.study.schemes import uses_storage
from leadline.workloads.conducted import conducted

_MARK_DEADLINE_S = 4.0
_LAYOUT_GENERATION = 0
_DEADLINE_NS_MAX = 2**63 - 1  # what the engine can count to
_SHORTEST_INTERVAL_NS = 100_000_000


class _StopStudyError(StudyError):
    """The study must not go on (cluster in error, slow operations): it ends here and can be resumed."""


@dataclass(frozen=True)
class _Trouble:
    """What kept a trial from beginning, and the target that it came from."""

    target: str
    answer: Answer


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
        self._places = Places(request, writer)
        self._failures = Failures(request.plan.cells, writer.events())
        self._clock = ClockWatch()
        self._faults = FaultWatch(request.options.labs, writer, under_fault=request.options.under_fault)
        self._lost: dict[str, str] = {}  # target -> why nothing more is tried on it
        self._failed: list[str] = []
        self._not_run: dict[str, str] = {}
        self._run = 0

    def run(self) -> Outcome:
        """Run every trial that is not stored yet. Always removes what was made below the targets."""
        slots = self._request.plan.slots(without=self._writer.finished())
        remaining = sum(map(len, slots))
        self._writer.journal("run_started", remaining=remaining)
        self._faults.look()
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
            left = self._places.clean_up(self._lost)
        self._faults.look()
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
        lost = next((name for cell in cells for name in cell.targets if name in self._lost), None)
        target = slot[0].target
        ended = self._lost[lost] if lost is not None else self._failures.ended(trial.cell for trial in slot)
        if ended is not None:
            self._skip(slot, ended)
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
            elif problem.answer.outcome == "interrupted":
                self._stop_when_in_trouble(slot[0])
            else:
                self._skip(slot, problem.answer.message)
                self._lose_when_gone(problem.target, problem.answer)
        for worker in workers:
            if worker.stuck:
                self._lose(target, f"process {worker.pid} is stuck in the kernel on this target")

    def _member(self, trial: Trial, cell: PlannedCell, worker: Worker, *, shown: bool) -> Member:
        chosen = self._probes.with_rate(trial, cell)
        return Member(
            trial,
            chosen,
            worker,
            self._worker_job(chosen, trial, chosen.layout),
            shown or cell.order == "sequence",
        )

    def _skip(self, slot: Sequence[Trial], reason: str) -> None:
        for trial in slot:
            self._writer.journal("trial_not_run", trial=trial.id, cell=trial.cell, reason=reason)
            if trial.cell not in self._not_run:
                self._display.say(f"{trial.cell} is not run: {reason}")
            self._not_run[trial.cell] = reason

    def _lose_when_gone(self, target: str, answer: Answer) -> None:
        """A hung or unreachable target is left alone from here on: each further try would cost a deadline."""
        if answer.outcome in ("hung", "died") or target not in self._places.made:
            self._lose(target, answer.message)

    def _lose(self, target: str, reason: str) -> None:
        if target not in self._lost:
            self._lost[target] = reason
            self._writer.journal("target_lost", target=target, reason=reason)

    # -- before a trial ------------------------------------------------------------------------------

    def _prepare(self, worker: Worker, cell: PlannedCell, trial: Trial) -> _Trouble | None:
        """Workspace and files for a cell; what went wrong and on which target, or None."""
        if not uses_storage(cell.job.engine):
            return None
        blamed = cell.target

        def reach(target: str) -> Answer | None:
            nonlocal blamed
            with Worker(self._must_end) as other:
                problem = self._places.ensure(other, target)
            blamed = cell.target if problem is None else target
            return problem

        def lay_out(total_bytes: int) -> Answer | None:
            job = self._worker_job(cell, trial, None)
            return self._places.lay_out(worker, cell.target, total_bytes, job, self._display.progress)

        problem = self._places.ensure(worker, cell.target)
        if problem is None and cell.layout is not None:
            problem = self._ensure_layout(worker, cell, cell.layout)
        if problem is None:
            problem = conducted(cell.job).prepare(cell.job, cell.target, Preparing(reach, lay_out))
        return None if problem is None else _Trouble(blamed, problem)

    def _ensure_layout(self, worker: Worker, cell: PlannedCell, layout: Layout) -> Answer | None:
        job = self._worker_job(cell, None, layout)
        return self._places.ensure_layout(
            worker, cell.target, layout.key, layout.total_bytes, job, self._display.progress
        )

    def _worker_job(self, cell: PlannedCell, trial: Trial | None, layout: Layout | None) -> dict[str, Any]:
        """What a worker is handed, for a layout when `trial` is None."""
        options = self._request.options
        given = Assignment(
            cell,
            trial,
            self._places.of(cell.target),
            prefix=_prefix(cell, trial, layout),
            own_prefix=_prefix(cell, trial, None),
            result=self._writer.path,
            logs=self._writer.logs_path(trial.id if trial else ""),
            ledger=self._writer.ledger_path(cell.id if layout is None else _prefix(cell, trial, layout)),
            seed=trial.seed if trial else self._plan.seed,
            generation=trial.order if trial else _LAYOUT_GENERATION,
            interval_ns=_interval_ns(cell, options.interval_s),
            deadline_ns=min(int(self._deadline_s(cell) * 1e9), _DEADLINE_NS_MAX),
            layout_rate_bytes_per_s=options.layout_rate_bytes_per_s,
        )
        return conducted(cell.job).as_worker_job(cell.job, given)

    def _deadline_s(self, cell: PlannedCell) -> float:
        return conducted(cell.job).deadline_s(cell.job) + self._request.options.grace_s

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
        self._note_clock()
        in_force = self._faults.look()
        self._watch.begin()
        trial, pid = first.trial, first.worker.pid
        before = self._observer.mark(f"{trial.id}:start", trial.target, pid, patient_s(_MARK_DEADLINE_S))
        self._watch.check(before.state)
        self._stop_when_in_trouble(trial)
        for member in members:
            self._writer.journal(
                "trial_started", trial=member.trial.id, cell=member.cell.id, worker=member.worker.pid
            )
        found = run_jobs(members, self._call, halt, patient_s(SMALL_DEADLINE_S))
        halt.clear()
        after = self._observer.mark(f"{trial.id}:end", trial.target, pid, patient_s(_MARK_DEADLINE_S))
        self._note_clock(trial=trial.id)
        for answer in found:
            self._writer.check_written(answer.file, answer.errno, answer.message)
        states = [trial_state(answer) for answer in found]
        if "interrupted" in states and (self._must_end() or not {"error", "hung"} & set(states)):
            return []
        self._watch.check(after.state)
        samples = self._watch.samples()
        found = [self._read_back(*one) for one in zip(members, found, strict=True)]
        if any(answer.outcome == "interrupted" for answer in found):
            return []
        answers += found
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
                build_series_rows(
                    row.trial, record, samples, self._clock.steady(row.started_unix_ns, before.t_ns)
                ),
            )
            for row, record in zip(self._faults.marked(join_rows(rows), in_force), records, strict=True)
        ]

    def _read_back(self, member: Member, answer: Answer) -> Answer:
        """What became of what a trial wrote; by a worker of its own, which has no client's memory of it."""
        cell = member.cell
        names = [target.name for target in self._plan.targets]
        others = tuple(name for name in names if name != cell.target and name not in self._lost)

        def check(command: str, target: str) -> Answer:
            with Worker(self._must_end) as worker:
                problem = self._places.ensure(worker, target)
                if problem is not None:
                    return problem
                place = self._places.of(target)
                deadline_s = self._deadline_s(cell) + cell.job.data_set_bytes / SLOWEST_BYTES_PER_S
                job = {**member.job, **place._asdict(), "engine": place.engine}
                return worker.call(command, deadline_s, self._display.progress, job=job)

        return conducted(cell.job).read_back(cell.job, answer, ReadingBack(cell.target, others, check))

    def _note_clock(self, **during: str) -> None:
        """Say in the journal that the time of day was set: what is stamped with it later is off by that."""
        step_ns = self._clock.step_ns()
        if step_ns:
            self._writer.journal("clock_stepped", by_ns=step_ns, **during)
            self._display.say(f"the clock of this host was set by {step_ns / 1e9:+,.1f} s during the run")

    def _has_one_cluster(self, target: str) -> bool:
        """True where samples of "the cluster" can be of this target's only."""
        facts = self._request.facts
        places = {(one.ceph.conf, one.ceph.name) for one in facts.values() if one.ceph is not None}
        return len(places) == 1 and facts[target].ceph is not None

    def _call(self, member: Member, start_ns: int | None) -> Answer:
        """Conduct one job as its kind does."""
        job = member.cell.job
        scene = Scene(
            member.cell.target,
            _prefix(member.cell, member.trial, None),
            member.worker,
            self._places.made,
            partial(self._run_engine, member, start_ns),
            self._must_end,
            self._lose,
        )
        return conducted(job).conduct(job, scene)

    def _run_engine(self, member: Member, start_ns: int | None) -> Answer:
        """Run one job in its worker, to its end or until it is steady."""
        cell, record = member.cell, self._writer.record_path(member.trial.id)
        watch = None if cell.steady is None else SteadyWatch(cell.steady, cell.job, record)
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

    def _store(
        self, members: Sequence[Member], stored: Sequence[StoredTrial], answers: Sequence[Answer]
    ) -> None:
        self._writer.write_trials(stored)
        for (row, latency, _), answer in zip(stored, answers, strict=True):
            self._run += 1
            self._probes.add(row, latency)
            if row.state != "complete":
                self._failed.append(row.trial)
                self._lose_when_gone(row.target, answer)
            self._display.finished(row)
            for cell, words in self._failures.add(row):
                self._writer.journal(CELL_ENDED, cell=cell, words=words)
        left = [member.trial for member in members[len(stored) :]]
        if left:
            self._skip(left, f"{stored[-1][0].cell} before it did not end")

    def _remove_fresh_files(self, member: Member) -> None:
        cell = member.cell
        if cell.layout is None or conducted(cell.job).own_beside_layout:
            self._places.remove_files(member.worker, cell.target, _prefix(cell, member.trial, None))

    def _drop_caches(self, worker: Worker) -> bool:
        if not self._request.options.drop_caches:
            return False
        answer = worker.call("drop_caches", SMALL_DEADLINE_S)
        if answer.outcome not in ("done", "interrupted"):  # after a stop the trial does not follow either
            raise StudyError(
                f"the host's caches could not be dropped: {answer.message}",
                "run as root, or without --drop-caches",
            )
        return answer.outcome == "done"

    def _stop_when_in_trouble(self, trial: Trial) -> None:
        if self._watch.trouble is not None:
            raise _StopStudyError(f"{self._watch.trouble}, at trial {trial.id}")

    def _must_end(self) -> bool:
        """What a worker is asked to end for in the middle of a trial."""
        return self._stopping() or self._watch.in_trouble()


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
