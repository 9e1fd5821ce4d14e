"""Reads every setting at every place for an audit, and what of a pool decides whether one may be set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from leadline.errors import LeadlineError
from leadline.tuning.access.face import SettingReading
from leadline.tuning.audit import SettingSeen
from leadline.tuning.changes import SettingPlace
from leadline.tuning.settings import Setting
from leadline.tuning.system import TuningSystem
from leadline.tuning.validity import Versions, default_on, exists

# A value that stands nowhere by itself: somebody set it, or it is not there.
_GIVEN = ("ceph_config", "fuse", "xattr")
_CHUNK_BYTES = 4096


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


class TunedStates:
    """The conditions of `settings.STATES`, of a pool or of the cluster; what does not answer is None."""

    def __init__(self, system: TuningSystem) -> None:
        self._system = system
        self._pools: Mapping[str, Mapping[str, bool | None]] | None = None
        self._all: dict[str, bool | None] = {"used_osd": True, "mclock": None, "builtin_profile": None}

    def __call__(self, place: SettingPlace) -> Mapping[str, bool | None]:
        """Of this place: its pool's where it is a pool, and the cluster's."""
        if self._pools is None:
            self._pools = {}
            try:
                self._look()
            except (LeadlineError, KeyError, TypeError, IndexError, ZeroDivisionError):
                pass  # what was not found out counts as met, which refuses rather than allows
        return {**self._all, **self._pools.get(place.subject, {})} if place.cluster else self._all

    def _look(self) -> None:
        around = self._system.around
        first = next((row["osd"] for row in around.ask("osd dump")["osds"] if row["up"]), None)
        if first is not None:
            queue = around.ask_osd(first, "config get", var="osd_op_queue")["osd_op_queue"]
            profile = around.ask_osd(first, "config get", var="osd_mclock_profile")["osd_mclock_profile"]
            self._all["mclock"] = queue == "mclock_scheduler"
            self._all["builtin_profile"] = queue == "mclock_scheduler" and profile != "custom"
        objects = {row["name"]: row["stats"]["objects"] for row in around.ask("df")["pools"]}
        self._pools = {
            row["pool_name"]: self._of_pool(row, objects.get(row["pool_name"]))
            for row in around.ask("osd dump")["pools"]
        }

    def _of_pool(self, row: Mapping[str, Any], objects: int | None) -> dict[str, bool | None]:
        name = row["erasure_code_profile"]
        erasure = bool(name)
        odd: bool | None = False
        if erasure:
            profile = self._system.around.ask("osd erasure-code-profile get", name=name)
            odd = int(row["stripe_width"]) // int(profile["k"]) % _CHUNK_BYTES != 0
        used = None if objects is None else objects > 0
        return {"used_pool": used, "erasure": erasure, "replicated": not erasure, "odd_chunks": odd}
