"""What people write of changes, and what speaks against them, found before any is made: nothing is half done.

Who hands changes in may allow prices that are grave, and what cannot be taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from leadline.errors import LeadlineError, RefusedChangeError, SpecError
from leadline.foreign import read_plain
from leadline.tuning.access.interface import SettingReading, same_value
from leadline.tuning.rows import in_bytes, wrong_value
from leadline.tuning.settings import Setting, SettingChange, SettingPlace, SettingValidity
from leadline.tuning.surroundings import IGNORE_HEALTH, health_of, holds, in_trouble
from leadline.tuning.system import TuningSystem
from leadline.tuning.validity import applies, default_on, exists
from leadline.yamlio.yaml_source import SOURCE_MAX_BYTES, Document, DocumentKind, read_yaml

ALL = "all"
_EXAMPLE = "write `settings:` and below it `NAME: VALUE`, or `NAME: {value: VALUE, on: PLACE}`"
_ROW_EXAMPLE = "write `{setting: NAME, value: VALUE, place: {subject: SUBJECT}}`"
_ROW = ("setting", "value", "place", "before", "on")
_KIND = DocumentKind(noun="plan", manual="see docs/tuning-apply.md", example=_EXAMPLE)


@dataclass(frozen=True)
class AskedChange:
    """One setting as it was asked for; `on` are places by their names, none where it goes without saying."""

    setting: str
    value: str
    on: tuple[str, ...] = ()
    source: str = ""
    line: int | None = None

    @property
    def words(self) -> str:
        """Where it was written."""
        return self.source if self.line is None else f"{self.source}, line {self.line}"


def parse_words(words: Sequence[str], on: Sequence[str]) -> tuple[AskedChange, ...]:
    """`NAME=VALUE` words. Raises SpecError."""
    found = []
    for word in words:
        name, equals, value = word.partition("=")
        name, at, subject = name.partition("@")
        if not equals or not name.strip() or not value.strip():
            raise SpecError(f"{word!r} is no change", "write NAME=VALUE, for example net.core.somaxconn=4096")
        places = (subject,) if at else tuple(on)
        found.append(AskedChange(name.strip(), value.strip(), places, word))
    return tuple(found)


def read_plan(path: Path, on: Sequence[str] = ()) -> tuple[AskedChange, ...]:
    """A plan's changes in its order; `on` where it says none itself. Raises SpecError with file and line."""
    try:
        text = read_plain(path, SOURCE_MAX_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise SpecError(f"it cannot be read: {why}", _EXAMPLE, source=str(path)) from error
    return parse_plan(text, str(path), on)


def parse_plan(text: str, source: str, on: Sequence[str] = ()) -> tuple[AskedChange, ...]:
    """The same of a text."""
    written = read_yaml(text, source, {}, _KIND)
    if isinstance(written.value, list):
        return tuple(_row(written, (index,), tuple(on)) for index in range(len(written.value)))
    if isinstance(written.value, dict) and isinstance(written.value.get("changes"), list):
        count = len(written.value["changes"])
        return tuple(_row(written, ("changes", index), tuple(on)) for index in range(count))
    if not isinstance(written.value, dict) or "settings" not in written.value:
        written.fail((), "this is no plan: it has neither `settings` nor `changes`", _EXAMPLE)
    for key in written.value:
        if key != "settings":
            written.fail((key,), "unknown key", "such a plan has `settings` alone")
    settings = written.value["settings"]
    if not isinstance(settings, dict) or not settings:
        written.fail(("settings",), "a mapping of settings is needed here", _EXAMPLE)
    return tuple(_asked(written, name, value, tuple(on)) for name, value in settings.items())


def _row(written: Document, path: tuple[str | int, ...], on: tuple[str, ...]) -> AskedChange:
    """One of `changes`, whose place is named as it is stored."""
    row: object = written.value
    for part in path:
        row = row[part]  # type: ignore[index]
    if not isinstance(row, dict) or "setting" not in row or "value" not in row:
        written.fail(path, "this is no change", _ROW_EXAMPLE)
    for key in row:
        if key not in _ROW:
            written.fail((*path, key), "unknown key", _ROW_EXAMPLE)
    place = row.get("place") or {}
    if not isinstance(place, dict) or any(key not in ("subject", "host", "cluster") for key in place):
        written.fail((*path, "place"), "this is no place", _ROW_EXAMPLE)
    subject, host = str(place.get("subject") or ""), str(place.get("host") or "")
    named = f"{subject}@{host}" if subject and host else subject or host
    return _one(written, path, str(row["setting"]), row["value"], (named,) if named else on)


def _one(
    written: Document, path: tuple[str | int, ...], name: str, value: object, on: tuple[str, ...]
) -> AskedChange:
    if value is None or isinstance(value, list | dict):
        written.fail(path, "one value is needed here", _EXAMPLE)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    place = written.place(path)
    return AskedChange(name, text, on, place.source, place.line)


def _asked(written: Document, name: str, value: object, on: tuple[str, ...]) -> AskedChange:
    path = ("settings", name)
    if isinstance(value, dict):
        for key in value:
            if key not in ("value", "on"):
                written.fail((*path, key), "unknown key", "known are value, on")
        named = value.get("on", list(on))
        on = tuple(str(one) for one in (named if isinstance(named, list) else [named]))
        value = value.get("value")
    return _one(written, path, name, value, on)


def resolve(
    system: TuningSystem, asked: Sequence[AskedChange]
) -> tuple[list[SettingChange], Mapping[int, str]]:
    """The changes at their places, and who asked for which. Raises RefusedChangeError, with file and line."""
    changes: list[SettingChange] = []
    where: dict[int, str] = {}
    for one in asked:
        try:
            setting = system.setting(one.setting)
            places = _places(system, setting, one.on)
        except LeadlineError as error:
            raise RefusedChangeError(f"{one.words}: {error.message}", error.remedy) from error
        for place in places:
            if one.line is not None:
                where[len(changes)] = one.words
            changes.append(SettingChange(one.setting, place, one.value))
    return changes, where


def _places(system: TuningSystem, setting: Setting, on: Sequence[str]) -> list[SettingPlace]:
    known = system.places(setting)
    if not on:
        return [_only(system, setting, known)]
    found: list[SettingPlace] = []
    for word in on:
        named = list(known) if word == ALL else [place for place in known if word in _names(place)]
        if not named and (other := system.kind(setting).named(setting, word)) is not None:
            named = [other]
        if not named:
            raise RefusedChangeError(
                f"{setting.name} has no value of its own on {word}", f"it has one on: {_listed(known)}"
            )
        found += [place for place in named if place not in found]
    return found


def _only(system: TuningSystem, setting: Setting, known: Sequence[SettingPlace]) -> SettingPlace:
    kind = system.kind(setting)
    if known and (len(known) == 1 or kind.first_is_all):
        return known[0]
    if known:
        raise RefusedChangeError(
            f"{setting.name} has a value of its own at {len(known)} places",
            f"name one with --on (on: in a plan), or all: {_listed(known)}",
        )
    why = _absent(system, setting)
    raise RefusedChangeError(f"{setting.name} is not to be found here: {why}", "name its place with --on")


def _absent(system: TuningSystem, setting: Setting) -> str:
    """Why it has no place: what the access to it says, asked at a place that nobody named."""
    if setting.of_cluster:
        try:
            system.around.fsid()
        except LeadlineError as error:
            return error.message
    return system.read(setting, SettingPlace()).reason or "no place has it"


def _names(place: SettingPlace) -> tuple[str, ...]:
    """What a place may be called: its subject, its host, or both."""
    member = place.host.rpartition("/")[2]
    own = (place.subject,) if place.subject else (place.host, member) if place.host else ("host",)
    if place.cluster and not place.subject:
        own = ("cluster",)
    both = (f"{place.subject}@{member}", f"{place.subject}@{place.host}") if place.host else ()
    return (*own, *both, *((member, place.host) if place.host else ()))


def _listed(places: Sequence[SettingPlace]) -> str:
    shown = [_names(place)[-3] if place.host and place.subject else _names(place)[0] for place in places[:12]]
    more = f" and {len(places) - 12} more" if len(places) > 12 else ""
    return (", ".join(shown) + more) if places else "no place here"


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
            yield ChangeProblem(change, words, "leadline tune explain shows what it takes")
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
                doubt = "; whether that is so here is not known" if within is None or met is None else ""
                yield f"refused ({self._have(one)}): {one.words}{doubt}"

    def _have(self, one: SettingValidity) -> str:
        return f"{one.of} {self.versions.get(one.of, 'of unknown version')}"


def _wrong_value(setting: Setting, value: str) -> str:
    """Why the setting does not take this value; "" where it may."""
    if not value or not value.isprintable():
        return f"{value!r} is no value"
    return wrong_value(setting, value)
