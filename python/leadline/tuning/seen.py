"""Reads every setting at every place, for an audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from leadline.tuning.access.interface import SettingReading
from leadline.tuning.audit import SettingSeen
from leadline.tuning.changes import SettingPlace
from leadline.tuning.settings import Setting
from leadline.tuning.system import TuningSystem
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
