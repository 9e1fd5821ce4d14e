"""Orders a plan: slot after slot, each stored as it ends. Its site is what executes them (`site`).

Ends what fails in the same way again and again: more trials of it would take time and tell nothing.

The probes of searches: what was found so far in a block, also before a resume, and the next one's rate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from leadline.plan.make import with_block
from leadline.plan.model import PlannedCell, Trial
from leadline.run.faulted import FaultWatch
from leadline.run.kinds import conducted
from leadline.run.model import Display, Growth, Outcome, Pilot, RunRequest, Stopping, no_growth
from leadline.run.site import Site, SlotEnd
from leadline.store.bundles import TRIALS_MAX
from leadline.store.journal import Event
from leadline.store.reader import open_result
from leadline.store.tables import LatencyRow, TrialRow
from leadline.store.writer import ResultWriter, StoredTrial

_Found = tuple[TrialRow, Sequence[LatencyRow]]


class Probes:
    """Stored probes by cell and block. Of latencies only the whole interval's are kept."""

    def __init__(self, result: Path, cells: Sequence[PlannedCell], pilot: Pilot) -> None:
        self._pilot = pilot
        self._found: dict[tuple[str, int], list[_Found]] = {}
        searched = {cell.id for cell in cells if cell.search}
        if searched and (result / "trials").is_dir():
            self._read(result, searched)

    def _read(self, result: Path, searched: set[str]) -> None:
        stored = open_result(result)
        latency: dict[str, list[LatencyRow]] = {}
        for row in stored.latency():
            latency.setdefault(row.trial, []).append(row)
        for trial in stored.trials():
            if trial.cell in searched:
                self.add(trial, latency.get(trial.trial, ()))

    def add(self, row: TrialRow, latency: Sequence[LatencyRow]) -> None:
        """Keep a probe that was stored."""
        whole = [one for one in latency if one.interval < 0]
        self._found.setdefault((row.cell, row.block), []).append((row, whole))

    def with_rate(self, trial: Trial, cell: PlannedCell) -> PlannedCell:
        """The cell with the rate of its next probe; any other cell as it is."""
        if cell.search is None:
            return cell
        rate = self._pilot(cell.search, self._found.get((trial.cell, trial.block), ()))
        if rate is None:
            return cell
        return replace(cell, job=conducted(cell.job).at_rate(cell.job, rate))


ALIKE_MAX = 3  # trials in a row
CELL_ENDED = "cell_ended"  # the event, with the cell and the words of its failures
# What differs between failures that are one: numbers, addresses, names of directories and of trials.
_OWN = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+")


@dataclass(frozen=True)
class _Streak:
    """So many trials in a row that failed with these words."""

    words: str = ""
    count: int = 0

    def then(self, words: str) -> _Streak:
        return _Streak(words, self.count + 1 if words == self.words else 1)


class Failures:
    """Counts failures alike, of each cell and of all cells of a target that would fail for the same cause.

    What an earlier run ended, as `events` say, is tried once more: its cause may be mended.
    """

    def __init__(self, cells: Iterable[PlannedCell], events: Iterable[Event]) -> None:
        self._shared = {cell.id: f"{cell.target}\0{conducted(cell.job).cause(cell.job)}" for cell in cells}
        self._own: dict[str, _Streak] = {}
        self._alike: dict[str, _Streak] = {}
        self._ended: dict[str, str] = {}
        for event in events:
            if event.event == CELL_ENDED:
                cell, words = str(event.details["cell"]), str(event.details["words"])
                self._own[cell] = _Streak(words, ALIKE_MAX - 1)

    def add(self, row: TrialRow) -> tuple[tuple[str, str], ...]:
        """Count a stored trial: cells that end with it, each with the words of its failures."""
        shared = self._shared[row.cell]
        if row.state == "complete":
            self._own.pop(row.cell, None)
            self._alike.pop(shared, None)
            return ()
        words = _OWN.sub("#", row.error or row.state)
        self._own[row.cell] = self._own.get(row.cell, _Streak()).then(words)
        self._alike[shared] = self._alike.get(shared, _Streak()).then(words)
        together = self._alike[shared].count >= ALIKE_MAX
        found = []
        for cell, key in self._shared.items():
            own = self._own.get(cell, _Streak())
            enough = own.count >= ALIKE_MAX or (together and key == shared and own.count > 0)
            if own.words == words and enough and cell not in self._ended:
                self._ended[cell] = f"{ALIKE_MAX} trials in a row failed alike, last {row.trial}: {row.error}"
                found.append((cell, words))
        return tuple(found)

    def ended(self, cells: Iterable[str]) -> str | None:
        """Why one of these cells is not tried any more; None where all are."""
        return next((self._ended[cell] for cell in cells if cell in self._ended), None)


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
