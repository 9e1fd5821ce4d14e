"""The histograms of a trial on many hosts: merged exactly, interval by interval and for the whole.

Host by host, and in batches: of a thousand hosts not all blobs are in memory at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from leadline import _core
from leadline.run.rows import WHOLE, latency_row
from leadline.store.tables import LatencyRow

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
