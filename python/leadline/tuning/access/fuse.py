"""Options of the ceph-fuse of a mount, by its admin socket: they last as long as its process.

Only sockets of processes that this account follows are asked, and the kernel says who listens.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leadline.errors import TuningError
from leadline.tuning.access.ceph_config import word
from leadline.tuning.access.interface import AccessKind, InForce, SettingReading
from leadline.tuning.changes import SettingPlace
from leadline.tuning.settings import Setting

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
