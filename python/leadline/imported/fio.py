"""The JSON that fio writes (`json` and `json+`, a client's of its servers too), read as foreign text.

Whatever fio's own numbers do not hold together in is kept as a note. What is made of them is in `fio_jobs`.
Keys and units are those of fio 3 (fio(1), section "JSON OUTPUT"; stat.c of its source): fio 2 counted in KiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from leadline.foreign import parse_c_json
from leadline.units import NS_PER_S

BYTES_MAX = 256 << 20  # a result of 200 jobs with all bins is 20 MiB
ROWS_MAX = 20_000
_BINS_MAX = 10_000  # fio has 1,856 in all
_OPTIONS_MAX, _TEXT_MAX = 400, 1_000
_COUNT_END = 1 << 63
_NS_PER_MS = 1_000_000
_OFF = 0.02  # by how much a rate may differ from its bytes and time: fio rounds time to milliseconds
_CLOCKS = {"slat_ns": "submission", "clat_ns": "completion", "lat_ns": "total"}
_DIRECTIONS = ("read", "write", "trim")
_ALL_CLIENTS = "All clients"
_VERSION = re.compile(r"fio-(\d{1,4})\.")
_SECRET = re.compile(r"key|secret|password|token", re.IGNORECASE)


@dataclass(frozen=True)
class FioLatency:
    """One of fio's latencies: `percentiles` by percent, `bins` as (ns in the middle of it, how often)."""

    operations: int
    min_ns: int
    max_ns: int
    mean_ns: float
    percentiles: Mapping[float, int]
    bins: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class FioDirection:
    """What one row moved in one direction; `latencies` by our name of the clock."""

    name: str
    bytes: int
    operations: int
    runtime_ns: int
    latencies: Mapping[str, FioLatency]


@dataclass(frozen=True)
class FioRow:
    """One entry of `jobs` or `client_stats`: a job, one of its clones, or the sum of a group.

    `threads_ns` is the time of all its threads together; `user_share` and `system_share` of it are CPU time.
    """

    name: str
    group: int
    host: str | None
    error: int
    started_unix_ns: int | None
    threads_ns: int
    user_share: float
    system_share: float
    options: Mapping[str, str]
    directions: tuple[FioDirection, ...]
    syncs: int
    sync_latency: FioLatency | None
    notes: tuple[str, ...] = ()

    @property
    def runtime_ns(self) -> int:
        """Of the direction that took longest."""
        return max((one.runtime_ns for one in self.directions), default=0)


@dataclass(frozen=True)
class FioReport:
    """One file. `disk_reads` reached block devices as fio saw it, None where it saw no device."""

    version: str
    ended_unix_ns: int
    rows: tuple[FioRow, ...]
    disk_reads: int | None = None
    notes: tuple[str, ...] = field(default=())


def read_fio(text: str) -> FioReport:
    """Read one file of fio's JSON. Raises ValueError with what is wrong and where."""
    found, earlier = _documents(text)
    value = parse_c_json(found)
    if not isinstance(value, dict) or "fio version" not in value:
        raise ValueError("this is no JSON of fio: it does not say `fio version`")
    version = _text(value["fio version"])
    number = _VERSION.match(version)
    if number is None or int(number[1]) < 3:
        raise ValueError(f"{version!a} wrote it, and only what fio 3 and later write can be read")
    entries = value.get("jobs", value.get("client_stats"))
    if not isinstance(entries, list) or not entries:
        raise ValueError("it has no `jobs` and no `client_stats`")
    if len(entries) > ROWS_MAX:
        raise ValueError(f"it has {len(entries)} jobs, more than {ROWS_MAX}")
    common = _options(value.get("global options"), "global options")
    rows = [_row(entry, f"jobs[{place}]", common) for place, entry in enumerate(entries)]
    ended_ns = _count(value, "timestamp_ms", "") * _NS_PER_MS or _count(value, "timestamp", "") * NS_PER_S
    clients = "client_stats" in value
    own = tuple(row for row in rows if not (clients and row.name == _ALL_CLIENTS and row.host is not None))
    if not own:
        raise ValueError("it has the sum of all clients and no client")
    sums = [row for row in rows if row not in own]
    notes = [f"{earlier} reports of a run that went on (--status-interval) are left out"] if earlier else []
    notes += _against_sum(own, sums[0]) if sums else ()
    return FioReport(version, _bounded(ended_ns), own, _disk_reads(value.get("disk_util")), tuple(notes))


def _documents(text: str) -> tuple[str, int]:
    """The last document of a file, and how many stand before it: fio writes messages around them, too."""
    lines = text.splitlines()
    begins = [place for place, line in enumerate(lines) if line.rstrip() == "{"]
    ends = [place for place, line in enumerate(lines) if line.rstrip() == "}"]
    whole = [end for end in ends if begins and end > begins[0]]
    if not begins or not whole:  # in one line, maybe behind messages, or none of fio's
        return next((line for line in lines if line.lstrip().startswith("{")), text), 0
    end = whole[-1]
    begin = max(place for place in begins if place < end)
    return "\n".join(lines[begin : end + 1]), sum(place < begin for place in whole)


def _row(entry: Any, where: str, common: Mapping[str, str]) -> FioRow:
    table = _table(entry, where)
    error = table.get("error", 0)
    if not isinstance(error, int) or abs(error) > 1 << 31:
        raise ValueError(f"{where}.error is no number of an error")
    options = {**common, **_options(table.get("job options"), f"{where}.job options")}
    found = [
        _direction(table[key], name, f"{where}.{key}")
        for key, name in _named(table, options, where)
        if key in table
    ]
    if not found:
        raise ValueError(f"{where} has no read, write or trim")
    sync = _table(table.get("sync", {}), f"{where}.sync")
    host = table.get("hostname")
    used = tuple(one for one, _ in found if one.operations or one.bytes)
    return FioRow(
        name=_text(table.get("jobname", "")) or "unnamed",
        group=_count(table, "groupid", where),
        host=None if host is None else _text(host),
        error=error,
        started_unix_ns=_bounded(_count(table, "job_start", where) * _NS_PER_MS) or None,
        threads_ns=_bounded(_count(table, "job_runtime", where) * _NS_PER_MS),
        user_share=_share(table, "usr_cpu", where),
        system_share=_share(table, "sys_cpu", where),
        options=options,
        directions=used,
        syncs=_count(sync, "total_ios", f"{where}.sync"),
        sync_latency=_latency(sync.get("lat_ns"), f"{where}.sync.lat_ns"),
        notes=tuple(note for one, notes in found if one in used for note in notes),
    )


def _named(table: Mapping[str, Any], options: Mapping[str, str], where: str) -> list[tuple[str, str]]:
    """The keys of directions and whose they are: unified_rw_reporting has all of them in `mixed`."""
    if "mixed" not in table or "read" in table:
        return [(name, name) for name in _DIRECTIONS]
    pattern = options.get("rw", options.get("readwrite", "read")).removeprefix("rand")
    if pattern not in _DIRECTIONS:
        raise ValueError(
            f"{where} has reads and writes in one sum: run fio with unified_rw_reporting=both or none"
        )
    return [("mixed", pattern)]


def _direction(entry: Any, name: str, where: str) -> tuple[FioDirection, tuple[str, ...]]:
    table = _table(entry, where)
    for key in ("io_bytes", "total_ios", "runtime"):
        if key not in table:
            raise ValueError(f"{where} has no {key}")
    moved, operations = _count(table, "io_bytes", where), _count(table, "total_ios", where)
    runtime_ms = _count(table, "runtime", where)
    kept = {clock: _latency(table.get(key), f"{where}.{key}") for key, clock in _CLOCKS.items()}
    latencies = {clock: one for clock, one in kept.items() if one is not None}
    found = FioDirection(name, moved, operations, _bounded(runtime_ms * _NS_PER_MS), latencies)
    return found, tuple(_doubts(table, found, where))


def _doubts(table: Mapping[str, Any], found: FioDirection, where: str) -> Iterator[str]:
    """Where the figures of one direction do not agree with each other."""
    seconds = found.runtime_ns / NS_PER_S
    if found.operations and not seconds:
        yield f"fio says that {found.name} took no time at all"
    for key, amount in (("bw_bytes", found.bytes), ("iops", found.operations)):
        said = _number(table, key, where)
        if seconds and said and abs(said - amount / seconds) > _OFF * amount / seconds + 1 / seconds:
            yield f"fio says {key} {said:.6g} of {found.name}, and its sums say {amount / seconds:.6g}"
    for clock, latency in found.latencies.items():
        binned = sum(count for _, count in latency.bins)
        if latency.bins and binned != latency.operations:
            yield f"the bins of {found.name} ({clock}) have {binned} of {latency.operations} operations"


def _latency(entry: Any, where: str) -> FioLatency | None:
    if entry is None:
        return None
    table = _table(entry, where)
    operations = _count(table, "N", where)
    bins = _table(table.get("bins", {}), f"{where}.bins")
    if len(bins) > _BINS_MAX:
        raise ValueError(f"{where} has more than {_BINS_MAX} bins")
    counted = sorted((_bin(key, where), _count(bins, key, f"{where}.bins")) for key in bins)
    shares = _table(table.get("percentile", {}), f"{where}.percentile")
    if len(shares) > _BINS_MAX:
        raise ValueError(f"{where} has more than {_BINS_MAX} percentiles")
    percentiles = {_percent(key, where): _count(shares, key, f"{where}.percentile") for key in shares}
    if not operations:
        return None  # the least of nothing is not 0
    return FioLatency(
        operations=operations,
        min_ns=_count(table, "min", where),
        max_ns=_count(table, "max", where),
        mean_ns=_number(table, "mean", where),
        percentiles=percentiles,
        bins=tuple((value, count) for value, count in counted if count),
    )


def _against_sum(rows: tuple[FioRow, ...], total: FioRow) -> Iterator[str]:
    """fio's own sum over clients is not used: it was wrong in several versions, and has no bins."""
    for name in _DIRECTIONS:
        amounts = [one.bytes for row in rows for one in row.directions if one.name == name]
        said = [one.bytes for one in total.directions if one.name == name]
        if sum(amounts) != sum(said):
            yield f"`{_ALL_CLIENTS}` says {sum(said)} bytes of {name}, clients {sum(amounts)}: those count"


def _disk_reads(entries: Any) -> int | None:
    if not isinstance(entries, list) or not entries:
        return None
    disks = [_table(entry, "disk_util") for entry in entries[:ROWS_MAX]]
    # Of a stack of devices fio names each member as well, with keys of its own.
    return sum(_count(disk, "read_ios", "disk_util") for disk in disks)


def _options(value: Any, where: str) -> dict[str, str]:
    table = _table({} if value is None else value, where)
    if len(table) > _OPTIONS_MAX:
        raise ValueError(f"{where} has more than {_OPTIONS_MAX} options")
    return {_text(key): "(hidden)" if _SECRET.search(key) else _text(table[key]) for key in table}


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is no object of JSON")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str | int | float):
        raise ValueError("a text is needed where something else stands")
    return str(value)[:_TEXT_MAX].encode("utf-8", "replace").decode()  # half a character is none


def _count(table: Mapping[str, Any], key: str, where: str) -> int:
    """A whole number from 0; 0 where the key is absent."""
    value = table.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _COUNT_END:
        raise ValueError(f"{where}{'.' if where else ''}{key} is no count")
    return value


def _bounded(value_ns: int) -> int:
    if value_ns >= _COUNT_END:
        raise ValueError("a time is beyond all bounds")
    return value_ns


def _number(table: Mapping[str, Any], key: str, where: str) -> float:
    value = table.get(key, 0)
    if value is None:  # `-nan`, where fio divided by nothing
        value = 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float(_COUNT_END):
        raise ValueError(f"{where}.{key} is no number from 0 on")
    return float(value)


def _share(table: Mapping[str, Any], key: str, where: str) -> float:
    return min(_number(table, key, where) / 100, 1.0)


def _bin(key: str, where: str) -> int:
    if not (key.isascii() and key.isdigit() and len(key) < 19):
        raise ValueError(f"{where}.bins has {key[:40]!a}, which is no time")
    return int(key)


def _percent(key: str, where: str) -> float:
    try:
        percent = float(key)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise ValueError(f"{where}.percentile has {key[:40]!a}, which is no percentile")
    return percent
