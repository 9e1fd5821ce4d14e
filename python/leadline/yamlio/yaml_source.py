"""YAML 1.2 text to plain values that know where they were written.

Reads composed nodes rather than constructed objects: that gives each key's line, refuses duplicate keys
and foreign tags, and bounds what aliases can grow to. `${VAR}` is taken from the environment after
parsing, so that a variable can never add structure.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from leadline.errors import SpecError
from leadline.units import printable

SOURCE_MAX_BYTES = 256 * 1024
VALUES_MAX = 10_000  # aliases counted each time: an anchor bomb ends here
DEPTH_MAX = 20

Path = tuple[str | int, ...]

_VARIABLE = re.compile(r"\$(\$\{|\{([^}]*)(\})?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAG = "tag:yaml.org,2002:"
_NULLS, _BOOLS = ("null", "Null", "NULL"), ("true", "True", "TRUE", "false", "False", "FALSE")
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?", re.ASCII)
_FIRST_OF_NO_TEXT = ("", *"0123456789+-.~tTfFnN")  # of a number, true, false, null, or nothing


def shorten(text: str, limit: int = 60) -> str:
    """At most `limit` characters, for a message of one line."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def dotted(path: Path) -> str:
    """`factors.bs`, with nothing in it that a terminal would act on."""
    plain = ".".join(str(part) for part in path)
    return shorten(printable(plain), 120)


def name_of(path: Path, renamed: Mapping[Path, str]) -> str:
    """The key that `path` ends in, by today's name; `renamed` has former ones, with `*` for any key."""
    for former, name in renamed.items():
        if len(former) == len(path) and all(old in ("*", key) for old, key in zip(former, path, strict=True)):
            return name
    return str(path[-1])


def with_new_names(value: Any, renamed: Mapping[Path, str], path: Path = ()) -> Any:
    """Stored values with today's keys, as a file is read that has former ones."""
    if not isinstance(value, dict):
        return value
    named = ((name_of((*path, key), renamed), inner) for key, inner in value.items())
    return {key: with_new_names(inner, renamed, (*path, key)) for key, inner in named}


@dataclass(frozen=True)
class WrittenAt:
    """Where a value was written: a file with a line (from 1), or an option of the command line."""

    source: str
    line: int | None = None


@dataclass(frozen=True)
class Document:
    """Plain values (dict, list, str, int, float, bool, None) and the place of each path in them."""

    value: Any
    places: Mapping[Path, WrittenAt]
    source: str

    def place(self, path: Path) -> WrittenAt:
        """The place of a path, or of the nearest thing around it that was written down."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return WrittenAt(self.source)

    def fail(self, path: Path, message: str, remedy: str = "") -> NoReturn:
        """Raise the SpecError of what stands at `path`."""
        place = self.place(path)
        raise SpecError(message, remedy, source=place.source, line=place.line, key=dotted(path))

    def with_value(self, value: Any, places: Mapping[Path, WrittenAt]) -> Document:
        """The same source with other values."""
        return replace(self, value=value, places=places)


@dataclass(frozen=True)
class DocumentKind:
    """What errors say of a kind of document: its `noun`, where it is described (`manual`) and an `example`.

    `instead_of_merge` is the remedy for a merge key. `nulls` gives keys whose written null is a word.
    `renamed` has keys that had another name, which is read as if today's was written.
    """

    noun: str = "file"
    manual: str = "split it"
    example: str = "write `key: value` pairs, one on each line"
    instead_of_merge: str = "write each key out"
    nulls: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[Path, str] = field(default_factory=dict)


_ANY = DocumentKind()


def read_yaml(text: str, source: str, environment: Mapping[str, str], kind: DocumentKind = _ANY) -> Document:
    """Parse one YAML document. Raises SpecError with file and line for whatever is wrong in it."""
    if len(text.encode("utf-8", "replace")) > SOURCE_MAX_BYTES:
        raise SpecError(
            f"larger than {SOURCE_MAX_BYTES // 1024} KiB, which no {kind.noun} needs",
            f"is it a {kind.noun}?",
            source=source,
        )
    root = _compose(text, source, kind)
    if root is None:
        raise SpecError("the file is empty", kind.example, source=source)
    reader = _YamlReader(source, environment, kind)
    return Document(reader.value_of(root, ()), reader.places, source)


def read_table(text: str, source: str, kind: DocumentKind = _ANY) -> Document:
    """The same for a table of this package: by libyaml, in a tenth of the time.

    libyaml reads YAML 1.1, of which only the types of plain words matter to a table: they are told as in 1.2.
    A table that it refuses is read as any other file is, whose error says more.
    """
    import yaml

    try:
        root = yaml.compose(text, Loader=_table_loader())
    except yaml.YAMLError:
        root = None
    if root is None:
        return read_yaml(text, source, {}, kind)
    reader = _YamlReader(source, {}, kind)
    return Document(reader.value_of(root, ()), reader.places, source)


@functools.cache
def _table_loader() -> Any:
    import yaml

    fastest: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # where libyaml was not built in

    class TableLoader(fastest):  # type: ignore[misc]
        """Tells types of plain scalars as YAML 1.2 does."""

        def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
            if kind is yaml.ScalarNode and implicit[0] and value[:1] in _FIRST_OF_NO_TEXT:
                return _TAG + _resolve_plain(value)
            tag: str = super().resolve(kind, value, implicit)
            return tag

    return TableLoader


def _compose(text: str, source: str, kind: DocumentKind) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        return YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = ", ".join(part for part in (error.context, error.problem) if part)
        line = None if mark is None else mark.line + 1
        raise SpecError(
            f"not valid YAML: {words}", "check indentation, quotes and colons", source=source, line=line
        ) from None
    except (YAMLError, ValueError, AssertionError, NotImplementedError) as error:
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SpecError(f"not valid YAML: {words}", "is it a text file?", source=source) from None
    except RecursionError:
        raise SpecError(f"nested too deeply to be a {kind.noun}", kind.manual, source=source) from None


class _YamlReader:
    """Walks composed nodes once; `places` fills as it goes."""

    def __init__(self, source: str, environment: Mapping[str, str], kind: DocumentKind) -> None:
        self.source = source
        self.environment = environment
        self.kind = kind
        self.places: dict[Path, WrittenAt] = {}
        self.values = 0

    def value_of(self, node: Any, path: Path) -> Any:
        self.values += 1
        if self.values > VALUES_MAX:
            self._fail(node, path, f"more than {VALUES_MAX} values, aliases counted", "write fewer aliases")
        if len(path) > DEPTH_MAX:
            self._fail(node, path, f"nested deeper than {DEPTH_MAX} levels", self.kind.manual)
        self.places.setdefault(path, WrittenAt(self.source, node.start_mark.line + 1))
        tag = str(node.tag or "").removeprefix(_TAG)
        if tag == "map" and node.id == "mapping":
            return self._mapping(node, path)
        if tag == "seq" and node.id == "sequence":
            return [self.value_of(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, path, tag)

    def _mapping(self, node: Any, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node.value, str):
                self._fail(key_node, path, "a key must be a plain word", "write `key: value`")
            key = name_of((*path, key_node.value), self.kind.renamed)
            here = (*path, key)
            if key in found:
                first = self.places[here].line
                self._fail(
                    key_node, here, f"the key is given twice (first in line {first})", "keep one of them"
                )
            if key == "<<":
                self._fail(
                    key_node,
                    here,
                    "merge keys are not part of YAML 1.2",
                    self.kind.instead_of_merge,
                )
            self.places[here] = WrittenAt(self.source, key_node.start_mark.line + 1)
            found[key] = self.value_of(value_node, here)
        return found

    def _scalar(self, node: Any, path: Path, tag: str) -> Any:
        text = node.value
        if not isinstance(text, str):
            self._fail(node, path, f"the YAML tag {tag!r} is not used here", "leave the tag out")
        expanded = self._expand(node, path, text)
        if expanded != text and node.style is None:
            tag = _resolve_plain(expanded)
        if tag == "null" and expanded:
            return self.kind.nulls.get(str(path[-1])) if path else None
        if tag in ("null", "str"):
            return expanded if tag == "str" else None
        if tag not in ("bool", "int", "float"):
            self._fail(node, path, f"the YAML tag or type {tag!r} is not used here", "put it in quotes")
        try:
            return _typed(tag, expanded)
        except ValueError:
            self._fail(
                node,
                path,
                f"{shorten(repr(expanded))} is neither a number nor true or false",
                "put it in quotes if it is a text",
            )

    def _expand(self, node: Any, path: Path, text: str) -> str:
        def one(match: re.Match[str]) -> str:
            if match[1] == "${":  # `$${` stands for a plain `${`
                return "${"
            name = match[2]
            if match[3] is None or not _NAME.fullmatch(name):
                self._fail(node, path, f"{match[0]!r} is no variable", "write ${NAME}, or $${ for a plain ${")
            if name not in self.environment:
                remedy = f"set it (export {name}=…), or write the value itself"
                self._fail(node, path, f"the environment variable {name} is not set", remedy)
            return self.environment[name]

        return _VARIABLE.sub(one, text)

    def _fail(self, node: Any, path: Path, message: str, remedy: str) -> NoReturn:
        line = node.start_mark.line + 1
        raise SpecError(message, remedy, source=self.source, line=line, key=dotted(path))


def _resolve_plain(text: str) -> str:
    """The type that YAML 1.2 gives a plain scalar of this text.

    What is plain to see is told here: what tells the rest takes a tenth of a second to load.
    """
    if not text or text in _NULLS:
        return "null"
    if text[0].isalpha():
        return "bool" if text in _BOOLS else "str"
    if plain := _PLAIN_NUMBER.fullmatch(text):
        return "float" if plain[1] else "int"
    from ruamel.yaml.nodes import ScalarNode

    tag = _resolver().resolve(ScalarNode, text, (True, False))
    return str(tag).removeprefix(_TAG)


@functools.cache
def _resolver() -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).resolver


def _typed(tag: str, text: str) -> bool | int | float:
    if tag == "bool":
        if text.lower() not in ("true", "false"):
            raise ValueError(text)  # `yes` under a %YAML 1.1 directive
        return text.lower() == "true"
    if tag == "int":
        digits = text.replace("_", "").lower()
        sign = -1 if digits.startswith("-") else 1
        digits = digits.lstrip("+-")
        base = {"0x": 16, "0o": 8}.get(digits[:2], 10)
        return sign * int(digits[2:] if base != 10 else digits, base)
    number = float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
    if not math.isfinite(number):
        raise ValueError(text)
    return number
