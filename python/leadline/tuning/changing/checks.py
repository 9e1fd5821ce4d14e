"""What speaks against changes, all of it found before any is made: nothing is half done.

Who hands changes in may allow prices that are grave, and what cannot be taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.errors import RefusedChangeError
from leadline.tuning.access.interface import SettingReading, same_value
from leadline.tuning.changes import SettingChange
from leadline.tuning.health import IGNORE_HEALTH, health_of, in_trouble
from leadline.tuning.rows import in_bytes, wrong_value
from leadline.tuning.settings import Setting, SettingValidity
from leadline.tuning.states import holds
from leadline.tuning.system import TuningSystem
from leadline.tuning.validity import applies, default_on, exists

IRREVERSIBLE = "irreversible"
UNHEALTHY = "unhealthy"  # allowed: changes of a cluster in trouble


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
    problems += checker.trouble(good)
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

    def trouble(self, good: Sequence[SettingChange]) -> Iterator[tuple[int, ChangeProblem]]:
        """What speaks against any change of the cluster, whatever it is: said of the first."""
        first = next((change for change in good if change.place.cluster), None)
        if first is None or UNHEALTHY in self.allowed:
            return
        if why := in_trouble(health_of(self.system.around)):
            yield -1, ChangeProblem(first, why, IGNORE_HEALTH)

    def look(self, change: SettingChange) -> tuple[SettingChange, SettingReading]:
        """The change with its value as the system has it, and what is there now."""
        setting = self.system.setting(change.setting)
        value = in_bytes(setting, change.value.strip())
        value = next((word for word in setting.one_of or () if same_value(word, value)), value)
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
        if same_value(change.value, default_on(setting, self.versions)):
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
        """What is refused is so too where nobody can tell whether its condition holds."""
        if exists(setting, self.versions) is False:
            yield f"not of this release ({self._have(setting.valid[0])}): {setting.valid[0].words}"
        named = {one.state for one in (*setting.refused, *setting.obsolete) if one.state}
        states = {name: holds(name, self.system.around, change.place) for name in named}
        for one in setting.obsolete:
            if applies(one, self.versions) and (not one.state or states.get(one.state)):
                yield f"obsolete ({self._have(one)}): {one.words}"
        for one in setting.refused:
            within, met = applies(one, self.versions), states.get(one.state) if one.state else True
            if within is not False and met is not False:
                doubt = "; whether that is so here cannot be told" if within is None or met is None else ""
                yield f"refused ({self._have(one)}): {one.words}{doubt}"

    def _have(self, one: SettingValidity) -> str:
        return f"{one.of} {self.versions.get(one.of, 'of unknown version')}"


def _wrong_value(setting: Setting, value: str) -> str:
    """Why the setting does not take this value; "" where it may."""
    if not value or not value.isprintable():
        return f"{value!r} is no value"
    return wrong_value(setting, value)
