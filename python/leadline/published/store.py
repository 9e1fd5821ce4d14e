"""A result of the kind `published`: the document's YAML as it was given, beside a manifest and a journal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from leadline.durable import write_whole
from leadline.errors import ResultError, UsageError
from leadline.foreign import read_plain, reading
from leadline.published.document import Published, read_published
from leadline.store.files import DOCUMENT, storing
from leadline.store.reader import KIND_PUBLISHED, Result
from leadline.store.writer import create_result
from leadline.yamlio.yaml_source import SOURCE_MAX_BYTES


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
    remedy = "name a YAML file of published figures"
    try:
        with path.open("rb") as file:
            return file.read(SOURCE_MAX_BYTES + 1).decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no text file", remedy) from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", remedy) from None
