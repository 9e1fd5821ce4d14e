"""Tables of rules and of thresholds that the package brings: one way to read and to check them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar, cast

from leadline.errors import SpecError
from leadline.yamlio.problems import suggest
from leadline.yamlio.yaml_source import read_table

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pydantic import TypeAdapter

Entry = TypeVar("Entry")
_THRESHOLD = re.compile(r"\$(\w+)")
_MANUAL = "see the head of the file"


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


def cpus_full() -> float:
    """The share of a host's CPUs from which on they are full, wherever it is said."""
    return numbers(__package__)["cpus_full"]


def entries(text: str, source: str, kind: type[Entry], /, **more: Any) -> tuple[Entry, ...]:
    """The entries of a table as values of a dataclass, whose field `name` is the entry's key.

    `more` are fields of all entries, unless one writes its own. Raises SpecError, which names the entry: it
    lacks a key, has one that there is none of, or a value of another type.
    """
    written: Mapping[str, Mapping[str, Any]] = read_table(text, source).value
    return tuple(_entry(kind, {"name": name, **more}, entry, source) for name, entry in written.items())


def _entry(kind: type[Entry], given: Mapping[str, Any], entry: Mapping[str, Any], source: str) -> Entry:
    from pydantic import ValidationError

    name, kept = str(given["name"]), cast("Hashable", kind)
    known = {one.name: one for one in fields(kind) if one.name != "name"}  # type: ignore[arg-type]
    for key in entry:
        if key not in known:
            raise SpecError(f"{key!a} is no key", suggest(key, known), source=source, key=name)
    values = {**given, **entry}
    for key, one in known.items():
        if key not in values and one.default is MISSING and one.default_factory is MISSING:
            raise SpecError(f"{key!a} is missing", _MANUAL, source=source, key=name)
    try:
        made: Entry = _adapter(kept).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SpecError(f"{where}: {first['msg']}", _MANUAL, source=source, key=name) from None
    return made


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def with_numbers(
    expression: str, thresholds: Mapping[str, float], wrong: Callable[[str], Exception] = KeyError
) -> str:
    """An expression with a number for each `$name`: of the rule's own thresholds, else of those of all rules.

    For a name that there is none of raises what `wrong` makes of the words that say so.
    """

    def number(found: re.Match[str]) -> str:
        name = found[1]
        own = thresholds if name in thresholds else numbers(__package__)
        if name not in own:
            raise wrong(f"there is no threshold {name!r}")
        return repr(own[name])

    return _THRESHOLD.sub(number, expression)
