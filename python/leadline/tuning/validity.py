"""Where a setting holds: versions of the kernel and of Ceph, defaults of a release, dangerous values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from leadline.knowledge.findings import meets
from leadline.tuning.rows import number_of
from leadline.tuning.settings import Danger, Setting, SettingValidity

Versions = Mapping[str, str]  # {"kernel": "6.1.0", "ceph": "16.2.15"}; what is not known is absent


def applies(one: SettingValidity, versions: Versions) -> bool | None:
    """Whether a version is within it; None where the version is not known. Its state is not asked."""
    return _within(versions.get(one.of, ""), one.since, one.until)


def exists(setting: Setting, versions: Versions) -> bool | None:
    """Whether this kernel or Ceph has it; None where nobody knows."""
    answers = [applies(one, versions) for one in setting.valid]
    return None if answers and None in answers and False not in answers else False not in answers


def obsolete(setting: Setting, versions: Versions) -> SettingValidity | None:
    """Why it does nothing any more, where that is known."""
    return _first(setting.obsolete, versions)


def refused(
    setting: Setting, versions: Versions, states: Mapping[str, bool | None]
) -> SettingValidity | None:
    """Why it may not be set here. A state that nobody could look at (None or absent) counts as true."""
    found = [one for one in setting.refused if not one.state or states.get(one.state) is not False]
    return _first(found, versions)


def default_on(setting: Setting, versions: Versions) -> str:
    """The default of this release; the newest one where the version is not known."""
    have = versions.get(setting.of)
    older = sorted(setting.was, key=lambda one: _numbers(one.until))
    if have:
        for one in older:
            if _numbers(have) < _numbers(one.until):
                return one.value
    return setting.default


def same_value(first: str, second: str) -> bool:
    """Whether two notations are of one value: 1 and true, 4.000 and 4, any blanks between parts."""
    return _plain(first) == _plain(second)


def dangerous(setting: Setting, value: str, versions: Versions) -> Danger | None:
    """Why this value is dangerous where it is in force."""
    parts = value.split()
    number = number_of(parts[-1]) if parts else None
    for one in setting.danger:
        if not _within(versions.get(setting.of, ""), one.since, one.until):
            continue
        if any(same_value(value, bad) for bad in one.one_of):
            return one
        bounded = one.below is not None or one.above is not None
        if number is not None and bounded and not meets(number, None, one.below, one.above):
            return one
    return None


def _within(have: str, since: str, until: str) -> bool | None:
    """Whether a version is from `since` to before `until`; None where it is not known, and matters."""
    if not since and not until:
        return True
    if not have:
        return None
    found = _numbers(have)
    if since and found < _numbers(since):
        return False
    return not (until and found >= _numbers(until))


def _first(found: Sequence[SettingValidity], versions: Versions) -> SettingValidity | None:
    return next((one for one in found if applies(one, versions)), None)


def _numbers(version: str) -> tuple[int, ...]:
    """5.16.0-1-amd64 as (5, 16): zeros at the end say nothing."""
    head = re.match(r"[0-9]+(\.[0-9]+)*", version)
    found = [int(part) for part in head[0].split(".")] if head else []
    while found and found[-1] == 0:
        found.pop()
    return tuple(found)


_TRUTH = {"true": "1", "on": "1", "yes": "1", "false": "0", "off": "0", "no": "0"}


def _plain(value: str) -> tuple[str, ...]:
    """Each part, numbers in one notation."""
    found = []
    for part in value.strip().lower().split():
        number = number_of(part)
        found.append(_TRUTH.get(part, part) if number is None else f"{number:.12g}")
    return tuple(found)
