"""What calls take on another mount: typed, or from what was recorded there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leadline import units
from leadline.analysis.sensitivity import estimated
from leadline.analysis.statistics.means import Estimate
from leadline.causal.model import CLASSES, CausalProfile
from leadline.errors import UsageError

if TYPE_CHECKING:
    from leadline.tracing.tables import TraceTables

# The kinds of time of a trace, and the classes that each stands for.
_KINDS: Mapping[str, tuple[str, ...]] = {
    "meta": ("metadata",),
    "read": ("small-read", "large-read"),
    "write": ("write",),
    "sync": ("sync",),
}
_GROUPS: Mapping[str, tuple[str, ...]] = {"read": ("small-read", "large-read")}


@dataclass(frozen=True)
class LatencyThere:
    """Seconds that a call takes there, with bounds where blocks tell them; `typed`, or recorded."""

    call_s: Estimate
    typed: bool = False


def class_names(text: str) -> tuple[str, ...]:
    """The classes of `metadata,read`; `read` is both kinds of reads. Raises UsageError."""
    found: dict[str, None] = {}
    for word in text.split(","):
        names = _GROUPS.get(word.strip(), (word.strip(),))
        if names[0] not in CLASSES:
            raise UsageError(
                f"no class of calls is called {word.strip()!a}", f"use some of: {', '.join(CLASSES)}; or read"
            )
        found.update(dict.fromkeys(names))
    return tuple(name for name in CLASSES if name in found)


def typed_latencies(text: str) -> dict[str, LatencyThere]:
    """Seconds a call of `metadata=3ms,read=1ms`, by class. Raises UsageError."""
    found: dict[str, LatencyThere] = {}
    for part in text.split(","):
        name, sign, value = part.partition("=")
        if not sign:
            raise UsageError(
                f"{part!a} is no latency of a class", "write CLASS=TIME, for example metadata=3ms"
            )
        for one in class_names(name):
            if one in found:
                raise UsageError(f"{one} has two latencies", "name each class once")
            found[one] = LatencyThere(_one_value(units.parse_duration(value) / 1e9), typed=True)
    return found


def recorded_latencies(path: Path) -> tuple[dict[str, LatencyThere], str]:
    """The same of a profile, or of a trace, that was made there; and what the reader must know of them."""
    if path.is_dir():
        return _of_trace(path)
    from leadline.causal.document import read_profile

    return _of_profile(read_profile(path)), ""


def _of_profile(there: CausalProfile) -> dict[str, LatencyThere]:
    """Of the runs there that were not delayed; how they scatter from block to block is known."""
    found = {}
    for name in CLASSES:
        by_block = [one.own_s / one.calls for one in there.plain_sums(name) if one.calls]
        latency_s = there.latency_s(name)
        if by_block:
            found[name] = LatencyThere(estimated(by_block))
        elif latency_s is not None:
            found[name] = LatencyThere(_one_value(latency_s))
    return found


def _of_trace(path: Path) -> tuple[dict[str, LatencyThere], str]:
    from leadline.store.reader import open_result
    from leadline.tracing.store import read_trace_without_segments

    tables = read_trace_without_segments(open_result(path))
    own = _of_own_files(tables)
    if own:
        return own, (
            "the latencies there are means of one trace over the user's files, with one for all reads; how"
            " they scatter is not known. A profile made there (--like FILE) tells more"
        )
    seconds: dict[str, float] = {}
    for process in tables.processes:
        for kind, spent in (json.loads(process.seconds or "{}") or {}).items():
            seconds[kind] = seconds.get(kind, 0.0) + (spent or 0.0)
    counts: dict[str, int] = {}
    for row in tables.latency:
        counts[row.kind] = counts.get(row.kind, 0) + row.operations
    found = {
        name: LatencyThere(_one_value(seconds.get(kind, 0.0) / counts[kind]))
        for kind, names in _KINDS.items()
        for name in names
        if counts.get(kind)
    }
    if not found:
        raise UsageError(
            f"the trace {path} has no calls with times", "name a trace of a program that reads or writes"
        )
    return found, (
        "the latencies there are means of one trace over all its files, libraries included, with one for"
        " all reads; how they scatter is not known. A profile made there (--like FILE) tells more"
    )


# More calls whose time is in a file's F_META_TIME.
_BESIDE_METADATA = ("SEEKS", "DUPS", "MMAPS", "advises", "failed")


def _of_own_files(tables: TraceTables) -> dict[str, LatencyThere]:
    """Means over the user's files: calls on libraries may be a thousand, and as fast on any mount.

    A file's time of writing holds its syncs, so files that were synced tell nothing of writes.
    """
    from leadline.tracing.figures import shares, speeds, wall_seconds
    from leadline.tracing.files import views
    from leadline.tracing.tables import METADATA_COUNTERS

    if not tables.processes:
        return {}
    wall_s = wall_seconds(tables)
    meta = " + ".join(f"coalesce({name}, 0)" for name in (*METADATA_COUNTERS, *_BESIDE_METADATA))
    query = (
        f"SELECT sum(F_META_TIME), sum({meta}), sum(F_READ_TIME), sum(READS),"  # noqa: S608 - our own names
        " sum(F_WRITE_TIME) FILTER (syncs = 0), sum(WRITES) FILTER (syncs = 0)"
        " FROM files WHERE belongs IN ('user', 'looked')"
    )
    with views(tables, shares(tables, wall_s), speeds(tables, wall_s)) as connection:
        found = connection.execute(query).fetchall()[0]
    by_kind = {kind: found[2 * place : 2 * place + 2] for place, kind in enumerate(("meta", "read", "write"))}
    return {
        name: LatencyThere(_one_value(float(seconds) / int(calls)))
        for kind, (seconds, calls) in by_kind.items()
        for name in _KINDS[kind]
        if seconds and calls
    }


def _one_value(seconds: float) -> Estimate:
    return Estimate(seconds, None, None, 1)
