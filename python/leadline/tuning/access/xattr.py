"""Extended attributes by which CephFS is told of a directory: layout of new files, its MDS."""

from __future__ import annotations

import errno
import os

from leadline.errors import LeadlineError, TuningError
from leadline.tuning.access.interface import AccessKind, SettingReading
from leadline.tuning.changes import SettingPlace
from leadline.tuning.settings import Setting

_LAYOUT = "ceph.dir.layout"
_NONE = "-1"  # pinned to no rank


class XattrAccess(AccessKind):
    """Options: `name`. Places: directories, which nobody lists: one has to be named."""

    lasting = True

    def places(self, _setting: Setting) -> tuple[SettingPlace, ...]:
        """None by themselves."""
        return ()

    def named(self, _setting: Setting, word: str) -> SettingPlace | None:
        """Any directory, by its absolute path."""
        return SettingPlace(word) if word.startswith("/") else None

    def read(self, setting: Setting, place: SettingPlace) -> SettingReading:
        """See AccessKind."""
        name = setting.access.options["name"]
        try:
            value = self._look(place, name)
        except OSError as error:
            if error.errno == errno.ENODATA:
                return SettingReading(None, "default", "inherited from the directory above")
            return SettingReading(None, reason=f"{place.subject}: {error.strerror}")
        except LeadlineError as error:
            return SettingReading(None, reason=error.message)
        return SettingReading(value, "set")

    def write(self, setting: Setting, place: SettingPlace, value: str) -> None:
        """See AccessKind."""
        name = setting.access.options["name"]
        try:
            self.around.look(lambda: os.setxattr(place.subject, name, value.encode()), place.subject)
        except OSError as error:
            raise TuningError(
                f"{place.subject} does not take {name}={value}: {error.strerror}", ""
            ) from error

    def unset(self, setting: Setting, place: SettingPlace) -> None:
        """A layout goes as a whole; one that was a part of ours has been inherited before."""
        name = setting.access.options["name"]
        if not name.startswith(_LAYOUT):
            self.write(setting, place, _NONE)
            return
        try:
            self.around.look(lambda: os.removexattr(place.subject, _LAYOUT), place.subject)
        except OSError as error:
            raise TuningError(
                f"{place.subject}: its layout cannot be removed: {error.strerror}", ""
            ) from error

    def life(self, _setting: Setting, place: SettingPlace) -> str:
        """The directory itself."""
        try:
            found = self.around.look(lambda: os.lstat(place.subject).st_ino, place.subject)
        except (OSError, LeadlineError):
            return ""
        return f"inode:{found}"

    def _look(self, place: SettingPlace, name: str) -> str:
        """The layout of a directory that has none of its own is not told: ENODATA."""

        def ask() -> bytes:
            return os.getxattr(place.subject, name)

        return self.around.look(ask, place.subject).decode("utf-8", "replace")
