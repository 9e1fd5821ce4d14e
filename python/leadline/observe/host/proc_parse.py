"""The kernel's counters under /proc, from text to numbers; all only grow, unless said. And who is there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_PF_KTHREAD = 0x00200000  # a thread of the kernel itself (kernel: include/linux/sched.h)
_SECTOR_BYTES = 512  # whatever the device's own sector is (kernel: Documentation/admin-guide/iostats.rst)


@dataclass(frozen=True)
class CpuTime:
    """One CPU's time by kind, in clock ticks.

    `user` holds nice and guests, `system` holds irq and softirq, which `interrupts` are.
    """

    user: int
    system: int
    idle: int
    iowait: int
    steal: int
    interrupts: int = 0

    @property
    def total(self) -> int:
        """All ticks."""
        return self.user + self.system + self.idle + self.iowait + self.steal

    @property
    def busy(self) -> int:
        """Ticks in which this machine's own code ran."""
        return self.user + self.system


def parse_stat(text: str) -> dict[str, CpuTime]:
    """/proc/stat: `cpu` (all) and `cpu0`, `cpu1`…"""
    found = {}
    for line in text.splitlines():
        name, *fields = line.split()
        if not name.startswith("cpu"):
            break
        ticks = [int(field) for field in fields[:8]] + [0] * (8 - len(fields[:8]))
        user, nice, system, idle, iowait, irq, softirq, steal = ticks
        found[name] = CpuTime(user + nice, system + irq + softirq, idle, iowait, steal, irq + softirq)
    return found


@dataclass(frozen=True)
class Disk:
    """A block device's I/O. `in_flight` is a gauge, `waited_ms` the sum over requests."""

    read_bytes: int
    written_bytes: int
    read_operations: int
    write_operations: int
    busy_ms: int
    in_flight: int
    waited_ms: int


def parse_diskstats(text: str) -> dict[str, Disk]:
    """/proc/diskstats by device name."""
    found = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 14:
            continue
        values = [int(field) for field in fields[3:14]]
        found[fields[2]] = Disk(
            read_bytes=values[2] * _SECTOR_BYTES,
            written_bytes=values[6] * _SECTOR_BYTES,
            read_operations=values[0],
            write_operations=values[4],
            busy_ms=values[9],
            in_flight=values[8],
            waited_ms=values[10],
        )
    return found


@dataclass(frozen=True)
class Interface:
    """A network interface's traffic."""

    received_bytes: int
    received_packets: int
    received_errors: int
    received_drops: int
    sent_bytes: int
    sent_packets: int
    sent_errors: int
    sent_drops: int


def parse_net_dev(text: str) -> dict[str, Interface]:
    """/proc/net/dev by interface name."""
    found = {}
    for line in text.splitlines():
        name, separator, rest = line.partition(":")
        fields = rest.split()
        if not separator or len(fields) < 16 or not fields[0].isdigit():
            continue
        values = [int(field) for field in fields]
        found[name.strip()] = Interface(*values[0:4], *values[8:12])
    return found


def parse_pressure(text: str) -> dict[str, int]:
    """A file of /proc/pressure: `some` and `full` -> microseconds stalled."""
    found = {}
    for line in text.splitlines():
        kind, *fields = line.split()
        for field in fields:
            if field.startswith("total="):
                found[kind] = int(field[len("total=") :])
    return found


@dataclass(frozen=True)
class TaskStat:
    """A process or thread. `resident_pages` is a gauge; `started_ticks` counts from boot.

    `children_ticks` is the CPU time of children that ended and were waited for.
    """

    name: str
    cpu_ticks: int
    resident_pages: int
    started_ticks: int
    state: str
    parent: int = 0
    children_ticks: int = 0
    is_kernel: bool = False


def parse_task_stat(text: str) -> TaskStat | None:
    """/proc/PID/stat or /proc/PID/task/TID/stat; the name may hold spaces and parentheses."""
    head, separator, tail = text.rpartition(")")
    fields = tail.split()
    if not separator or len(fields) < 22:
        return None
    return TaskStat(
        name=head.partition("(")[2],
        cpu_ticks=int(fields[11]) + int(fields[12]),
        resident_pages=int(fields[21]),
        started_ticks=int(fields[19]),
        state=fields[0],
        parent=int(fields[1]),
        children_ticks=int(fields[13]) + int(fields[14]),
        is_kernel=bool(int(fields[6]) & _PF_KTHREAD),
    )


def task_stat(path: Path) -> TaskStat | None:
    """The same of a file; None of what has ended, or is not ours to see."""
    try:
        return parse_task_stat(path.read_text(errors="replace"))
    except OSError:
        return None


def pids_in(proc: Path) -> Iterator[int]:
    """The processes that are there."""
    return (int(name) for name in os.listdir(proc) if name.isdigit())  # noqa: PTH208 - names are all it needs


def parse_io(text: str) -> Mapping[str, int]:
    """/proc/PID/io: `read_bytes` and `write_bytes` went to storage, `rchar` and `wchar` through calls."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: int(value) for name, _, value in pairs if value.strip().isdigit()}
