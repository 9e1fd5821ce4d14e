"""Options of mounts by the kernel's own clients, changed by a remount where their file system allows.

A file system that cannot change an option while it is mounted often says nothing: reading back tells.
"""

from __future__ import annotations

from leadline.observe.mounts.mountinfo import Mount, parse_mountinfo
from leadline.study.schemes import OF_FILE_SYSTEM
from leadline.tuning.access.interface import (
    FALSE_WORDS,
    TRUE_WORDS,
    AccessKind,
    SettingReading,
    is_on,
    word_of,
)
from leadline.tuning.changes import SettingPlace
from leadline.tuning.settings import Setting

# What undoes an option, where that is not `no` before it or taken from it.
_OPPOSITE = {"noatime": "relatime", "nodiratime": "diratime", "wsync": "nowsync", "relatime": "norelatime"}
_DEADLINE_S = 30.0


class MountAccess(AccessKind):
    """Options: `option`, a word that is there or not, or one with a value. Places: mount points."""

    root_needed = True

    def places(self, setting: Setting) -> tuple[SettingPlace, ...]:
        """Mounts of the kernel's network clients; times of access also of those on local devices."""
        return tuple(
            SettingPlace(mount.mount_point)
            for mount in self._mounts()
            if (mount.file_system in OF_FILE_SYSTEM and not mount.file_system.startswith("fuse"))
            or (setting.access.options["option"] in _OPPOSITE and mount.source.startswith("/dev/"))
        )

    def read(self, setting: Setting, place: SettingPlace) -> SettingReading:
        """See AccessKind."""
        option = setting.access.options["option"]
        found = [mount for mount in self._mounts() if mount.mount_point == place.subject]
        if not found:
            return SettingReading(None, reason=f"nothing is mounted at {place.subject}")
        mount = found[-1]
        value = mount.option(option)
        if value is not None:
            return SettingReading(value, "set")
        if _is_switch(setting):
            there = option in (*mount.options, *mount.super_options)
            return SettingReading(word_of(setting, there), "set")
        return SettingReading(None, reason="the mount table does not name it: the default is in force")

    def write(self, setting: Setting, place: SettingPlace, value: str) -> None:
        """See AccessKind."""
        option = setting.access.options["option"]
        words = f"{option}={value}"
        if _is_switch(setting):
            words = option if is_on(value) else _without(option)
        self.around.run(["mount", "-o", f"remount,{words}", place.subject], deadline_s=_DEADLINE_S)

    def life(self, _setting: Setting, place: SettingPlace) -> str:
        """This mounting of it."""
        found = [mount for mount in self._mounts() if mount.mount_point == place.subject]
        return f"mount:{found[-1].mount_id}:{self.around.life('')}" if found else "gone"

    def _mounts(self) -> tuple[Mount, ...]:
        try:
            return parse_mountinfo(self.around.read("/proc/self/mountinfo"))
        except OSError:
            return ()


def _is_switch(setting: Setting) -> bool:
    words = {*TRUE_WORDS, *FALSE_WORDS}
    return setting.one_of is None or all(word.lower() in words for word in setting.one_of)


def _without(option: str) -> str:
    return _OPPOSITE.get(option) or (option[2:] if option.startswith("no") else f"no{option}")
