"""What `leadline watch` saw, as plain values between who collects and who judges. Rates are per second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leadline.tracing.tables import TraceTables

WATCH_FORMAT = "leadline.watch/1"


@dataclass(frozen=True)
class SeenProcess:
    """One process that had something open on the mount.

    `moved` is the growth of /proc/PID/io (`rchar`, `wchar` bytes; `syscr`, `syscw` calls) and counts all its
    calls, wherever they went; None where that may not be read. `advanced_bytes` is by how much the positions
    of its open files on the mount went forward, as far as looks once a second can tell.
    """

    pid: int
    name: str
    account: str
    open_files: int
    example: str
    uses: tuple[str, ...]
    moved: Mapping[str, int] | None
    advanced_bytes: int


@dataclass(frozen=True)
class Seen:
    """Everything that was seen of a mount for a while.

    `change` is what the observers' counters did (`observe.model.Delta` as plain values); `samples` are rows
    (t_ns, source, subject, metric, value, unit). `calls` are the calls of the processes, None where no tracer
    could look (`calls_reason`). `client` holds the client daemon's perf dumps at the beginning and the end.
    """

    path: str
    words: str
    access: str
    mount_point: str
    elapsed_s: float
    change: Mapping[str, Any]
    samples: tuple[tuple[int, str, str, str, float, str], ...]
    processes: tuple[SeenProcess, ...]
    unseen: int
    calls: TraceTables | None
    calls_reason: str
    client: tuple[Mapping[str, Any], Mapping[str, Any]] | None
    client_reason: str
