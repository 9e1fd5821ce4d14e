"""Parameters that the kernel was booted with: read here, changed by the boot loader's configuration."""

from __future__ import annotations

from leadline.tuning.access.interface import ReadOnlyAccess, SettingReading, word_of
from leadline.tuning.changes import SettingPlace
from leadline.tuning.settings import Setting


class CmdlineAccess(ReadOnlyAccess):
    """Options: `parameter`."""

    def places(self, _setting: Setting) -> tuple[SettingPlace, ...]:
        """This host."""
        return (SettingPlace(),)

    def read(self, setting: Setting, _place: SettingPlace) -> SettingReading:
        """The last that was given, as the kernel has it; a parameter without a value is on."""
        name = setting.access.options["parameter"]
        try:
            words = self.around.read("/proc/cmdline").split()
        except OSError as error:
            return SettingReading(None, reason=f"/proc/cmdline: {error.strerror}")
        for given in reversed(words):
            key, equals, value = given.partition("=")
            if key.replace("-", "_") == name.replace("-", "_"):
                return SettingReading(value if equals else word_of(setting, True), "set")
        return SettingReading(None, "default", "not given: the kernel's own default is in force")

    def why_not(self, setting: Setting, _place: SettingPlace) -> str:
        """It takes a reboot."""
        return (
            f"the kernel reads {setting.access.options['parameter']} at boot;"
            " leadline tune emit --format grub writes it"
        )
