"""Tables that somebody published, read from YAML (format leadline.published/1) with the line of each figure.

Only what is written is known here; `published.checks` recomputes what follows from it. A result of the kind
`published` keeps the YAML as it was given, beside a manifest and a journal.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from leadline.durable import write_whole
from leadline.errors import ResultError, SpecError, UsageError
from leadline.foreign import read_plain, reading
from leadline.store.files import DOCUMENT, storing
from leadline.store.reader import KIND_PUBLISHED, Result
from leadline.store.writer import create_result
from leadline.yamlio.figures import UNITS, Figure, parse_figure
from leadline.yamlio.yaml_source import SOURCE_MAX_BYTES, Document, read_yaml
from leadline.yamlio.yaml_source import Path as Place


def write_published(
    path: Path, text: str, published: Published, details: dict[str, Any], now_ns: Callable[[], int]
) -> None:
    """Make the result directory of a document that was read. Raises UsageError where it exists."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    manifest = {"kind": KIND_PUBLISHED, "title": published.title, "sha256": digest, **details}
    manifest["id"] = digest[:8]
    writer = create_result(path, manifest, now_ns)
    try:
        with storing(path):
            write_whole(path / DOCUMENT, text.encode())
        writer.journal("imported", kind=KIND_PUBLISHED, sha256=digest)
    finally:
        writer.close()


def read_document(result: Result) -> Published:
    """The figures of a published result; ResultError when the file is not the one that was imported."""
    file = result.path / DOCUMENT
    with reading(file, "import the document again"):
        data = read_plain(file, SOURCE_MAX_BYTES)
    if hashlib.sha256(data).hexdigest() != result.manifest.get("sha256"):
        raise ResultError(f"{file} was changed after the import", "import the changed document again")
    with reading(file, "import the document again"):
        return read_published(data.decode("utf-8", "replace"), str(file))


def document_names() -> tuple[str, ...]:
    """The documents whose figures leadline brings along, sorted."""
    return tuple(sorted(entry.name[:-5] for entry in _folder().iterdir() if entry.name.endswith(".yaml")))


def document_text(name: str) -> str:
    """The YAML of one. Raises FileNotFoundError."""
    return (_folder() / f"{name}.yaml").read_text(encoding="utf-8")


def _folder() -> Traversable:
    return resources.files("leadline") / "published" / "documents"


def read_source(path: Path) -> str:
    """The text of a document's YAML, not more than one can be. Raises UsageError."""
    remedy = "name a YAML file of published values"
    try:
        with path.open("rb") as file:
            return file.read(SOURCE_MAX_BYTES + 1).decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no text file", remedy) from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", remedy) from None


FORMAT = "leadline.published/1"
ROWS_MAX = 5_000
EACH_MAX = 200

# Kinds that are counted, not measured: such a figure is exact.
COUNTS = frozenset(
    (
        "copies",
        "k",
        "m",
        "devices",
        "nodes",
        "clients",
        "threads",
        "processes",
        "cpus",
        "in_flight",
        "numjobs",
    )
) | {"iodepth", "block", "object", "buffer", "disks", "threads_behind"}
ABSENT = (None, "-", "")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_WITH_UNIT = re.compile(r"(.+?)(?:\s+(?=1/s$)|\s*(?<!/)(?=[A-Za-zµ%]))(1/s|[A-Za-zµ%][A-Za-zµ/]*)")
_REMEDY = "see docs/published.md"


@dataclass(frozen=True)
class DocumentColumn:
    """`kind` says what the figures are (`elapsed`, `rate` …), `quantity` which thing they are figures of."""

    name: str
    unit: str
    kind: str
    quantity: str
    part_of: str | None = None


@dataclass(frozen=True)
class DocumentRow:
    """One line of a table: its levels by key, and its figures by column."""

    keys: tuple[tuple[str, str], ...]
    figures: Mapping[str, Figure]
    line: int | None

    @property
    def address(self) -> str:
        """The levels, joined by dots."""
        return ".".join(level for _, level in self.keys)

    def level(self, key: str) -> str | None:
        """The level of one key, or None."""
        return dict(self.keys).get(key)


@dataclass(frozen=True)
class DocumentTable:
    """One published table. `given` holds for each of its rows; `runs` is None where nobody says.

    `cells` is the pattern of the cells that measure its rows, such as `{system}.randwrite_{block_size}`.
    """

    name: str
    section: str
    keys: tuple[str, ...]
    columns: tuple[DocumentColumn, ...]
    rows: tuple[DocumentRow, ...]
    given: Mapping[str, Figure] = field(default_factory=dict)
    runs: int | None = None
    simultaneous: bool = False
    cells: str | None = None

    def column(self, name: str) -> DocumentColumn | None:
        """A column by its name."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True)
class System:
    """What was measured. `facts` are words, `figures` those facts that are quantities."""

    name: str
    words: str
    facts: Mapping[str, str]
    figures: Mapping[str, Figure]


@dataclass(frozen=True)
class Claim:
    """A sentence of the document: the figure it names, if any, and the formula for it from the tables."""

    text: str
    section: str
    published: Figure | None
    formula: str
    line: int | None


@dataclass(frozen=True)
class DocumentCheck:
    """A comparison that must hold between figures, such as `total.a.rate == sum(parts.*.rate)`."""

    text: str
    because: str
    line: int | None


@dataclass(frozen=True)
class Published:
    """A whole document. `varies` names the facts of systems that the document meant to vary."""

    title: str
    about: str
    source: Mapping[str, str]
    systems: tuple[System, ...]
    facts: Mapping[str, Figure]
    tables: tuple[DocumentTable, ...]
    checks: tuple[DocumentCheck, ...]
    claims: tuple[Claim, ...]
    varies: tuple[str, ...]
    file: str

    def table(self, name: str) -> DocumentTable | None:
        """A table by its name."""
        return next((table for table in self.tables if table.name == name), None)

    def system(self, name: str | None) -> System | None:
        """A system by its name."""
        return next((system for system in self.systems if system.name == name), None)


def read_published(text: str, file: str) -> Published:
    """Read a document's figures. Raises SpecError with file, line and key for whatever is wrong."""
    document = read_yaml(text, file, {})
    reader = _DocumentReader(document)
    top = reader.mapping((), known=("format", "title", "about", "source", "varies", *_SECTIONS))
    if top.get("format") != FORMAT:
        document.fail(("format",), f"this is no table of published values: format is not {FORMAT}", _REMEDY)
    tables = tuple(reader.table(name) for name in reader.names(("tables",)))
    if not tables:
        document.fail(("tables",), "there is no table", _REMEDY)
    return Published(
        title=reader.text(("title",), required=True),
        about=reader.text(("about",)),
        source={name: reader.text(("source", name)) for name in reader.names(("source",))},
        systems=tuple(reader.system(name) for name in reader.names(("systems",))),
        facts=reader.figures(("facts",)),
        tables=tables,
        checks=tuple(reader.checks()),
        claims=tuple(reader.claims()),
        varies=tuple(str(word) for word in reader.list(("varies",))),
        file=file,
    )


_SECTIONS = ("systems", "facts", "tables", "checks", "claims")


class _DocumentReader:
    """Takes values out of a document by path; every refusal names the place."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def at(self, path: Place) -> Any:
        value: Any = self.document.value
        for part in path:
            if isinstance(value, dict):
                value = value.get(part)
            elif isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                return None
        return value

    def mapping(self, path: Place, known: tuple[str, ...] = ()) -> dict[str, Any]:
        value = self.at(path)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.document.fail(path, "a mapping is needed here", "write `key: value` pairs")
        for key in value:
            if known and key not in known:
                self.document.fail((*path, key), "unknown key", f"known are {', '.join(known)}")
        return value

    def names(self, path: Place) -> list[str]:
        for name in self.mapping(path):
            if not _NAME.fullmatch(name):
                self.document.fail((*path, name), "not a name", "use letters, digits and _")
        return list(self.mapping(path))

    def list(self, path: Place) -> list[Any]:
        value = self.at(path)
        if value is None:
            return []
        if not isinstance(value, list):
            self.document.fail(path, "a list is needed here", "write [a, b] or lines that begin with -")
        return value

    def text(self, path: Place, *, required: bool = False) -> str:
        value = self.at(path)
        if value is None and not required:
            return ""
        if not isinstance(value, str | int | float) or isinstance(value, bool) or str(value).strip() == "":
            self.document.fail(path, "a text is needed here", _REMEDY)
        return " ".join(str(value).split())

    def figure(self, path: Place, raw: object, unit: str, kind: str) -> Figure:
        try:
            return parse_figure(raw, unit, exact=kind in COUNTS)
        except SpecError as error:
            self.document.fail(path, error.message, error.remedy)

    def figures(self, path: Place) -> dict[str, Figure]:
        return {name: self.quantity((*path, name), name) for name in self.names(path)}

    def quantity(self, path: Place, kind: str) -> Figure:
        """`10 Gb/s`, `~40 %`, or a bare count."""
        raw, unit = self.at(path), "1"
        match = _WITH_UNIT.fullmatch(raw) if isinstance(raw, str) else None
        if match and match[2] in UNITS:
            raw, unit = match[1], match[2]
        return self.figure(path, raw, unit, kind)

    def system(self, name: str) -> System:
        path: Place = ("systems", name)
        values = self.mapping(path)
        figures = {}
        for key in values:
            raw = values[key]
            match = _WITH_UNIT.fullmatch(raw) if isinstance(raw, str) else None
            counted = isinstance(raw, int | float) and not isinstance(raw, bool)
            if counted or (match and match[2] in UNITS and match[1][:1].isdigit()):
                figures[key] = self.quantity((*path, key), key)
        facts = {key: self.text((*path, key)) for key in self.names(path) if key != "words"}
        return System(name, self.text((*path, "words")), facts, figures)

    def table(self, name: str) -> DocumentTable:
        path: Place = ("tables", name)
        known = ("section", "keys", "columns", "rows", "given", "runs", "simultaneous", "cells")
        values = self.mapping(path, known)
        keys = tuple(str(key) for key in self.list((*path, "keys")))
        columns = tuple(self._column(name, column) for column in self.names((*path, "columns")))
        for key in keys:
            if not _NAME.fullmatch(key) or any(key == column.name for column in columns):
                self.document.fail((*path, "keys"), f"{key!a} is no name, or a column too", _REMEDY)
        if not keys or not columns:
            self.document.fail(path, "a table needs keys and columns", _REMEDY)
        runs = values.get("runs")
        if runs is not None and (not isinstance(runs, int) or isinstance(runs, bool) or runs < 1):
            self.document.fail((*path, "runs"), "a whole number from 1 is needed here", _REMEDY)
        rows = tuple(self._rows(path, keys, columns))
        return DocumentTable(
            name=name,
            section=self.text((*path, "section")),
            keys=keys,
            columns=columns,
            rows=rows,
            given=self.figures((*path, "given")),
            runs=runs,
            simultaneous=values.get("simultaneous") is True,
            cells=self.text((*path, "cells")) or None,
        )

    def _column(self, table: str, name: str) -> DocumentColumn:
        path: Place = ("tables", table, "columns", name)
        value = self.at(path)
        options = (
            {"unit": value}
            if isinstance(value, str | int)
            else self.mapping(path, ("unit", "kind", "quantity", "part_of"))
        )
        unit = str(options.get("unit", ""))
        if unit not in UNITS:
            self.document.fail(path, f"{unit!a} is no unit", f"use one of: {', '.join(UNITS)}")
        kind = str(options.get("kind", name))
        part_of = options.get("part_of")
        quantity = str(options.get("quantity", f"{table}.{name}"))
        return DocumentColumn(name, unit, kind, quantity, None if part_of is None else str(part_of))

    def _rows(
        self, path: Place, keys: tuple[str, ...], columns: tuple[DocumentColumn, ...]
    ) -> Iterator[DocumentRow]:
        rows = self.list((*path, "rows"))
        width = len(keys) + len(columns)
        if not rows or len(rows) > ROWS_MAX:
            self.document.fail((*path, "rows"), f"between 1 and {ROWS_MAX} rows are needed", _REMEDY)
        seen: set[tuple[str, ...]] = set()
        for index in range(len(rows)):
            here: Place = (*path, "rows", index)
            row = self.list(here)
            if len(row) != width:
                names = ", ".join([*keys, *(column.name for column in columns)])
                self.document.fail(
                    here, f"{len(row)} values, where {width} are needed: {names}", "write - for none"
                )
            levels = tuple(self.text((*here, place), required=True) for place in range(len(keys)))
            if levels in seen:
                self.document.fail(here, f"the row {'.'.join(levels)} is given twice", "keep one of them")
            seen.add(levels)
            figures = {
                column.name: self.figure((*here, place), row[place], column.unit, column.kind)
                for place, column in enumerate(columns, start=len(keys))
                if row[place] not in ABSENT
            }
            line = self.document.place(here).line
            yield DocumentRow(tuple(zip(keys, levels, strict=True)), figures, line)

    def checks(self) -> Iterator[DocumentCheck]:
        for index in range(len(self.list(("checks",)))):
            path: Place = ("checks", index)
            self.mapping(path, ("check", "because", "each"))
            for fill in self._each(path):
                text = fill(self.text((*path, "check"), required=True))
                yield DocumentCheck(text, fill(self.text((*path, "because"))), self.document.place(path).line)

    def claims(self) -> Iterator[Claim]:
        for index in range(len(self.list(("claims",)))):
            path: Place = ("claims", index)
            self.mapping(path, ("says", "section", "published", "is", "each"))
            missing = self.at((*path, "published")) is None
            for fill in self._each(path):
                yield Claim(
                    text=fill(self.text((*path, "says"), required=True)),
                    section=self.text((*path, "section")),
                    published=None if missing else self.quantity((*path, "published"), "claim"),
                    formula=fill(self.text((*path, "is"), required=True)),
                    line=self.document.place(path).line,
                )

    def _each(self, path: Place) -> Iterator[Any]:
        """One substitution for each level of `each: {name: [a, b]}`; `{name}` stands for it."""
        each = self.mapping((*path, "each"))
        if len(each) > 1:
            self.document.fail((*path, "each"), "one name at a time", "write another check")
        if not each:
            yield lambda text: text
            return
        name = next(iter(each))
        levels = self.list((*path, "each", name))
        if len(levels) > EACH_MAX:
            self.document.fail((*path, "each"), f"more than {EACH_MAX} levels", "write fewer")
        for level in levels:
            yield lambda text, level=str(level): text.replace("{" + name + "}", level)
