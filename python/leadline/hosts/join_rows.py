"""The row of a trial on many hosts: a rule for each column of the table `trials` and key of its summary.

A key without a rule here is kept where it is the same on all hosts, and otherwise named as left out: what an
unknown figure of several hosts together is nobody knows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.counters.catalogue import trial_figures
from leadline.errors import ResultError
from leadline.hosts.join_times import JoinedTimes, Rates, counts_between, done_skew
from leadline.hosts.model import HostTrial
from leadline.run.rows import all_directions, as_data
from leadline.store.by_host import HOST_LOST
from leadline.store.tables import TrialRow, TrialState

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
        elif key in _SUMMARY_RULES:
            found[key] = _SUMMARY_RULES[key](having)
        elif len(having) == len(summaries) and all(value == values[0] for value in values):
            found[key] = values[0]
        else:
            left_out.append(key)
    return found, left_out


def _largest_of(values: Mapping[str, Any]) -> Any:
    return max(values.values())


def _added(values: Mapping[str, Any]) -> Any:
    """Trees of counts: numbers are added, lists go on, words stay where all say the same."""
    return _added_up(list(values.values()))


def _added_up(values: Sequence[Any], key: str = "") -> Any:
    first = values[0]
    if isinstance(first, Mapping):
        keys = dict.fromkeys(name for value in values for name in value)
        return {
            name: _added_up([value[name] for value in values if value.get(name) is not None] or [None], name)
            for name in keys
        }
    if isinstance(first, list):
        return [item for value in values for item in value]
    if isinstance(first, bool) or not isinstance(first, int | float):
        return first if all(value == first for value in values) else None
    return max(values) if key in _LARGEST else sum(values)


def _numbered_on(values: Mapping[str, Any]) -> list[dict[str, Any]]:
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


_SUMMARY_RULES: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    **dict.fromkeys(("directions", "total", "replay", "verification", "coherence"), _added),
    **dict.fromkeys(("cpu_user_ns", "cpu_system_ns", "unwritten_blocks_read", "verified_blocks"), _added),
    **dict.fromkeys(("wrong_blocks", "passes", "left_running", "acks_lost", "buffers_bytes"), _added),
    **dict.fromkeys(("process_read_bytes", "process_written_bytes", "memory_max_bytes"), _added),
    **dict.fromkeys(("start_skew_ns", "started_unix_ns"), _largest_of),
    **dict.fromkeys(("ramp_ns", "measured_ns", "first_done_ns", "last_done_ns"), _largest_of),
    **dict.fromkeys(("copies", "stages", "streams"), _numbered_on),
    "threads": lambda _: [],  # what each thread did is with its host
    "stuck_threads": lambda _: [],
    "state": lambda values: next(iter(values.values())),
    "error": lambda values: next(iter(values.values())),
    "pacer": _pacer,
    "steady": _steady,
    "notes": _unique,
}


_NAMED = 4  # of many hosts so many are named, and how many more there are
_WORST: tuple[TrialState, ...] = ("error", "hung", "interrupted")
_RATES = ("rate_iops", "rate_bytes_per_s")
_NO_TIME = "the hosts never measured at the same time"


@dataclass(frozen=True)
class Joining:
    """What a row is made from. `lost` has the hosts whose trial is not known, and why; they have no row."""

    hosts: Sequence[HostTrial]
    lost: Mapping[str, str]
    attempt: str
    times: JoinedTimes
    rates: Mapping[str, Rates]
    cut: bool

    @property
    def rows(self) -> list[TrialRow]:
        """The hosts' own."""
        return [one.row for one in self.hosts]


Rule = Callable[[Joining, str], Any]


def joined_row(joining: Joining) -> TrialRow:
    """Raises ResultError where the hosts did not do the same, naming what differs."""
    summary, left_out = _summary(joining)
    counted, total = (all_directions(as_data(summary[part])) for part in ("directions", "total"))
    values = {name: rule(joining, name) for name, rule in RULES.items()}
    values |= {figure.name: _OBSERVED[figure.hosts](joining, figure.name) for figure in trial_figures()}
    values |= {
        "read_bytes": counted["read"]["bytes"],
        "read_operations": counted["read"]["operations"],
        "write_bytes": counted["write"]["bytes"],
        "write_operations": counted["write"]["operations"],
        "sync_operations": counted["sync"]["operations"],
        "total_read_bytes": total["read"]["bytes"],
        "total_write_bytes": total["write"]["bytes"],
        "summary": json.dumps(summary),
        "reasons": json.dumps(_reasons(joining, values, left_out)),
    }
    return TrialRow(**values)


def words_by_host(said: Mapping[str, str]) -> str:
    """host -> what is said of it, in one line: alike words once, and not more hosts than one reads."""
    grouped: dict[str, list[str]] = {}
    for host, words in said.items():
        grouped.setdefault(words, []).append(host)
    parts = [f"on {_listed(hosts)}: {words}" for words, hosts in list(grouped.items())[:_NAMED]]
    more = sum(len(hosts) for hosts in list(grouped.values())[_NAMED:])
    return "; ".join(parts) + (f"; and other words of {more} more" if more else "")


def _listed(hosts: Sequence[str]) -> str:
    shown = ", ".join(hosts[:_NAMED])
    return f"{shown} and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else shown


def _summary(joining: Joining) -> tuple[dict[str, Any], list[str]]:
    own = {}
    for one in joining.hosts:
        found = json.loads(one.row.summary)
        if joining.cut:
            shift = joining.times.shifts[one.host]
            measured = (one.row.ramp_ns, one.row.ramp_ns + one.row.measured_ns)
            wanted = (joining.times.begin - shift, joining.times.end - shift)
            rates = joining.rates.get(one.host, {})
            found["directions"] = counts_between(found["directions"], measured, wanted, rates)
        own[one.host] = {"directions": {}, "total": {}, **found}
    summary, left_out = joined_summary(own)
    times = joining.times
    return {
        **summary,
        "state": _state(joining, "state"),
        "error": None,
        "started_unix_ns": times.started_unix_ns,
        "ramp_ns": times.begin,
        "measured_ns": times.end - times.begin,
        "first_done_ns": times.first_done,
        "last_done_ns": times.last_done,
        "start_skew_ns": _start_skew(joining, "start_skew_ns"),
    }, left_out


def _reasons(joining: Joining, values: Mapping[str, Any], left_out: Sequence[str]) -> dict[str, str]:
    """Why a column has no value, by host; and what else a reader must know of one."""
    found: dict[str, dict[str, str]] = {}
    for one in joining.hosts:
        for column, why in json.loads(one.row.reasons).items():
            found.setdefault(column, {})[one.host] = str(why)
    reasons = {
        column: next(iter(said.values())) if _all_alike(said, joining) else words_by_host(said)
        for column, said in found.items()
    }
    for figure in trial_figures():
        if values[figure.name] is None and figure.name not in reasons:
            reasons[figure.name] = "no host says why"
    if left_out:
        reasons["summary"] = f"different on each host, see by_host/trials: {', '.join(left_out)}"
    if len({row.seed for row in joining.rows}) > 1:
        reasons["seed"] = "each host has its own, see by_host/trials"
    return reasons


def _all_alike(said: Mapping[str, str], joining: Joining) -> bool:
    return len(said) == len(joining.hosts) and len(set(said.values())) == 1


# -- rules ---------------------------------------------------------------------------------------------


def _same(joining: Joining, column: str) -> Any:
    values = {one.host: getattr(one.row, column) for one in joining.hosts}
    if len(set(values.values())) > 1:
        raise _differs(joining, column, {host: str(value) for host, value in values.items()})
    return next(iter(values.values()))


def _differs(joining: Joining, column: str, values: Mapping[str, str]) -> ResultError:
    return ResultError(
        f"the hosts did not do the same in {joining.rows[0].trial}: {column} is {words_by_host(values)}",
        "this is a mistake of leadline's, please report it; run the study anew",
    )


def _first(joining: Joining, column: str) -> Any:
    return getattr(joining.rows[0], column)


def _job(joining: Joining, column: str) -> str:
    """The same everywhere but for rates: each host was asked for its share of them."""
    jobs = {one.host: json.loads(one.row.job) for one in joining.hosts}
    rates: dict[str, Any] = {}
    first = next(iter(jobs.values()))
    for name in _RATES:
        asked = [job.get(name) for job in jobs.values()]
        if name in first:
            rates[name] = None if None in asked else sum(asked)
    alike = {host: json.dumps({**job, **rates}, sort_keys=True) for host, job in jobs.items()}
    if len(set(alike.values())) > 1:
        raise _differs(joining, column, alike)
    return json.dumps({**first, **rates})


def _state(joining: Joining, column: str) -> TrialState:
    """Complete only where it is on all of them; of what went wrong the worst."""
    del column
    found = {row.state for row in joining.rows}
    if joining.lost or _without_time(joining):
        return "error"
    return next((state for state in _WORST if state in found), "complete")


def _error(joining: Joining, column: str) -> str | None:
    """Which hosts failed, and by what; the hosts that were lost end it with their mark."""
    del column
    failed = {
        one.host: one.row.error or one.row.state for one in joining.hosts if one.row.state != "complete"
    }
    parts = [words_by_host(failed)] if failed else []
    if joining.lost:
        parts.append(f"{words_by_host(joining.lost)} {HOST_LOST}")
    elif not failed and _without_time(joining):
        parts.append(_NO_TIME)
    return "; ".join(parts) or None


def _without_time(joining: Joining) -> bool:
    complete = all(row.state == "complete" for row in joining.rows)
    return joining.cut and complete and joining.times.end <= joining.times.begin


def _start_skew(joining: Joining, column: str) -> int:
    """From the first host's start to the last one's; the jobs of a host are as far apart as it says."""
    own = [getattr(row, column) for row in joining.rows]
    return max(joining.times.start_skew, *(value or 0 for value in own))


def _largest(joining: Joining, column: str) -> Any:
    """Of those that are known: it is there to find the worst."""
    known = [value for row in joining.rows if (value := getattr(row, column)) is not None]
    return max(known, default=None)


def _steepest(joining: Joining, column: str) -> Any:
    known = [value for row in joining.rows if (value := getattr(row, column)) is not None]
    return max(known, key=abs, default=None)


def _sum(joining: Joining, column: str) -> Any:
    return _sum_of(getattr(row, column) for row in joining.rows)


def _sum_of(values: Iterable[Any]) -> Any:
    """None where one is: a sum of which a part is missing is none."""
    found = list(values)
    return None if None in found else sum(found)


def _machines(joining: Joining, column: str) -> Any:
    """Hosts on one machine see the same: of each machine the most that one of them saw."""
    found: dict[str, list[Any]] = {}
    for one in joining.hosts:
        found.setdefault(one.machine or f"\0{one.host}", []).append(getattr(one.row, column))
    return _sum_of(max((v for v in values if v is not None), default=None) for values in found.values())


def _late_mean(joining: Joining, column: str) -> float | None:
    """Weighed by operations, as it is the mean over them."""
    found = [
        (getattr(row, column), row.read_operations + row.write_operations + row.sync_operations)
        for row in joining.rows
    ]
    weighed = [(late, count) for late, count in found if late is not None and count]
    count = sum(count for _, count in weighed)
    return sum(late * count for late, count in weighed) / count if count else None


def _any(joining: Joining, column: str) -> bool | None:
    known = [value for row in joining.rows if (value := getattr(row, column)) is not None]
    return any(known) if known else None


def _all(joining: Joining, column: str) -> bool | None:
    known = [value for row in joining.rows if (value := getattr(row, column)) is not None]
    return all(known) if known else None


def _state_of_cluster(joining: Joining, column: str) -> str:
    """All of them see one: as the first that looked saw it, at the end as the last."""
    looked: list[str] = [text for row in joining.rows if json.loads(text := getattr(row, column)) is not None]
    if not looked:
        return str(_first(joining, column))
    return looked[0] if column == "start_state" else looked[-1]


def _sources(joining: Joining, column: str) -> str:
    found: dict[str, dict[str, str]] = {}
    for one in joining.hosts:
        for name, words in json.loads(getattr(one.row, column)).items():
            found.setdefault(name, {})[one.host] = str(words)
    return json.dumps(
        {
            name: next(iter(said.values())) if _all_alike(said, joining) else words_by_host(said)
            for name, said in found.items()
        }
    )


def _faults(joining: Joining, column: str) -> str | None:
    """What any of them saw in force: each once."""
    found = [json.loads(text) for row in joining.rows if (text := getattr(row, column)) is not None]
    if not found:
        return None
    unique = {json.dumps(fault, sort_keys=True): fault for faults in found for fault in faults}
    return json.dumps(list(unique.values()))


def _changed_mounts(joining: Joining, column: str) -> str | None:
    """Those of the first host whose mount changed during the trial: hosts need not mount alike."""
    found = [text for row in joining.rows if (text := getattr(row, column)) is not None]
    seen = ((text, json.loads(text)) for text in found)
    return next((text for text, mounts in seen if mounts["before"] != mounts["after"]), None)


def _summed_up(joining: Joining, column: str) -> None:
    """Made from the summary, or set beside the rules."""
    del joining, column


RULES: dict[str, Rule] = {
    **dict.fromkeys(("trial", "cell", "target", "work", "block", "order", "factors", "group"), _same),
    "states": _same,  # no host knows of settings: who enters them adds it to the joined row
    **dict.fromkeys(("read_bytes", "read_operations", "write_bytes", "write_operations"), _summed_up),
    **dict.fromkeys(("sync_operations", "total_read_bytes", "total_write_bytes"), _summed_up),
    **dict.fromkeys(("summary", "reasons"), _summed_up),
    **dict.fromkeys(("cpu_user_ns", "cpu_system_ns", "unwritten_blocks", "verified_blocks"), _sum),
    **dict.fromkeys(("group_read_bytes", "group_written_bytes"), _sum),
    **dict.fromkeys(("busy_share_max", "late_ns_max", "steady_range", "stopped_ns"), _largest),
    "mounts": _changed_mounts,
    **dict.fromkeys(("start_state", "end_state"), _state_of_cluster),
    **dict.fromkeys(("caches_dropped", "steady"), _all),
    "seed": _first,
    "state": _state,
    "error": _error,
    "started_unix_ns": lambda joining, _: joining.times.started_unix_ns,
    "ramp_ns": lambda joining, _: joining.times.begin,
    "measured_ns": lambda joining, _: joining.times.end - joining.times.begin,
    "first_done_ns": lambda joining, _: joining.times.first_done,
    "last_done_ns": lambda joining, _: joining.times.last_done,
    "late_ns_mean": _late_mean,
    "job": _job,
    "threads": lambda _joining, _column: "[]",  # what each did is with its host
    "sources": _sources,
    "start_skew_ns": _start_skew,
    "steady_slope": _steepest,
    "faults": _faults,
    "under_fault": _any,
    "hosts": lambda joining, _: len(joining.hosts) + len(joining.lost),
    "done_skew_ns": lambda joining, _: done_skew(joining.hosts, joining.times),
    "clock_error_ns": lambda joining, _: max(one.clock.error_ns for one in joining.hosts),
    "attempt": lambda joining, _: joining.attempt,
}
_OBSERVED: dict[str, Rule] = {"sum": _sum, "machines": _machines, "largest": _largest, "once": _largest}
