"""The samples of a trial on many hosts: what the engines moved, summed, and what was seen of what is shared.

Samples of a host itself stay with the host (`by_host/series`): of a hundred CPUs there is no sum to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from leadline.in_memory import arrow_column
from leadline.store.tables import SeriesRow

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
