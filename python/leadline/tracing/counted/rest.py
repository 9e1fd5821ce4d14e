"""What the time of a program was that no call on a file took: computing, or waiting, and for what.

A tracer times calls on files. Only CPU time says that the rest was computed: a program also waits for pages
of files that it mapped, for a CPU, for other programs, or sleeps. What nobody recorded is not known, and is
never computing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.tracing.counted.lives import by_life
from leadline.tracing.tables import ProcessRow, TraceTables

# Causes of waiting. `unseen` is calls on files that the tracer did not see, as the loader's before the tracer
# begins.
CAUSES: Mapping[str, str] = {
    "page": "pages of mapped files and libraries",
    "unseen": "file calls before or beside the tracer",
    "asleep": "its own sleep",
    "lock": "locks",
    "peer": "other programs (pipes, sockets, children)",
    "queue": "a CPU",
    "other": "other calls",
    "unknown": "causes that are not known",
}
_LOOKS_MIN = 4  # of fewer, none says much
_SAME_NS = 50_000_000  # an end that is seen so much later than another is of the same moment
_ERRORS = 2.0  # standard errors: what looks may count of file calls beyond what they took


@dataclass(frozen=True)
class Rest:
    """Seconds of one copy, or of all: on a CPU at most, and waiting by cause."""

    compute_s: float
    waits: Mapping[str, float]


def rest_of(tables: TraceTables, copy: int, rest_s: float | None, io_s: float) -> Rest | None:
    """What the rest of a copy was; None where no CPU time is known of it."""
    account: Mapping[str, Any] = next(
        (one for one in tables.extra.get("copies", ()) if int(one["copy"]) == copy), {}
    )
    cpu_s = _cpu_s([row for row in tables.processes if row.copy == copy], account)
    if rest_s is None or cpu_s is None:
        return None
    compute_s = min(rest_s, cpu_s)
    return Rest(compute_s, _by_cause(rest_s - compute_s, account.get("waits") or {}, io_s, cpu_s))


def rests_together(parts: Sequence[Rest]) -> Rest:
    """All copies as one."""
    waits: dict[str, float] = {}
    for part in parts:
        for cause, seconds in part.waits.items():
            waits[cause] = waits.get(cause, 0.0) + seconds
    return Rest(sum(part.compute_s for part in parts), _in_order(waits))


def _cpu_s(rows: Sequence[ProcessRow], account: Mapping[str, Any]) -> float | None:
    """CPU time of all processes, as each one's is known, else as the command and what it waited for had it.

    Processes that nobody waited for are in no such sum: of these only what was seen while they ran is known.
    """
    own = [_sum(row.cpu_user_ns, row.cpu_system_ns) for row in rows]
    if own and None not in own:
        return sum(value or 0.0 for value in own)
    waited = _sum(account.get("cpu_user_ns"), account.get("cpu_system_ns"))
    seen = (account.get("waits") or {}).get("cpu_s")
    if _left_alone(rows):
        return None if seen is None else max(seen, waited or 0.0)
    return waited


def _sum(user_ns: int | None, system_ns: int | None) -> float | None:
    return None if user_ns is None or system_ns is None else (user_ns + system_ns) / 1e9


def _left_alone(rows: Sequence[ProcessRow]) -> bool:
    """Whether a process outlived the one that started it, which so did not wait for it."""
    lives = by_life(rows)
    ends = {row.process: images[-1].ended_ns for images in lives for row in images}
    for images in lives:
        parent, ended = images[0].parent, images[-1].ended_ns
        if parent is None or parent not in ends:
            continue
        parent_ended = ends[parent]
        if ended is None or (parent_ended is not None and ended > parent_ended + _SAME_NS):
            return True
    return False


def _by_cause(wait_s: float, waits: Mapping[str, Any], io_s: float, cpu_s: float) -> dict[str, float]:
    """The seconds of waiting by cause, as looks at the processes tell; the others are `unknown`."""
    if wait_s <= 0:
        return {}
    looks = int(waits.get("looks", 0))
    seen = {str(kind): float(seconds) for kind, seconds in dict(waits.get("seconds") or {}).items()}
    if looks < _LOOKS_MIN:
        return {"unknown": wait_s}
    # The kernel adds up what threads waited for a CPU once they have one; those that still wait can run, too.
    ready_s = seen.pop("running", 0.0) - cpu_s
    queued_s = max(ready_s, float(waits.get("queued_s", 0.0)))
    # Calls that the tracer timed are I/O already. A look counts for a whole step, and may hit one call too
    # often.
    step_s = float(waits.get("watched_s", 0.0)) / looks
    error_s = _ERRORS * (seen.get("file", 0.0) * step_s) ** 0.5
    seen["unseen"] = max(0.0, seen.pop("file", 0.0) - io_s - error_s)
    seen["queue"] = queued_s
    # Threads of one process wait side by side, so together they may have waited for longer than it.
    told_s = sum(seen.values())
    part = min(1.0, wait_s / told_s) if told_s > 0 else 0.0
    found = {cause: seconds * part for cause, seconds in seen.items()}
    return _in_order({**found, "unknown": max(0.0, wait_s - told_s)})


def _in_order(waits: Mapping[str, float]) -> dict[str, float]:
    return {cause: waits[cause] for cause in CAUSES if waits.get(cause, 0.0) > 0}
