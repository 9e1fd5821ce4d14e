"""The system that is tuned: reads and sets any setting at any place, by the kind of access of its row.

Keeps no record: who changes more than once, or wants it undone, goes through `applying`."""

from __future__ import annotations

import contextlib
import copy
import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType

from leadline.errors import LeadlineError, RefusedChangeError, TuningError
from leadline.tuning.access.interface import AccessKind, InForce, SettingReading, same_value
from leadline.tuning.audit import SettingSeen
from leadline.tuning.settings import Setting, SettingChange, SettingPlace, settings
from leadline.tuning.surroundings import AskedCluster, TunedSurroundings
from leadline.tuning.validity import Versions, default_on, exists

# A value that stands nowhere by itself: somebody set it, or it is not there.
_GIVEN = ("ceph_config", "fuse", "xattr")


def read_settings_here(
    system: TuningSystem, known: Iterable[Setting], versions: Versions
) -> tuple[SettingSeen, ...]:
    """What each has at each place. What is dangerous is asked of each daemon, whose own file may say so."""
    found: list[SettingSeen] = []
    for setting in known:
        if exists(setting, versions) is False:
            continue
        for place in system.places(setting):
            inside = list(_of_daemons(system, setting, place)) if setting.danger else []
            found += inside or [_seen(setting, place, system.read(setting, place), versions)]
    return tuple(found)


def _seen(setting: Setting, place: SettingPlace, read: SettingReading, versions: Versions) -> SettingSeen:
    value = read.value
    # What the mount table does not name is at its default.
    if value is None and (read.origin == "default" or setting.access.kind == "mount"):
        value = default_on(setting, versions)
    given = read.origin == "set" if setting.access.kind in _GIVEN or read.origin == "default" else None
    return SettingSeen(setting, place, value, given, "" if value is not None else read.reason)


def _of_daemons(system: TuningSystem, setting: Setting, place: SettingPlace) -> Iterator[SettingSeen]:
    for one in system.in_force(setting, place):
        if one.value is not None:
            at = SettingPlace(one.daemon, place.host, place.cluster) if place.cluster else place
            yield SettingSeen(setting, at, one.value, one.origin not in ("default", ""))


# Module below `access` and class, by the word in a row's `access`; loaded when first met.
KINDS: Mapping[str, tuple[str, str]] = {
    "sysctl": ("host", "SysctlAccess"),
    "sysfs": ("host", "SysfsAccess"),
    "ethtool": ("host", "EthtoolAccess"),
    "ceph_config": ("ceph", "CephConfigAccess"),
    "ceph_pool": ("ceph", "CephPoolAccess"),
    "ceph_fs": ("ceph", "CephFsAccess"),
    "ceph_flag": ("ceph", "CephFlagAccess"),
    "fuse": ("mounts", "FuseAccess"),
    "mount": ("mounts", "MountAccess"),
    "xattr": ("mounts", "XattrAccess"),
    "cmdline": ("host", "CmdlineAccess"),
    "by_hand": ("host", "ByHandAccess"),
}


class TuningSystem:
    """One host and one cluster. `known` are the settings that changes are named by, the table's if not given.

    `namespaces` are files of network namespaces by the name of their host, of a lab for one.
    `restart` restarts a daemon by its name (osd.1), where it may.
    """

    def __init__(
        self,
        *,
        conf: Path | None = None,
        client_name: str | None = None,
        root: Path = Path("/"),
        restart: Callable[[str], None] | None = None,
        namespaces: Mapping[str, Path] | None = None,
        known: Mapping[str, Setting] | None = None,
        connect: Callable[[], AskedCluster] | None = None,
    ) -> None:
        self.around = TunedSurroundings(conf, client_name, root, namespaces or {}, connect)
        self.restart = restart
        self._known = known
        self._kinds: dict[str, AccessKind] = {}

    @property
    def known(self) -> Mapping[str, Setting]:
        """The settings that changes are named by. The table is read when it is first asked for."""
        return settings() if self._known is None else self._known

    def setting(self, name: str) -> Setting:
        """The setting of this name. Raises RefusedChangeError with the nearest names."""
        from leadline.yamlio.problems import suggest

        if name not in self.known:
            near = suggest(name, self.known).partition("? known are")[0]
            meant = f"{near}?" if near.startswith("did you mean") else "`leadline tune list` has them all"
            raise RefusedChangeError(f"there is no setting {name}", meant)
        return self.known[name]

    def knowing(self, setting: Setting) -> TuningSystem:
        """The same system, in which this setting is the one of its name: as a journal has it, for one."""
        other = copy.copy(self)
        other._known = {**(self._known or {}), setting.name: setting}
        return other

    def kind(self, setting: Setting) -> AccessKind:
        """How it is read and set. Raises RefusedChangeError for a kind that this version does not have."""
        name = setting.access.kind
        if name not in self._kinds:
            if name not in KINDS:
                raise RefusedChangeError(
                    f"{setting.name}: there is no access of the kind {name}", f"known are {', '.join(KINDS)}"
                )
            module, which = KINDS[name]
            found = getattr(importlib.import_module(f"leadline.tuning.access.{module}"), which)
            self._kinds[name] = found(self.around)
        return self._kinds[name]

    def places(self, setting: Setting) -> tuple[SettingPlace, ...]:
        """Where it has a value of its own here; none where it has none, or what has it does not answer."""
        return self.kind(setting).places(setting)

    def read(self, setting: Setting, place: SettingPlace) -> SettingReading:
        """Its value there, or why it has none."""
        return self.kind(setting).read(setting, place)

    def in_force(self, setting: Setting, place: SettingPlace) -> tuple[InForce, ...]:
        """What each daemon works with; nothing where the value that is read is all there is."""
        return self.kind(setting).in_force(setting, place)

    def write(self, change: SettingChange) -> None:
        """Set it and read it back. Raises TuningError where it does not hold what was set."""
        setting = self.setting(change.setting)
        kind = self.kind(setting)
        if why := self.why_not(setting, change.place):
            raise RefusedChangeError(f"{setting.name} cannot be set on {change.place.words}: {why}", "")
        kind.write(setting, change.place, change.value)
        found = kind.read(setting, change.place)
        if not same_value(found.value, change.value):
            raise TuningError(
                f"{setting.name} on {change.place.words} was set to {change.value} and reads"
                f" {found.value if found.known else found.reason}",
                "it is rounded, bounded or refused there without a word: set a value that it takes",
            )

    def put_back(self, change: SettingChange) -> None:
        """Set what was there before, or remove ours. Raises TuningError where that does not hold."""
        setting = self.setting(change.setting)
        kind = self.kind(setting)
        if change.before is None:
            kind.unset(setting, change.place)
        else:
            kind.write(setting, change.place, change.before)
        found = kind.read(setting, change.place)
        if not is_before(found, change):
            raise TuningError(
                f"{setting.name} on {change.place.words} was put back and reads"
                f" {found.value if found.known else found.reason}",
                "set it by hand"
                + (f" to {change.before}" if change.before is not None else ": remove what is set there"),
            )

    def why_not(self, setting: Setting, place: SettingPlace) -> str:
        """Why it cannot be set there; "" where it can."""
        kind = self.kind(setting)
        if kind.root_needed and os.geteuid() != 0 and self.around.root == Path("/"):
            return "that needs root"
        return kind.why_not(setting, place)

    def life(self, setting: Setting, place: SettingPlace) -> str:
        """Names what a value lives with, such as this boot; another name: what was set is gone."""
        return self.kind(setting).life(setting, place)

    def versions(self) -> Mapping[str, str]:
        """Of what validity is said: the kernel, and Ceph where the cluster answers (its oldest daemon)."""
        found = {"kernel": self.kernel()}
        try:
            counted = self.around.ask("versions")["overall"]
        except (LeadlineError, KeyError, TypeError):
            return found
        versions = [words.split()[2] for words in counted if len(words.split()) > 2]
        return found | ({"ceph": min(versions, key=version_key)} if versions else {})

    def kernel(self) -> str:
        """The release of this host's kernel."""
        with contextlib.suppress(OSError, LeadlineError):
            return self.around.read("/proc/sys/kernel/osrelease").strip()
        return os.uname().release

    def close(self) -> None:
        """Leave the cluster."""
        self.around.close()

    def __enter__(self) -> TuningSystem:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def is_before(found: SettingReading, change: SettingChange) -> bool:
    """Whether what is there is what was there before the change."""
    if change.before is None:
        return found.origin == "default"
    return found.origin == "set" and same_value(found.value, change.before)


def version_key(text: str) -> tuple[int, ...]:
    """The numbers at the beginning of a version, for comparing."""
    import re

    return tuple(int(part) for part in re.findall(r"\d+", text.partition("-")[0])[:4])
