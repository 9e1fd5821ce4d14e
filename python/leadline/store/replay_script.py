"""The script of a replay as a file of the result's directory; its format is the engine's."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.durable import write_whole
from leadline.store.files import storing

if TYPE_CHECKING:
    from collections.abc import Sequence

SCRIPT = "replay.script"
_MAGIC, _VERSION = b"LLREPLAY", 1


def write_script(
    directory: Path, calls: Any, threads: Sequence[tuple[int, int]], sizes: Any, flags: Any
) -> None:
    """Write `calls` (NumPy records in the engine's layout), threads as (process, calls), and the files."""
    parts = [_MAGIC, struct.pack("<IIIIQ", _VERSION, len(threads), len(sizes), 0, len(calls))]
    parts += [struct.pack("<QII", int(size), int(flag), 0) for size, flag in zip(sizes, flags, strict=True)]
    parts += [struct.pack("<QII", count, process, 0) for process, count in threads]
    parts.append(calls.tobytes())
    with storing(directory):
        write_whole(directory / SCRIPT, b"".join(parts))
