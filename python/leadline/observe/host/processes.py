"""Samples processes: a trial's worker, a client's threads, and whose CPU time and bytes are whose."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.counters.catalogue import read_at
from leadline.observe.ceph.parse import rate_between
from leadline.observe.host.proc_parse import TaskStat, parse_io, parse_task_stat, pids_in, task_stat
from leadline.observe.host.reader import TICK_NS
from leadline.observe.network.sockets import listeners
from leadline.observe.reading import Counters, Request, Row, missing, sum_of
from leadline.units import printable

if TYPE_CHECKING:
    from leadline.study.target import TargetFacts


_PROCESS = {figure.name: figure.places["worker"] for figure in read_at("worker")}
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_IDLE_SHARE = 0.001  # a daemon has dozens of threads that sleep: the total still counts them


class CounterRates:
    """How fast counters grew since the look before, by key."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[int, int]] = {}
        self._now: dict[str, tuple[int, int]] = {}

    def of(self, key: str, value: int, now_ns: int) -> float | None:
        """Per second; None where it was not seen before."""
        self._now[key] = (now_ns, value)
        if key not in self._before:
            return None
        then_ns, then = self._before[key]
        return rate_between(then, value, (now_ns - then_ns) / 1e9)

    def end_look(self, *, keep: bool = False) -> None:
        """The next look is held against this one; `keep`: against an earlier one, for what this left out."""
        self._before = self._before | self._now if keep else self._now
        self._now = {}


def io_rates(rates: CounterRates, proc: Path, pid: int, now_ns: int) -> Iterator[tuple[str, float]]:
    """`read` and `written` of a process, bytes a second to and from storage, where that is to be seen."""
    try:
        amounts = parse_io((proc / str(pid) / "io").read_text())
    except OSError:
        return
    for metric, key in (("read", "read_bytes"), ("written", "write_bytes")):
        rate = rates.of(f"{pid}.{key}", amounts[key], now_ns) if key in amounts else None
        if rate is not None:
            yield metric, rate


class ProcessReader:
    """The worker and the client daemons of all targets as one source."""

    name = "the processes"

    def __init__(self, targets: Mapping[str, TargetFacts], proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._clients = {
            name: facts.ceph.client_pid
            for name, facts in targets.items()
            if facts.ceph is not None and facts.ceph.client_pid is not None
        }
        self._worker: int | None = None
        self._rates = CounterRates()

    def sample(self, now_ns: int) -> list[Row]:
        """CPU of the worker and of each busy client thread (shares of one core), and the worker's I/O."""
        rows: list[Row] = []
        if self._worker is not None:
            rows.extend(self._worker_rows(self._worker, now_ns))
        for pid in sorted(set(self._clients.values())):
            rows.extend(self._client_rows(pid, now_ns))
        self._rates.end_look()
        return rows

    def counters(self, request: Request) -> Counters:
        """The worker's storage I/O and the client daemon's CPU time."""
        if request.pid is not None:
            self._worker = request.pid
        worker, client = self._worker_counters(request.pid), self._client_counters(request.target)
        return Counters(
            {**worker.values, **client.values},
            {**worker.sources, **client.sources},
            {**worker.reasons, **client.reasons},
        )

    def _worker_counters(self, pid: int | None) -> Counters:
        if pid is None:
            return missing(tuple(_PROCESS), "no worker process was named")
        try:
            amounts = parse_io((self._proc / str(pid) / "io").read_text())
        except FileNotFoundError:
            return missing(tuple(_PROCESS), f"process {pid} has ended")
        except OSError as error:
            return missing(tuple(_PROCESS), f"/proc/{pid}/io: {os.strerror(error.errno or 0)}")
        values = {name: sum_of(amounts, lines) for name, lines in _PROCESS.items()}
        return Counters(values, dict.fromkeys(_PROCESS, f"/proc/{pid}/io"))

    def _client_counters(self, target: str) -> Counters:
        pid = self._clients.get(target)
        if pid is None:
            return missing(("client_cpu_ns",), "no client daemon serves this target")
        stat = task_stat(self._proc / str(pid) / "stat")
        if stat is None:
            return missing(("client_cpu_ns",), f"the client daemon, process {pid}, has ended")
        return Counters(
            {"client_cpu_ns": stat.cpu_ticks * TICK_NS},
            {"client_cpu_ns": f"process {pid} ({stat.name}), started at tick {stat.started_ticks}"},
        )

    def _worker_rows(self, pid: int, now_ns: int) -> list[Row]:
        stat = task_stat(self._proc / str(pid) / "stat")
        if stat is None:
            return []
        rows: list[Row] = [("process", "worker", "resident", float(stat.resident_pages * _PAGE_BYTES), "B")]
        cpu = self._rates.of(f"{pid}", stat.cpu_ticks, now_ns)
        if cpu is not None:
            rows.append(("process", "worker", "cpu", cpu * TICK_NS / 1e9, "cores"))
        rates = io_rates(self._rates, self._proc, pid, now_ns)
        return [*rows, *(("process", "worker", metric, rate, "B/s") for metric, rate in rates)]

    def _client_rows(self, pid: int, now_ns: int) -> list[Row]:
        rows: list[Row] = []
        whole = task_stat(self._proc / str(pid) / "stat")
        if whole is None:
            return rows
        cpu = self._rates.of(f"{pid}", whole.cpu_ticks, now_ns)
        if cpu is not None:
            rows.append(("client", f"{whole.name}.{pid}", "cpu", cpu * TICK_NS / 1e9, "cores"))
        rows.append(
            ("client", f"{whole.name}.{pid}", "resident", float(whole.resident_pages * _PAGE_BYTES), "B")
        )
        for thread in self._threads(pid):
            stat = task_stat(self._proc / str(pid) / "task" / thread / "stat")
            cpu = None if stat is None else self._rates.of(f"{pid}/{thread}", stat.cpu_ticks, now_ns)
            if stat is not None and cpu is not None and (share := cpu * TICK_NS / 1e9) >= _IDLE_SHARE:
                rows.append(("client", f"{whole.name}.{pid}/{stat.name}.{thread}", "cpu", share, "cores"))
        return rows

    def _threads(self, pid: int) -> list[str]:
        try:
            return sorted(os.listdir(self._proc / str(pid) / "task"))  # noqa: PTH208 - names are all it needs
        except OSError:
            return []


_BYTES_MAX = 4096  # of what the kernel says of one thread
_BLOCKED = "D"


class ProcessThreads:
    """The threads of one process; one that ended meanwhile is left out."""

    def __init__(self, directory: Path) -> None:
        self._tasks = str(directory / "task")
        self._names: dict[str, str] = {}

    def look(self) -> Iterator[tuple[str, str, int]]:
        """Number, name and CPU time (ns) of each."""
        try:
            threads = os.listdir(self._tasks)  # noqa: PTH208 - names are all it needs
        except OSError:
            return
        for thread in threads:
            used_ns = self._used_ns(thread)
            if used_ns is not None:
                yield thread, self._name(thread), used_ns

    def is_blocked(self, names: Sequence[str]) -> bool | None:
        """Whether one whose name begins so stands in the kernel; None where there is none of that name."""
        known = False
        for thread in [number for number, name in self._names.items() if name.startswith(tuple(names))]:
            stat = parse_task_stat(self.text(thread, "stat"))
            known = known or stat is not None
            if stat is not None and stat.state == _BLOCKED:
                return True
        return False if known else None

    def _used_ns(self, thread: str) -> int | None:
        first = self.text(thread, "schedstat").partition(" ")[0]
        if first.isdecimal():
            return int(first)
        stat = parse_task_stat(self.text(thread, "stat"))  # a kernel may be built without
        return None if stat is None else stat.cpu_ticks * TICK_NS

    def _name(self, thread: str) -> str:
        if thread not in self._names:
            self._names[thread] = self.text(thread, "comm").strip()
        return self._names[thread]

    def text(self, thread: str, name: str) -> str:
        """A file of a thread in /proc; "" of one that ended, or that this user may not look at."""
        try:
            descriptor = os.open(f"{self._tasks}/{thread}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return ""
        try:
            return os.read(descriptor, _BYTES_MAX).decode("utf-8", "replace")
        except OSError:
            return ""
        finally:
            os.close(descriptor)


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
    known = ((pid, task_stat(proc / str(pid) / "stat")) for pid in pids_in(proc))
    stats = {pid: stat for pid, stat in known if stat is not None}
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
