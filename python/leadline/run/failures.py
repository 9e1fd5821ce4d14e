"""Ends what fails in the same way again and again: more trials of it would take time and tell nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from leadline.plan.model import PlannedCell
from leadline.store.journal import Event
from leadline.store.tables import TrialRow
from leadline.workloads.conducted import conducted

ALIKE_MAX = 3  # trials in a row
CELL_ENDED = "cell_ended"  # the event, with the cell and the words of its failures
# What differs between failures that are one: numbers, addresses, names of directories and of trials.
_OWN = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+")


@dataclass(frozen=True)
class _Streak:
    """So many trials in a row that failed with these words."""

    words: str = ""
    count: int = 0

    def then(self, words: str) -> _Streak:
        return _Streak(words, self.count + 1 if words == self.words else 1)


class Failures:
    """Counts failures alike, of each cell and of all cells of a target that would fail for the same cause.

    What an earlier run ended, as `events` say, is tried once more: its cause may be mended.
    """

    def __init__(self, cells: Iterable[PlannedCell], events: Iterable[Event]) -> None:
        self._shared = {cell.id: f"{cell.target}\0{conducted(cell.job).cause(cell.job)}" for cell in cells}
        self._own: dict[str, _Streak] = {}
        self._alike: dict[str, _Streak] = {}
        self._ended: dict[str, str] = {}
        for event in events:
            if event.event == CELL_ENDED:
                cell, words = str(event.details["cell"]), str(event.details["words"])
                self._own[cell] = _Streak(words, ALIKE_MAX - 1)

    def add(self, row: TrialRow) -> tuple[tuple[str, str], ...]:
        """Count a stored trial: cells that end with it, each with the words of its failures."""
        shared = self._shared[row.cell]
        if row.state == "complete":
            self._own.pop(row.cell, None)
            self._alike.pop(shared, None)
            return ()
        words = _OWN.sub("#", row.error or row.state)
        self._own[row.cell] = self._own.get(row.cell, _Streak()).then(words)
        self._alike[shared] = self._alike.get(shared, _Streak()).then(words)
        together = self._alike[shared].count >= ALIKE_MAX
        found = []
        for cell, key in self._shared.items():
            own = self._own.get(cell, _Streak())
            enough = own.count >= ALIKE_MAX or (together and key == shared and own.count > 0)
            if own.words == words and enough and cell not in self._ended:
                self._ended[cell] = f"{ALIKE_MAX} trials in a row failed alike, last {row.trial}: {row.error}"
                found.append((cell, words))
        return tuple(found)

    def ended(self, cells: Iterable[str]) -> str | None:
        """Why one of these cells is not tried any more; None where all are."""
        return next((self._ended[cell] for cell in cells if cell in self._ended), None)
