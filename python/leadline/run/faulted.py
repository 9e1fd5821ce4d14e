"""Follows the faults on a study's labs: which began and ended meanwhile, and which trials ran under them.

A lab's file of faults is read anew between trials, in a fork: it could lie on what hangs. What is journalled
has the times that the lab noted, so that a crash of the run loses nothing: whoever goes on reads it again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from leadline.errors import TargetError
from leadline.faults import BEGAN, ENDED, FILE, UNKNOWN, Fault, TrialFault, read
from leadline.observe.hang_guard import in_fork
from leadline.store.tables import TrialRow
from leadline.store.writer import ResultWriter

_Key = tuple[str, tuple[str, float]]  # directory of the lab, key of the fault


def read_faults(labs: Sequence[str]) -> dict[str, tuple[Fault, ...]]:
    """The faults of each lab, by its directory. Raises TargetError where one does not answer, and OSError."""
    return {lab: in_fork(partial(_read, Path(lab)), f"{lab}/{FILE}") for lab in labs}


def _read(lab: Path, _doing: object) -> tuple[Fault, ...]:
    return read(lab)


class FaultWatch:
    """The faults on some labs since the study began; without labs there is nothing to look at."""

    def __init__(self, labs: Sequence[str], writer: ResultWriter, *, under_fault: bool) -> None:
        self._labs = labs
        self._writer = writer
        self._asked = under_fault
        self._why = ""  # they are not known
        self._hung = False
        self._faults: dict[_Key, Fault] = {}
        self._looked_unix_s = 0.0
        events = writer.events() if labs else ()
        self._since_unix_s = events[0].t_ns / 1e9 if events else 0.0
        self._said = {
            (event.event, str(event.details["lab"]), Fault.from_json(event.details).key)
            for event in events
            if event.event in (BEGAN, ENDED)
        }

    def look(self) -> frozenset[_Key]:
        """Those in force now; what is new of all is in the journal when this returns."""
        if self._labs and not self._hung:
            self._looked_unix_s = time.time()
            try:
                found = read_faults(self._labs)
            except (OSError, TargetError) as error:
                self._hung = isinstance(error, TargetError)  # each further try would cost its deadline
                self._tell_unknown(str(error))
            else:
                self._why = ""
                self._faults = {(lab, fault.key): fault for lab, faults in found.items() for fault in faults}
                for (lab, _), fault in self._faults.items():
                    self._tell(lab, fault)
        return frozenset(key for key, fault in self._faults.items() if fault.ended_unix_s is None)

    def marked(self, rows: Sequence[TrialRow], before: frozenset[_Key]) -> list[TrialRow]:
        """The rows with the faults that each ran under; `before` are those in force when they began.

        A fault that was in force before and after was so meanwhile, whatever the clocks of lab and trial say.
        """
        if not self._labs:
            return list(rows)
        began_unix_s = self._looked_unix_s
        through = before & self.look()
        if self._why:
            return [_unknown(row, self._why, under_fault=self._asked) for row in rows]
        return [
            replace(
                row,
                faults=json.dumps([one.as_json() for one in self._felt(row, began_unix_s, through)]),
                under_fault=self._asked,
            )
            for row in rows
        ]

    def _felt(self, row: TrialRow, began_unix_s: float, through: frozenset[_Key]) -> Iterator[TrialFault]:
        start_s, end_s = began_unix_s, self._looked_unix_s  # of a worker that was lost before it said more
        if row.started_unix_ns:
            start_s = row.started_unix_ns / 1e9
            end_s = start_s + (row.ramp_ns + row.measured_ns) / 1e9
        for key, fault in self._faults.items():
            if key in through or fault.overlaps(start_s, end_s):
                yield TrialFault(fault, whole=key in through or fault.covers(start_s, end_s))

    def _tell(self, lab: str, fault: Fault) -> None:
        """Say in the journal that a fault began, and that it ended; not of those before the study began."""
        if fault.ended_unix_s is not None and fault.ended_unix_s < self._since_unix_s:
            return
        known = {"lab": lab} | asdict(fault)
        for event in (BEGAN,) if fault.ended_unix_s is None else (BEGAN, ENDED):
            key = (event, lab, fault.key)
            if key not in self._said:
                without = ("ended_unix_s",) if event == BEGAN else ()
                self._writer.journal(event, **{name: known[name] for name in known if name not in without})
                self._said.add(key)

    def _tell_unknown(self, why: str) -> None:
        if why != self._why:
            self._writer.journal(UNKNOWN, reason=why)
        self._why = why


def _unknown(row: TrialRow, why: str, *, under_fault: bool) -> TrialRow:
    reasons = json.loads(row.reasons) | {"faults": why}
    return replace(row, reasons=json.dumps(reasons), under_fault=under_fault)
