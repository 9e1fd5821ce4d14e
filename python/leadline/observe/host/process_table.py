"""Whose CPU time and whose bytes: the run's own processes apart from everybody else's.

Read at marks only: a walk through /proc costs some 30 microseconds a process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.counters.catalogue import read_at
from leadline.observe.host.proc_parse import TaskStat, parse_io, parse_task_stat
from leadline.observe.host.reader import TICK_NS
from leadline.observe.network.listening import listeners
from leadline.observe.reading import Counters, Request, Row, missing, sum_of
from leadline.units import printable

if TYPE_CHECKING:
    from leadline.study.target import TargetFacts

EXPLAINED = "explained_cpu_ns"
_OWN = {figure.name: figure.places["run"] for figure in read_at("run")}
BUSIEST = "busiest_other"
# On a cluster whose daemons run on this host, what they use is the target's own work.
_CEPH_DAEMONS = frozenset({"ceph-osd", "ceph-mon", "ceph-mgr", "ceph-mds", "ceph-fuse"})
_SESSION = b"leadline.hosts.session"  # a study's process for one of its hosts; its last word is the study
_SERVED_DEVICES = ("nbd", "ublk")  # a process of this host serves these block devices


@dataclass(frozen=True)
class ProcessSnapshot:
    """All processes at one moment; `own` are the run's first process and all below it."""

    stats: Mapping[int, TaskStat]
    own: frozenset[int]

    def below(self, roots: Collection[int]) -> frozenset[int]:
        """These processes that are there, and all that they started."""
        return _below(self.stats, roots)


def read_table(root: int, proc: Path = Path("/proc")) -> ProcessSnapshot:
    """Every process that can be read."""
    stats = {pid: stat for pid, stat in _stats(proc) if stat is not None}
    return ProcessSnapshot(stats, _below(stats, (root,)))


def _below(stats: Mapping[int, TaskStat], roots: Collection[int]) -> frozenset[int]:
    children: dict[int, list[int]] = {}
    for pid, stat in stats.items():
        children.setdefault(stat.parent, []).append(pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid in stats and pid not in found:
            found.add(pid)
            waiting += children.get(pid, [])
    return frozenset(found)


def _stats(proc: Path) -> Iterator[tuple[int, TaskStat | None]]:
    for name in os.listdir(proc):  # noqa: PTH208 - names are all it needs
        if name.isdigit():
            try:
                yield int(name), parse_task_stat((proc / name / "stat").read_text(errors="replace"))
            except OSError:
                continue


class CpuAccount:
    """CPU time that is explained: the run's own, the kernel's own threads', the target's daemons'.

    A counter that only grows: what a process that ended since the last look had used is not taken back.
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, int]] = {}
        self._others: dict[int, tuple[int, int]] = {}
        self._own_ticks = 0
        self._ticks = 0

    def add(
        self, table: ProcessSnapshot, daemons: frozenset[str], served: Collection[int] = frozenset()
    ) -> int:
        """Ticks explained so far, with this look at the processes; `served` are the target's server."""
        own = sum(table.stats[pid].cpu_ticks + table.stats[pid].children_ticks for pid in table.own)
        # A child that is reaped hands its time on to its parent, so that the sum only grows.
        self._ticks += max(own - self._own_ticks, 0)
        self._own_ticks = max(own, self._own_ticks)
        seen: dict[int, tuple[int, int]] = {}
        for pid, stat in table.stats.items():
            if pid not in table.own and (stat.is_kernel or stat.name in daemons or pid in served):
                seen[pid] = (stat.started_ticks, stat.cpu_ticks)
                started, before = self._seen.get(
                    pid, (stat.started_ticks, 0 if self._seen else stat.cpu_ticks)
                )
                self._ticks += stat.cpu_ticks - (before if started == stat.started_ticks else 0)
        self._seen = seen
        return self._ticks

    def busiest(
        self, table: ProcessSnapshot, daemons: frozenset[str], served: Collection[int] = frozenset()
    ) -> str:
        """The process of somebody else that used most since the last look; "" where none did."""
        others = {
            pid: (stat.started_ticks, stat.cpu_ticks + stat.children_ticks)
            for pid, stat in table.stats.items()
            if pid not in table.own and not stat.is_kernel and stat.name not in daemons and pid not in served
        }
        used = []
        for pid, (started, ticks) in others.items():
            then, before = self._others.get(pid, (started, 0 if self._others else ticks))
            used.append((ticks - (before if then == started else 0), pid))
        self._others = others
        ticks, pid = max(used, default=(0, 0))
        return f"{printable(table.stats[pid].name)} (process {pid})" if ticks > 0 else ""


class ProcessTable:
    """All processes of this host as a source of marks; `root` is the run's first process."""

    name = "the process table"

    def __init__(
        self,
        targets: Mapping[str, TargetFacts],
        root: int,
        proc: Path = Path("/proc"),
        server_is_here: Callable[[TargetFacts], bool] = lambda _facts: False,
    ) -> None:
        self._targets, self._root, self._proc = targets, root, proc
        self._server_is_here = server_is_here
        self._served = {name: _listening(facts, proc) for name, facts in targets.items()}
        # Targets whose own daemons are the same share an account.
        self._accounts: dict[tuple[bool, frozenset[int]], CpuAccount] = {}

    def sample(self, _now_ns: int, /) -> list[Row]:
        """Nothing: a sample each second would cost more than it tells."""
        return []

    def counters(self, request: Request, /) -> Counters:
        """CPU time that is accounted for, and the run's own bytes to and from storage."""
        facts = self._targets[request.target]
        table = read_table(self._root, self._proc)
        cpu, own = self._cpu(facts, self._served[request.target], table), self._own(table)
        return Counters(
            {**cpu.values, **own.values}, {**cpu.sources, **own.sources}, {**cpu.reasons, **own.reasons}
        )

    def _cpu(self, facts: TargetFacts, listening: frozenset[int], table: ProcessSnapshot) -> Counters:
        clustered = facts.on_cluster or facts.behind_server  # a server may have a cluster behind it
        daemons = _CEPH_DAEMONS if clustered else frozenset()
        account = self._accounts.setdefault((clustered, listening), CpuAccount())
        served, beside = table.below(listening), table.below(tuple(self._other_hosts(table)))
        ticks = account.add(table, daemons, served | beside)
        known = (
            "daemons of Ceph" if clustered else "",
            "the target's server" if served else "",
            "this study's other hosts on this machine" if beside else "",
        )
        words = ", ".join(("/proc: this run", "kernel threads", *filter(None, known)))
        busiest = account.busiest(table, daemons, served | beside)
        reason = self._why_unknown(facts, served, table)
        if reason:
            return Counters({EXPLAINED: None}, {}, {EXPLAINED: reason})
        return Counters(
            {EXPLAINED: ticks * TICK_NS}, {EXPLAINED: words, **({BUSIEST: busiest} if busiest else {})}
        )

    def _other_hosts(self, table: ProcessSnapshot) -> Iterator[int]:
        """Sessions of the same study for other hosts, where these share this machine."""
        root = table.stats.get(self._root)
        own = _command_of(self._root, self._proc)
        if root is None or _SESSION not in own:
            return
        for pid, stat in table.stats.items():
            if stat.name == root.name and pid != self._root and _command_of(pid, self._proc) == own:
                yield pid

    def _why_unknown(self, facts: TargetFacts, served: Collection[int], table: ProcessSnapshot) -> str:
        if not table.own:
            return "the run's own processes are not to be seen in /proc"
        if not any(stat.is_kernel for stat in table.stats.values()):
            return "this container does not see the kernel's threads, which work for the target too"
        if facts.is_local and facts.file_system.startswith("fuse"):
            return "the daemon of this FUSE file system works for the target, and is not known"
        if (facts.device or "").startswith(_SERVED_DEVICES):
            return f"the daemon behind {facts.device} works for the target, and is not known"
        if self._server_is_here(facts) and not served:
            return "the target's server runs on this host, and its processes are not known"
        return ""

    def _own(self, table: ProcessSnapshot) -> Counters:
        totals = dict.fromkeys(_OWN, 0)
        for pid in table.own:
            try:
                amounts = parse_io((self._proc / str(pid) / "io").read_text())
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile; its parent's figure has its bytes
            except OSError as error:
                return missing(tuple(_OWN), f"/proc/{pid}/io: {os.strerror(error.errno or 0)}")
            for name, lines in _OWN.items():
                totals[name] += sum_of(amounts, lines) or 0
        return Counters(totals, dict.fromkeys(_OWN, "/proc/PID/io of all processes of this run"))


def _command_of(pid: int, proc: Path) -> tuple[bytes, ...]:
    """Its command line; nothing where it cannot be read."""
    try:
        return tuple((proc / str(pid) / "cmdline").read_bytes().split(b"\0"))
    except OSError:
        return ()


def _listening(facts: TargetFacts, proc: Path) -> frozenset[int]:
    """The processes of this host that answer for the target."""
    if facts.server is None or not facts.server.here or facts.server.port is None:
        return frozenset()
    return listeners(facts.server.port, proc)
