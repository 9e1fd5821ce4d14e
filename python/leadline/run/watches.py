"""What is watched while a slot runs: a steady rate, disturbances, and the observers' samples."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from leadline import _core
from leadline.counters.catalogue import trial_figures
from leadline.observe.ceph.parse import IN_ERROR, SLOW, cluster_trouble
from leadline.observe.client import Observer
from leadline.observe.mounts.mountinfo import Mount, mount_of, read_mounts
from leadline.observe.mounts.mounts import shown_options
from leadline.observe.reading import ClusterState, Sample
from leadline.run.child import Answer
from leadline.run.group import Member
from leadline.store.tables import TrialRow
from leadline.study.kind.interface import AnyJob
from leadline.study.target import Target, TargetFacts
from leadline.study.work import SteadyState, find_steady


class DisturbanceWatch:
    """One for a run: `begin` and `end` stand around each trial, or each group of jobs at the same time."""

    def __init__(self, targets: Sequence[Target], facts: Mapping[str, TargetFacts]) -> None:
        self._places = {one.name: _place_of(one, facts.get(one.name)) for one in targets}
        self._since_ns = 0
        self._before: dict[str, Any] | None = None

    def begin(self, target: str) -> None:
        """Just before the trial starts."""
        self._before = _mount_at(self._places[target])
        self._since_ns = time.monotonic_ns()

    def end(self, target: str, members: Sequence[Member]) -> tuple[dict[str, Any], ...]:
        """Just after it: for each job the columns `stopped_ns` and `mounts`."""
        until_ns = time.monotonic_ns()
        after = _mount_at(self._places[target])
        seen = None if after is None or self._before is None else {"before": self._before, "after": after}
        mounts = None if seen is None else json.dumps(seen)
        return tuple(
            {"stopped_ns": member.worker.stopped_ns(self._since_ns, until_ns), "mounts": mounts}
            for member in members
        )


def marked(rows: Sequence[TrialRow], disturbed: Sequence[Mapping[str, Any]]) -> list[TrialRow]:
    """The rows with their columns."""
    return [replace(row, **found) for row, found in zip(rows, disturbed, strict=True)]


def _place_of(target: Target, facts: TargetFacts | None) -> str | None:
    """A path on the target's mount, without a call on it: links in the target's own path are not followed."""
    if not target.is_path or facts is None or facts.mount_point is None:
        return None
    path = os.path.normpath(target.url)
    mount = mount_of(path, read_mounts())
    return path if mount is not None and mount.mount_point == facts.mount_point else facts.mount_point


def _mount_at(place: str | None) -> dict[str, Any] | None:
    mount = None if place is None else mount_of(place, read_mounts())
    return None if mount is None else _stored(mount)


def _stored(mount: Mount) -> dict[str, Any]:
    return {
        "mount_id": mount.mount_id,
        "device": f"{mount.major}:{mount.minor}",
        "subtree": mount.root,
        "mount_point": mount.mount_point,
        "file_system": mount.file_system,
        "source": mount.source,
        "options": list(shown_options(mount)),
    }


_HEALTH_ERR = 2.0  # `health` of the cluster's series: 0 OK, 1 WARN, 2 ERR


def cluster_peaks(samples: Sequence[Sample]) -> dict[str, int | None]:
    """The most placement groups that were scrubbed, or not clean, at once; None where no sample says."""
    peaks: dict[str, int | None] = {}
    for figure in trial_figures():
        if figure.how == "largest_sample":
            values = [
                int(sample.value)
                for sample in samples
                if (sample.source, sample.subject, sample.metric) == figure.sample
            ]
            peaks[figure.name] = max(values, default=None)
    return peaks


class Watch:
    """A run must not add load to a cluster in trouble: HEALTH_ERR, or operations that became slow."""

    def __init__(self, observer: Observer, *, ignore_health: bool) -> None:
        self._observer = observer
        self._ignore = ignore_health
        self._kept: list[Sample] = []
        self.trouble: str | None = None

    def begin(self) -> None:
        """A trial begins: samples from before it are of no interest."""
        self._observer.drain()
        self._kept = []

    def in_trouble(self) -> bool:
        """Take in what was sampled since the last call; True once the cluster was seen in trouble."""
        fresh = self._observer.drain()
        self._kept += fresh
        for sample in fresh:
            if (sample.source, sample.subject) == ("ceph", "cluster"):
                if sample.metric == "health" and sample.value >= _HEALTH_ERR:
                    self._judge(IN_ERROR)
                if sample.metric == "slow_ops" and sample.value > 0:
                    self._judge(SLOW)
        return self.trouble is not None

    def check(self, state: ClusterState | None) -> None:
        """Judge the state at a mark. It names the checks, so that its words replace those of a sample."""
        if state is not None and (found := cluster_trouble(state.health, state.checks)):
            self._judge(found)

    def samples(self) -> list[Sample]:
        """Everything sampled since `begin`."""
        self.in_trouble()
        return self._kept

    def _judge(self, found: str) -> None:
        """Keep the first trouble, or the same one in more words."""
        if not self._ignore and (self.trouble is None or found.startswith(self.trouble)):
            self.trouble = found


_LOOK_EVERY_S = 0.5
_LOOK_CPU_SHARE = 0.02  # of one CPU, whatever the length of the record


class SteadyWatch:
    """Reads a running trial's record now and then; `reached` is true from its first steady windows on."""

    def __init__(
        self, asked: SteadyState, job: AnyJob, record: Path, bring: Callable[[Path], None] = lambda _: None
    ) -> None:
        """`bring` has the record here as it is now, where the worker is on another machine."""
        self._asked, self._bring = asked, bring
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
            self._bring(self._record)
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
