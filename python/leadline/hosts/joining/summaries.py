"""The summary of a trial on many hosts, of what each host's engine or program said at its end.

A key without a rule here is kept where it is the same on all hosts, and otherwise named as left out: what an
unknown figure of several hosts together is nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Phases of hosts are as long as the longest, as mdtest counts them: the slowest process ends a phase.
_LARGEST = frozenset({"elapsed_ns"})
_NUMBERED = ("copy", "client", "stream")  # what a host counts by itself


def joined_summary(summaries: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """The summary by host -> its own, in order of hosts; and the keys that were left out.

    Times are as each host has them: whoever calls this puts the trial's in their place.
    """
    found: dict[str, Any] = {}
    left_out = []
    for key in dict.fromkeys(name for one in summaries.values() for name in one):
        having = {host: one[key] for host, one in summaries.items() if one.get(key) is not None}
        values = list(having.values())
        if not values:
            found[key] = None
        elif key in _RULES:
            found[key] = _RULES[key](having)
        elif len(having) == len(summaries) and all(value == values[0] for value in values):
            found[key] = values[0]
        else:
            left_out.append(key)
    return found, left_out


def _total(values: Mapping[str, Any]) -> Any:
    return _sum_of(list(values.values()))


def _largest(values: Mapping[str, Any]) -> Any:
    return max(values.values())


def _added(values: Mapping[str, Any]) -> Any:
    """Trees of counts: numbers are added, lists go on, words stay where all say the same."""
    return _sum_of(list(values.values()))


def _sum_of(values: Sequence[Any], key: str = "") -> Any:
    first = values[0]
    if isinstance(first, Mapping):
        keys = dict.fromkeys(name for value in values for name in value)
        return {
            name: _sum_of([value[name] for value in values if value.get(name) is not None] or [None], name)
            for name in keys
        }
    if isinstance(first, list):
        return [item for value in values for item in value]
    if isinstance(first, bool) or not isinstance(first, int | float):
        return first if all(value == first for value in values) else None
    return max(values) if key in _LARGEST else sum(values)


def _listed(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Copies, clients and streams of all hosts: each with its host, numbered on from host to host.

    Every host has as many numbers as the one with the most, so that one which lacks some shifts no other.
    """
    strides = {name: _stride(values, name) for name in _NUMBERED}
    return [
        {
            **row,
            **{
                name: place * strides[name] + row[name]
                for name in _NUMBERED
                if isinstance(row.get(name), int)
            },
            "host": host,
        }
        for place, (host, rows) in enumerate(values.items())
        for row in rows
    ]


def _stride(values: Mapping[str, Any], name: str) -> int:
    numbers = [row[name] for rows in values.values() for row in rows if isinstance(row.get(name), int)]
    return max(numbers) - min(numbers) + 1 if numbers else 0


def _pacer(values: Mapping[str, Any]) -> dict[str, Any]:
    """The largest lateness of any; means are means over hosts, which had the same rate each."""
    parts = list(values.values())
    found = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        numbers = [part[name] for part in parts if part.get(name) is not None]
        if numbers:
            found[name] = max(numbers) if name.endswith("_max") else sum(numbers) / len(numbers)
    return found


def _steady(values: Mapping[str, Any]) -> dict[str, Any]:
    """Steady where every host was; how far off as on the worst of them."""
    parts = list(values.values())
    ranges = [part["range"] for part in parts if part.get("range") is not None]
    slopes = [part["slope"] for part in parts if part.get("slope") is not None]
    return {
        "steady": all(part.get("steady") for part in parts),
        "range": max(ranges, default=None),
        "slope": max(slopes, key=abs, default=None),
    }


def _unique(values: Mapping[str, Any]) -> list[Any]:
    return list(dict.fromkeys(item for value in values.values() for item in value))


_RULES: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    **dict.fromkeys(("directions", "total", "replay", "verification", "coherence"), _added),
    **dict.fromkeys(("cpu_user_ns", "cpu_system_ns", "unwritten_blocks_read", "verified_blocks"), _total),
    **dict.fromkeys(("wrong_blocks", "passes", "left_running", "acks_lost", "buffers_bytes"), _total),
    **dict.fromkeys(("process_read_bytes", "process_written_bytes", "memory_max_bytes"), _total),
    **dict.fromkeys(("start_skew_ns", "started_unix_ns"), _largest),
    **dict.fromkeys(("ramp_ns", "measured_ns", "first_done_ns", "last_done_ns"), _largest),
    **dict.fromkeys(("copies", "stages", "streams"), _listed),
    "threads": lambda _: [],  # what each thread did is with its host
    "stuck_threads": lambda _: [],
    "state": lambda values: next(iter(values.values())),
    "error": lambda values: next(iter(values.values())),
    "pacer": _pacer,
    "steady": _steady,
    "notes": _unique,
}
