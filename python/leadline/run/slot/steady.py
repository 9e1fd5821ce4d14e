"""Ends a trial once its rate is steady, and makes the steady windows its measured interval.

The engine closes an interval a window; what is found while the trial runs is found again, by the same rule,
in its complete record, and only that counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from leadline import _core
from leadline.run.child import Answer
from leadline.study.kind.job import AnyJob
from leadline.study.steady import find_steady
from leadline.study.work import SteadyState

_LOOK_EVERY_S = 0.5
_LOOK_CPU_SHARE = 0.02  # of one CPU, whatever the length of the record


class SteadyWatch:
    """Reads a running trial's record now and then; `reached` is true from its first steady windows on."""

    def __init__(self, asked: SteadyState, job: AnyJob, record: Path) -> None:
        self._asked = asked
        self._record = record
        self._end_ns = job.ramp_time_ns + job.runtime_ns
        self._next_s = time.monotonic() + (job.ramp_time_ns + asked.shortest_ns) / 1e9
        self._reached = False

    def reached(self) -> bool:
        """Cheap between looks. A trial that is about to end is left to: a late signal would hit its end."""
        now_s = time.monotonic()
        if self._reached or now_s < self._next_s:
            return self._reached
        try:
            record = _core.read_record(str(self._record))
        except (OSError, ValueError, RuntimeError):
            record = {"intervals": []}  # not yet written, or a part of it: the next look will tell
        took_s = time.monotonic() - now_s
        self._next_s = now_s + max(_LOOK_EVERY_S, self._asked.window / 4e9, took_s / _LOOK_CPU_SHARE)
        windows = _whole_windows(record, self._asked)
        found = find_steady([rate for _, rate in windows], self._asked)
        left_ns = self._end_ns - (windows[-1][0] + self._asked.window if windows else 0)
        self._reached = found is not None and found.steady and left_ns > 2 * self._asked.window
        return self._reached

    def as_complete(self, answer: Answer, record: Callable[[], Mapping[str, Any]]) -> Answer:
        """The answer of a trial that was interrupted because it had become steady: it is complete."""
        if not self._reached:
            return answer
        if answer.outcome == "interrupted" and (summary := record()["summary"]):
            answer = replace(answer, outcome="done", value=dict(summary))
        if answer.outcome == "done" and answer.value["state"] == "interrupted":
            return replace(answer, value={**answer.value, "state": "complete"})
        return answer


def _whole_windows(record: Mapping[str, Any], asked: SteadyState) -> list[tuple[int, float]]:
    """(start in ns, operations per second) of each measured window that was not cut short, in order.

    A window without an operation has the rate 0, up to the one that the trial's end cut short. The last
    window of a running trial may still be growing, but the engine hands over whole ones only. A trial's last
    interval is longer than a window where its last operation ended late, or the collector came late. One as
    long as several hides their rates: they are nan, which is never steady.
    """
    rates: dict[int, float] = {}
    starts: dict[int, int] = {}
    end = 0
    for interval in record["intervals"]:
        if not interval["measured"] or interval["direction"] == "sync":
            continue
        length_ns, index = interval["end_ns"] - interval["start_ns"], interval["index"]
        covered = length_ns // asked.window
        end = max(end, index + covered)
        rate = interval["operations"] * 1e9 / length_ns if covered == 1 else math.nan
        for window in range(index, index + covered):
            rates[window] = rates.get(window, 0.0) + rate
            starts[window] = interval["start_ns"] + (window - index) * asked.window
    if not rates:
        return []
    first = min(rates)
    return [(starts[first] + (n - first) * asked.window, rates.get(n, 0.0)) for n in range(first, end)]


def measure_steady(
    record: Mapping[str, Any], summary: Mapping[str, Any], asked: SteadyState
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Record and summary whose measured interval is the steady windows, or the last ones where none are.

    Untouched where the trial was too short for them. The summary's `steady` says what was found.
    """
    windows = _whole_windows(record, asked)
    found = find_steady([rate for _, rate in windows], asked)
    if found is None:
        return dict(record), {**summary, "steady": {"steady": False, "range": None, "slope": None}}
    start_ns = windows[found.first][0]
    end_ns = start_ns + (found.end - found.first) * asked.window
    intervals = [
        {**i, "measured": bool(i["measured"] and i["start_ns"] < end_ns and i["end_ns"] > start_ns)}
        for i in record["intervals"]
    ]
    chosen = [i for i in intervals if i["measured"]]
    # What is counted and the time that it took are of the same intervals, also where the last one is longer.
    start_ns = min([start_ns, *(i["start_ns"] for i in chosen)])
    end_ns = max([end_ns, *(i["end_ns"] for i in chosen)])
    counted = {
        name: {key: sum(i.get(key, 0) for i in chosen if i["direction"] == name) for key in sums}
        for name, sums in summary["directions"].items()
    }
    changed = {
        **summary,
        "directions": counted,
        "ramp_ns": start_ns,
        "measured_ns": end_ns - start_ns,
        "steady": {"steady": found.steady, "range": _finite(found.range), "slope": _finite(found.slope)},
    }
    return {**record, "intervals": intervals}, changed


def _finite(share: float) -> float | None:
    return share if math.isfinite(share) else None
