"""The counters of the kernel's CephFS client, below /sys/kernel/debug/ceph: parsed, and read as a source.

They need root and a mounted debugfs; metrics exist since Linux 5.7, bytes since 5.12.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from leadline.counters.catalogue import read_at
from leadline.observe.ceph.parse import rate_between
from leadline.observe.reading import Counters, Request, Row, missing

DEBUG = Path("/sys/kernel/debug/ceph")
_FIGURES = {figure.name: figure.places["kernel"][0][0] for figure in read_at("kernel")}
# What ceph-fuse counts, and this client does not: of the wire the network interfaces tell.
_LACKING = {
    figure.name: "the kernel's CephFS client does not count what its page cache is asked for"
    if figure.client_part == "object cache"
    else "the kernel's CephFS client does not count it"
    for figure in read_at("client")
    if figure.client_part != "messengers" and figure.name not in _FIGURES
}
_TOTAL, _SIZE, _LATENCY = "total", "total_sz(bytes)", "avg_lat(us)"
_LATENCIES = {"read": "read_latency", "write": "write_latency", "metadata": "metadata_latency"}
# metric of the series -> item and column of the kernel's tables, and unit
_RATES = {
    "operations_read": ("read", _TOTAL, "1/s"),
    "operations_written": ("write", _TOTAL, "1/s"),
    "operations_metadata": ("metadata", _TOTAL, "1/s"),
    "fetched": ("read", _SIZE, "B/s"),
    "flushed": ("write", _SIZE, "B/s"),
    "cap_hits": ("caps", "hit", "1/s"),
    "cap_misses": ("caps", "miss", "1/s"),
    "lease_hits": ("d_lease", "hit", "1/s"),
    "lease_misses": ("d_lease", "miss", "1/s"),
}
_GAUGES = {
    "caps": ("caps", _TOTAL, "count"),
    "opened_files": ("opened files", _TOTAL, "count"),
    "pinned_caps": ("pinned i_caps", _TOTAL, "count"),
}
_ROUNDING_SHARE_MAX = 0.05

KernelMetrics = Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class KernelDump:
    """What one client said at one moment (monotonic). None in flight: not to be read."""

    at_s: float
    metrics: KernelMetrics
    data_in_flight: int | None
    metadata_in_flight: int | None


def parse_metrics(text: str) -> dict[tuple[str, str], int]:
    """Figures by item and column, from `metrics` (one file before Linux 5.18) or the files in `metrics/`.

    Each table has a head that begins with `item`; a row has as many figures as the head has columns after
    it, so that an item may have spaces.
    """
    found: dict[tuple[str, str], int] = {}
    columns: list[str] = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["item"]:
            columns = words[1:]
            continue
        figures = words[len(words) - len(columns) :]
        if columns and len(words) > len(columns) and all(word.isdigit() for word in figures):
            item = " ".join(words[: -len(columns)])
            # Two tables may have the same item and `total`: both count the same events.
            found.update({(item, name): int(figure) for name, figure in zip(columns, figures, strict=True)})
    return found


def parse_data_in_flight(text: str) -> int | None:
    """Requests to OSDs that wait for their answer, from `osdc`: `REQUESTS 3 homeless 0`."""
    words = text.split()
    return int(words[1]) if words[:1] == ["REQUESTS"] and len(words) > 1 and words[1].isdigit() else None


def parse_metadata_in_flight(text: str) -> int:
    """Requests to metadata servers that wait for their answer, from `mdsc`: one a line.

    One that is `(unsafe)` has been answered, and waits only for the journal of the metadata server.
    """
    lines = (line.split("\t") for line in text.splitlines())
    return sum(1 for words in lines if words[0].strip().isdigit() and "(unsafe)" not in "".join(words))


def read_dump(directory: Path) -> KernelDump:
    """A client's counters now. Raises OSError where they cannot be read."""
    at_s, metrics = time.monotonic(), directory / "metrics"
    files = sorted(metrics.iterdir()) if metrics.is_dir() else [metrics]
    return KernelDump(
        at_s,
        parse_metrics("\n".join(path.read_text() for path in files)),
        parse_data_in_flight((directory / "osdc").read_text()),
        parse_metadata_in_flight((directory / "mdsc").read_text()),
    )


def dump_rows(before: KernelDump | None, now: KernelDump) -> list[tuple[str, float, str]]:
    """(metric, value, unit) of what happened between two dumps; what cannot be told has no row."""
    gauges = {"operations_active": now.data_in_flight, "metadata_active": now.metadata_in_flight}
    rows = [(metric, float(value), "count") for metric, value in gauges.items() if value is not None]
    for metric, (item, column, unit) in _GAUGES.items():
        if (item, column) in now.metrics:
            rows.append((metric, float(now.metrics[item, column]), unit))
    if before is None:
        return rows
    for metric, (item, column, unit) in _RATES.items():
        old, new = before.metrics.get((item, column)), now.metrics.get((item, column))
        rate = rate_between(old, new, now.at_s - before.at_s)
        if rate is not None:
            rows.append((metric, rate, unit))
    for item, metric in _LATENCIES.items():
        mean_ms = mean_between_ms(before.metrics, now.metrics, item)
        if mean_ms is not None:
            rows.append((metric, mean_ms, "ms"))
    return rows


def mean_between_ms(before: KernelMetrics, now: KernelMetrics, item: str) -> float | None:
    """Mean latency of what ended between two dumps, from means over all the client's life.

    The kernel cuts its means to whole microseconds. After many operations that hides a few new ones: where
    what was cut could be more than 5 % of the answer, there is none.
    """
    counts = [table.get((item, _TOTAL)) for table in (before, now)]
    means = [table.get((item, _LATENCY)) for table in (before, now)]
    if counts[0] is None or counts[1] is None or means[0] is None or means[1] is None:
        return None
    ended = counts[1] - counts[0]
    if ended <= 0:
        return None
    mean_us = (counts[1] * means[1] - counts[0] * means[0]) / ended
    cut_us = counts[1] / ended
    return mean_us / 1000 if mean_us > 0 and cut_us <= _ROUNDING_SHARE_MAX * mean_us else None


class KernelClientReader:
    """One client of the kernel as a source; `identity` is its directory's name, FSID.clientN."""

    name = "the kernel's CephFS client"

    def __init__(self, identity: str, base: Path = DEBUG) -> None:
        self._identity, self._directory = identity, base / identity
        self._before: KernelDump | None = None

    def sample(self, _now_ns: int, /) -> list[Row]:
        """Operations in flight, capabilities, rates, latencies; nothing where they cannot be read."""
        try:
            now = read_dump(self._directory)
        except OSError:
            return []
        before, self._before = self._before, now
        subject = f"kernel.{self._identity.rpartition('.')[2]}"
        return [("client", subject, metric, value, unit) for metric, value, unit in dump_rows(before, now)]

    def counters(self, _request: Request, /) -> Counters:
        """Bytes that the client sent on to OSDs; of its page cache the kernel counts none."""
        try:
            metrics = read_dump(self._directory).metrics
        except OSError as error:
            why = f"{self._directory} cannot be read: {error.strerror}"
            return missing((*_LACKING, *_FIGURES), why)
        found = {name: metrics.get(_item_and_column(place)) for name, place in _FIGURES.items()}
        source = f"the kernel's CephFS client {self._identity}"
        silent = {name: "this kernel does not count bytes" for name, value in found.items() if value is None}
        return Counters(
            {**dict.fromkeys(_LACKING), **found},
            {name: source for name, value in found.items() if value is not None},
            {**_LACKING, **silent},
        )


def _item_and_column(place: str) -> tuple[str, str]:
    """`opened files total`: the column is the last word, an item may have several."""
    item, _, column = place.rpartition(" ")
    return item, column
