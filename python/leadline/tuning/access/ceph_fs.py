"""Options of file systems (CephFS), as their map has them."""

from __future__ import annotations

from typing import Any

from leadline.errors import LeadlineError
from leadline.tuning.access.ceph_config import word
from leadline.tuning.access.interface import AccessKind, SettingReading, is_on, word_of
from leadline.tuning.changes import SettingPlace
from leadline.tuning.settings import Setting

# Bits of the map's flags, which releases before Reef do not name (CEPH_MDSMAP_* in Ceph's ceph_fs.h).
_BITS = {"joinable": 0, "allow_new_snaps": 1, "allow_standby_replay": 5, "refuse_client_session": 6}
_INVERTED = ("joinable",)  # its bit says that it is not


class CephFsAccess(AccessKind):
    """Options: `option`. Places: file systems by name."""

    lasting = True

    def places(self, _setting: Setting) -> tuple[SettingPlace, ...]:
        """Every file system."""
        try:
            fsid = self.around.fsid()
            return tuple(SettingPlace(name, cluster=fsid) for name in self._maps())
        except LeadlineError:
            return ()

    def read(self, setting: Setting, place: SettingPlace) -> SettingReading:
        """See AccessKind."""
        option = setting.access.options["option"]
        try:
            found = self._maps().get(place.subject)
        except LeadlineError as error:
            return SettingReading(None, reason=error.message)
        if found is None:
            return SettingReading(None, reason=f"there is no file system {place.subject}")
        if option in _BITS:
            on = bool(found["flags"] >> _BITS[option] & 1) != (option in _INVERTED)
            return SettingReading(word_of(setting, on), "set")
        if option not in found:
            return SettingReading(None, reason=f"the map of {place.subject} does not tell {option}")
        return SettingReading(word(found[option]), "set")

    def write(self, setting: Setting, place: SettingPlace, value: str) -> None:
        """See AccessKind."""
        option = setting.access.options["option"]
        val = str(is_on(value)).lower() if option in _BITS else value
        self.around.command("fs set", fs_name=place.subject, var=option, val=val)

    def life(self, _setting: Setting, place: SettingPlace) -> str:
        """The file system itself: another may have its name."""
        try:
            for one in self.around.ask("fs dump")["filesystems"]:
                if one["mdsmap"]["fs_name"] == place.subject:
                    return f"fs:{place.cluster}:{one['id']}"
        except LeadlineError:
            return ""
        return "gone"

    def _maps(self) -> dict[str, dict[str, Any]]:
        return {one["mdsmap"]["fs_name"]: one["mdsmap"] for one in self.around.ask("fs dump")["filesystems"]}
