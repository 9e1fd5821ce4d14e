"""One study on one of its hosts: its result there, its observers, and its slots, executed by attempts."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from leadline import _core
from leadline.errors import LeadlineError, ResultError, StoreError, UsageError
from leadline.hosts.directory import (
    BEGUN,
    ENDED,
    FORGOTTEN,
    Attempts,
    discard_unbegun,
    files_of,
    host_id,
    make_private,
    place_of,
    remove_all,
    remove_trials,
    state_home,
)
from leadline.hosts.model import Attempt, AttemptEnd, AttemptState, as_json
from leadline.observe import machine
from leadline.observe.client import Observer
from leadline.observe.host import host as this_host
from leadline.observe.mounts.layouts import with_layout
from leadline.observe.mounts.mounts import inspect
from leadline.observe.mounts.servers import with_server
from leadline.plan.make import with_block
from leadline.plan.model import Plan, PlannedCell, Trial
from leadline.run.faulted import FaultWatch
from leadline.run.kinds import conducted
from leadline.run.local import LocalSite
from leadline.run.model import Display, RunRequest, Stopping
from leadline.run.places import require_outside
from leadline.run.session import remove_left, request_of
from leadline.run.site import Appointment, SlotEnd
from leadline.run.workspace import held
from leadline.store.acting import look_at
from leadline.store.files import MANIFEST
from leadline.store.journal import Event
from leadline.store.writer import HeldResultError, ResultWriter, create_result, reopen_result
from leadline.study.target import Target, TargetFacts

_LOCK_S = 120.0  # a session before this one, whose worker was lost, ends its trial and cleans up
_LOCK_LOOK_S = 0.2


class HostStudy:
    """A study that is open on this host, until `close`. Raises LeadlineError where it cannot be opened.

    `manifest` is the parent's, with the plan and the options as they are for this host; `host` has its
    `name`, its `number` in the study, and `targets`: where a target is here, if that differs.
    """

    def __init__(
        self,
        manifest: Mapping[str, Any],
        host: Mapping[str, Any],
        directory: str | None,
        display: Display,
        stopping: Stopping,
        appointment: Appointment,
    ) -> None:
        self._name = str(host["name"])
        self._stopping = stopping
        self._lock = threading.RLock()  # of the journal: who hears forgets while who works begins
        home = state_home(os.environ, directory)
        make_private(home, str(manifest["id"]))
        self.place = place_of(home, str(manifest["id"]), self._name)
        with ExitStack() as stack:
            writer, request = self._result(_own_manifest(manifest, host), stack)
            self._writer, self._request, self._plan = writer, request, request.plan
            self._lost: set[str] = set()
            self._grown: list[Sequence[str]] = []
            self._attempts = Attempts(writer.events())
            self._tidy()
            options = request.options
            observer = Observer(
                request.facts,
                interval_s=options.interval_s,
                ceph=options.ceph,
                clusters=options.clusters,
                labs=options.labs,
            )
            stack.callback(observer.stop)
            observer.start()
            faults = FaultWatch(options.labs, writer, under_fault=options.under_fault)
            self._site = LocalSite(request, writer, observer, display, stopping, faults, appointment)
            self._stack = stack.pop_all()

    def _result(self, manifest: dict[str, Any], stack: ExitStack) -> tuple[ResultWriter, RunRequest]:
        """The host's own result, new or gone on with; what was left of it below the targets is removed."""
        if not os.path.lexists(self.place / MANIFEST):
            manifest["targets"] = {
                target["name"]: _facts(target, manifest["targets"].get(target["name"])).as_json()
                for target in manifest["plan"]["targets"]
            }
            request = request_of(manifest)
            writer = create_result(self.place, manifest, time.time_ns, opening="session_opened")
            stack.callback(writer.close)  # last: who waits for its lock finds the study's places free
            stack.callback(discard_unbegun, writer)
            stack.enter_context(held(request.id, request.plan.targets, self.place))
            return writer, request
        seen = look_at(self.place)
        for doubt in seen.doubts:
            raise ResultError(f"{doubt}: others could have written what it says", "look into it by hand")
        if any(seen.manifest.get(key) != manifest[key] for key in ("id", "plan")):
            raise ResultError(
                f"{self.place} holds another study of this id", "name another directory for this host"
            )
        writer = reopened(self.place, self._stopping)
        stack.callback(writer.close)
        stack.callback(discard_unbegun, writer)
        seen.require_same(writer.manifest)
        request = request_of({**writer.manifest, "options": manifest["options"]})
        require_outside(self.place, request.id)
        stack.enter_context(held(request.id, request.plan.targets, self.place))
        remove_left(request, writer)
        return writer, request

    def _tidy(self) -> None:
        """Note how attempts ended whose session was killed, and remove what is forgotten already."""
        for attempt in self._attempts.unended():
            done = self._attempts.has_finished(attempt)
            words = "" if done else "its session was killed"
            self._end(AttemptEnd(self._name, attempt, "finished" if done else "interrupted", words))
        kept = {trial for trials in self._attempts.held().values() for trial in trials}
        begun = {trial for trials in self._attempts.begun.values() for trial in trials}
        remove_trials(self.place, begun - kept)

    @property
    def facts(self) -> dict[str, Any]:
        """What the targets are on this host, by name."""
        return {name: found.as_json() for name, found in self._request.facts.items()}

    def run(self, attempt: Attempt) -> AttemptEnd:
        """Execute its slot, unless the attempt was begun before, or one of its trials is held."""
        slot = self._slot_of(attempt)
        why = self._attempts.why_not(attempt.id, attempt.trials)
        if why:
            return AttemptEnd(self._name, attempt.id, "refused", why)
        self._note(BEGUN, attempt=attempt.id, trials=list(attempt.trials))
        try:
            found = self._site.run_slot(slot, [self._cell(trial, attempt) for trial in slot])
            self._lost |= found.gone.keys()
            self._keep(slot, found)
            end = _end_of(self._name, attempt, found)
        except LeadlineError as error:  # a full disk, caches that cannot be dropped: it would be so again
            words = "; ".join(filter(None, (error.message, error.remedy)))
            end = AttemptEnd(self._name, attempt.id, "interrupted", words, trouble=words)
        with suppress(StoreError):  # the next session of this host will note it
            self._end(end)
        with self._lock:
            trials = self._attempts.held().get(attempt.id, ())
        return replace(end, files=files_of(self.place, trials))

    def _slot_of(self, attempt: Attempt) -> tuple[Trial, ...]:
        for cells in attempt.grown[len(self._grown) :]:
            self._plan = with_block(self._plan, cells)
            self._grown.append(cells)
        for slot in self._plan.slots():
            if tuple(trial.id for trial in slot) == tuple(attempt.trials):
                return slot
        raise UsageError(
            f"{', '.join(attempt.trials)} is no slot of the study's plan", "report this as a defect"
        )

    def _cell(self, trial: Trial, attempt: Attempt) -> PlannedCell:
        cell, rate = self._plan.cell(trial.cell), attempt.rates.get(trial.id)
        return cell if rate is None else replace(cell, job=conducted(cell.job).at_rate(cell.job, rate))

    def _keep(self, slot: Sequence[Trial], found: SlotEnd) -> None:
        if found.interrupted:
            for trial in slot:
                self._writer.journal("trial_interrupted", trial=trial.id)
                self._writer.discard(trial.id)
        if found.stored:
            self._writer.write_trials(found.stored)
            states = {row.trial: row.state for row, _, _ in found.stored}
            with self._lock:
                self._attempts.take(Event(0, "trials_finished", {"trials": states}))

    def _end(self, end: AttemptEnd) -> None:
        said = as_json(replace(end, files={})).items()
        self._note(ENDED, **{name: value for name, value in said if value is not None})

    def _note(self, event: str, **details: Any) -> None:
        with self._lock:
            self._writer.journal(event, **details)
            self._attempts.take(Event(0, event, details))

    def forget(self, attempt: str) -> None:
        """Remove the tables of an attempt; what it does not know was forgotten before."""
        with self._lock:
            trials = self._attempts.held().get(attempt)
            if trials is not None:
                self._note(FORGOTTEN, attempt=attempt)
                remove_trials(self.place, trials)

    def close(self, *, discard: bool) -> tuple[str, ...]:
        """Remove what was made below the targets; what is left, in words.

        With `discard` the directory on this host goes too, if neither a workspace nor a table is left; else
        it is among what is left.
        """
        with self._stack:
            left = self._site.clean_up(self._lost)
            self._writer.journal("session_closed", left=list(left))
            if discard and not left and not any(self._attempts.held().values()):
                remove_all(self._writer)
            elif discard:
                left = (*left, str(self.place))
        return left


def reopened(place: Path, stopping: Stopping) -> ResultWriter:
    """A host's result to go on with, once the session before this one has ended. Raises HeldResultError."""
    until = time.monotonic() + _LOCK_S
    while True:
        try:
            return reopen_result(place, time.time_ns)
        except HeldResultError:
            if time.monotonic() > until or stopping():
                raise
        time.sleep(_LOCK_LOOK_S)


def _end_of(host: str, attempt: Attempt, found: SlotEnd) -> AttemptEnd:
    state: AttemptState = "interrupted"
    if found.stored:
        state = "finished"
    elif found.skipped is not None:
        state = "skipped"
    target, why_gone = next(iter(found.gone.items()), (None, ""))
    reason = found.skipped or why_gone or found.trouble or ("it was stopped" if not found.stored else "")
    gone = target is not None
    return AttemptEnd(host, attempt.id, state, reason, target, gone, trouble=found.trouble or "")


def _own_manifest(manifest: Mapping[str, Any], host: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a host's own result: the parent's, with this host's places and another id."""
    name, number, elsewhere = str(host["name"]), int(host["number"]), host.get("targets") or {}
    plan = dict(manifest["plan"])
    plan["targets"] = [{**one, "url": elsewhere.get(one["name"], one["url"])} for one in plan["targets"]]
    own = {
        "kind": "study",
        "id": host_id(str(manifest["id"]), number),
        "version": _core.version(),
        "plan": Plan.from_json(plan).as_json(),
        "targets": manifest["targets"],
        "options": {**manifest["options"], "host_number": number},
        "study": manifest.get("study") or {},
        "created": manifest.get("created") or "",
        "host": this_host.facts(),
        "host_of_study": {"study": manifest["id"], "name": name, "number": number},
    }
    found: dict[str, Any] = json.loads(json.dumps(own))  # as it is read back
    return found


def _facts(target: Mapping[str, Any], known: Mapping[str, Any] | None) -> TargetFacts:
    """What a target is on this host; `known` has what the parent found it to be."""
    if machine.other() is not None:
        if target.get("pool"):
            raise UsageError(
                f"target {target['name']} has a pool of its own, which leadline's agent cannot set",
                "install leadline on that host, or leave the pool out",
            )
        return inspect(str(target["url"]))
    conf = ((known or {}).get("ceph") or {}).get("conf")
    readable = Path(conf) if conf is not None and Path(conf).is_file() else None
    url = str(target["url"])
    found = with_server(inspect(url), url, readable, this_host.memory_bytes())
    return with_layout(found, Target(**target))
