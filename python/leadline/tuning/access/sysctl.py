"""Sysctls: files below /proc/sys, those of a network for each host of a lab."""

from __future__ import annotations

from leadline.errors import LeadlineError
from leadline.tuning.access.interface import AccessKind, SettingReading
from leadline.tuning.changes import SettingPlace
from leadline.tuning.settings import Setting


class SysctlAccess(AccessKind):
    """Options: `key`, with dots."""

    root_needed = True

    def places(self, setting: Setting) -> tuple[SettingPlace, ...]:
        """Each host that has it. One that is no network's own is this kernel's."""
        hosts = self.around.hosts() if setting.access.options["key"].startswith("net.") else ("",)
        there = tuple(host for host in hosts if self.around.match(_path(setting), host))
        if not there and self.around.match(_path(setting)):
            there = ("",)  # a network's own namespace does not have what is one for all
        return tuple(SettingPlace(host=host) for host in there)

    def read(self, setting: Setting, place: SettingPlace) -> SettingReading:
        """See AccessKind."""
        try:
            return SettingReading(" ".join(self.around.read(_path(setting), place.host).split()), "set")
        except FileNotFoundError:
            return SettingReading(None, reason=f"this kernel has no {setting.access.options['key']}")
        except OSError as error:
            return SettingReading(None, reason=f"{_path(setting)}: {error.strerror}")
        except LeadlineError as error:
            return SettingReading(None, reason=error.message)

    def write(self, setting: Setting, place: SettingPlace, value: str) -> None:
        """See AccessKind."""
        self.around.write(_path(setting), value, place.host)


def _path(setting: Setting) -> str:
    return "/proc/sys/" + setting.access.options["key"].replace(".", "/")
