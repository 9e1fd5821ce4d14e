"""One attempt at a slot on some hosts: all prepare, begin at one instant, and say how it ended."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leadline.hosts.model import Attempt, AttemptEnd, as_json
from leadline.hosts.workers.calls import CallResult, Order
from leadline.hosts.workers.study_hosts import StudyHosts
from leadline.plan.model import PlannedCell, Trial
from leadline.run.interface import SLOWEST_BYTES_PER_S
from leadline.run.kinds import conducted
from leadline.run.model import Display, RunOptions, Stopping
from leadline.store.tables import TrialRow
from leadline.store.writer import ResultWriter

_LEAD_NS = 150_000_000  # from sending the commands to the start, for one host
_LEAD_EACH_NS = 5_000_000  # more for each other: one after another is told
_LATE_NS = 50_000_000  # later than a busy host alone makes it
_LATE_MAX_NS = 1_000_000_000
_SMALL_S = 120.0  # making directories, marks, reading a record: on hosts that are busy
_SHOW_EVERY_S = 0.5


@dataclass
class AttemptResult:
    """What came of an attempt, by host: those that ended, with their files' bytes, and why others were lost.

    `stopped`: a stop request ended it. `start_ns` is when it was to begin, or the last job of it, unix ns.
    """

    attempt: str
    hosts: tuple[str, ...]
    ends: dict[str, AttemptEnd] = field(default_factory=dict)
    bytes: dict[str, dict[str, bytes]] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    stopped: bool = False
    start_ns: int = 0

    @property
    def finished(self) -> bool:
        """Whether every host has its tables."""
        return not self.lost and all(end.state == "finished" for end in self.ends.values())


class AttemptRunner:
    """Makes attempts. `lead_ns` grows where hosts were told too late for the instant."""

    def __init__(
        self,
        study_hosts: StudyHosts,
        writer: ResultWriter,
        options: RunOptions,
        display: Display,
        stopping: Stopping,
    ) -> None:
        self._crew, self._remote, self._clocks = study_hosts.crew, study_hosts.remote, study_hosts.clocks
        self._writer, self._options = writer, options
        self._display, self._stopping = display, stopping
        self._late_ns = 0
        self._grown: tuple[tuple[str, ...], ...] = ()
        self._known = {str(one["id"]) for one in writer.manifest["plan"]["trials"]}

    def once(
        self, slot: Sequence[Trial], cells: Sequence[PlannedCell], hosts: Sequence[str]
    ) -> AttemptResult:
        """Try a slot on these hosts. Raises SchedulerLostError."""
        tried = AttemptResult(secrets.token_hex(8), tuple(hosts))
        trials = [trial.id for trial in slot]
        self._writer.journal("attempt_begun", attempt=tried.attempt, trials=trials, hosts=list(hosts))
        attempt = Attempt(
            tried.attempt,
            trials,
            {trial.id: trial.block for trial in slot},
            _shares(slot, cells, len(hosts)),
            self._blocks(trials),
        )
        size = sum(cell.layout.total_bytes for cell in cells if cell.layout is not None)
        prepared = self._ask(
            tried,
            self._remote.prepare,
            {host: (as_json(attempt),) for host in hosts},
            _SMALL_S + self._options.grace_s + size / SLOWEST_BYTES_PER_S,
            "ready",
        )
        for host, said in prepared.items():
            if not said.problem and not said.value.get("prepared"):
                tried.ends[host] = _end_of(host, tried.attempt, said.value)
        if tried.lost or tried.ends or self._stopping():
            self._crew.tell(self._remote.cancel, tried.attempt, hosts=hosts)
            tried.stopped = self._stopping()
            return tried
        self._begin(tried, slot, cells)
        return tried

    def _blocks(self, trials: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The cells of each block that was added to the plan, as the hosts' plans have none of them."""
        if not self._known.issuperset(trials):
            added = [
                event.details["cells"] for event in self._writer.events() if event.event == "block_added"
            ]
            self._grown = tuple(tuple(cells) for cells in added)
            self._known.update(trials)
        return self._grown

    def _begin(self, tried: AttemptResult, slot: Sequence[Trial], cells: Sequence[PlannedCell]) -> None:
        """Jobs that follow each other are begun one after another, each at an instant of its own."""
        deadline_s = sum(map(self._deadline_s, cells))
        for trial in slot:
            self._writer.journal("trial_started", trial=trial.id, cell=trial.cell, attempt=tried.attempt)
        for _ in slot:
            lead_ns = self._lead_ns(len(tried.hosts))
            tried.start_ns = start_ns = time.time_ns() + lead_ns
            arguments = {
                host: (tried.attempt, start_ns + self._clocks.of(host).offset_ns) for host in tried.hosts
            }
            limit_s = lead_ns / 1e9 + deadline_s
            said = self._ask(tried, self._remote.begin, arguments, limit_s, "done", cells)
            if all(not one.problem and one.value["end"].get("prepared") for one in said.values()):
                continue
            for host, one in said.items():
                if not one.problem and one.value["end"].get("prepared"):
                    tried.lost[host] = "it waits for another job than the others"
                elif not one.problem:
                    tried.ends[host] = _end_of(host, tried.attempt, one.value["end"])
                    tried.bytes[host] = dict(one.value["bytes"])
            break
        tried.stopped = self._stopping() and not tried.finished

    def _lead_ns(self, hosts: int) -> int:
        """From now to an instant that all hosts hear of before it."""
        return _LEAD_NS + _LEAD_EACH_NS * (hosts - 1) + 3 * self._clocks.way_ns + self._late_ns

    def _deadline_s(self, cell: PlannedCell) -> float:
        trial_s = conducted(cell.job).deadline_s(cell.job) + self._options.grace_s
        return trial_s + _SMALL_S + cell.job.data_set_bytes / SLOWEST_BYTES_PER_S  # what reads it back

    def _ask(
        self,
        tried: AttemptResult,
        function: Callable[..., Any],
        arguments: Mapping[str, Sequence[Any]],
        deadline_s: float,
        word: str,
        cells: Sequence[PlannedCell] = (),
    ) -> dict[str, CallResult]:
        show = _Shown(self._display, len(tried.hosts), word, sum(cell.seconds for cell in cells))

        def ends(said: Mapping[str, CallResult]) -> bool:
            show(len(said))
            return self._stopping() or any(_is_bad(one) for one in said.values())

        cancel = (self._remote.cancel, tried.attempt)
        said = self._crew.ask(Order(function, arguments, deadline_s, ends, cancel))
        for host, one in said.items():
            if one.problem:
                tried.lost[host] = one.problem
        return said

    def begun(self, tried: AttemptResult, row: TrialRow) -> None:
        """How late the last of the hosts began: where it was told too late, the next are told earlier."""
        late_ns = row.started_unix_ns + (row.start_skew_ns or 0) - tried.start_ns
        if row.started_unix_ns and late_ns > _LATE_NS:
            self._late_ns = min(self._late_ns + late_ns, _LATE_MAX_NS)


@dataclass
class _Shown:
    """How many hosts are so far, on the trial's line; with planned seconds its bar, too."""

    display: Display
    hosts: int
    word: str
    seconds: float
    begun_s: float = field(default_factory=time.monotonic)
    last_s: float = 0.0

    def __call__(self, count: int) -> None:
        now_s = time.monotonic()
        if now_s - self.last_s < _SHOW_EVERY_S:
            return
        self.last_s = now_s
        share = min((now_s - self.begun_s) / self.seconds, 1.0) if self.seconds else 0.0
        self.display.progress({"words": f"{count} of {self.hosts} hosts {self.word}", "share": share})


def _is_bad(said: CallResult) -> bool:
    """Whether the others need not go on."""
    if said.problem:
        return True
    end = said.value.get("end", said.value)
    return not end.get("prepared") and end.get("state") != "finished"


def _end_of(host: str, attempt: str, value: Mapping[str, Any]) -> AttemptEnd:
    known = {name: value[name] for name in AttemptEnd.__dataclass_fields__ if name in value}
    return AttemptEnd(**{**known, "host": host, "attempt": attempt})


def _shares(slot: Sequence[Trial], cells: Sequence[PlannedCell], hosts: int) -> dict[str, float]:
    """What each host keeps to of the rates that a search chose, which are totals; others: `shares`."""
    pairs = [(trial, cell.job.rate_iops) for trial, cell in zip(slot, cells, strict=True) if cell.search]
    return {trial.id: rate / hosts for trial, rate in pairs if rate is not None}
