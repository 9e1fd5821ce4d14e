"""The lab's logs: their last words for an error, and their bound."""

from __future__ import annotations

import os
from pathlib import Path

LOG_BYTES_MAX = 8 << 20
_KEEP_BYTES = 1 << 20


def last_lines(log: Path, count: int = 4) -> list[str]:
    """The last lines of a log that say something; empty where there is no log. Long lines are cut."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - 64 * 1024))
            text = stream.read().decode(errors="replace")
    except OSError:
        return []
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [line if len(line) <= 300 else line[:297] + "..." for line in lines[-count:]]


def trim(directory: Path) -> None:
    """Cuts every log above `LOG_BYTES_MAX` to its last mebibyte.

    The writers append, so that they go on at the new end.
    """
    for log in directory.glob("*.log"):
        with log.open("r+b") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > LOG_BYTES_MAX:
                stream.seek(size - _KEEP_BYTES)
                kept = stream.read(_KEEP_BYTES)
                stream.seek(0)
                stream.write(kept)
                stream.truncate(len(kept))
