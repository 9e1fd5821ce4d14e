"""Injects faults into a lab and undoes them. What undoes a fault is on disk before any of it is done.

The lab's lock is held while something is done or undone, never while a fault is only in force.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from leadline import faults
from leadline.errors import LabError, UsageError
from leadline.lab.cluster import process
from leadline.lab.inject import actions
from leadline.lab.inject.actions import ActionContext
from leadline.lab.inject.fault import FaultKind, FaultScene
from leadline.lab.inject.injection import FaultPlan, Injection, LabAction, check_free
from leadline.lab.inject.kinds import find
from leadline.lab.journal import LabJournal
from leadline.lab.record import LabRecord, locked, read_record


def inject(
    directory: Path,
    variables: Mapping[str, str],
    kind: FaultKind | str,
    on: str = "",
    options: Mapping[str, str] | None = None,
    for_s: float | None = None,
    begun: Callable[[Injection], None] = lambda _: None,
) -> Injection:
    """Does one fault to the lab in `directory` and returns while it is in force.

    `for_s` is only noted: whoever calls undoes it then. `begun` is called before anything is recorded or
    done, so that a caller who is interrupted at any later moment knows what to undo. Raises UsageError where
    it cannot be, with nothing changed, and LabError where a step failed: then what was done of it is undone.
    """
    kind = find(kind) if isinstance(kind, str) else kind
    with _changing(directory, variables) as journal:
        scene = _scene(journal, kind, on, options or {})
        _check_time(kind, for_s)
        plan = _planned(kind, scene)
        check_free(plan.holds, journal.record.injections)
        made = _begun(journal, kind, scene, plan, for_s)
        begun(made)
        journal.update(injections=(*journal.record.injections, made))
        place = ActionContext(journal)
        try:
            faults.begin(directory, made.id, made.kind, made.on, made.words)
            for step in plan.steps:
                actions.do(place, step.do)
            made = replace(made, done=True)
            _replace(journal, made)
        except BaseException:
            with suppress(LabError, OSError):  # then it stays recorded; the first error is the one to report
                _undo(place, made)
            raise
        if not kind.lasting:
            _undo(place, made)
        return made


def clear(
    directory: Path, variables: Mapping[str, str], identifiers: Sequence[str] = ()
) -> tuple[list[Injection], list[LabError]]:
    """Undoes these faults, or all, the last first. Returns those undone, and why others could not be.

    What could not be undone stays recorded. Raises UsageError for an identifier that is not in force.
    """
    with _changing(directory, variables) as journal:
        there = journal.record.injections
        unknown = sorted(set(identifiers) - {item.id for item in there})
        if unknown:
            raise UsageError(
                f"no fault {unknown[0]} is in force", "`leadline lab inject --list` shows those that are."
            )
        chosen = [item for item in reversed(there) if not identifiers or item.id in identifiers]
        undone, failures = [], []
        place = ActionContext(journal)
        for item in chosen:
            try:
                _undo(place, item)
                undone.append(item)
            except LabError as error:
                failures.append(error)
    return undone, failures


def in_force(directory: Path) -> tuple[Injection, ...]:
    """What is recorded as injected, the oldest first."""
    return read_record(directory).injections


@contextmanager
def _changing(directory: Path, variables: Mapping[str, str]) -> Iterator[LabJournal]:
    with locked(directory):
        record = read_record(directory)
        if record.state != "up":
            raise UsageError(f"lab {record.name} is not up ({record.state})", "Start it, or take it down.")
        try:
            yield LabJournal(record, process.environment(record.fsid, directory, variables))
        except OSError as error:  # a full disk, or what stands in the place of the lab's own files
            raise LabError(
                f"lab {record.name}: {error.filename or directory}: {error.strerror or error}",
                "Look what stands there, and for space; `leadline lab inject --list` shows what is in force.",
            ) from error


def _scene(journal: LabJournal, kind: FaultKind, on: str, options: Mapping[str, str]) -> FaultScene:
    record = journal.record
    reason = kind.lacking(record)
    if reason:
        raise UsageError(f"{kind.name} cannot be done here: {reason}", "`--kinds` lists what can.")
    return FaultScene(record, _thing(record, kind, on), _options(kind, options), journal.variables)


def _planned(kind: FaultKind, scene: FaultScene) -> FaultPlan:
    try:
        return kind.plan(scene)
    except (KeyError, IndexError) as error:
        raise LabError(
            f"the cluster does not report what {kind.name} needs to know ({error})",
            "A new manager needs some seconds: repeat it when `leadline lab status` shows placement groups.",
        ) from error


def _thing(record: LabRecord, kind: FaultKind, on: str) -> str:
    things = kind.things(record)
    if on in things or not (on or things):
        return on
    if len(things) == 1 and not on:
        return things[0]
    what = f"{on!r} is nothing in lab {record.name} that" if on else f"what in lab {record.name}"
    choice = f"It is done on {kind.on}: {', '.join(things)}." if things else "It is done on nothing named."
    raise UsageError(f"{what} {kind.name} {'can be done on' if on else 'shall be done on?'}", choice)


def _options(kind: FaultKind, given: Mapping[str, str]) -> dict[str, str]:
    known = {option.name: option for option in kind.options}
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        names = ", ".join(f"{option.name}={option.default}" for option in kind.options) or "none"
        raise UsageError(f"{kind.name} has no option {unknown[0]!r}", f"Its options: {names}.")
    found = {name: given.get(name, option.default) for name, option in known.items()}
    for name, text in found.items():
        known[name].check(text)
    return found


def _check_time(kind: FaultKind, for_s: float | None) -> None:
    if kind.limit_s and (for_s is None or for_s > kind.limit_s):
        raise UsageError(
            f"{kind.name} may last {kind.limit_s:.0f} s at most", f"Add: for {min(60.0, kind.limit_s):.0f}s"
        )


def _begun(
    journal: LabJournal, kind: FaultKind, scene: FaultScene, plan: FaultPlan, for_s: float | None
) -> Injection:
    """What the lab's file says of it before anything is done."""
    directory, now_s = journal.record.directory, time.time()
    used = [item.id for item in faults.read(directory)] + [item.id for item in journal.record.injections]
    return Injection(
        id=str(1 + max((int(name) for name in used if name.isdecimal()), default=0)),
        kind=kind.name,
        on=scene.on,
        options=dict(scene.options),
        words=plan.words,
        holds=plan.holds,
        undo=tuple(step.undo for step in reversed(plan.steps) if step.undo is not None),
        began_unix_s=now_s,
        until_unix_s=None if for_s is None else now_s + for_s,
    )


def _replace(journal: LabJournal, changed: Injection) -> None:
    there = journal.record.injections
    journal.update(injections=tuple(changed if item.id == changed.id else item for item in there))


def _undo(place: ActionContext, injection: Injection) -> None:
    """All of it, as far as it goes. Raises LabError for what did not go: then it stays recorded."""
    reasons = [reason for action in injection.undo if (reason := _why_not(place, action))]
    journal = place.journal
    if reasons:
        raise LabError(
            f"{injection.title} ({injection.id}) could not be undone: {'; '.join(reasons)}",
            f"Repeat `leadline lab inject --clear {injection.id}` when it can, or take the lab down.",
        )
    faults.end(journal.record.directory, injection.id)
    left = tuple(item for item in journal.record.injections if item.id != injection.id)
    journal.update(injections=left)


def _why_not(place: ActionContext, action: LabAction) -> str:
    try:
        actions.do(place, action)
    except LabError as error:
        return error.message
    return ""
