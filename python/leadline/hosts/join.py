"""A trial on many hosts as one: what every host stored of it, joined to what one host would have stored.

Hosts are taken in one after the other, so that their tables need not be in memory together (`StoredRows`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import pyarrow as pa

from leadline.errors import ResultError
from leadline.hosts.joining.latency import LatencyJoin
from leadline.hosts.joining.moved import Rates, is_cut
from leadline.hosts.joining.rows import Joining, joined_row
from leadline.hosts.joining.series import SeriesJoin
from leadline.hosts.joining.times import joined_times
from leadline.hosts.model import HostTrial
from leadline.store.by_host import batches_of, keeping_by_host
from leadline.store.tables import LatencyRow, SeriesRow
from leadline.store.writer import StoredTrial


def joined(hosts: Sequence[HostTrial], attempt: str, lost: Mapping[str, str] | None = None) -> StoredTrial:
    """One trial of several hosts, in order of their names; the rule for each column: `joining/rows.py`.

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
    return ResultError(
        f"no host has anything of attempt {attempt}", "see the journal for what became of them"
    )


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
