"""What a proof changed, in the journal of `leadline tune apply`: `leadline tune revert` takes it back, too.

Each setting is announced when it is first set, and stays so while states come and go, until all is put back;
of a search each value, too, so that whoever reverts it knows them from what somebody else has set.
It is never said to be done: what is in force is another thing from one state to the next, so a revert puts it
back whatever it reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from leadline.errors import LeadlineError
from leadline.tuning.changing.applying import reach_of
from leadline.tuning.changing.cluster_lock import PROOF_S, ClusterLock
from leadline.tuning.changing.journal import TuningJournal
from leadline.tuning.changing.state import JournalledChange
from leadline.tuning.proving.proof import ProvedSetting
from leadline.tuning.system import TuningSystem


class ProofJournal:
    """The journal while one proof or search holds its lock."""

    def __init__(self, journal: TuningJournal, system: TuningSystem) -> None:
        self._journal, self._system = journal, system
        self._lock = ClusterLock(system.around, PROOF_S)
        self._run = ""
        self._own: set[int] = set()

    @property
    def place(self) -> str:
        """Where it is, for whoever looks for it later."""
        return str(self._journal.directory)

    def hold_cluster(self) -> None:
        """Nobody else changes settings of the cluster until this ends. Raises RefusedChangeError."""
        self._lock.take()

    def renew(self) -> None:
        """Called before and after each trial. Raises TuningError where the cluster's lock was broken."""
        self._lock.renew()

    def release(self) -> None:
        """Others may."""
        self._lock.release()

    def announce(self, one: ProvedSetting, value: str) -> None:
        """Said and synced before the setting has this value for the first time."""
        if one.setting.of_cluster:
            self.hold_cluster()
        if self._entry(one) is None:
            if not self._run:
                room = [(one.change, one.setting)]
                self._run = self._journal.begin(reach_of(self._system), 0.0, {}, room)
            life = self._system.life(one.setting, one.change.place)
            self._own.add(self._journal.changing(self._run, one.change, one.setting, life).number)
        entry = self._entry(one)
        if entry is not None and not entry.is_ours(value):  # of a search, whose change names no value
            self._journal.say("trying", number=entry.number, value=value)

    def in_doubt(self, one: ProvedSetting) -> bool:
        """Whether a proof that was killed left it: what it asked for last may be done after it is read.

        So it may be where the journal cannot be read any more.
        """
        try:
            entry = self._entry(one)
        except LeadlineError:
            return True
        return entry is not None and entry.number not in self._own

    def back(self, one: ProvedSetting) -> None:
        """Said once it is as it was; where it cannot be said a revert finds it so, or puts it back again."""
        with suppress(LeadlineError):
            self._say_back(one)

    def _say_back(self, one: ProvedSetting) -> None:
        entry = self._entry(one)
        if entry is None:
            return
        self._journal.say("undone", number=entry.number, how="put back")
        if not self._journal.state().outstanding(entry.run):
            self._journal.say("ended", run=entry.run, how="put back: the proof has ended")
            self._run = "" if entry.run == self._run else self._run

    def _entry(self, one: ProvedSetting) -> JournalledChange | None:
        return next(
            (found for found in self._journal.state().outstanding() if found.change == one.change), None
        )


@contextmanager
def kept(journal: TuningJournal, system: TuningSystem) -> Iterator[ProofJournal]:
    """Nobody else changes settings by this journal meanwhile. Raises RefusedChangeError, naming who."""
    with journal.locked():
        found = ProofJournal(journal, system)
        try:
            yield found
        finally:
            found.release()
