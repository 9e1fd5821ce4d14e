"""Many hosts as the site of a run: each slot on all of them, begun at one instant, joined to one.

A host that is lost makes the attempt none: what then is the user's choice (`study_hosts.Lost`). A host
executes no attempt twice, whoever asks for it again. All hosts are told again and again that their parent is
there (`Lease`): without it they end by themselves.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from leadline.counters.catalogue import trial_figures
from leadline.errors import LeadlineError, UsageError
from leadline.hosts.worker_rpc import Function
from leadline.hosts.workers.attempt_runner import AttemptResult, AttemptRunner
from leadline.hosts.workers.calls import CallResult, Crew, Order, SchedulerLostError
from leadline.hosts.workers.checks import named
from leadline.hosts.workers.collector import TableCollector
from leadline.hosts.workers.study_hosts import StudyHosts
from leadline.observe.reading import Mark, delta
from leadline.plan.model import PlannedCell, Trial
from leadline.run.child import Answer
from leadline.run.faulted import FaultWatch
from leadline.run.model import Display
from leadline.run.rows import build_trial_row, read_engine_record
from leadline.run.site import SlotEnd
from leadline.store.by_host import HOST_LOST
from leadline.store.writer import ResultWriter, StoredTrial
from leadline.study.kinds import planned

_VARIABLE = "LEADLINE_LEASE_S"
_LEAST_S, _MOST_S = 5.0, 3600.0


def _lease_s() -> float:
    """A minute, or what the environment says. Raises UsageError where that is no time."""
    text = os.environ.get(_VARIABLE, "60")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _LEAST_S <= seconds <= _MOST_S:
        raise UsageError(
            f"{_VARIABLE}={text!a} is no time for a lease",
            f"write {_LEAST_S:.0f} to {_MOST_S:.0f} seconds, or leave it out",
        )
    return seconds


LEASE_S = _lease_s()
_EVERY_S = LEASE_S / 6  # five may be lost
_END_S = 5.0


class Lease:
    """Renews for as long as the block lasts, in a thread of its own."""

    def __init__(self, crew: Crew, renew: Function, study_id: str) -> None:
        self._crew, self._renew, self._study = crew, renew, study_id
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leadline-lease", daemon=True)

    def __enter__(self) -> Lease:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join(_END_S)

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            with suppress(LeadlineError, OSError, RuntimeError):  # whoever waits for a host finds out, too
                self._crew.tell(self._renew, self._study, timeout_s=_EVERY_S)


RETRIES = 2
_CLOCKS_EVERY_S = 60.0
_CLOSE_S = 300.0


class HostsSite:
    """Executes slots on hosts whose sessions are open. See `run.site.Site`."""

    def __init__(
        self,
        study_hosts: StudyHosts,
        trying: AttemptRunner,
        taking: TableCollector,
        writer: ResultWriter,
        display: Display,
        faults: FaultWatch,
        comes_back: Callable[[str], bool],
    ) -> None:
        self._crew, self._remote, self._clocks = study_hosts.crew, study_hosts.remote, study_hosts.clocks
        self._trying, self._taking = trying, taking
        self._writer, self._display, self._faults = writer, display, faults
        self._policy, self._comes_back = study_hosts.lost, comes_back
        self._compared_s = time.monotonic()
        self._whole = True  # so far all was executed as ordered

    def run_slot(self, slot: Sequence[Trial], cells: Sequence[PlannedCell]) -> SlotEnd:
        """See `Site`."""
        whole, self._whole = self._whole, False
        try:
            self._taking.forget()
            self._compare_clocks()
            end = self._attempts(slot, cells)
        except SchedulerLostError as error:
            return SlotEnd(interrupted=True, trouble=f"{error.message}: {error.remedy}")
        self._whole = whole and not end.interrupted and end.trouble is None
        return end

    def _attempts(self, slot: Sequence[Trial], cells: Sequence[PlannedCell]) -> SlotEnd:
        tries = 0
        while True:
            hosts = self._wanted(cells)
            if not hosts:
                return SlotEnd(interrupted=True, trouble="no host is left")
            in_force = self._faults.look()
            tried = self._trying.once(slot, cells, hosts)
            if tried.stopped:
                self._taking.done(tried)
                return SlotEnd(interrupted=True)
            self._taking.fetch(tried)
            refused = self._refused(tried)
            if refused is not None:
                return refused
            if not tried.lost:
                end = self._stored(tried, slot, self._taking.joined(tried, slot, cells), in_force)
                troubles = [f"host {one.host}: {one.trouble}" for one in tried.ends.values() if one.trouble]
                return replace(end, trouble="; ".join(troubles) or None)
            tries += 1
            if not self._after_loss(tried, tries):
                return self._given_up(tried, slot, cells, in_force)
            self._taking.done(tried)
            self._taking.forget()  # a host refuses a trial again while it holds one

    def _wanted(self, cells: Sequence[PlannedCell]) -> tuple[str, ...]:
        """The hosts that take part: all that are there, or the first so many as the work wants."""
        here = self._crew.present
        counts = [_hosts_wanted(cell) for cell in cells]
        few = [count for count in counts if count is not None]
        return here[: max(few)] if few and len(few) == len(counts) else here

    def _refused(self, tried: AttemptResult) -> SlotEnd | None:
        """The end of a slot that some host could not begin, or ended by itself."""
        troubled = next((end for end in tried.ends.values() if end.trouble), None)
        if troubled is not None and not tried.finished:
            self._taking.done(tried)
            return SlotEnd(interrupted=True, trouble=f"host {troubled.host}: {troubled.trouble}")
        skipped = [end for end in tried.ends.values() if end.state == "skipped"]
        if skipped and not tried.lost:
            first = skipped[0]
            reason = f"host {first.host}: {first.reason}"
            gone = {first.target: reason} if first.target_gone and first.target else {}
            self._taking.done(tried)
            return SlotEnd(skipped=reason, gone=gone)
        others = [end for end in tried.ends.values() if end.state not in ("finished", "skipped")]
        if not tried.lost:  # of several the first is the cause: the others were told to end
            for end in others[:1]:
                tried.lost[end.host] = f"{end.state}: {end.reason}" if end.reason else end.state
        return None

    def _after_loss(self, tried: AttemptResult, tries: int) -> bool:
        """Say who was lost; whether the slot is tried once more."""
        for host, reason in tried.lost.items():
            self._writer.journal("host_lost", attempt=tried.attempt, host=host, reason=reason)
            self._display.say(f"host {host} is lost: {reason}")
        if self._policy == "stop":
            return False
        if self._policy == "continue":
            for host, reason in tried.lost.items():
                self._crew.lose(host, reason)
            return bool(self._crew.present)
        return tries <= RETRIES and all([self._comes_back(host) for host in tried.lost])

    def _given_up(
        self,
        tried: AttemptResult,
        slot: Sequence[Trial],
        cells: Sequence[PlannedCell],
        in_force: frozenset[tuple[str, object]],
    ) -> SlotEnd:
        """The trials as errors that name the hosts, and the end of the study."""
        words = "; ".join(f"host {host} is lost: {why}" for host, why in sorted(tried.lost.items()))
        stored = self._taking.joined(tried, slot, cells)
        for trial, cell in list(zip(slot, cells, strict=True))[len(stored) :]:
            path = self._writer.record_path(trial.id)  # which nobody wrote
            stored.append(_lost_trial(trial, cell, f"{words} {HOST_LOST}", tried, path))
        end = self._stored(tried, slot, stored, in_force)
        return replace(end, trouble=f"{words}, and --lost is {self._policy}")

    def _stored(
        self,
        tried: AttemptResult,
        slot: Sequence[Trial],
        stored: Sequence[StoredTrial],
        in_force: frozenset[tuple[str, object]],
    ) -> SlotEnd:
        self._taking.done(tried)
        if stored and tried.finished:
            self._trying.begun(tried, stored[-1][0])
        rows = self._faults.marked([row for row, _, _ in stored], in_force)  # type: ignore[arg-type]
        whole = [(row, latency, series) for row, (_, latency, series) in zip(rows, stored, strict=True)]
        if len(whole) < len(slot):
            last = whole[-1][0].cell if whole else slot[0].cell
            return SlotEnd(whole, skipped=f"{last} before it did not end")
        return SlotEnd(whole)

    def _compare_clocks(self) -> None:
        if time.monotonic() - self._compared_s > _CLOCKS_EVERY_S:
            self._clocks.compare(self._crew.present)
            self._clocks.journal(self._writer, "between trials")
            self._compared_s = time.monotonic()

    def clean_up(self, lost: Collection[str]) -> tuple[str, ...]:
        """See `Site`."""
        del lost
        left: list[str] = []
        said: Mapping[str, CallResult] = {}
        try:
            self._taking.forget()
            self._clocks.compare(self._crew.present)
            self._clocks.journal(self._writer, "after the study")
            arguments = {host: (self._whole,) for host in self._crew.present}
            said = self._crew.ask(Order(self._remote.close_session, arguments, _CLOSE_S))
        except SchedulerLostError:
            pass
        silent = [host for host in self._crew.hosts if host not in said or said[host].problem]
        for host, one in said.items():
            if not one.problem:
                left += [f"{place} on host {host}" for place in one.value.get("left", ())]
        if silent:
            left.append(
                f"perhaps what {named(silent)} made, which each that runs removes by itself within"
                f" {LEASE_S:.0f} s"
            )
        return tuple(left)


def _hosts_wanted(cell: PlannedCell) -> int | None:
    found: int | None = planned(cell.job).hosts_wanted(cell.job)
    return found


def _lost_trial(trial: Trial, cell: PlannedCell, words: str, tried: AttemptResult, path: Path) -> StoredTrial:
    """A trial that nothing is known of but that it was begun."""
    nothing = Mark("", time.time_ns(), {figure.name: None for figure in trial_figures()})
    record = read_engine_record(path)
    answer = Answer("failed", message=words)
    row = build_trial_row(trial, cell, answer, record, delta(nothing, nothing), caches_dropped=False)
    return replace(row, hosts=len(tried.hosts), attempt=tried.attempt), [], []
