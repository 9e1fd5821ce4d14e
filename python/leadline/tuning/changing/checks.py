"""What speaks against changes, all of it found before any is made: nothing is half done.

Who hands changes in may allow prices that are grave, and what cannot be taken back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.errors import LeadlineError, RefusedChangeError
from leadline.tuning.access.face import SettingReading, same_value
from leadline.tuning.changes import SettingChange
from leadline.tuning.settings import Setting, SettingValidity
from leadline.tuning.states import holds
from leadline.tuning.system import TuningSystem, version_key
from leadline.units import parse_size

IRREVERSIBLE = "irreversible"
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?")
_SIZE = re.compile(r"[0-9.]+\s*[A-Za-z]+")


@dataclass(frozen=True)
class ChangeProblem:
    """What speaks against one change, and what to do about it."""

    change: SettingChange
    message: str
    remedy: str = ""

    @property
    def words(self) -> str:
        """In one line."""
        return f"{self.change.setting} on {self.change.place.words}: {self.message}"


@dataclass(frozen=True)
class CheckedChanges:
    """Those that may be made, with what is there now as `before`; and those that are in force already."""

    changes: tuple[SettingChange, ...]
    already: tuple[SettingChange, ...]


def check(
    system: TuningSystem,
    changes: Sequence[SettingChange],
    allowed: Iterable[str] = (),
    where: Mapping[int, str] | None = None,
) -> CheckedChanges:
    """Raises RefusedChangeError with all that speaks against them; `where` says who asked, by index."""
    checker = _Checker(system, frozenset(allowed))
    problems: list[tuple[int, ChangeProblem]] = []
    good: list[SettingChange] = []
    already: list[SettingChange] = []
    for index, asked in enumerate(changes):
        change, found = checker.look(asked)
        against = list(checker.against(change, changes[:index]))
        problems += [(index, one) for one in against]
        if not against:
            same = found.known and same_value(found.value, change.value)
            (already if same else good).append(replace(change, before=found.before))
    if problems:
        places = where or {}
        lines = [f"{places[index]}: {one.words}" if index in places else one.words for index, one in problems]
        raise RefusedChangeError(
            "; ".join([*lines, "nothing was changed"]),
            next((one.remedy for _, one in problems if one.remedy), ""),
        )
    return CheckedChanges(tuple(good), tuple(already))


class _Checker:
    """Asks the system once for what several changes need."""

    def __init__(self, system: TuningSystem, allowed: frozenset[str]) -> None:
        self.system, self.allowed = system, allowed
        self._versions: Mapping[str, str] | None = None
        self._found: dict[SettingChange, SettingReading] = {}

    @property
    def versions(self) -> Mapping[str, str]:
        if self._versions is None:
            self._versions = self.system.versions()
        return self._versions

    def look(self, change: SettingChange) -> tuple[SettingChange, SettingReading]:
        """The change with its value as the system has it, and what is there now."""
        setting = self.system.setting(change.setting)
        value = change.value.strip()
        if setting.unit == "bytes" and _SIZE.fullmatch(value):
            value = str(parse_size(value))
        change = replace(change, value=value)
        self._found[change] = self.system.read(setting, change.place)
        return change, self._found[change]

    def against(self, change: SettingChange, before: Sequence[SettingChange]) -> Iterator[ChangeProblem]:
        """Everything that speaks against it."""
        setting = self.system.setting(change.setting)
        found = self._found[change]
        if why := self.system.why_not(setting, change.place):
            yield ChangeProblem(change, why)
        elif not found.known:
            yield ChangeProblem(change, f"its value there cannot be read: {found.reason}")
        if words := _wrong_value(setting, change.value):
            yield ChangeProblem(change, words, "leadline tune explain says what it takes")
        for words in self._releases(setting, change):
            yield ChangeProblem(change, words)
        yield from self._beside(setting, change, before)
        yield from self._prices(setting, change)

    def _beside(
        self, setting: Setting, change: SettingChange, before: Sequence[SettingChange]
    ) -> Iterator[ChangeProblem]:
        for other in before:
            if other.place != change.place:
                continue
            if other.setting == change.setting:
                yield ChangeProblem(change, "it is changed twice there", "leave one of the two out")
            elif (
                other.setting in setting.excludes
                or change.setting in self.system.setting(other.setting).excludes
            ):
                yield ChangeProblem(
                    change, f"it cannot be changed together with {other.setting}", "choose one"
                )

    def _prices(self, setting: Setting, change: SettingChange) -> Iterator[ChangeProblem]:
        if same_value(change.value, setting.default):
            return
        for price in setting.grave:
            if price.kind not in self.allowed:
                yield ChangeProblem(
                    change,
                    f"it costs {price.kind}: {price.words}",
                    f"--accept {price.kind}, where you want that",
                )
        if setting.irreversible and IRREVERSIBLE not in self.allowed:
            yield ChangeProblem(
                change,
                f"it cannot be taken back: {setting.irreversible}",
                f"--accept {IRREVERSIBLE}, where you want that for ever",
            )

    def _releases(self, setting: Setting, change: SettingChange) -> Iterator[str]:
        """Nothing is refused for what is not known, but for what is refused outright."""
        if setting.valid and not any(self._within(one) is not False for one in setting.valid):
            yield f"not of this release ({self._have(setting.valid[0])}): {setting.valid[0].words}"
        for one in setting.obsolete:
            if self._within(one) and self._state(one, change) is not False:
                yield f"obsolete ({self._have(one)}): {one.words}"
        for one in setting.refused:
            if self._within(one) is not False and self._state(one, change) is not False:
                unknown = self._within(one) is None or self._state(one, change) is None
                doubt = "; whether that is so here cannot be told" if unknown else ""
                yield f"refused ({self._have(one)}): {one.words}{doubt}"

    def _have(self, one: SettingValidity) -> str:
        return f"{one.of} {self.versions.get(one.of, 'of unknown version')}"

    def _within(self, one: SettingValidity) -> bool | None:
        if not one.since and not one.until:
            return True
        have = self.versions.get(one.of)
        if not have:
            return None
        found = version_key(have)
        above = not one.since or found >= version_key(one.since)
        return above and (not one.until or found < version_key(one.until))

    def _state(self, one: SettingValidity, change: SettingChange) -> bool | None:
        if not one.state:
            return True
        try:
            return holds(one.state, self.system.around, change.place)
        except LeadlineError:
            return None


def _wrong_value(setting: Setting, value: str) -> str:
    """Why the setting does not take this value; "" where it may."""
    if not value or "\n" in value or "\0" in value:
        return f"{value!r} is no value"
    if setting.one_of is not None and not any(same_value(value, word) for word in setting.one_of):
        return f"{value!r} is not one of {', '.join(setting.one_of)}"
    if setting.at_least is None and setting.at_most is None:
        return ""
    for part in value.split():
        if not _NUMBER.fullmatch(part):
            return f"{part!r} is no number"
        if setting.at_least is not None and float(part) < setting.at_least:
            return f"{part} is below {setting.at_least:g}, the least that it takes"
        if setting.at_most is not None and float(part) > setting.at_most:
            return f"{part} is above {setting.at_most:g}, the most that it takes"
    return ""
