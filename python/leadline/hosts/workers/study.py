"""A run on many hosts from first to last: result directory, sessions on the hosts, executor, in this order.

`run/session` does the same for a run on this host.

After a parent was lost: what the hosts finished is taken in, what they hold beside that is forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from leadline.errors import LeadlineError, ResultError, UsageError
from leadline.hosts.model import AttemptEnd
from leadline.hosts.worker_rpc import Remote
from leadline.hosts.workers.attempt_runner import AttemptResult, AttemptRunner
from leadline.hosts.workers.calls import Crew, Order
from leadline.hosts.workers.checks import refuse_all
from leadline.hosts.workers.collector import TableCollector
from leadline.hosts.workers.site import LEASE_S, HostsSite, Lease
from leadline.hosts.workers.study_hosts import StudyHosts, manifest_of_host
from leadline.run.executor import Executor
from leadline.run.faulted import FaultWatch
from leadline.run.model import Display, Growth, Outcome, Pilot, RunRequest, Stopping, no_growth
from leadline.run.session import interrupted_request, manifest_of
from leadline.run.workspace import held
from leadline.store.acting import SeenManifest
from leadline.store.files import checked_id
from leadline.store.writer import ResultWriter, create_result, reopen_result

_HELD_S = 60.0


def take_in(
    study_hosts: StudyHosts,
    taking: TableCollector,
    writer: ResultWriter,
    request: RunRequest,
    display: Display,
) -> None:
    """Store the trials that every host of an attempt has whole and the result lacks; then have all forgotten.

    Hosts that cannot be asked keep what they have.
    """
    crew, remote = study_hosts.crew, study_hosts.remote
    arguments = {host: (request.id, host) for host in crew.present}
    said = crew.ask(Order(remote.held, arguments, _HELD_S))
    held = {host: one.value for host, one in said.items() if not one.problem}
    cells = {cell.id: cell for cell in request.plan.cells}
    slots = {tuple(trial.id for trial in slot): slot for slot in request.plan.slots()}
    known = set()
    for event in writer.events():
        if event.event != "attempt_begun":
            continue
        attempt, hosts = str(event.details["attempt"]), tuple(map(str, event.details["hosts"]))
        known.add(attempt)
        tried = _tried(attempt, hosts, held)
        slot = slots.get(tuple(event.details["trials"]), ())
        lacking = slot and not writer.finished() & {trial.id for trial in slot}
        if tried is not None and lacking:
            taking.fetch(tried)
            stored = [] if tried.lost else taking.joined(tried, slot, [cells[one.cell] for one in slot])
            if len(stored) == len(slot):
                writer.write_trials(stored)
                names = ", ".join(trial.id for trial in slot)
                display.say(f"{names}: finished on the hosts before, taken in now")
        here = tuple(host for host in hosts if attempt in held.get(host, {}))
        taking.done(AttemptResult(attempt, here))
    for attempt in {one for files in held.values() for one in files} - known:
        raise ResultError(
            f"hosts hold attempt {attempt}, which the journal of {writer.path} does not know",
            "go on with the copy of the result that knows it",
        )
    taking.forget()


def _tried(
    attempt: str, hosts: tuple[str, ...], held: Mapping[str, Mapping[str, Mapping[str, int]]]
) -> AttemptResult | None:
    """The attempt as if it had just ended; None where some host does not have all of it."""
    if any(not held.get(host, {}).get(attempt) for host in hosts):
        return None
    ends = {host: AttemptEnd(host, attempt, "finished", files=dict(held[host][attempt])) for host in hosts}
    return AttemptResult(attempt, hosts, ends)


_OPEN_S = 120.0
_STARTS_S = 2.0  # more for each host: sessions and observers may all start on one machine
_POLL_S = 0.2


def new_crew_run(
    request: RunRequest,
    out: Path,
    details: Mapping[str, Any],
    study_hosts: StudyHosts,
    display: Display,
    stopping: Stopping,
    pilot: Pilot,
    growth: Growth = no_growth,
) -> Outcome:
    """Run a study on hosts into a new directory; `run.session.new_run` for many of them."""
    manifest = manifest_of(request, {**study_hosts.as_json(), **details})
    with (
        held(request.id, request.plan.targets, out),
        closing(create_result(out, manifest, time.time_ns)) as writer,
    ):
        return _CrewRun(request, writer, study_hosts, display, stopping).execute(pilot, growth, new=True)


def resume_crew_run(
    path: Path,
    seen: SeenManifest,
    study_hosts: StudyHosts,
    display: Display,
    stopping: Stopping,
    pilot: Pilot,
    growth: Growth = no_growth,
    *,
    under_fault: tuple[tuple[str, ...], bool] = ((), False),
) -> Outcome:
    """Go on with an interrupted run: what the hosts finished meanwhile is taken in first.

    `under_fault`: the labs that the targets are on, and whether it is meant to be run under their faults.
    """
    with closing(reopen_result(path, time.time_ns)) as writer:
        labs, meant = under_fault
        request = interrupted_request(path, seen, writer, labs, under_fault=meant)
        with held(request.id, request.plan.targets, path):
            return _CrewRun(request, writer, study_hosts, display, stopping).execute(pilot, growth, new=False)


class _CrewRun:
    """One run: sessions are opened when it begins, and closed by its site."""

    def __init__(
        self,
        request: RunRequest,
        writer: ResultWriter,
        study_hosts: StudyHosts,
        display: Display,
        stopping: Stopping,
    ) -> None:
        self._request, self._writer, self._crewed = request, writer, study_hosts
        self._display, self._stopping = display, stopping
        self._numbers = {one["name"]: at for at, one in enumerate(writer.manifest["hosts"])}

    def execute(self, pilot: Pilot, growth: Growth, *, new: bool) -> Outcome:
        study_hosts, options = self._crewed, self._request.options
        with Lease(study_hosts.crew, study_hosts.remote.renew, self._request.id):
            try:
                self._open([one.host.name for one in study_hosts.seen])
            except LeadlineError:
                if new:
                    self._writer.discard_all()
                raise
            study_hosts.clocks.journal(self._writer, "before the study")
            taking = TableCollector(study_hosts, self._writer)
            trying = AttemptRunner(study_hosts, self._writer, options, self._display, self._stopping)
            faults = FaultWatch(options.labs, self._writer, under_fault=options.under_fault)
            site = HostsSite(
                study_hosts, trying, taking, self._writer, self._display, faults, self._comes_back
            )
            executor = Executor(
                self._request, self._writer, site, faults, self._display, self._stopping, pilot, growth
            )
            if not new:
                take_in(study_hosts, taking, self._writer, self._request, self._display)
            return executor.run()

    def _open(self, names: Sequence[str]) -> None:
        """Open a session on each of these hosts. Raises UsageError where one refuses; the rest are closed."""
        study_hosts = self._crewed
        by_name = {one.host.name: one for one in study_hosts.seen}
        arguments = {}
        for name in names:
            one = by_name[name]
            host: dict[str, Any] = {
                "name": name,
                "number": self._number(name),
                "targets": dict(one.host.targets),
            }
            manifest = manifest_of_host(self._writer.manifest, host["number"], len(self._numbers))
            arguments[name] = (manifest, host, None, LEASE_S)
        limit_s = _OPEN_S + len(arguments) * _STARTS_S
        said = study_hosts.crew.ask(Order(study_hosts.remote.open_session, arguments, limit_s))
        problems = [f"host {name}: {one.problem}" for name, one in sorted(said.items()) if one.problem]
        if problems:
            opened = {name: () for name, one in said.items() if not one.problem}
            study_hosts.crew.ask(Order(study_hosts.remote.close_session, opened, _OPEN_S))
            remedy = next((one.remedy for one in said.values() if one.remedy), "")
            refuse_all(problems, remedy or "see what its Dask worker printed", UsageError)

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            raise ResultError(f"{name} is no host of this study", "use the hosts that it was begun with")
        return self._numbers[name]

    def _comes_back(self, name: str) -> bool:
        """Wait for a lost host's worker, as a nanny starts it again, and open a session there."""
        crew, asked = self._crewed.crew, self._crewed.asked
        gone, end = crew.address(name), time.monotonic() + asked.answer_s
        while time.monotonic() < end and not self._stopping():
            found = {worker.name: worker.address for worker in crew.workers()}
            here = found.get(name)
            if here is not None and (here != gone or crew.why_gone(name) is None):
                crew.back(name, here)
                try:
                    self._open([name])
                except UsageError as error:
                    self._display.say(error.message)
                    return False
                self._crewed.clocks.compare([name])
                self._writer.journal("host_back", host=name)
                return True
            time.sleep(_POLL_S)
        return False


def undo_on_hosts(
    crew: Crew, remote: Remote, study_id: str, stored: Collection[str]
) -> tuple[list[str], dict[str, str]]:
    """Have all hosts remove what a study left there; what was removed, and what could not be, with why.

    `stored`: the trials that its result has, whose tables no host needs to keep.
    """
    checked_id(study_id)
    arguments = {host: (study_id, host, None, sorted(stored)) for host in crew.hosts}
    said = crew.ask(Order(remote.undo, arguments, _OPEN_S))
    removed, left = [], {}
    for host, one in sorted(said.items()):
        if one.problem:
            left[f"what host {host} made"] = one.problem
            continue
        removed += [f"{place} on host {host}" for place in one.value["removed"]]
        left |= {f"{place} on host {host}": str(why) for place, why in one.value["left"].items()}
        if one.value.get("damage"):
            left[f"the journal on host {host}"] = str(one.value["damage"])
    return removed, left
