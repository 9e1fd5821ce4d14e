"""Where the slots of a plan are executed: on this host or on many, and in which states of settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from leadline.errors import LeadlineError
from leadline.plan.model import PlannedCell, Trial
from leadline.run.model import RunRequest, States
from leadline.store.writer import ResultWriter, StoredTrial

# Asked once all is prepared and marked: waits for word when to start, ns of CLOCK_MONOTONIC, in the future or
# past; None where it is not to start at all. A slot whose jobs follow each other asks before each of them.
Appointment = Callable[[], int | None]


@dataclass(frozen=True)
class SlotEnd:
    """What came of a slot. `stored` are its first trials, measured: they are to be stored.

    `skipped` says why those after them were not begun; `gone` are targets that nothing more is to be tried
    on, each with why. `interrupted`: it was begun and ended, and nothing of it counts. `trouble` is what the
    cluster is in, so that the study must not go on.
    """

    stored: Sequence[StoredTrial] = ()
    skipped: str | None = None
    gone: Mapping[str, str] = field(default_factory=dict)
    interrupted: bool = False
    trouble: str | None = None


class Site(Protocol):
    """Executes slots, one after another."""

    def run_slot(self, slot: Sequence[Trial], cells: Sequence[PlannedCell]) -> SlotEnd:
        """Prepare and measure the trials of a slot, each as its cell says. A stop request ends it."""

    def clean_up(self, lost: Collection[str]) -> tuple[str, ...]:
        """Remove all that was made below the targets; what is left, in words, as on those that are `lost`."""


class StatedSite:
    """Enters the state of each slot's target on a site that executes it."""

    def __init__(self, site: Site, states: States, request: RunRequest, writer: ResultWriter) -> None:
        self._site = site
        self._states = states
        self._writer = writer
        self._state_of = {target.name: target.state for target in request.plan.targets}
        self._in_force: str | None = None

    def run_slot(self, slot: Sequence[Trial], cells: Sequence[PlannedCell]) -> SlotEnd:
        """See `Site`. A state that does not come, or cannot be looked at, ends the study: nothing counts."""
        state = self._state_of[slot[0].target]
        if state is None:
            return self._site.run_slot(slot, cells)
        try:
            self._enter(state)
            before = self._states.look(state)
            end = self._site.run_slot(slot, cells)
            after = self._states.look(state)
        except LeadlineError as error:
            return SlotEnd(
                interrupted=True, trouble=f"the settings could not be brought to {state!r}: {error}"
            )
        return replace(end, stored=_in_state(end.stored, state, before, after))

    def clean_up(self, lost: Collection[str]) -> tuple[str, ...]:
        """See `Site`. Settings first: they change what others measure, and files do not."""
        try:
            left = self._states.leave()
            self._writer.journal("states_left", left=list(left))
        finally:
            removed = self._site.clean_up(lost)
        return (*left, *removed)

    def _enter(self, state: str) -> None:
        """It is in force only once the journal says so: what a crash leaves half done is entered anew."""
        if state == self._in_force:
            return
        self._in_force = None
        self._writer.journal("state_intended", state=state)
        self._states.enter(state)
        self._writer.journal("state_entered", state=state)
        self._in_force = state


def _in_state(
    stored: Sequence[StoredTrial], state: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[StoredTrial, ...]:
    text = json.dumps({"state": state, "before": dict(before), "after": dict(after)})
    return tuple((replace(row, states=text), latency, series) for row, latency, series in stored)
