"""`--space audit`: the settings that `leadline tune audit --for` recommends for this work, and values about
what is in force and what is recommended."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from leadline.errors import RefusedChangeError
from leadline.tuning.searching.space import SpaceWords

if TYPE_CHECKING:
    from leadline.tuning.audit import AuditRow
    from leadline.tuning.system import TuningSystem

_AROUND = 4.0  # beyond what is in force and what is recommended


def audited_space(system: TuningSystem, work: str) -> tuple[SpaceWords, ...]:
    """Raises RefusedChangeError where nothing is recommended that can be changed while it is measured."""
    from leadline.cli.change.auditing.causes import work_of
    from leadline.tuning.audit import AuditAsked, audit
    from leadline.tuning.seen import read_settings_here
    from leadline.tuning.settings import ROLES
    from leadline.tuning.states import holds

    asked_work, versions = work_of(work), system.versions()
    state = functools.cache(lambda name, place: holds(name, system.around, place))
    asked = AuditAsked(versions, ROLES, asked_work.directions, asked_work.causes, state)
    seen = read_settings_here(system, list(system.known.values()), versions)
    rows = [row for row in audit(system.known, seen, asked).rows if row.kind == "recommended" and row.value]
    found = {row.setting.name: words for row in rows if (words := _around(row)) is not None}
    if not found:
        raise RefusedChangeError(
            f"--space audit: nothing is recommended for {work} that can be searched",
            "name settings: --space NAME=lo..hi; `leadline tune audit --for RESULT` says more after a run",
        )
    return tuple(found.values())


def _around(row: AuditRow) -> SpaceWords | None:
    """A range that has both values and some room; None of what is set by no number, or not while it runs."""
    setting, now = row.setting, row.value or ""
    if setting.access.kind not in ("ceph_config", "sysctl", "fuse") or setting.parts != 1 or setting.grave:
        return None
    if setting.needs not in ("live", "reopen", "reconnect", "remount"):
        return None
    if setting.unit in ("switch", "word"):
        return SpaceWords(setting.name, choices=setting.one_of or (now, row.to))
    try:
        low, high = sorted((float(now), float(row.to)))
    except ValueError:
        return None
    if low <= 0:
        return SpaceWords(setting.name, choices=(now, row.to))
    low, high = low / _AROUND, high * _AROUND
    low = low if setting.at_least is None else max(low, setting.at_least)
    high = high if setting.at_most is None else min(high, setting.at_most)
    return SpaceWords(setting.name, f"{round(low)}", f"{round(high)}")
