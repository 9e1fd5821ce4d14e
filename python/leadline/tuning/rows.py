"""From written rows to settings: each key is checked, and what is wrong is named with file, line and key."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, fields
from typing import Any, NoReturn, get_args

from leadline.knowledge.pitfalls import pitfalls
from leadline.knowledge.releases import KnownVersions, bad_releases
from leadline.knowledge.tables import SharedFact, shared
from leadline.tuning import settings
from leadline.tuning.settings import (
    ACCESS_KINDS,
    DOCUMENTS,
    LAYERS,
    ROLES,
    STATES,
    Advice,
    Danger,
    FormerDefault,
    Movement,
    Price,
    Setting,
    SettingAccess,
    SettingValidity,
)
from leadline.units import parse_size
from leadline.yamlio.problems import suggest
from leadline.yamlio.yaml_source import SOURCE_MAX_BYTES, Document, DocumentKind, Path, read_table, read_yaml

BYTES_MAX = SOURCE_MAX_BYTES
_MANUAL = "see docs/tuning.md"
_KIND = DocumentKind(noun="file of settings", manual=_MANUAL, example="see docs/tuning.md for one")
_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,80}")
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")
_SIZE = re.compile(r"[0-9.]+\s*[A-Za-z]+")
_KEYS = tuple(field.name for field in fields(Setting) if field.name not in ("name", "built_in"))


def read_rows(text: str, source: str, layer: str | None) -> Iterator[Setting]:
    """The settings of one text. `layer` None: each row names its own. Raises SpecError."""
    document = read_yaml(text, source, {}, _KIND) if layer is None else read_table(text, source, _KIND)
    if not isinstance(document.value, dict):
        document.fail((), "no settings: it must be names with what they are", _MANUAL)
    for name in document.value:
        if not _NAME.fullmatch(name):
            document.fail((name,), "no name of a setting", "use small letters, digits, and _ . or -")
        yield _setting(WrittenPart(document, (name,)), name, layer)


@dataclass(frozen=True)
class WrittenPart:
    """A value of a document and where it stands; each way to read it refuses what it cannot be."""

    document: Document
    path: Path

    @property
    def value(self) -> Any:
        found = self.document.value
        for part in self.path:
            found = found[part]
        return found

    def fail(self, message: str, remedy: str) -> NoReturn:
        self.document.fail(self.path, message, remedy)

    def at(self, key: str | int) -> WrittenPart:
        return WrittenPart(self.document, (*self.path, key))

    def has(self, key: str) -> bool:
        return key in self.value

    def mapping(self, known: Collection[str], needed: Collection[str]) -> WrittenPart:
        if not isinstance(self.value, dict):
            self.fail("a mapping is needed here", "write `key: value` pairs")
        for key in self.value:
            if key not in known:
                self.at(key).fail("unknown key", suggest(key, known))
        for key in needed:
            if key not in self.value:
                self.document.fail((*self.path, key), "the key is missing", f"add `{key}: …`")
        return self

    def items(self) -> list[WrittenPart]:
        if not isinstance(self.value, list):
            self.fail("a list is needed here", "write [a, b, c]")
        return [self.at(number) for number in range(len(self.value))]

    def text(self) -> str:
        """Plain words; numbers and truth as they are written."""
        value = self.value
        if isinstance(value, bool):
            return "true" if value else "false"
        if not isinstance(value, str | int | float):
            self.fail("a text is needed here", "write it in quotes")
        return str(value)

    def words(self) -> str:
        if not isinstance(self.value, str) or not self.value.strip():
            self.fail("words are needed here", "say it in a phrase")
        return str(self.value)

    def number(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail("a number is needed here", "write digits, without a unit")
        return float(self.value) if isinstance(self.value, float) else int(self.value)

    def truth(self) -> bool:
        if not isinstance(self.value, bool):
            self.fail("it is neither true nor false", "write true or false")
        return bool(self.value)

    def one_of(self, known: Collection[str]) -> Any:
        if self.value not in known:
            self.fail(f"{self.text()!a} is not one of them", suggest(self.text(), known))
        return self.value

    def version(self) -> str:
        found = self.text()
        if not _VERSION.fullmatch(found):
            self.fail(f"{found!a} is no version", 'write digits and points, in quotes: "5.16"')
        return found

    def optional(self, key: str, read: Callable[[WrittenPart], Any], otherwise: Any) -> Any:
        return read(self.at(key)) if self.has(key) else otherwise

    def each(self, key: str, read: Callable[[WrittenPart], Any]) -> tuple[Any, ...]:
        return tuple(read(one) for one in self.at(key).items()) if self.has(key) else ()


def _setting(row: WrittenPart, name: str, layer: str | None) -> Setting:
    needed = ("title", "roles", "access", "means", "unit", "default", "needs", "persist", "sources")
    row.mapping(_KEYS, needed if layer else ("layer", *needed))
    if layer is not None and row.has("layer"):
        row.at("layer").fail("the file names the layer", "leave it out")
    found = Setting(
        name=name,
        title=row.at("title").words(),
        layer=row.at("layer").one_of(LAYERS) if layer is None else layer,  # type: ignore[arg-type]
        roles=row.each("roles", lambda one: one.one_of(ROLES)),
        access=_access(row.at("access")),
        means=row.at("means").words(),
        unit=row.at("unit").one_of(get_args(settings.Unit)),
        default=row.at("default").text(),
        needs=row.at("needs").one_of(get_args(settings.Needs)),
        persist=row.at("persist").one_of(get_args(settings.Persist)),
        sources=row.each("sources", WrittenPart.words),
        one_of=row.each("one_of", WrittenPart.text) if row.has("one_of") else None,
        at_least=row.optional("at_least", WrittenPart.number, None),
        at_most=row.optional("at_most", WrittenPart.number, None),
        parts=int(row.optional("parts", WrittenPart.number, 1)),
        was=row.each("was", _was),
        prices=row.each("prices", _price),
        valid=row.each("valid", _validity),
        obsolete=row.each("obsolete", _validity),
        refused=row.each("refused", _validity),
        danger=row.each("danger", _danger),
        irreversible=row.optional("irreversible", WrittenPart.words, ""),
        excludes=row.each("excludes", WrittenPart.words),
        moves=row.each("moves", _movement),
        serves=row.each("serves", WrittenPart.words),
        advice=row.each("advice", _advice),
        built_in=layer is not None,
    )
    _hold_together(row, found)
    return found


def _hold_together(row: WrittenPart, found: Setting) -> None:
    """What no key says by itself: values that are in range, and words where they are needed."""
    for key in ("roles", "sources"):
        if not row.at(key).value:
            row.at(key).fail("it is empty", "name at least one")
    low, high = found.at_least, found.at_most
    if low is not None and high is not None and low > high:
        row.at("at_most").fail(f"less than at_least, {low:g}", "swap them")
    if found.one_of is not None and (low is not None or high is not None):
        row.at("one_of").fail("a choice has no range", "leave out one_of, or at_least and at_most")
    for number, one in enumerate(found.advice):
        wrong = wrong_value(found, one.value) if one.holds and one.times is None else ""
        if wrong:
            row.at("advice").at(number).fail(
                f"the advised value {one.value!a}: {wrong}", "correct one of both"
            )


def wrong_value(setting: Setting, value: str) -> str:
    """Why a setting cannot have this value, in words; "" where it can."""
    if setting.one_of is not None:
        return "" if value in setting.one_of else f"it must be one of {', '.join(setting.one_of)}"
    if setting.unit in ("word", "switch"):
        return "" if value.strip() and value.isprintable() else "it must be a printable word"
    parts = value.split()
    if len(parts) != setting.parts:
        return f"it must be {setting.parts} numbers" if setting.parts > 1 else "it must be one number"
    for part in parts:
        number = number_of(part)
        if number is None:
            return f"{part!a} is no number ({setting.unit})"
        if setting.at_least is not None and number < setting.at_least:
            return f"it must be at least {setting.at_least:.15g} ({setting.unit})"
        if setting.at_most is not None and number > setting.at_most:
            return f"it must be at most {setting.at_most:.15g} ({setting.unit})"
    return ""


def in_bytes(setting: Setting, text: str) -> str:
    """A value as the system has it: `32M` of a setting in bytes, or each of several. Raises SpecError."""
    if setting.unit != "bytes":
        return text
    if _SIZE.fullmatch(text.strip()):
        return str(parse_size(text.strip()))
    return " ".join(str(parse_size(part)) if _SIZE.fullmatch(part) else part for part in text.split())


def number_of(text: str) -> float | None:
    """A finite number, as the kernel and Ceph print it; None where it is none."""
    return float(text) if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]{1,2})?", text) else None


def _access(one: WrittenPart) -> SettingAccess:
    if not isinstance(one.value, dict) or "kind" not in one.value:
        one.fail("no kind of access", f"add `kind: …`, one of {', '.join(ACCESS_KINDS)}")
    kind = one.at("kind").one_of(ACCESS_KINDS)
    needed = ("kind", *ACCESS_KINDS[kind])
    one.mapping(needed, needed)
    return SettingAccess(kind, {key: one.at(key).text() for key in ACCESS_KINDS[kind]})


def _was(one: WrittenPart) -> FormerDefault:
    one.mapping(("until", "value"), ("until", "value"))
    return FormerDefault(one.at("until").version(), one.at("value").text())


def _price(one: WrittenPart) -> Price:
    one.mapping(("kind", "words"), ("kind", "words"))
    return Price(one.at("kind").one_of(get_args(settings.PriceKind)), one.at("words").words())


def _validity(one: WrittenPart) -> SettingValidity:
    one.mapping(("of", "since", "until", "words", "state", "source", "defect", "pitfall"), ("of", "words"))
    known = _known(one)
    return SettingValidity(
        of=one.at("of").one_of(("kernel", "ceph")),
        since=one.optional("since", WrittenPart.version, known.since),
        until=one.optional("until", WrittenPart.version, known.until),
        words=one.at("words").words(),
        state=one.optional("state", lambda part: part.one_of(STATES), ""),
        source=one.optional("source", WrittenPart.words, known.source),
    )


def _known(one: WrittenPart) -> KnownVersions:
    """The versions of the defect of a release, or of the pitfall of a kernel, that a row names."""
    if one.has("defect"):
        releases = {defect.name: defect for defect in bad_releases()}
        return releases[one.at("defect").one_of(releases)].versions
    if one.has("pitfall"):
        known = {pitfall.name: pitfall for pitfall in pitfalls()}
        return known[one.at("pitfall").one_of(known)].versions
    return KnownVersions("", "", "")


def _danger(one: WrittenPart) -> Danger:
    one.mapping(("words", "one_of", "below", "above", "since", "until", "defect", "shared"), ("words",))
    known = _known(one)
    fact = _fact(one)
    found = Danger(
        one.at("words").words(),
        one.each("one_of", WrittenPart.text),
        one.optional("below", WrittenPart.number, fact.at_least),
        one.optional("above", WrittenPart.number, fact.at_most),
        one.optional("since", WrittenPart.version, known.since),
        one.optional("until", WrittenPart.version, known.until),
        fact.name,
    )
    if not found.one_of and found.below is None and found.above is None:
        one.fail("no value is dangerous", "add one_of, below or above")
    return found


def _movement(one: WrittenPart) -> Movement:
    one.mapping(("figure", "direction"), ("figure", "direction"))
    return Movement(one.at("figure").words(), one.at("direction").one_of(get_args(settings.Direction)))


def _fact(one: WrittenPart) -> SharedFact:
    """What a row names of knowledge/shared.yaml; nothing of it where it names nothing."""
    return shared()[one.at("shared").one_of(shared())] if one.has("shared") else SharedFact("")


def _advice(one: WrittenPart) -> Advice:
    one.mapping([field.name for field in fields(Advice) if field.name != "good"], ("by", "words"))
    if sum(one.has(key) for key in ("value", "times", "shared")) != 1:
        one.fail("either a value or times is needed", "add one of them")
    fact = _fact(one)
    bound = fact.bound if isinstance(fact.bound, tuple) else (fact.bound,)
    if one.at("by").words().split()[0].strip(",:") not in DOCUMENTS:
        one.at("by").fail("no known document", f"begin with one of {', '.join(DOCUMENTS)}")
    return Advice(
        value=one.optional("value", WrittenPart.text, fact.wanted),
        by=one.at("by").words(),
        words=one.at("words").words(),
        roles=one.each("roles", lambda part: part.one_of(ROLES)),
        works=one.each("works", WrittenPart.words),
        holds=one.optional("holds", WrittenPart.truth, True),
        when=one.optional("when", lambda part: part.one_of(get_args(settings.When)), "cause"),
        times=one.optional("times", WrittenPart.number, None),
        rule=one.optional("rule", lambda part: part.one_of(get_args(settings.Rule)), _rule(fact)),
        shared=fact.name,
        good=tuple(str(value) for value in bound if value is not None),
    )


def _rule(fact: SharedFact) -> settings.Rule:
    if fact.at_least is not None:
        return "at_least"
    return "exactly" if fact.at_most is None else "at_most"
