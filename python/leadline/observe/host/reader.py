"""Samples this host: CPUs, memory, pressure, control group, disks and network interfaces."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.counters.catalogue import read_at
from leadline.observe.ceph.parse import rate_between
from leadline.observe.host.host import GroupPath, group_path, parse_flat, parse_meminfo
from leadline.observe.host.proc_parse import (
    CpuTime,
    Disk,
    Interface,
    parse_diskstats,
    parse_net_dev,
    parse_pressure,
    parse_stat,
)
from leadline.observe.network.interfaces import device_limits
from leadline.observe.reading import Counters, Request, Row, joined, missing, sum_of
from leadline.study.schemes import access

if TYPE_CHECKING:
    from leadline.study.target import TargetFacts

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_MEMORY = {"available": "MemAvailable", "cached": "Cached", "dirty": "Dirty", "writeback": "Writeback"}


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


@dataclass(frozen=True)
class HostReading:
    """All of this host's counters at one moment."""

    t_ns: int
    cpus: Mapping[str, CpuTime]
    pressure: Mapping[str, Mapping[str, int]]
    disks: Mapping[str, Disk]
    interfaces: Mapping[str, Interface]
    throttled: int | None
    periods: int | None = None


class HostReader:
    """The host as a source; `devices` are the block devices of the targets by name."""

    name = "the host"

    def __init__(self, targets: Mapping[str, TargetFacts], proc: Path = Path("/proc")) -> None:
        self._targets, self._proc = targets, proc
        self._group = group_path("cpu", proc)
        self._before: HostReading | None = None

    def sample(self, now_ns: int) -> list[Row]:
        """Shares of time, rates per second, and memory in bytes."""
        before, now = self._before, self._read(now_ns)
        self._before = now
        rows = _memory_rows(parse_meminfo(_text(self._proc / "meminfo")))
        return rows if before is None else [*host_rows(before, now), *rows]

    def counters(self, request: Request) -> Counters:
        """CPU time, throttling, and the target's own block device."""
        facts = self._targets[request.target]
        return joined(
            self._cpu(),
            self._memory(),
            self._throttling(),
            self._device(facts),
            device_limits(facts.device, self._proc),
        )

    def _cpu(self) -> Counters:
        cpu = parse_stat(_text(self._proc / "stat"))["cpu"]
        values = {
            "cpu_total_ns": cpu.total * TICK_NS,
            "cpu_busy_ns": cpu.busy * TICK_NS,
            "cpu_steal_ns": cpu.steal * TICK_NS,
            "interrupt_cpu_ns": cpu.interrupts * TICK_NS,
        }
        return Counters(values, dict.fromkeys(values, "/proc/stat, all CPUs"))

    def _memory(self) -> Counters:
        memory = parse_meminfo(_text(self._proc / "meminfo"))
        found = Counters()
        for figure in read_at("memory"):
            lines, value = figure.places["memory"], sum_of(memory, figure.places["memory"])
            if value is not None:
                source = f"/proc/meminfo, {' and '.join(names[0] for names in lines)}"
                found = joined(found, Counters({figure.name: value}, {figure.name: source}))
        return found

    def _throttling(self) -> Counters:
        figures = {figure.name: figure.places["group"] for figure in read_at("group")}
        values = {name: _of_group(self._group, lines) for name, lines in figures.items()}
        source, why = (
            "cpu.stat of this process's control group",
            "no control group of this process counts throttling",
        )
        return Counters(
            values,
            {name: source for name, value in values.items() if value is not None},
            {name: why for name, value in values.items() if value is None},
        )

    def _device(self, facts: TargetFacts) -> Counters:
        disk = parse_diskstats(_text(self._proc / "diskstats")).get(facts.device or "")
        figures = {figure.name: figure.places["device"] for figure in read_at("device")}
        if disk is None:
            return missing(tuple(figures), _why_no_device(facts))
        values = {name: sum_of(vars(disk), fields) for name, fields in figures.items()}
        return Counters(values, dict.fromkeys(values, f"block device {facts.device}, everybody's I/O"))

    def _read(self, now_ns: int) -> HostReading:
        return HostReading(
            t_ns=now_ns,
            cpus=parse_stat(_text(self._proc / "stat")),
            pressure={
                kind: parse_pressure(text)
                for kind in ("cpu", "memory", "io")
                if (text := _text(self._proc / "pressure" / kind))
            },
            disks=parse_diskstats(_text(self._proc / "diskstats")),
            interfaces=parse_net_dev(_text(self._proc / "net" / "dev")),
            throttled=_of_group(self._group, (("nr_throttled",),)),
            periods=_of_group(self._group, (("nr_periods",),)),
        )


def _where_data_lie(facts: TargetFacts) -> str:
    if not facts.has_storage:
        return "no storage is used"
    if facts.is_local:
        return f"{facts.file_system} has no single block device on this host"
    if facts.on_cluster:
        return f"the {access(facts.access).keeps} lie on a cluster: see the OSDs' bytes"
    return "the device belongs to the server"


def _why_no_device(facts: TargetFacts) -> str:
    if facts.in_memory:
        return "the files lie in memory"
    if facts.device is None:
        return _where_data_lie(facts)
    return f"/proc/diskstats has no {facts.device}"


def _of_group(group: GroupPath | None, lines: Sequence[Sequence[str]]) -> int | None:
    """Lines of the nearest control group's cpu.stat that has them."""
    for directory in group.directories if group else ():
        found = sum_of(parse_flat(_text(directory / "cpu.stat")), lines)
        if found is not None:
            return found
    return None


def _memory_rows(memory: Mapping[str, int]) -> list[Row]:
    return [
        ("host", "memory", name, float(memory[key]), "B") for name, key in _MEMORY.items() if key in memory
    ]


def host_rows(before: HostReading, now: HostReading) -> list[Row]:
    """What happened between two readings. What never did any I/O has no row."""
    seconds = (now.t_ns - before.t_ns) / 1e9
    if seconds <= 0:
        return []
    rows = _cpu_rows(before.cpus, now.cpus)
    for kind, totals in now.pressure.items():
        for level, total in totals.items():
            rate = rate_between(before.pressure.get(kind, {}).get(level), total, seconds)
            if rate is not None:
                rows.append(("host", "pressure", f"{kind}_{level}", min(rate / 1e6, 1.0), "share"))
    rows.extend(_group_rows(before, now, seconds))
    for name, disk in now.disks.items():
        if name in before.disks and disk.read_operations + disk.write_operations:
            rows.extend(_disk_rows(name, before.disks[name], disk, seconds))
    for name, interface in now.interfaces.items():
        if name in before.interfaces and interface.received_packets + interface.sent_packets:
            rows.extend(_interface_rows(name, before.interfaces[name], interface, seconds))
    return rows


def _group_rows(before: HostReading, now: HostReading, seconds: float) -> Iterator[Row]:
    for metric in ("throttled", "periods"):
        rate = rate_between(getattr(before, metric), getattr(now, metric), seconds)
        if rate is not None:
            yield ("host", "cgroup", metric, rate, "1/s")


def _cpu_rows(before: Mapping[str, CpuTime], now: Mapping[str, CpuTime]) -> list[Row]:
    rows: list[Row] = []
    for name, cpu in now.items():
        old = before.get(name)
        total = 0 if old is None else cpu.total - old.total
        if old is None or total <= 0:
            continue
        for kind in ("busy", "user", "system", "iowait", "steal"):
            # iowait may go backwards on an idle CPU (proc(5)): then it is not known, and has no row.
            ticks = getattr(cpu, kind) - getattr(old, kind)
            if ticks >= 0:
                rows.append(("host", name, kind, min(ticks / total, 1.0), "share"))
    return rows


def _rates(
    subject: str, pairs: Sequence[tuple[str, int, int, str]], seconds: float, scale: float = 1.0
) -> list[Row]:
    rows: list[Row] = []
    for metric, old, new, unit in pairs:
        rate = rate_between(old, new, seconds)
        if rate is not None:
            rows.append(("host", subject, metric, rate * scale, unit))
    return rows


def _disk_rows(name: str, old: Disk, new: Disk, seconds: float) -> list[Row]:
    rows = _rates(
        name,
        (
            ("read", old.read_bytes, new.read_bytes, "B/s"),
            ("written", old.written_bytes, new.written_bytes, "B/s"),
            ("operations_read", old.read_operations, new.read_operations, "1/s"),
            ("operations_written", old.write_operations, new.write_operations, "1/s"),
        ),
        seconds,
    )
    busy = rate_between(old.busy_ms, new.busy_ms, seconds)
    if busy is not None:
        rows.append(("host", name, "busy", min(busy / 1000, 1.0), "share"))
    rows.append(("host", name, "in_flight", float(new.in_flight), "count"))
    queue = rate_between(old.waited_ms, new.waited_ms, seconds)
    if queue is not None:
        rows.append(("host", name, "queue", queue / 1000, "count"))
    return rows


def _interface_rows(name: str, old: Interface, new: Interface, seconds: float) -> list[Row]:
    return _rates(
        name,
        (
            ("received", old.received_bytes, new.received_bytes, "B/s"),
            ("sent", old.sent_bytes, new.sent_bytes, "B/s"),
            ("packets_received", old.received_packets, new.received_packets, "1/s"),
            ("packets_sent", old.sent_packets, new.sent_packets, "1/s"),
            ("errors", old.received_errors + old.sent_errors, new.received_errors + new.sent_errors, "1/s"),
            ("drops", old.received_drops + old.sent_drops, new.received_drops + new.sent_drops, "1/s"),
        ),
        seconds,
    )
