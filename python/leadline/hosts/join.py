"""A trial on many hosts as one: what every host stored of it, joined to what one host would have stored.

Hosts are taken in one after the other, in batches, so that their tables need not be in memory together
(`StoredRows`). Histograms are merged exactly; of samples what the engines moved is summed. Samples of a host
itself stay with the host (`by_host/series`): of a hundred CPUs there is no sum to look at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc

from leadline import _core
from leadline.errors import ResultError
from leadline.hosts.join_rows import Joining, joined_row
from leadline.hosts.join_times import Rates, is_cut, joined_times
from leadline.hosts.model import HostTrial
from leadline.in_memory import arrow_column
from leadline.run.rows import WHOLE, latency_row
from leadline.store.by_host import batches_of, keeping_by_host
from leadline.store.tables import LatencyRow, SeriesRow
from leadline.store.writer import StoredTrial

_ENGINE, _SHARED = "engine", ("ceph", "wire")  # sources; what one host looks at for all of them
_HOW: Mapping[str, Callable[[float, float], float]] = {"late_max": max}  # everything else is summed

HostRates = dict[tuple[str, str], tuple[list[int], list[float]]]


class SeriesJoin:
    """Takes in the samples of one host after the other."""

    def __init__(self, trial: str) -> None:
        self._trial = trial
        # (direction, metric, unit, interval) -> its value, and its end on the trial's clock
        self._engine: dict[tuple[str, str, str, int], tuple[float, int]] = {}
        self._cluster: list[SeriesRow] = []

    def add(self, series: Iterable[pa.RecordBatch], shift_ns: int, interval_ns: int) -> HostRates:
        """What the engine of this host moved: (direction, metric) -> ends and rates, times as the host's.

        `series` is the table of that name of a host.
        """
        rates: HostRates = {}
        wanted = [_ENGINE] if self._cluster else [_ENGINE, *_SHARED]
        cluster: list[SeriesRow] = []
        for batch in series:
            chosen = batch.filter(
                pc.is_in(batch.column("source"), value_set=arrow_column(wanted, pa.string()))
            )
            for row in _rows(chosen):
                if row.source in _SHARED:
                    cluster.append(SeriesRow(self._trial, row.t_ns + shift_ns, *list(vars(row).values())[2:]))
                elif row.value is not None:
                    ends, values = rates.setdefault((row.subject, row.metric), ([], []))
                    ends.append(row.t_ns)
                    values.append(row.value)
                    self._count(row, shift_ns, interval_ns)
        self._cluster = self._cluster or cluster
        return rates

    def _count(self, row: SeriesRow, shift_ns: int, interval_ns: int) -> None:
        """Into the interval of the trial that is nearest."""
        end_ns, value = row.t_ns + shift_ns, float(row.value or 0.0)
        place = round(shift_ns / interval_ns) * interval_ns + row.t_ns if interval_ns else row.t_ns
        key = (row.subject, row.metric, row.unit, place)
        before = self._engine.get(key)
        if before is not None:
            value = _HOW.get(row.metric, float.__add__)(before[0], value)
            end_ns = max(before[1], end_ns)
        self._engine[key] = (value, end_ns)

    def rows(self) -> Iterator[SeriesRow]:
        """Engine first, each series in order of time."""
        for key in sorted(self._engine):
            direction, metric, unit, _ = key
            value, end_ns = self._engine[key]
            yield SeriesRow(self._trial, end_ns, _ENGINE, direction, metric, value, unit)
        yield from self._cluster


def _rows(batch: pa.RecordBatch) -> Iterator[SeriesRow]:
    columns = [batch.column(name).to_pylist() for name in SeriesRow.__dataclass_fields__]
    return map(SeriesRow, *columns)


_BATCH = 64  # blobs that wait before they are merged: a few KiB each
_COLUMNS = ("direction", "clock", "interval", "start_ns", "end_ns", "measured", "histogram")

_Key = tuple[str, str, int]


@dataclass
class _Merged:
    """One interval, direction and clock of the trial, as far as hosts were taken in."""

    start_ns: int
    end_ns: int
    measured: bool
    blobs: list[bytes] = field(default_factory=list)

    def add(self, start_ns: int, end_ns: int, blob: bytes, *, measured: bool) -> None:
        self.start_ns, self.end_ns = min(self.start_ns, start_ns), max(self.end_ns, end_ns)
        self.measured |= measured
        self.blobs.append(blob)
        if len(self.blobs) >= _BATCH:
            self.blobs = [_core.histogram_merge(self.blobs)]

    def whole(self) -> bytes:
        return self.blobs[0] if len(self.blobs) == 1 else _core.histogram_merge(self.blobs)


class LatencyJoin:
    """Takes in the latency of one host after the other.

    An interval of a host counts to the trial's that it lies nearest to: what began late by two intervals
    counts two intervals later. What any host measured counts in the whole, also past the end of the first.
    """

    def __init__(self, trial: str) -> None:
        self._trial = trial
        self._merged: dict[_Key, _Merged] = {}

    def add(self, latency: Iterable[pa.RecordBatch], shift_ns: int, interval_ns: int) -> None:
        """The table `latency` of a host; intervals are `interval_ns` long, 0 where there is none."""
        later = round(shift_ns / interval_ns) if interval_ns else 0
        for batch in latency:
            columns = [batch.column(name).to_pylist() for name in _COLUMNS]
            for direction, clock, interval, start, end, measured, blob in zip(*columns, strict=True):
                place = interval if interval == WHOLE else interval + later
                start_ns, end_ns = start + shift_ns, end + shift_ns
                merged = self._merged.setdefault(
                    (direction, clock, place), _Merged(start_ns, end_ns, measured)
                )
                merged.add(start_ns, end_ns, blob, measured=measured)

    def rows(self) -> Iterator[LatencyRow]:
        """Of the whole trial, intervals in order, the whole measured time after them."""
        keys = sorted(self._merged, key=lambda key: (key[2] == WHOLE, key[2], key[0], key[1]))
        for key in keys:
            direction, clock, interval = key
            found = self._merged.pop(key)
            bounds = (found.start_ns, found.end_ns)
            yield latency_row(self._trial, direction, clock, interval, bounds, found.measured, found.whole())


def joined(hosts: Sequence[HostTrial], attempt: str, lost: Mapping[str, str] | None = None) -> StoredTrial:
    """One trial of several hosts, in order of their names; the rule for each column: `join_rows.py`.

    `lost` has the hosts whose trial is not known, with what became of them: the trial is an error then.
    Measured is the time that all hosts have in common, and its rate is what they moved in it together; work
    that has no rate of its own at each moment (metadata, programs, replays) counts from the first start to
    the last end. Raises ResultError where a host did something else than the others.
    """
    return _joined(hosts, attempt, lost or {}, _not_kept)


def joined_and_kept(
    result: Path, hosts: Sequence[HostTrial], attempt: str, lost: Mapping[str, str] | None = None
) -> StoredTrial:
    """The same, with what each host did stored beside it (`store/by_host.py`): each table is read once."""
    if not hosts:
        raise _nothing(attempt)
    with keeping_by_host(result, hosts[0].row.trial) as keep:
        return _joined(hosts, attempt, lost or {}, keep.add)


_Batches = Sequence[pa.RecordBatch]


def _not_kept(one: HostTrial, latency: _Batches, series: _Batches) -> None:
    del one, latency, series


def _joined(
    hosts: Sequence[HostTrial],
    attempt: str,
    lost: Mapping[str, str],
    keep: Callable[[HostTrial, _Batches, _Batches], None],
) -> StoredTrial:
    if not hosts:
        raise _nothing(attempt)
    ordered = sorted(hosts, key=lambda one: one.host)
    _check_names(ordered)
    cut = all(is_cut(json.loads(one.row.summary)) for one in ordered)
    times = joined_times(ordered, common=cut)
    latency, series = LatencyJoin(ordered[0].row.trial), SeriesJoin(ordered[0].row.trial)
    rates: dict[str, Rates] = {}
    interval_ns = 0
    for one in ordered:
        shift_ns = times.shifts[one.host]
        tables = list(batches_of(one.latency, LatencyRow)), list(batches_of(one.series, SeriesRow))
        interval_ns = interval_ns or _interval_ns(tables[0])
        latency.add(tables[0], shift_ns, interval_ns)
        rates[one.host] = series.add(tables[1], shift_ns, interval_ns)
        keep(one, *tables)
    row = joined_row(Joining(ordered, lost, attempt, times, rates, cut))
    return row, list(latency.rows()), list(series.rows())


def _nothing(attempt: str) -> ResultError:
    return ResultError(f"no host has anything of attempt {attempt}", "see the journal for their ends")


def _check_names(hosts: Sequence[HostTrial]) -> None:
    names = [one.host for one in hosts]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ResultError(f"host {twice[0]} is there twice", "give each host of the study a name of its own")


def _interval_ns(latency: _Batches) -> int:
    """How long the engine's intervals are, the same on all hosts; 0 where a host has none."""
    lengths: list[int] = []
    for batch in latency:
        columns = [batch.column(name).to_pylist() for name in ("interval", "start_ns", "end_ns")]
        lengths += [end - start for index, start, end in zip(*columns, strict=True) if index >= 0]
    return round(median(lengths)) if lengths else 0  # the last of a ramp is longer, that of the end shorter
