"""Files below /sys: of each block device ({device}) or network interface ({interface}), or of the host."""

from __future__ import annotations

import re

from leadline.errors import LeadlineError
from leadline.tuning.access.interface import AccessKind, SettingReading
from leadline.tuning.changes import SettingPlace
from leadline.tuning.settings import Setting

_CHOSEN = re.compile(r"\[([^\]]+)\]")
_NEVER = re.compile(r"(loop|ram|zram|sr|fd)\d+$|lo$")


class SysfsAccess(AccessKind):
    """Options: `path`, in which `*` are parts such as queues that have one value together."""

    root_needed = True

    def places(self, setting: Setting) -> tuple[SettingPlace, ...]:
        """The devices or interfaces that have such a file."""
        path = setting.access.options["path"]
        subject = next((word for word in ("{device}", "{interface}") if word in path), "")
        if not subject:
            return (SettingPlace(),) if self.around.match(path) else ()
        depth = path.split("/").index(subject)
        found: dict[SettingPlace, None] = {}
        for host in self.around.hosts() if subject == "{interface}" else ("",):
            for match in self.around.match(path.replace(subject, "*"), host):
                name = match.split("/")[depth]
                if not _NEVER.match(name):
                    found[SettingPlace(name, host)] = None
        return tuple(found)

    def read(self, setting: Setting, place: SettingPlace) -> SettingReading:
        """See AccessKind; of several files that differ there is no one value."""
        files = self._files(setting, place)
        if not files:
            return SettingReading(None, reason=f"there is no {_path(setting, place)}")
        try:
            values = {_value(self.around.read(file, place.host)) for file in files}
        except OSError as error:
            return SettingReading(None, reason=f"{_path(setting, place)}: {error.strerror}")
        except LeadlineError as error:
            return SettingReading(None, reason=error.message)
        if len(values) > 1:
            return SettingReading(None, reason=f"its parts differ: {', '.join(sorted(values))}")
        return SettingReading(values.pop(), "set")

    def write(self, setting: Setting, place: SettingPlace, value: str) -> None:
        """See AccessKind."""
        for file in self._files(setting, place):
            self.around.write(file, value, place.host)

    def _files(self, setting: Setting, place: SettingPlace) -> tuple[str, ...]:
        return self.around.match(_path(setting, place), place.host)


def _path(setting: Setting, place: SettingPlace) -> str:
    path = setting.access.options["path"]
    return path.replace("{device}", place.subject).replace("{interface}", place.subject)


def _value(text: str) -> str:
    """The word in brackets where all that could be chosen are listed."""
    chosen = _CHOSEN.search(text)
    return chosen[1] if chosen else " ".join(text.split())
