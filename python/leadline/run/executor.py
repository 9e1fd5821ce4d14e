"""Orders a plan: slot after slot, each stored as it ends. Its site is what executes them (`site`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leadline.plan.model import PlannedCell, Trial
from leadline.plan.order import with_block
from leadline.run.failures import CELL_ENDED, Failures
from leadline.run.faulted import FaultWatch
from leadline.run.model import Display, Growth, Outcome, Pilot, RunRequest, Stopping, no_growth
from leadline.run.probes import Probes
from leadline.run.site import Site, SlotEnd
from leadline.store.bundles.write import TRIALS_MAX
from leadline.store.writer import ResultWriter, StoredTrial


class Executor:
    """One run of one plan into one result, on one site."""

    def __init__(
        self,
        request: RunRequest,
        writer: ResultWriter,
        site: Site,
        faults: FaultWatch,
        display: Display,
        stopping: Stopping,
        pilot: Pilot,
        growth: Growth = no_growth,
    ) -> None:
        self._plan = request.plan
        self._options = request.options
        self._growth = growth
        self._writer = writer
        self._site = site
        self._faults = faults
        self._display = display
        self._stopping = stopping
        self._probes = Probes(writer.path, request.plan.cells, pilot)
        self._failures = Failures(request.plan.cells, writer.events())
        self._lost: dict[str, str] = {}  # target -> why nothing more is tried on it
        self._failed: list[str] = []
        self._not_run: dict[str, str] = {}
        self._run = 0
        self._unbundled = 0

    def run(self) -> Outcome:
        """Run every trial that is not stored yet. Always removes what was made below the targets."""
        slots = self._plan.slots(without=self._writer.finished())
        remaining = sum(map(len, slots))
        self._writer.journal("run_started", remaining=remaining)
        self._faults.look()
        self._display.begin(self._plan, remaining)
        stopped: str | None = None
        left: tuple[str, ...] = ()
        try:
            for slot in self._slots(slots):
                if self._stopping():
                    break
                stopped = self._run_or_skip(slot)
                if stopped is not None:
                    self._writer.journal("stopped", reason=stopped)
                    break
        finally:
            left = self._site.clean_up(self._lost)
        self._faults.look()
        interrupted = self._stopping()
        if stopped is None and not interrupted:
            self._writer.journal("study_finished", failed=self._failed, not_run=self._not_run)
            self._writer.bundle()
        elif interrupted:
            self._writer.journal("interrupted")
        return Outcome(self._run, tuple(self._failed), dict(self._not_run), stopped, interrupted, left)

    def _slots(self, planned: Sequence[Sequence[Trial]]) -> Iterator[Sequence[Trial]]:
        """What remains of the plan, then the blocks by which it grows, each journalled before it begins."""
        yield from planned
        while not self._stopping():
            cells = self._growth(self._plan, self._options)
            if not cells:
                return
            self._writer.journal("block_added", cells=list(cells))
            before = {trial.id for trial in self._plan.trials}
            self._plan = with_block(self._plan, cells)
            self._display.grown([trial for trial in self._plan.trials if trial.id not in before])
            yield from self._plan.slots(without=before)

    def _run_or_skip(self, slot: Sequence[Trial]) -> str | None:
        """Why the study must not go on after it; None where it may."""
        cells = [self._plan.cell(trial.cell) for trial in slot]
        ended = self._ended(cells)
        if ended is not None:
            self._skip(slot, ended)
            return None
        self._display.trial(slot[0], cells[0])
        chosen = [self._probes.with_rate(*one) for one in zip(slot, cells, strict=True)]
        end = self._site.run_slot(slot, chosen)
        self._conclude(slot, end)
        return end.trouble

    def _ended(self, cells: Sequence[PlannedCell]) -> str | None:
        lost = next((name for cell in cells for name in cell.targets if name in self._lost), None)
        return self._lost[lost] if lost is not None else self._failures.ended(cell.id for cell in cells)

    def _conclude(self, slot: Sequence[Trial], end: SlotEnd) -> None:
        """Store what was measured; a slot that was interrupted is not stored, and not in part either."""
        if end.interrupted:
            for trial in slot:
                self._writer.journal("trial_interrupted", trial=trial.id)
                self._writer.discard(trial.id)
        if end.stored:
            self._store(end.stored)
        if end.skipped is not None:
            self._skip(slot[len(end.stored) :], end.skipped)
        for target, reason in end.gone.items():
            if target not in self._lost:
                self._lost[target] = reason
                self._writer.journal("target_lost", target=target, reason=reason)

    def _store(self, stored: Sequence[StoredTrial]) -> None:
        self._writer.write_trials(stored)
        self._unbundled += len(stored)
        if self._unbundled >= TRIALS_MAX:  # between trials: it takes a second, and nothing is measured
            self._unbundled = 0
            self._writer.bundle(most=TRIALS_MAX)  # what an older version left waits for the end
        for row, latency, _ in stored:
            self._run += 1
            self._probes.add(row, latency)
            if row.state != "complete":
                self._failed.append(row.trial)
            self._display.finished(row)
            for cell, words in self._failures.add(row):
                self._writer.journal(CELL_ENDED, cell=cell, words=words)

    def _skip(self, slot: Sequence[Trial], reason: str) -> None:
        for trial in slot:
            self._writer.journal("trial_not_run", trial=trial.id, cell=trial.cell, reason=reason)
            if trial.cell not in self._not_run:
                self._display.say(f"{trial.cell} is not run: {reason}")
            self._not_run[trial.cell] = reason
