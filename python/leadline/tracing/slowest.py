"""The process or rank that was in I/O for longest, and what the time was that no call on a file took.

A mean over ranks hides one that reads all the time while two thousand wait for it. Processes that moved their
bytes one after another wait for no other, as the copies of a program that a loop of a shell starts.

Only CPU time says that the rest was computed: a program also waits for pages of files that it mapped, for a
CPU, for other programs, or sleeps. What nobody recorded is not known, and is never computing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.tracing.tables import KINDS, ProcessRow, TraceTables, by_life, command_words

# Causes of waiting. `unseen` is calls on files that the tracer did not see, as the loader's before the tracer
# begins.
CAUSES: Mapping[str, str] = {
    "page": "pages of mapped files and libraries",
    "unseen": "file calls that the tracer does not see",
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


@dataclass(frozen=True)
class SlowestProcess:
    """Seconds in I/O by kind of one of `processes` that did the same side by side, and the mean of all.

    `threads` is how many it had, None where nobody counted them.
    """

    name: str
    processes: int
    seconds: Mapping[str, float]
    io_s: float
    mean_io_s: float
    threads: int | None = None


def slowest_process(tables: TraceTables) -> SlowestProcess | None:
    """Of the processes that do the work side by side; None where the source has no time by process."""
    given = tables.extra.get("slowest_ranks")
    if given:
        return _of_ranks(given)
    group = _busiest_group(tables.processes)
    if len(group) > 1:
        spans = _spans(tables)
        beside = _side_by_side({name: spans[name] for name in group if name in spans})
        group = {name: seconds for name, seconds in group.items() if name in beside or name not in spans}
    if not group:
        return None
    spent = {name: sum(seconds.values()) for name, seconds in group.items()}
    name = max(spent, key=lambda one: (spent[one], -one))
    row = next(row for row in tables.processes if row.process == name)
    mean_s = sum(spent.values()) / len(spent)
    words = f"process {row.pid} ({command_words(row.command) or row.executable})"
    threads = [one.threads for one in tables.processes if one.pid == row.pid and one.threads is not None]
    most = max(threads, default=None)
    return SlowestProcess(words, len(group), group[name], spent[name], mean_s, most)


def slowest_columns(found: SlowestProcess | None) -> dict[str, Any]:
    """What rules ask of it, as columns of the view `trial`."""
    kinds = {f"slowest_{kind}_s": None if found is None else found.seconds.get(kind, 0.0) for kind in KINDS}
    return {
        "busy_threads": None if found is None else found.threads,
        "busy_processes": 0 if found is None else found.processes,
        "slowest_process_io_s": None if found is None else found.io_s,
        "mean_process_io_s": None if found is None else found.mean_io_s,
        **kinds,
    }


def _of_ranks(given: Sequence[Mapping[str, Any]]) -> SlowestProcess:
    """Of what Darshan's logs say: the slowest of the most frequent program, beside the mean of its ranks."""
    programs: dict[str, list[Mapping[str, Any]]] = {}
    for one in given:
        programs.setdefault(one.get("executable", ""), []).append(one)

    def weight(logs: Sequence[Mapping[str, Any]]) -> tuple[int, float]:
        return sum(int(one["ranks"]) for one in logs), sum(float(one["io_s"]) for one in logs)

    logs = max(programs.values(), key=weight)
    first = max(logs, key=lambda one: sum(one["seconds"].values()))
    ranks, io_s = weight(logs)
    seconds = {str(kind): float(value) for kind, value in first["seconds"].items()}
    name = f"rank {first['rank']}" if int(first["ranks"]) > 1 or not first.get("executable") else ""
    name = name or f"process {first['executable']}"
    return SlowestProcess(name, ranks, seconds, sum(seconds.values()), io_s / max(1, ranks))


def _busiest_group(rows: Sequence[ProcessRow]) -> dict[int, dict[str, float]]:
    """Seconds by kind of the processes that do the work side by side, the most frequent executable's."""
    groups: dict[str, dict[int, dict[str, float]]] = {}
    for images in by_life(rows):
        found = [json.loads(row.seconds or "null") or {} for row in images]
        if any(one.get(kind) is None for one in found for kind in ("read", "write", "meta")):
            return {}  # one whose time is not known may be the slowest
        if not any(row.bytes_read + row.bytes_written > 0 for row in images):
            continue
        spent = {kind: sum(one.get(kind) or 0.0 for one in found) for kind in KINDS}
        groups.setdefault(images[-1].executable, {})[images[0].process] = spent
    return max(groups.values(), key=_weight, default={})


def _spans(tables: TraceTables) -> dict[int, tuple[float, float]]:
    """By process the seconds, from the trial's start, of its first and its last read or write of a file."""
    kinds = ("READ", "WRITE")
    columns = [f"F_{kind}_{edge}_TIMESTAMP" for edge in ("START", "END") for kind in kinds]
    how = [(name, "min" if "START" in name else "max") for name in columns]
    rows = tables.files.select(["process", *columns]).group_by("process", use_threads=False).aggregate(how)
    first = {row.process: images[0].process for images in by_life(tables.processes) for row in images}
    found: dict[int, tuple[float, float]] = {}
    for row in rows.to_pylist():
        starts = [row[f"{name}_min"] for name in columns[:2] if row[f"{name}_min"] is not None]
        ends = [row[f"{name}_max"] for name in columns[2:] if row[f"{name}_max"] is not None]
        if starts and ends:
            name = first.get(row["process"], row["process"])
            start, end = found.get(name, (min(starts), max(ends)))
            found[name] = min(start, *starts), max(end, *ends)
    return found


def _side_by_side(spans: Mapping[int, tuple[float, float]]) -> set[int]:
    """Those whose span lies in part within another's."""
    found: set[int] = set()
    latest: tuple[float, int] | None = None
    for name, (start, end) in sorted(spans.items(), key=lambda item: item[1]):
        if latest is not None and start < latest[0]:
            found |= {name, latest[1]}
        if latest is None or end > latest[0]:
            latest = end, name
    return found


def _weight(group: Mapping[int, Mapping[str, float]]) -> tuple[int, float]:
    return len(group), sum(sum(one.values()) for one in group.values())
