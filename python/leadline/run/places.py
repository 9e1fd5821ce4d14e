"""Where a study works below its targets: workspaces and the files laid out in them, from first to last.

Everything here is done by a worker with a deadline; what is made is journalled before it is made.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from leadline import units
from leadline.errors import ResultError, StoreError, TargetError
from leadline.observe.hang_guard import check_answers
from leadline.observe.host.host import patient_s
from leadline.run.child import Answer, Worker
from leadline.run.interface import SLOWEST_BYTES_PER_S
from leadline.run.model import RunRequest
from leadline.run.storage import Mounted, mounted_of
from leadline.run.workspace import MARK, Place, Workspace, is_name_of, workspace_of
from leadline.store.files import checked_name
from leadline.store.writer import ResultWriter
from leadline.study.target import Target, TargetFacts

SMALL_DEADLINE_S = 60.0  # making a directory, unlinking a trial's files
_REMOVE_SLICE_S = 10.0
_REMOVE_DEADLINE_S = _REMOVE_SLICE_S + SMALL_DEADLINE_S
_NOWHERE = Place("/")


class Places:
    """The workspaces of one run, by target, and which layouts lie in them."""

    def __init__(self, request: RunRequest, writer: ResultWriter) -> None:
        self._request = request
        self._writer = writer
        self._made: dict[str, Workspace] = {}
        self._perhaps: dict[str, Workspace] = {}
        self._laid_out: set[tuple[str, str]] = set()

    @property
    def made(self) -> Mapping[str, Workspace]:
        """Every workspace that was made."""
        return self._made

    def of(self, target: str) -> Place:
        """Where a job of that target works; the root for one without files."""
        return self._made.get(target, _NOWHERE)

    def ensure(self, worker: Worker, target: str) -> Answer | None:
        """The workspace on a target is there; what went wrong, or None."""
        if target in self._made:
            return None
        described = next(t for t in self._request.plan.targets if t.name == target)
        place = workspace_of(described, self._request.id)
        self._writer.journal("workspace_intended", target=target, **place._asdict())
        what = {"id": self._request.id, "pool": described.pool, **place._asdict()}
        answer = worker.call("make_workspace", patient_s(SMALL_DEADLINE_S), **what)
        if answer.perhaps_done:  # who was ended on the way may have made it
            self._perhaps[target] = place
        if answer.outcome != "done":
            return answer
        self._made[target] = place
        if described.pool is not None:
            self._writer.journal("pool_set", target=target, pool=described.pool)
        return None

    def ensure_layout(
        self,
        worker: Worker,
        target: str,
        key: str,
        total_bytes: int,
        job: dict[str, Any],
        progress: Callable[[Mapping[str, Any]], None],
    ) -> Answer | None:
        """The same for files that cells of a target share, and those of its other states, by their key."""
        owner = next((one.owner for one in self._request.plan.targets if one.name == target), target)
        if (owner, key) in self._laid_out:
            return None
        problem = self.lay_out(worker, target, total_bytes, job, progress, key)
        if problem is None:
            self._laid_out.add((owner, key))
        return problem

    def lay_out(
        self,
        worker: Worker,
        target: str,
        total_bytes: int,
        job: dict[str, Any],
        progress: Callable[[Mapping[str, Any]], None],
        key: str | None = None,
    ) -> Answer | None:
        """Have a job's files written; `key` is that of a layout which other cells share."""
        free = worker.call("space", patient_s(SMALL_DEADLINE_S), **self._made[target]._asdict())
        if free.outcome != "done":
            return free
        reserve = self._request.options.reserve_bytes.get(target, 0)
        free_bytes = free.value["free_bytes"]
        if free_bytes is not None and free_bytes - total_bytes < reserve:
            return Answer(
                "failed",
                message=f"prefilling {units.format_size(total_bytes)} would leave less than the"
                f" reserve of {units.format_size(reserve)} free on target {target}",
            )
        deadline_s = total_bytes / SLOWEST_BYTES_PER_S + self._request.options.grace_s
        answer = worker.call("layout", deadline_s, progress, job=job)
        if answer.outcome != "done":
            return answer
        self._writer.journal("layout_finished", target=target, key=key, **answer.value)
        return None

    def remove_files(self, worker: Worker, target: str, prefix: str) -> None:
        """Remove what only one trial had."""
        if target in self._made:
            remove_all(worker, "remove_files", prefix=prefix, **self._made[target]._asdict())

    def clean_up(self, lost: Collection[str]) -> tuple[str, ...]:
        """Remove the workspaces; those that could not be removed are named."""
        places = {target: place for target, place in self._perhaps.items() if target not in lost}
        left = [
            place.words if target in self._made else f"{place.words}, perhaps"
            for target, place in self._perhaps.items()
            if target in lost
        ]
        targets = noted(self._request.plan.targets, self._request.facts)
        left += remove_workspaces(self._request.id, places, targets, self._writer, made=self._made)
        return tuple(left)


def remove_all(worker: Worker, command: str, **arguments: Any) -> Answer:
    """Remove in slices, each with a deadline: millions of files may take their time, a hung mount may not."""
    while True:
        answer = worker.call(command, _REMOVE_DEADLINE_S, slice_s=_REMOVE_SLICE_S, **arguments)
        if answer.outcome != "done" or not answer.value.get("more"):
            return answer


def noted(targets: Iterable[Target], facts: Mapping[str, TargetFacts]) -> dict[str, Mounted | None]:
    """Of each target by its name where it lay when the study was planned; None where nobody noted it."""
    return {target.name: mounted_of(facts.get(target.name)) for target in targets}


def remove_workspaces(
    study_id: str,
    places: Mapping[str, Workspace],
    targets: Mapping[str, Mounted | None],
    writer: ResultWriter,
    made: Collection[str] = (),
) -> dict[str, str]:
    """Remove a study's directories below its targets, each in a worker of its own.

    `targets` are all of the study's, and where they lay when it was planned. Below those in `made` the
    directory was seen: no server makes it later. Returns what is left, in words, and why; a target that hangs
    costs no more than a look.
    """
    left = {}
    begins = [f"{checked_name(target)}-" for target in targets]
    unwritten: StoreError | None = None
    reasons: dict[Workspace, str | None] = {}  # states of a target share one
    for target, place in places.items():
        if place not in reasons:
            what = {"begins": begins, "was": targets.get(target), "late": target not in made}
            reasons[place] = _remove_workspace(place, id=study_id, **what)
        reason = reasons[place]
        try:
            if reason is None:
                writer.journal("workspace_removed", target=target, **place._asdict())
            else:
                left[place.words] = reason
                writer.journal("workspace_left", target=target, reason=reason, **place._asdict())
        except StoreError as error:  # a full disk here is no reason to leave files there
            unwritten = error
    if unwritten is not None:
        raise unwritten
    return left


def _remove_workspace(place: Workspace, **what: Any) -> str | None:
    """None where it is gone, else why it is left and what to do."""
    try:
        if place.location is None:
            check_answers([place.directory])
    except TargetError as error:
        return error.message
    with Worker() as worker:
        answer = remove_all(worker, "remove_workspace", **what, **place._asdict())
    return None if answer.outcome == "done" else "; ".join(filter(None, (answer.message, answer.remedy)))


def planned_workspaces(study_id: str, targets: Iterable[Target]) -> dict[str, Workspace]:
    """Where a study works, by target."""
    return {target.name: workspace_of(target, study_id) for target in targets}


def require_outside(result: Path, study_id: str) -> None:
    """Refuse a result that lies in a directory which is removed with what its study made."""
    for above in Path(os.path.realpath(result)).parents:
        if is_name_of(above.name, study_id) and os.path.lexists(above / MARK):
            raise ResultError(
                f"{result} lies in {above}, where its own study works and what is there is removed",
                "nothing was done; move the result elsewhere, then do this again",
            )


def left_workspaces(study_id: str, targets: Iterable[Target], writer: ResultWriter) -> dict[str, Workspace]:
    """Directories that the journal says may still exist below the targets, by target.

    They are where the plan has them; a journal that names any other place is refused.
    """
    planned = planned_workspaces(study_id, targets)
    events = writer.events()
    # An empty journal was emptied by somebody: a run writes to it before it makes anything.
    left = {} if events else dict(planned)
    for event in events:
        target = event.details.get("target")
        if event.event == "workspace_intended":
            found = (event.details.get("directory"), event.details.get("location"))
            if not isinstance(target, str) or planned.get(target) != found:
                raise ResultError(
                    f"the journal of {writer.path} names {found!r}, no directory of the plan's targets",
                    "nothing was removed; the journal was changed: restore it from a copy of the result",
                )
            left[target] = planned[target]
        elif event.event == "workspace_removed":
            left.pop(str(target), None)
    return left
