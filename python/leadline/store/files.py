"""Names and safe writing of the files in a result directory."""

from __future__ import annotations

import os
from pathlib import Path

MANIFEST = "manifest.json"
JOURNAL = "events.jsonl"
RECORDS = "records"  # the engine's own files of the trial that is running; empty afterwards
RESULT_FORMAT = "leadline.result"
RESULT_VERSION = 1


def make_result_directory(path: Path, *, parents: bool = False) -> None:
    """A new directory for a result, which nobody else may write in, as what it says is acted on.

    Root's are for root alone: commands, paths and hosts are in them.
    """
    path.mkdir(mode=0o700 if os.geteuid() == 0 else 0o755, parents=parents)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one, never a part."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make a rename or a creation in this directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
