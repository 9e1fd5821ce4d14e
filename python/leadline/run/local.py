"""This host as the site of a run: prepares a slot's trials, measures them, reads back what they wrote."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from leadline.errors import StudyError
from leadline.observe.client import Observer
from leadline.observe.host.host import patient_s
from leadline.observe.reading import ClockWatch, delta
from leadline.plan.model import PlannedCell, Trial
from leadline.run.child import Answer, Worker
from leadline.run.faulted import FaultWatch
from leadline.run.group import CommonStart, Halt, Member, join_rows, run_jobs
from leadline.run.interface import SLOWEST_BYTES_PER_S, Assignment, Conducted, Preparing, ReadingBack, Scene
from leadline.run.kinds import conducted
from leadline.run.model import Display, RunRequest, Stopping, no_progress
from leadline.run.places import SMALL_DEADLINE_S, Places
from leadline.run.prepared import forks
from leadline.run.rows import (
    build_latency_rows,
    build_series_rows,
    build_trial_row,
    read_engine_record,
    trial_state,
)
from leadline.run.site import Appointment, SlotEnd
from leadline.run.watches import DisturbanceWatch, SteadyWatch, Watch, cluster_peaks, marked, measure_steady
from leadline.store.writer import ResultWriter, StoredTrial
from leadline.study.kind.interface import Layout
from leadline.study.schemes import uses_storage

_LAYOUT_GENERATION = 0
_DEADLINE_NS_MAX = 2**63 - 1  # what the engine can count to
_SHORTEST_INTERVAL_NS = 100_000_000


class Jobs:
    """The jobs of one run."""

    def __init__(self, request: RunRequest, writer: ResultWriter, places: Places) -> None:
        self._request = request
        self._writer = writer
        self._places = places

    def worker_job(self, cell: PlannedCell, trial: Trial | None, layout: Layout | None) -> dict[str, Any]:
        """What a worker is handed, for a layout when `trial` is None."""
        options = self._request.options
        given = Assignment(
            cell,
            trial,
            self._places.of(cell.target),
            prefix=file_prefix(cell, trial, layout, self._owner(cell)),
            own_prefix=file_prefix(cell, trial, None),
            result=self._writer.path,
            logs=self._writer.logs_path(trial.id if trial else ""),
            ledger=self._writer.ledger_path(
                cell.id if layout is None else file_prefix(cell, trial, layout, self._owner(cell))
            ),
            seed=_own_seed(trial.seed if trial else self._request.plan.seed, options.host_number),
            generation=trial.order if trial else _LAYOUT_GENERATION,
            interval_ns=_interval_ns(cell, options.interval_s),
            deadline_ns=min(int(self.deadline_s(cell) * 1e9), _DEADLINE_NS_MAX),
            layout_rate_bytes_per_s=options.layout_rate_bytes_per_s,
        )
        return conducted(cell.job).as_worker_job(cell.job, given)

    def _owner(self, cell: PlannedCell) -> str:
        return next((one.owner for one in self._request.plan.targets if one.name == cell.target), cell.target)

    def deadline_s(self, cell: PlannedCell) -> float:
        """The longest that a trial of the cell may take."""
        return conducted(cell.job).deadline_s(cell.job) + self._request.options.grace_s


def _own_seed(seed: int, host: int) -> int:
    """Each host writes other bytes: storage may keep equal ones once, and take the work of many for one's."""
    if host == 0:
        return seed
    return random.Random(f"{seed}:{host}").getrandbits(53)  # noqa: S311 - exact in JSON too, no secret


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


def file_prefix(cell: PlannedCell, trial: Trial | None, layout: Layout | None, owner: str = "") -> str:
    """How a target's files begin; two targets may be one directory (a study of it against itself).

    Laid out files begin with their `owner`, which states of one target share.
    """
    if layout is not None:
        return f"{owner or cell.target}-data-{layout.key}"
    return f"{cell.target}-fresh-{trial.id if trial else ''}"


_MARK_DEADLINE_S = 4.0
_WAIT_SLICE_S = 0.05


class _TroubledError(Exception):
    """The cluster is in error, or operations became slow: the study must not go on."""


@dataclass
class _Slot:
    """What came of a slot so far. Each of `answers` is the one to a trial of `stored`."""

    stored: list[StoredTrial] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    skipped: str | None = None
    gone: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False

    def end(self, trouble: str | None) -> SlotEnd:
        return SlotEnd(tuple(self.stored), self.skipped, dict(self.gone), self.interrupted, trouble)


@dataclass(frozen=True)
class _Trouble:
    """What kept a trial from beginning, and the target that it came from."""

    target: str
    answer: Answer


class LocalSite:
    """Executes slots on this host, and journals in `writer` what it makes before it is made.

    With an `appointment` each trial, or group of jobs, is prepared first and started at the instant told.
    """

    def __init__(
        self,
        request: RunRequest,
        writer: ResultWriter,
        observer: Observer,
        display: Display,
        stopping: Stopping,
        faults: FaultWatch,
        appointment: Appointment | None = None,
    ) -> None:
        self._request = request
        self._writer = writer
        self._observer = observer
        self._watch = Watch(observer, ignore_health=request.options.ignore_health)
        self._display = display
        self._stopping = stopping
        self._faults = faults
        self._appointment = appointment
        self._places = Places(request, writer)
        self._jobs = Jobs(request, writer, self._places)
        self._clock = ClockWatch()
        self._disturbance = DisturbanceWatch(request.plan.targets, request.facts)
        self._lost: set[str] = set()
        self._slot = _Slot()

    def run_slot(self, slot: Sequence[Trial], cells: Sequence[PlannedCell]) -> SlotEnd:
        """See `Site`."""
        self._slot = found = _Slot()
        trouble: str | None = None
        try:
            self._execute(slot, cells)
        except _TroubledError as error:
            trouble = str(error)
        return found.end(trouble)

    def clean_up(self, lost: Collection[str]) -> tuple[str, ...]:
        """See `Site`."""
        return self._places.clean_up(lost)

    def _execute(self, slot: Sequence[Trial], cells: Sequence[PlannedCell]) -> None:
        halt = Halt(self._must_end)
        with ExitStack() as stack:
            kinds = {cell.job.kind for cell in cells}
            workers = [stack.enter_context(Worker(halt, kinds)) for _ in slot]
            self._tell_of_helpers()
            prepared = (self._prepare(*one) for one in zip(workers, cells, slot, strict=True))
            problem = next((found for found in prepared if found is not None), None)
            if problem is None:
                pairs = zip(slot, cells, workers, strict=True)
                self._measure_slot([self._member(*one, shown=one[0] is slot[0]) for one in pairs], halt)
            elif problem.answer.outcome == "interrupted":
                self._end_when_in_trouble(slot[0])
            else:
                self._slot.skipped = problem.answer.message
                self._lose_when_gone(problem.target, problem.answer)
        for worker in workers:
            if worker.stuck:
                self._lose(slot[0].target, f"process {worker.pid} is stuck in the kernel on this target")

    def _member(self, trial: Trial, cell: PlannedCell, worker: Worker, *, shown: bool) -> Member:
        job = self._jobs.worker_job(cell, trial, cell.layout)
        return Member(trial, cell, worker, job, shown or cell.order == "sequence")

    def _tell_of_helpers(self) -> None:
        """One that ended by itself was replaced: a trial that went with it says so too."""
        for words in forks().told():
            self._writer.journal("helper_replaced", reason=words)
            self._display.say(f"{words}; another one was started")

    def _lose_when_gone(self, target: str, answer: Answer) -> None:
        """A hung or unreachable target is left alone from here on: each further try would cost a deadline."""
        if answer.orphaned:
            return  # it says nothing of the target
        if answer.outcome in ("hung", "died") or target not in self._places.made:
            self._lose(target, answer.message)

    def _lose(self, target: str, reason: str) -> None:
        if target not in self._lost:
            self._lost.add(target)
            self._slot.gone[target] = reason

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
            job = self._jobs.worker_job(cell, trial, None)
            return self._places.lay_out(worker, cell.target, total_bytes, job, self._display.progress)

        problem = self._places.ensure(worker, cell.target)
        if problem is None and cell.layout is not None:
            problem = self._ensure_layout(worker, cell, cell.layout)
        if problem is None:
            problem = conducted(cell.job).prepare(cell.job, cell.target, Preparing(reach, lay_out))
        return None if problem is None else _Trouble(blamed, problem)

    def _ensure_layout(self, worker: Worker, cell: PlannedCell, layout: Layout) -> Answer | None:
        job = self._jobs.worker_job(cell, None, layout)
        return self._places.ensure_layout(
            worker, cell.target, layout.key, layout.total_bytes, job, self._display.progress
        )

    # -- a slot: a trial, or those of a group's jobs ---------------------------------------------------

    def _measure_slot(self, members: Sequence[Member], halt: Halt) -> None:
        """Measure; of a slot that was interrupted nothing counts, and no part of it either."""
        slot = self._slot
        shots = [[one] for one in members] if members[0].cell.order == "sequence" else [members]
        for shot in shots:
            self._display.trial(shot[0].trial, shot[0].cell)
            try:
                found = self._measure(shot, halt)
            except _TroubledError:
                slot.stored.clear()
                raise
            if not found:
                slot.stored.clear()
                slot.interrupted = True
                self._end_when_in_trouble(members[-1].trial)
                return
            slot.stored += found
            for member, (row, _, _) in zip(shot, found, strict=True):
                if row.state != "hung":
                    self._remove_fresh_files(member)
            if slot.answers[-1].outcome in ("hung", "died"):
                break
        for (row, _, _), answer in zip(slot.stored, slot.answers, strict=True):
            if row.state != "complete":
                self._lose_when_gone(row.target, answer)
        if len(slot.stored) < len(members):
            slot.skipped = f"{slot.stored[-1][0].cell} before it did not end"
        self._end_when_in_trouble(members[-1].trial)

    def _measure(self, members: Sequence[Member], halt: Halt) -> list[StoredTrial]:
        """Run jobs at the same time between two marks; nothing where they were interrupted."""
        first = members[0]
        dropped = self._drop_caches(first.worker)
        self._note_clock()
        in_force = self._faults.look()
        self._watch.begin()
        trial, pid = first.trial, first.worker.pid
        before = self._observer.mark(f"{trial.id}:start", trial.target, pid, patient_s(_MARK_DEADLINE_S))
        self._watch.check(before.state)
        self._end_when_in_trouble(trial)
        # The mounts are read before the journal has the start: a change after the start is one of the trial.
        self._disturbance.begin(trial.target)
        for member in members:
            self._writer.journal(
                "trial_started", trial=member.trial.id, cell=member.cell.id, worker=member.worker.pid
            )
        found = run_jobs(members, self._call, halt, patient_s(SMALL_DEADLINE_S), self._appointment)
        disturbed = self._disturbance.end(trial.target, members)
        halt.clear()
        after = self._observer.mark(f"{trial.id}:end", trial.target, pid, patient_s(_MARK_DEADLINE_S))
        self._note_clock(trial=trial.id)
        self._watch.check(after.state)
        for answer in found:
            self._writer.check_written(answer.file, answer.errno, answer.message)
        states = [trial_state(answer) for answer in found]
        if "interrupted" in states and (self._must_end() or not {"error", "hung"} & set(states)):
            return []
        samples = self._watch.samples()
        ended, found = found, [self._read_back(*one) for one in zip(members, found, strict=True)]
        # A job may have been interrupted because one beside it failed: that slot is kept, with its reason.
        if any(now.outcome == "interrupted" != then.outcome for then, now in zip(ended, found, strict=True)):
            return []
        self._slot.answers += found
        change = delta(before, after)
        peaks = cluster_peaks(samples) if self._has_one_cluster(trial.target) else {}
        records, rows = [], []
        for member, answer in zip(members, found, strict=True):
            record = read_engine_record(self._writer.record_path(member.trial.id))
            answer, record = conducted(member.cell.job).recorded(member.cell.job, answer, record)  # noqa: PLW2901
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
            for row, record in zip(
                self._faults.marked(marked(join_rows(rows), disturbed), in_force), records, strict=True
            )
        ]

    def _read_back(self, member: Member, answer: Answer) -> Answer:
        """What became of what a trial wrote; by a worker of its own, which has no client's memory of it."""
        cell = member.cell
        names = [target.name for target in self._request.plan.targets]
        others = tuple(name for name in names if name != cell.target and name not in self._lost)

        def check(command: str, target: str) -> Answer:
            with Worker(self._must_end, {cell.job.kind}) as worker:
                problem = self._places.ensure(worker, target)
                if problem is not None:
                    return problem
                place = self._places.of(target)
                deadline_s = self._jobs.deadline_s(cell) + cell.job.data_set_bytes / SLOWEST_BYTES_PER_S
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

    def _call(self, member: Member, start: CommonStart | None) -> Answer:
        """Conduct one job as its kind does; one that does more than call the engine waits for the start."""
        job = member.cell.job
        kind = conducted(job)
        come = None if start is None else start.come
        if come is not None and type(kind).conduct is not Conducted.conduct:
            start_ns = come()
            if start_ns is None or not self._wait_until(start_ns):
                return Answer("interrupted", message="it was stopped before its start")
            come = partial(int, start_ns)
        scene = Scene(
            member.cell.target,
            file_prefix(member.cell, member.trial, None),
            member.worker,
            self._places.made,
            partial(self._run_engine, member, come),
            self._must_end,
            self._lose,
        )
        return kind.conduct(job, scene)

    def _wait_until(self, start_ns: int) -> bool:
        """True at that instant of CLOCK_MONOTONIC; False where a stop comes before it."""
        while (left_s := (start_ns - time.monotonic_ns()) / 1e9) > 0:
            if self._must_end():
                return False
            time.sleep(min(left_s, _WAIT_SLICE_S))
        return True

    def _run_engine(self, member: Member, come: Appointment | None) -> Answer:
        """Run one job in its worker, to its end or until it is steady."""
        cell, record = member.cell, self._writer.record_path(member.trial.id)
        watch = (
            None if cell.steady is None else SteadyWatch(cell.steady, cell.job, record, member.worker.bring)
        )
        answer = member.worker.call(
            "trial",
            self._jobs.deadline_s(cell) + 5.0,
            self._display.progress if member.shown else no_progress,
            (lambda: False) if watch is None else watch.reached,
            come,
            job=member.job,
            record=str(record),
            meets=come is not None,
        )
        if watch is None or self._must_end():
            return answer
        return watch.as_complete(answer, lambda: read_engine_record(record))

    def _remove_fresh_files(self, member: Member) -> None:
        cell = member.cell
        if cell.layout is None or conducted(cell.job).own_beside_layout:
            self._places.remove_files(member.worker, cell.target, file_prefix(cell, member.trial, None))

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

    def _end_when_in_trouble(self, trial: Trial) -> None:
        if self._watch.trouble is not None:
            raise _TroubledError(f"{self._watch.trouble}, at trial {trial.id}")

    def _must_end(self) -> bool:
        """What a worker is asked to end for in the middle of a trial."""
        return self._stopping() or self._watch.in_trouble()
