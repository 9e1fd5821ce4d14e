"""A result of the kind `workflows`: what a media platform noted of its own operations, as plain JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leadline.durable import write_whole
from leadline.foreign import parse_json, read_plain, reading
from leadline.store.files import WORKFLOWS, storing
from leadline.store.reader import KIND_WORKFLOWS, Result
from leadline.store.writer import create_result
from leadline.workflows.reading import Workflow

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
