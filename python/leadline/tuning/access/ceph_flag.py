"""Flags of the whole cluster, such as noscrub."""

from __future__ import annotations

from leadline.errors import LeadlineError
from leadline.tuning.access.interface import AccessKind, SettingReading, is_on, word_of
from leadline.tuning.changes import SettingPlace
from leadline.tuning.settings import Setting


class CephFlagAccess(AccessKind):
    """Options: `flag`. One place: the cluster."""

    lasting = True

    def places(self, _setting: Setting) -> tuple[SettingPlace, ...]:
        """The cluster."""
        try:
            return (SettingPlace(cluster=self.around.fsid()),)
        except LeadlineError:
            return ()

    def read(self, setting: Setting, _place: SettingPlace) -> SettingReading:
        """Whether the map has it."""
        try:
            found = self.around.ask("osd dump")
        except LeadlineError as error:
            return SettingReading(None, reason=error.message)
        flags = found.get("flags_set") or found["flags"].split(",")
        return SettingReading(word_of(setting, setting.access.options["flag"] in flags), "set")

    def write(self, setting: Setting, _place: SettingPlace, value: str) -> None:
        """See AccessKind."""
        self.around.command("osd set" if is_on(value) else "osd unset", key=setting.access.options["flag"])

    def life(self, _setting: Setting, place: SettingPlace) -> str:
        """The cluster."""
        return f"cluster:{place.cluster}"
