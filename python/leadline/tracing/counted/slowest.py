"""The process or rank that was in I/O for longest: a job waits for it, whatever the mean of all is.

A mean over ranks hides one that reads all the time while two thousand wait for it. Processes that moved their
bytes one after another wait for no other, as the copies of a program that a loop of a shell starts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.tracing.counted.lives import by_life
from leadline.tracing.figures import KINDS
from leadline.tracing.tables import ProcessRow, TraceTables, command_words


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
