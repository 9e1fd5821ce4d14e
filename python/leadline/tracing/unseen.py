"""What went past a tracer: bytes that the kernel counts as a process's and that were not recorded.

The kernel counts every byte that a process's calls read and write (/proc/PID/io: rchar, wchar), of files and
of anything else, and so does the tracer. What is in the kernel's count only went past the tracer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline import units
from leadline.tracing.tables import ProcessRow

_NAMED = 3


@dataclass(frozen=True)
class Unseen:
    """Of one process: bytes in the kernel's count beyond what was recorded; below 0 for fewer."""

    process: int
    pid: int
    executable: str
    read: int
    written: int


def unseen(processes: Sequence[ProcessRow], thresholds: Mapping[str, float]) -> tuple[Unseen, ...]:
    """The processes whose counts differ by more than `thresholds` bear, the worst first.

    `thresholds` are `read_bytes` and `written_bytes`. A process of which the kernel was not asked, as it was
    killed, is not among them.
    """
    found = [
        Unseen(row.process, row.pid, row.executable, row.unseen_read or 0, row.unseen_written or 0)
        for row in processes
        if abs(row.unseen_read or 0) > thresholds["read_bytes"]
        or abs(row.unseen_written or 0) > thresholds["written_bytes"]
    ]
    return tuple(sorted(found, key=lambda item: (-abs(item.read) - abs(item.written), item.process)))


def unseen_words(found: Sequence[Unseen]) -> str:
    """How much, and whose."""
    said = [_one(item) for item in found[:_NAMED]]
    if len(found) > _NAMED:
        more = len(found) - _NAMED
        said.append(f"and {more:,} more {'process' if more == 1 else 'processes'}")
    return "; ".join(said)


def _one(item: Unseen) -> str:
    parts = [
        f"{units.format_size(abs(value))} {'more' if value > 0 else 'less'} {what}"
        for value, what in ((item.read, "read"), (item.written, "written"))
        if value
    ]
    return f"{item.executable} (pid {item.pid}): {' and '.join(parts)} than was recorded"
