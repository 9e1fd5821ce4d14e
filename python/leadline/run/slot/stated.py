"""A site whose slots are measured in states: settings are changed before a slot, read back, and put back.

What a state is, runs do not know: they ask `States`, which the caller hands in. Each row says what was in
force before and after its trial, so that a verdict need not believe that a change held.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from leadline.errors import LeadlineError
from leadline.plan.model import PlannedCell, Trial
from leadline.run.model import RunRequest, States
from leadline.run.site import Site, SlotEnd
from leadline.store.writer import ResultWriter, StoredTrial


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
