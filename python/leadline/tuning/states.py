"""Conditions under which a setting is valid or refused and that no version tells: of pools or schedulers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from leadline.errors import LeadlineError
from leadline.tuning.changes import SettingPlace
from leadline.tuning.surroundings import TunedSurroundings

_ERASURE, _REPLICATED = 3, 1  # types of pools in Ceph's osd_types.h
_PAGE_BYTES = 4096


def holds(name: str, around: TunedSurroundings, place: SettingPlace) -> bool | None:
    """Whether a condition holds there; None where nobody can tell, or it has no such name."""
    if name not in _STATES:
        return None
    try:
        return _STATES[name](around, place)
    except (LeadlineError, KeyError, TypeError, ValueError, StopIteration):
        return None


def _pool(around: TunedSurroundings, place: SettingPlace) -> dict[str, Any]:
    rows: list[dict[str, Any]] = around.ask("osd dump")["pools"]
    return next(row for row in rows if row["pool_name"] == place.subject)


def _used_pool(around: TunedSurroundings, place: SettingPlace) -> bool:
    pools = around.ask("df")["pools"]
    return bool(next(one for one in pools if one["name"] == place.subject)["stats"]["objects"])


def _option(around: TunedSurroundings, option: str) -> str:
    """As the first OSD that is up has it in force."""
    up = next(row["osd"] for row in around.ask("osd dump")["osds"] if row["up"])
    return str(around.ask_osd(up, "config get", var=option)[option])


def _mclock(around: TunedSurroundings, _place: SettingPlace) -> bool:
    return _option(around, "osd_op_queue") == "mclock_scheduler"


def _builtin_profile(around: TunedSurroundings, place: SettingPlace) -> bool:
    return _mclock(around, place) and _option(around, "osd_mclock_profile") != "custom"


def _odd_chunks(around: TunedSurroundings, place: SettingPlace) -> bool:
    pool = _pool(around, place)
    if pool["type"] != _ERASURE:
        return False
    profile = around.ask("osd erasure-code-profile get", name=pool["erasure_code_profile"])
    chunk = int(pool["stripe_width"]) // int(profile["k"])
    return chunk % _PAGE_BYTES != 0


_STATES: Mapping[str, Callable[[TunedSurroundings, SettingPlace], bool]] = {
    "used_pool": _used_pool,
    "erasure": lambda around, place: _pool(around, place)["type"] == _ERASURE,
    "replicated": lambda around, place: _pool(around, place)["type"] == _REPLICATED,
    "used_osd": lambda _around, _place: True,  # who asks has one
    "mclock": _mclock,
    "builtin_profile": _builtin_profile,
    "odd_chunks": _odd_chunks,
}
