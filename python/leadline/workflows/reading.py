"""Workflows of a media platform (Opencast) with the times of their operations: read, and kept in a result.

Three forms are known: the external API's JSON, the internal service's JSON, and its XML. What a workflow
does not say is None, never 0. A result keeps them as plain JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from leadline.durable import write_whole
from leadline.errors import SpecError
from leadline.foreign import DEPTH_MAX, parse_json, read_plain, reading, reason_of
from leadline.store.files import WORKFLOWS, storing
from leadline.store.reader import KIND_WORKFLOWS, Result
from leadline.store.writer import create_result

FORMAT = "leadline.workflows/1"
_BYTES_MAX = 1 << 30


def write_workflows(
    path: Path, workflows: Sequence[Workflow], details: Mapping[str, Any], now_ns: Callable[[], int]
) -> None:
    """Make the result directory. Raises UsageError where it exists."""
    data = json.dumps({"format": FORMAT, "workflows": [asdict(one) for one in workflows]}, indent=1).encode()
    digest = hashlib.sha256(data).hexdigest()
    manifest = {"kind": KIND_WORKFLOWS, "id": digest[:8], "sha256": digest, **details}
    writer = create_result(path, manifest, now_ns)
    try:
        with storing(path):
            write_whole(path / WORKFLOWS, data)
        writer.journal("imported", kind=KIND_WORKFLOWS, sha256=digest)
    finally:
        writer.close()


def read_stored_workflows(result: Result) -> tuple[Workflow, ...]:
    """The workflows of a result; ResultError when the file is not the one that was imported."""
    file = result.path / WORKFLOWS
    with reading(file, "import the workflows again"):
        data = read_plain(file, _BYTES_MAX)
        if hashlib.sha256(data).hexdigest() != result.manifest.get("sha256"):
            raise ValueError("it was changed after the import")
        from pydantic import TypeAdapter

        found = parse_json(data)
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ValueError(f"it is not of the format {FORMAT}")
        return TypeAdapter(tuple[Workflow, ...]).validate_python(found.get("workflows"))


_REMEDY = "give the answer of /api/workflows/ID?withoperations=true, or of /workflow/instance/ID.json or .xml"
_MS = 1_000_000
_MS_MAX = (1 << 63) // _MS - 1
_TEXT_MAX, _DIGITS_MAX = 1000, 20
Element = ElementTree.Element


@dataclass(frozen=True)
class Operation:
    """One operation. Times are ns since 1970; `queue_ns` is how long it waited before its start."""

    name: str
    state: str
    host: str | None
    started_ns: int | None
    completed_ns: int | None
    queue_ns: int | None

    @property
    def seconds(self) -> float | None:
        """How long it took; None where a time is lacking or they are in the wrong order."""
        if self.started_ns is None or self.completed_ns is None or self.completed_ns < self.started_ns:
            return None
        return (self.completed_ns - self.started_ns) / 1e9


@dataclass(frozen=True)
class Workflow:
    """One workflow; `bytes` are of its media, where it says so."""

    id: str
    title: str
    state: str
    operations: tuple[Operation, ...]
    bytes: int | None = None

    @property
    def started_ns(self) -> int | None:
        """The first start of an operation."""
        return min((one.started_ns for one in self.operations if one.started_ns is not None), default=None)

    @property
    def completed_ns(self) -> int | None:
        """The last end of an operation."""
        return max(
            (one.completed_ns for one in self.operations if one.completed_ns is not None), default=None
        )


def read_workflows(text: str, source: str) -> tuple[Workflow, ...]:
    """The workflows of one answer. Raises SpecError where it is none."""
    begin = text.lstrip()[:1]
    if begin == "<":
        return tuple(_from_xml(text, source))
    try:
        value = parse_json(text)
    except ValueError as error:
        raise SpecError(f"is no JSON: {reason_of(error)}", _REMEDY, source=source) from None
    return tuple(_from_json(value, source))


def total_of(text: str) -> int | None:
    """How many workflows there are in all, where an answer of the internal service says so."""
    try:
        value = parse_json(text)
        return int(value["workflows"]["totalCount"])
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


def _from_json(value: Any, source: str) -> Iterator[Workflow]:
    if isinstance(value, list):
        for one in value:
            yield from _from_json(one, source)
        return
    if not isinstance(value, dict):
        raise SpecError("holds no workflow", _REMEDY, source=source)
    if isinstance(value.get("workflows"), dict):
        for one in _listed(value["workflows"].get("workflow")):
            yield _internal(one, source)
    elif isinstance(value.get("workflow"), dict):
        yield _internal(value["workflow"], source)
    elif isinstance(value.get("operations"), list) and "identifier" in value:
        yield _external(value, source)
    elif "identifier" in value and "operations" not in value:
        remedy = "ask with ?withoperations=true"
        raise SpecError(f"workflow {value['identifier']} comes without its operations", remedy, source=source)
    else:
        raise SpecError("holds no workflow", _REMEDY, source=source)


def _external(value: Mapping[str, Any], source: str) -> Workflow:
    operations = tuple(
        Operation(
            name=_words(one.get("operation")),
            state=_words(one.get("state", "")).lower(),
            host=_text(one.get("host")),
            started_ns=_moment(one.get("start"), source),
            completed_ns=_moment(one.get("completion"), source),
            queue_ns=_milliseconds(one.get("time_in_queue")),
        )
        for one in _mappings(value["operations"], source)
    )
    return _workflow(value.get("identifier"), value.get("title"), value.get("state"), operations, None)


def _internal(value: Any, source: str) -> Workflow:
    (workflow,) = _mappings([value], source)
    listed = _mapping(workflow.get("operations")).get("operation")
    operations = tuple(
        Operation(
            name=_words(one.get("id")),
            state=_words(one.get("state", "")).lower(),
            host=_text(one.get("execution-host")),
            started_ns=_moment(one.get("started"), source),
            completed_ns=_moment(one.get("completed"), source),
            queue_ns=_milliseconds(one.get("time-in-queue")),
        )
        for one in _mappings(_listed(listed), source)
    )
    media = _mapping(_mapping(workflow.get("mediapackage")).get("media"))
    tracks = [one for one in _listed(media.get("track")) if isinstance(one, dict)]
    sizes = [(str(one.get("type")), one.get("size")) for one in tracks]
    return _workflow(
        workflow.get("id"), workflow.get("title"), workflow.get("state"), operations, _media_bytes(sizes)
    )


def _from_xml(text: str, source: str) -> Iterator[Workflow]:
    if "<!DOCTYPE" in text[:4096] or "<html" in text[:4096].lower():
        raise SpecError("is a page, not a workflow", _REMEDY, source=source)
    try:
        root = ElementTree.fromstring(text, ElementTree.XMLParser(target=_Tree()))  # noqa: S314 - see `_Tree`
    except (ElementTree.ParseError, ValueError) as error:
        raise SpecError(f"is no XML: {reason_of(error)}", _REMEDY, source=source) from None
    found = [root] if _plain(root) == "workflow" else _children(root, "workflow")
    if not found:
        raise SpecError("holds no workflow", _REMEDY, source=source)
    for one in found:
        yield _of_element(one, source)


class _Tree(ElementTree.TreeBuilder):
    """A tree of bounded depth, and without a document type: it could define entities."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def doctype(self, *_: object) -> None:
        """Called at its declaration, before any entity."""
        raise ValueError("it has a document type")

    def start(self, tag: Any, attrs: Any, /) -> Element:
        """As usual."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ValueError(f"nested deeper than {DEPTH_MAX} levels")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        """As usual."""
        self._depth -= 1
        return super().end(tag)


def _of_element(workflow: Element, source: str) -> Workflow:
    listed = [child for group in _children(workflow, "operations") for child in _children(group, "operation")]
    operations = tuple(
        Operation(
            name=_words(one.get("id")),
            state=_words(one.get("state", "")).lower(),
            host=_text(_child_text(one, "execution-host") or one.get("execution-host")),
            started_ns=_moment(_child_text(one, "started"), source),
            completed_ns=_moment(_child_text(one, "completed"), source),
            queue_ns=_milliseconds(_child_text(one, "time-in-queue")),
        )
        for one in listed
    )
    tracks = [one for one in workflow.iter() if _plain(one) == "track"]
    sizes = [(str(one.get("type")), _child_text(one, "size")) for one in tracks]
    title, state = _child_text(workflow, "title"), workflow.get("state") or _child_text(workflow, "state")
    return _workflow(workflow.get("id"), title, state, operations, _media_bytes(sizes))


def _workflow(
    identifier: Any, title: Any, state: Any, operations: tuple[Operation, ...], size: int | None
) -> Workflow:
    words = "unknown" if identifier is None else _words(identifier)
    return Workflow(words, _words(title or ""), _words(state or "unknown").lower(), operations, size)


def _media_bytes(sizes: list[tuple[str, Any]]) -> int | None:
    """What was uploaded: the tracks that are called a source; where none is, all that have a size."""
    known = [(kind, number) for kind, size in sizes if (number := _count(size))]
    chosen = [size for kind, size in known if kind.endswith("/source")] or [size for _, size in known]
    return sum(chosen) or None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(values: Any, source: str) -> list[dict[str, Any]]:
    for value in values:
        if not isinstance(value, dict):
            raise SpecError("holds an operation that is none", _REMEDY, source=source)
    return list(values)


def _listed(value: Any) -> list[Any]:
    """A list of one is written without its brackets there."""
    return value if isinstance(value, list) else [] if value in (None, "") else [value]


def _plain(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _children(element: Element, name: str) -> list[Element]:
    return [child for child in element if _plain(child) == name]


def _child_text(element: Element, name: str) -> str | None:
    return next((child.text for child in _children(element, name)), None)


def _text(value: Any) -> str | None:
    return _words(value) if value not in (None, "") else None


def _words(value: Any) -> str:
    """Text of bounded length; JSON can hold halves of characters, which cannot be written."""
    return str(value)[:_TEXT_MAX].encode("utf-8", "replace").decode()


def _count(value: Any) -> int | None:
    """A number that is not negative and fits 63 bits when it is taken for milliseconds."""
    try:
        number = int(value) if not isinstance(value, str) or len(value) <= _DIGITS_MAX else -1
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 <= number <= _MS_MAX else None


def _milliseconds(value: Any) -> int | None:
    number = _count(value)
    return None if number is None else number * _MS


def _moment(value: Any, source: str) -> int | None:
    """ISO 8601, or milliseconds since 1970; None for nothing. A time without a zone is UTC."""
    if value in (None, "", "0", 0, -1, "-1"):
        return None
    number = _count(value)
    return parse_moment(str(value), source) if number is None else number * _MS


def parse_moment(text: str, source: str) -> int:
    """A date, or a date and time, as ns since 1970. Raises SpecError."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise SpecError(
            f"{text[:_TEXT_MAX]!a} is no time", "write 2026-01-31 or 2026-01-31T12:00:00Z", source=source
        ) from None
    whole = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    moment_ns = round(whole.timestamp() * 1e6) * 1000
    if abs(moment_ns) >= 1 << 63:
        raise SpecError(f"{text[:_TEXT_MAX]!a} is no time of a workflow", "see its clock", source=source)
    return moment_ns
