"""Sets the settings of a proof or a search, and puts them back: one way for both, also after a kill.

What is neither what was there before nor was set here is somebody else's: it is named, and never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from leadline.errors import LeadlineError, TuningError
from leadline.tuning.access.interface import same_value
from leadline.tuning.proving.kept import ProofJournal
from leadline.tuning.proving.proof import ProvedSetting
from leadline.tuning.system import TuningSystem, is_before


class SettingChanger:
    """`is_ours` knows the values that are set here; `journal` is None for results that are older than it.

    `restart` is told of a setting that was put back at the end.
    """

    def __init__(
        self,
        system: TuningSystem,
        settings: Sequence[ProvedSetting],
        is_ours: Callable[[ProvedSetting, str | None], bool],
        journal: ProofJournal | None,
        restart: Callable[[ProvedSetting], None] = lambda _: None,
    ) -> None:
        self._system, self._settings, self._is_ours = system, tuple(settings), is_ours
        self._journal, self._restart = journal, restart

    def bring(self, one: ProvedSetting, value: str | None) -> bool:
        """To this value, None: to what was there before. Whether it had to be changed. Raises TuningError."""
        reading = self._system.read(one.setting, one.change.place)
        before = is_before(reading, one.change)
        if not reading.known:
            raise TuningError(f"{named(one)} cannot be read: {reading.reason}", "see what it waits for")
        if not before and not self._is_ours(one, reading.value):
            raise TuningError(
                f"{named(one)} is {reading.value} now, which neither was there before nor was set here",
                "somebody else changes it: nothing was overwritten; go on when nobody does",
            )
        if value is None:
            if not before:
                self._system.put_back(one.change)
            return not before
        if not before and same_value(reading.value, value):
            return False
        if self._journal is not None:
            self._journal.announce(one, value)
        self._system.write(replace(one.change, value=value))
        return True

    def renew(self) -> None:
        """What is held meanwhile stays so. Raises TuningError where it was taken away."""
        if self._journal is not None:
            self._journal.renew()

    def put_all_back(self) -> tuple[str, ...]:
        """The last first. What could not be, in words."""
        return tuple(words for one in reversed(self._settings) if (words := self._put_back(one)))

    def _put_back(self, one: ProvedSetting) -> str:
        """What a killed program asked of a monitor may be done after it was read: so what is in doubt is put
        back whatever it reads.
        """
        try:
            reading = self._system.read(one.setting, one.change.place)
            if not reading.known:
                return f"{named(one)} cannot be read: {reading.reason}"
            before = is_before(reading, one.change)
            if not before and not self._is_ours(one, reading.value):
                return f"{named(one)} is {reading.value} now, set by somebody else: left as it is"
            if not before or (self._journal is not None and self._journal.in_doubt(one)):
                self._system.put_back(one.change)
                self._restart(one)
            if self._journal is not None:
                self._journal.back(one)
        except LeadlineError as error:
            return error.message
        return ""


def named(one: ProvedSetting) -> str:
    """In words, with its place."""
    return f"{one.setting.name} on {one.change.place.words}"
