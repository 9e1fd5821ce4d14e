"""What no program can read or set for every machine, such as firmware: refused, with how it is done."""

from __future__ import annotations

from leadline.tuning.access.interface import ReadOnlyAccess, SettingReading
from leadline.tuning.changes import SettingPlace
from leadline.tuning.settings import Setting


class ByHandAccess(ReadOnlyAccess):
    """Options: `words`, how it is done."""

    def places(self, _setting: Setting) -> tuple[SettingPlace, ...]:
        """This host."""
        return (SettingPlace(),)

    def read(self, setting: Setting, _place: SettingPlace) -> SettingReading:
        """Nobody can tell."""
        return SettingReading(None, reason=f"not readable here; by hand: {setting.access.options['words']}")

    def why_not(self, setting: Setting, _place: SettingPlace) -> str:
        """How it is done."""
        return f"by hand: {setting.access.options['words']}"
