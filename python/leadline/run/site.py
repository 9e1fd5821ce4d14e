"""Where the slots of a plan are executed: on this host, or on many at once. What orders them need not know.

A slot is a trial, or those of the jobs of a composition. `slot.local` has the site that is this host.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from leadline.plan.model import PlannedCell, Trial
from leadline.store.writer import StoredTrial

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
