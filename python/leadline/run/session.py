"""Starts a run, new or resumed: result directory, observers, executor, in this order; closes all three."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from leadline import _core
from leadline.errors import ResultError, TargetError
from leadline.observe import machine
from leadline.observe.client import Observer
from leadline.observe.hang_guard import check_answers, in_fork
from leadline.observe.mounts.mounts import inspect
from leadline.plan.make import states_of, with_block
from leadline.plan.model import Plan
from leadline.run.child import Worker
from leadline.run.executor import Executor
from leadline.run.faulted import FaultWatch
from leadline.run.local import LocalSite
from leadline.run.model import (
    Display,
    Outcome,
    RunOptions,
    RunRequest,
    Steering,
    Stopping,
)
from leadline.run.places import (
    left_workspaces,
    noted,
    planned_workspaces,
    remove_workspaces,
    require_outside,
)
from leadline.run.prepared import forks
from leadline.run.site import Site, StatedSite
from leadline.run.storage import Mounted, mounted_of, require_mounted, require_same
from leadline.run.workspace import held
from leadline.store.acting import SeenManifest
from leadline.store.files import checked_name
from leadline.store.journal import DamagedJournalError, Event
from leadline.store.writer import ResultWriter, create_result, reopen_result
from leadline.study.schemes import storageless
from leadline.study.target import Target, TargetFacts
from leadline.transfer import lone_transfer
from leadline.units import quoted

_SELF_TEST_NS = 200_000_000


def new_run(
    request: RunRequest,
    out: Path,
    details: Mapping[str, Any],
    display: Display,
    stopping: Stopping,
    steering: Steering,
    add_files: Callable[[Path], None] | None = None,
) -> Outcome:
    """Run a study into a new directory. `details` go into the manifest: study, host, command.

    `add_files` writes what the jobs need into the directory before the first trial.
    """
    _require_states(request.plan, steering)
    with (
        held(request.id, request.plan.targets, out),
        closing(create_result(out, manifest_of(request, details), time.time_ns)) as writer,
    ):
        if add_files is not None:
            add_files(out)
        return _execute(request, writer, display, stopping, steering)


def manifest_of(request: RunRequest, details: Mapping[str, Any]) -> dict[str, Any]:
    """What the manifest of a new result says, `details` with it."""
    return {
        "kind": "study",
        "id": request.id,
        "version": _core.version(),
        "plan": request.plan.as_json(),
        "targets": {name: facts.as_json() for name, facts in request.facts.items()},
        "options": asdict(request.options),
        **details,
    }


def interrupted_request(
    path: Path, seen: SeenManifest, writer: ResultWriter, labs: tuple[str, ...], *, under_fault: bool
) -> RunRequest:
    """What an interrupted run goes on with: its plan with the blocks that were added.

    `labs` and `under_fault` as in `RunOptions` are asked anew. Raises ResultError where nothing is left.
    """
    seen.require_same(writer.manifest)
    request = request_of(writer.manifest)
    options = replace(request.options, labs=labs, under_fault=under_fault)
    request = replace(request, plan=grown_plan(request.plan, writer.events()), options=options)
    if is_finished(writer, request.plan):
        raise ResultError(
            f"{path} is complete: nothing is left to run", f"read it with: leadline show {quoted(path)}"
        )
    return request


def resume_run(
    path: Path,
    seen: SeenManifest,
    display: Display,
    stopping: Stopping,
    steering: Steering,
    *,
    labs: tuple[str, ...] = (),
    under_fault: bool = False,
) -> Outcome:
    """Go on with an interrupted run: what a crash left below the targets is removed first, and settings that
    it left changed are put back.

    `labs` and `under_fault` as in `RunOptions`: they are asked anew.
    """
    with closing(reopen_result(path, time.time_ns)) as writer:
        request = interrupted_request(path, seen, writer, labs, under_fault=under_fault)
        _require_states(request.plan, steering)
        require_outside(path, request.id)
        with held(request.id, request.plan.targets, path):
            _put_back(steering)
            remove_left(request, writer)
            return _execute(request, writer, display, stopping, steering)


def _require_states(plan: Plan, steering: Steering) -> None:
    """Raises ResultError where settings are to be changed between trials, and nobody is there who does."""
    if states_of(plan.targets) and steering.states is None:
        raise ResultError(
            "this study proves settings: they are changed between its trials, which nobody does here",
            "go on with: leadline tune prove --resume DIR, or of a search: leadline tune search --resume DIR",
        )


def _put_back(steering: Steering) -> None:
    """Settings as they were before the run that was interrupted. Raises ResultError where one is not."""
    left = steering.states.leave() if steering.states is not None else ()
    if left:
        raise ResultError(
            f"what the run before changed could not be put back: {'; '.join(left)}",
            "put it back by hand, then go on as before",
        )


def remove_left(request: RunRequest, writer: ResultWriter) -> None:
    """Remove what a run before left below the targets. Raises TargetError where it cannot all go."""
    check_answers([Path("/"), *(target.url for target in request.plan.targets if target.is_path)])
    _require_mounted(request)
    left = left_workspaces(request.id, request.plan.targets, writer)
    kept = remove_workspaces(request.id, left, noted(request.plan.targets, request.facts), writer)
    for place, why in kept.items():
        raise TargetError(f"{place} is left of the run before: {why}", "remove it, then resume")


def _require_mounted(request: RunRequest) -> None:
    """Raises TargetError where a target lies on another file system than the trials that it has."""
    for target in request.plan.targets:
        was = mounted_of(request.facts.get(target.name))
        if target.is_path and was is not None and machine.other() is not None:
            require_same(Path(target.url), inspect(target.url, writes=False), was)
        elif target.is_path and was is not None:
            in_fork(partial(_ask_mounted, Path(target.url), was), target.url)


def _ask_mounted(top: Path, was: Mounted, _doing: object) -> None:
    require_mounted(top, was)


def grown_plan(plan: Plan, events: Sequence[Event]) -> Plan:
    """The plan with the blocks that the journal says were added while it ran."""
    for event in events:
        if event.event == "block_added":
            plan = with_block(plan, event.details["cells"])
    return plan


def undo_run(path: Path, seen: SeenManifest) -> tuple[list[str], dict[str, str], str]:
    """Remove what a run left below its targets; returns what was removed, and what could not be with why.

    And what is wrong with the journal, or "": then every place of the plan is looked at for the mark.
    """
    with closing(reopen_result(path, time.time_ns, to_run=False)) as writer:
        seen.require_same(writer.manifest)
        study_id = str(writer.manifest["id"])
        targets = _targets_of(writer.manifest)
        require_outside(path, study_id)
        damage = ""
        with held(study_id, targets, path):
            try:
                places = left_workspaces(study_id, targets, writer)
            except DamagedJournalError as error:
                damage, places = error.message, planned_workspaces(study_id, targets)
            try:
                left = remove_workspaces(study_id, places, noted(targets, _facts_of(writer.manifest)), writer)
            finally:
                forks().leave()  # on a study's host this process is a worker of Dask
    gone = dict.fromkeys(place.words for place in places.values())  # states of a target share one
    return [words for words in gone if words not in left], left, damage


def _facts_of(manifest: Mapping[str, Any]) -> dict[str, TargetFacts]:
    try:
        return {name: TargetFacts.from_json(value) for name, value in manifest.get("targets", {}).items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise ResultError(
            f"what is known of the targets is damaged: {error}", "restore the manifest from a copy"
        ) from None


def _targets_of(manifest: Mapping[str, Any]) -> list[Target]:
    """The targets alone: the rest of a plan may be of kinds of work that this version does not know."""
    try:
        return [Target(**target) for target in manifest["plan"]["targets"]]
    except (KeyError, TypeError) as error:
        raise ResultError(
            f"the plan is damaged: {type(error).__name__}: {error}", "restore the manifest from a copy"
        ) from None


def request_of(manifest: Mapping[str, Any]) -> RunRequest:
    """The request that a manifest was written from; its names are safe to make paths of."""
    try:
        known = {field.name for field in fields(RunOptions)}
        plan = Plan.from_json(manifest["plan"])
        names = [target.name for target in plan.targets]
        names += [name for trial in plan.trials for name in (trial.id, trial.target)]
        names += [cell.target for cell in plan.cells]
        names += [cell.layout.key for cell in plan.cells if cell.layout is not None]
        for name in names:
            checked_name(name)
        return RunRequest(
            id=str(manifest["id"]),
            plan=plan,
            facts={name: TargetFacts.from_json(value) for name, value in manifest["targets"].items()},
            options=RunOptions(**{k: v for k, v in manifest["options"].items() if k in known}),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ResultError(f"the manifest is damaged: {error}", "run the study anew") from error


def is_finished(writer: ResultWriter, plan: Plan) -> bool:
    ended = any(event.event == "study_finished" for event in writer.events())
    return ended and writer.finished() >= {trial.id for trial in plan.trials}


def _execute(
    request: RunRequest,
    writer: ResultWriter,
    display: Display,
    stopping: Stopping,
    steering: Steering,
) -> Outcome:
    options = request.options
    observer = Observer(request.facts, interval_s=options.interval_s, ceph=options.ceph, labs=options.labs)
    try:
        observer.start()
        _measure_itself(writer, stopping)
        options = request.options
        faults = FaultWatch(options.labs, writer, under_fault=options.under_fault)
        site: Site = LocalSite(request, writer, observer, display, stopping, faults)
        if steering.states is not None:
            site = StatedSite(site, steering.states, request, writer)
        executor = Executor(request, writer, site, faults, display, stopping, steering.pilot, steering.growth)
        return executor.run()
    finally:
        observer.stop()


def _measure_itself(writer: ResultWriter, stopping: Stopping) -> None:
    """What the engine costs without storage: `null`, 4 KiB reads, 32 in flight, one thread."""
    job = lone_transfer(
        "self", iodepth=32, engine=storageless().name, time_based=True, runtime_ns=_SELF_TEST_NS
    )
    record = writer.record_path("self")
    with Worker(stopping) as worker:
        answer = worker.call("trial", 30.0, job=job, record=str(record))
    record.unlink(missing_ok=True)
    if answer.outcome == "done" and answer.value["directions"]["read"]["operations"]:
        operations = answer.value["directions"]["read"]["operations"]
        writer.journal("self_measured", null_ns_per_operation=answer.value["measured_ns"] / operations)
    else:
        writer.journal("self_measured", null_ns_per_operation=None, reason=answer.message)
