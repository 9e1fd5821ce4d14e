"""Settings of mounts: options of the kernel's clients and of ceph-fuse, attributes of directories."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leadline.errors import LeadlineError, TuningError
from leadline.observe.mounts.mountinfo import Mount, parse_mountinfo
from leadline.study.schemes import OF_FILE_SYSTEM
from leadline.tuning.access.ceph import word
from leadline.tuning.access.interface import (
    FALSE_WORDS,
    TRUE_WORDS,
    AccessKind,
    InForce,
    SettingReading,
    is_on,
    word_of,
)
from leadline.tuning.settings import Setting, SettingPlace

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


_LEVELS = ("default", "mon", "file", "env", "cmdline", "override")


class FuseAccess(AccessKind):
    """Options: `option`. Places: mount points of ceph-fuse."""

    def places(self, _setting: Setting) -> tuple[SettingPlace, ...]:
        """Every mount of a ceph-fuse; of the cluster that is meant, where its configuration was named."""
        from leadline.observe.mounts.mountinfo import read_mounts

        found = []
        for mount in read_mounts():
            if mount.file_system != "fuse.ceph-fuse" or self.around.root != Path("/"):
                continue
            if self.around.conf is None or self._is_of(mount.mount_point, self.around.conf):
                found.append(SettingPlace(mount.mount_point))
        return tuple(found)

    def _is_of(self, mount_point: str, conf: Path) -> bool:
        """By directory: each client of a lab with hosts has a file of its own beside the cluster's."""
        access = self._access(mount_point)
        named: str | None = getattr(access, "conf", None)
        return named is not None and (Path(named) == conf or conf.parent in Path(named).parents)

    def read(self, setting: Setting, place: SettingPlace) -> SettingReading:
        """Set where it was set while the process ran, which is what can be taken away again."""
        return self._found(setting, place)[0]

    def _found(self, setting: Setting, place: SettingPlace) -> tuple[SettingReading, Mapping[str, Any]]:
        """The value, and by level what the process has it from: a mount can go between two questions."""
        option = setting.access.options["option"]
        try:
            row = self._ask(place, "config diff get", var=option)["diff"].get(option, {})
            value = word(self._ask(place, "config get", var=option)[option])
        except TuningError as error:
            return SettingReading(None, reason=error.message), {}
        except (KeyError, TypeError):
            return SettingReading(None, reason=f"its ceph-fuse has no option {option}"), {}
        return SettingReading(value, "set" if "override" in row else "default"), row

    def write(self, setting: Setting, place: SettingPlace, value: str) -> None:
        """See AccessKind."""
        option = setting.access.options["option"]
        answer = self._ask(place, "config set", var=option, val=[value])
        if "error" in answer:
            raise TuningError(f"{setting.name} on {place.words}: {answer['error']}", "")

    def unset(self, setting: Setting, place: SettingPlace) -> None:
        """See AccessKind."""
        self._ask(place, "config unset", var=setting.access.options["option"])

    def in_force(self, setting: Setting, place: SettingPlace) -> tuple[InForce, ...]:
        """The process says itself what it works with, and where it has it from."""
        found, row = self._found(setting, place)
        if not found.known:
            return (InForce("ceph-fuse", None, reason=found.reason),)
        origin = next((one for one in reversed(_LEVELS) if one in row), "default")
        return (InForce("ceph-fuse", found.value, origin),)

    def life(self, _setting: Setting, place: SettingPlace) -> str:
        """The process that serves the mount."""
        access = self._access(place.subject)
        pid = getattr(access, "client_pid", None)
        if pid is None:
            return "gone"
        try:
            started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        except (OSError, IndexError):
            return "gone"
        return f"process:{pid}:{started}:{self.around.life('')}"

    def why_not(self, setting: Setting, _place: SettingPlace) -> str:
        """What the process looks at when it mounts, and never again."""
        if setting.needs in ("remount", "restart"):
            return (
                "ceph-fuse looks at it when it mounts; write it into ceph.conf, section [client]"
                " (leadline tune emit --format ceph), or prove it on a second mount (leadline tune prove)"
            )
        return ""

    def _access(self, mount_point: str) -> Any:
        from leadline.observe.mounts.fuse_client import find_client
        from leadline.observe.mounts.mountinfo import read_mounts

        for mount in reversed(read_mounts()):
            if mount.mount_point == mount_point and mount.file_system == "fuse.ceph-fuse":
                return find_client(mount)
        return None

    def _ask(self, place: SettingPlace, prefix: str, **arguments: Any) -> Any:
        from leadline.observe.ceph.client import NotObservableError, ask_socket

        access = self._access(place.subject)
        if access is None:
            raise TuningError(f"no ceph-fuse is mounted at {place.subject}", "see `leadline targets`")
        if access.client_socket is None or access.client_pid is None:
            why = access.distrusted or "its process or its admin socket is not to be seen"
            raise TuningError(f"{place.subject}: {why}", "use the account that mounted it, or root")
        try:
            return ask_socket(access.client_socket, access.client_pid, prefix, **arguments)
        except NotObservableError as error:
            raise TuningError(f"{place.subject}: {error.message}", error.remedy) from error


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
