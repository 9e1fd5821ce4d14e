"""Tables of rules that the package brings, and what several of them share: one way to read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar, cast

from leadline.yamlio.problems import Vocabulary, suggest, translate
from leadline.yamlio.yaml_source import Document, read_table

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pydantic import TypeAdapter

Entry = TypeVar("Entry")
Value = str | int | float | bool | None
_THRESHOLD = re.compile(r"\$(\w+)")
_MANUAL = "see the head of the file"
_SHARED = ("one_of", "at_least", "at_most", "remedy", "setting", "put")  # what an entry takes, or its source


def text_of(package: str, name: str) -> str:
    """The text of a file in the folder of a package."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def table_of(package: str, name: str) -> dict[str, Any]:
    """A table that is no list of entries, as plain values."""
    found: dict[str, Any] = read_table(text_of(package, name), name).value
    return found


@cache
def numbers(package: str, name: str = "thresholds.yaml") -> Mapping[str, float]:
    """A table of numbers by their names, whole ones as they are."""
    found = table_of(package, name).items()
    return {str(key): value if isinstance(value, int) else float(value) for key, value in found}


@dataclass(frozen=True)
class SharedFact:
    """One entry of `shared.yaml`; see its head."""

    name: str
    one_of: tuple[Value, ...] | None = None
    at_least: int | float | None = None
    at_most: int | float | None = None
    remedy: str = ""
    setting: str = ""
    put: str = ""
    source: str = ""

    @property
    def bound(self) -> tuple[Value, ...] | float | None:
        """What a condition compares with; None where there is no such thing, or a range."""
        known = [one for one in (self.one_of, self.at_least, self.at_most) if one is not None]
        return known[0] if len(known) == 1 else None

    @property
    def wanted(self) -> str:
        """The value that its setting is to have, or at least or at most."""
        if self.put or self.bound is None:
            return self.put
        return str(self.bound[0] if isinstance(self.bound, tuple) else self.bound)


@cache
def shared() -> Mapping[str, SharedFact]:
    """What several tables say, by its name."""
    found = entries(text_of(__package__, "shared.yaml"), "shared.yaml", SharedFact)
    return {one.name: one for one in found}


def bound_of(name: str) -> float:
    """The number that several rules ask for."""
    return cast("float", shared()[name].bound)


def entries(text: str, source: str, kind: type[Entry], /, **more: Any) -> tuple[Entry, ...]:
    """The entries of a table as values of a dataclass, whose field `name` is the entry's key.

    `more` are fields of all entries, unless one writes its own. A class with a field `shared` takes from
    `shared.yaml` what its entries name. Raises SpecError, which names the entry: it lacks a key, has one that
    there is none of, or a value of another type.
    """
    document = read_table(text, source)
    return tuple(_entry(kind, {"name": name, **more}, document) for name in document.value)


def _entry(kind: type[Entry], given: Mapping[str, Any], document: Document) -> Entry:
    from pydantic import ValidationError

    name = given["name"]
    known = {one.name: one for one in fields(kind) if one.name != "name"}  # type: ignore[arg-type]
    entry = document.value[name]
    for key in entry:
        if key not in known:
            document.fail((name, key), "unknown key", suggest(key, known))
    values = {**given, **entry}
    if "shared" in known:
        values = {**_shared_by(values, known, document), **values, "shared": _names(entry)}
    for key, one in known.items():
        if key not in values and one.default is MISSING and one.default_factory is MISSING:
            document.fail((name, key), "the key is missing", f"add `{key}: …`")
    try:
        made: Entry = _adapter(cast("Hashable", kind)).validate_python(values)
    except ValidationError as error:
        translate(error, document, Vocabulary(lambda _: known, _MANUAL), (name,))
    return made


def _names(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The shared facts that an entry names: one, a list or none."""
    named = entry.get("shared", ())
    return (named,) if isinstance(named, str) else tuple(named)


def _shared_by(values: Mapping[str, Any], known: Mapping[str, Any], document: Document) -> dict[str, Any]:
    """What an entry has from the shared facts that it names. It may write none of that itself."""
    found: dict[str, Any] = {}
    name = values["name"]
    for fact in _names(values):
        if fact not in shared():
            document.fail((name, "shared"), f"there is no {fact!a} in shared.yaml", suggest(fact, shared()))
        told = {key: getattr(shared()[fact], key) for key in (*_SHARED, "source")}
        found |= {key: value for key, value in told.items() if value not in (None, "") and key in known}
    for key in (key for key in _SHARED if key in found and key in values):
        document.fail((name, key), "it stands in shared.yaml already", "leave it out here")
    return found


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def with_numbers(
    expression: str, thresholds: Mapping[str, float], wrong: Callable[[str], Exception] = KeyError
) -> str:
    """An expression with a value for each `$name`: of the rule's own thresholds, else of `shared.yaml`.
    Numbers are fractions, so that a division is one, too.

    For a name that there is none of raises what `wrong` makes of the words that say so.
    """

    def value(found: re.Match[str]) -> str:
        name = found[1]
        bound = thresholds[name] if name in thresholds else shared()[name].bound if name in shared() else None
        if bound is None:
            raise wrong(f"there is no threshold {name!r}")
        return f"({', '.join(map(repr, bound))})" if isinstance(bound, tuple) else repr(float(bound))

    return _THRESHOLD.sub(value, expression)
