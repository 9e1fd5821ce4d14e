"""Runs a command under the tracer in the kernel, and sums what its tables say."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from leadline.tracing.sources.bpf import Session
from leadline.tracing.tables import TraceTables

MEMORY_BYTES = 64 << 20
# A shell that waits for a line before it becomes the command, as the launcher's child waits at its gate.
_WAIT = ("/bin/sh", "-c", 'read line; exec "$@"', "waiting")


def trace(
    command: Sequence[str],
    *,
    segments_bytes: int | None = None,
    memory_bytes: int = MEMORY_BYTES,
    copies: int = 1,
    **options: Any,
) -> TraceTables:
    """The tables of a command in so many copies; its streams are /dev/null unless `options` say else."""
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
    with Session(segments_bytes=segments_bytes, memory_bytes=memory_bytes) as session:
        started_unix_ns = time.time_ns()
        waiting = []
        for copy in range(copies):
            process = subprocess.Popen([*_WAIT, *command], stdin=subprocess.PIPE, **options)
            wait_at_gate(process.pid)
            session.follow(process.pid, copy=copy)
            waiting.append(process)
        for process in waiting:
            process.communicate(b"\n", timeout=120)
        return session.finish(started_unix_ns=started_unix_ns)


def wait_at_gate(pid: int) -> None:
    """Until the shell has begun and sleeps in its read: before, its own exec would be the first seen."""
    deadline = time.monotonic() + 30
    while True:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if words[0] == _WAIT[0].encode() and state == "S":
            return
        assert time.monotonic() < deadline, "the shell did not begin"
        time.sleep(0.002)


def calls(tables: TraceTables) -> Counter[str]:
    """Calls by name, all processes together."""
    found: Counter[str] = Counter()
    for row in tables.processes:
        found.update(json.loads(row.calls))
    return found


def rows_of(tables: TraceTables, path: Path) -> list[dict[str, Any]]:
    """The rows of one file."""
    return [row for row in tables.files.to_pylist() if row["path"] == str(path)]


def programs_held(pid: int) -> set[int]:
    """Numbers of the programs in the kernel that a process holds."""
    held = set()
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        text = ""
        with suppress(FileNotFoundError):  # the descriptor that lists them is one of them
            text = entry.read_text()
        for line in text.splitlines():
            if line.startswith("prog_id:"):
                held.add(int(line.split()[1]))
    return held


def own_programs() -> set[int]:
    """Those of this process."""
    return programs_held(os.getpid())
