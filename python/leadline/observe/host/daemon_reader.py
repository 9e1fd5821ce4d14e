"""Samples the servers behind targets that run here: Ceph's daemons and gateways, with their threads."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.errors import LeadlineError
from leadline.foreign import read_plain
from leadline.observe.host.host import group_path, parse_flat
from leadline.observe.host.proc_parse import TaskStat, pids_in, task_stat
from leadline.observe.host.processes import CounterRates, ProcessThreads, io_rates
from leadline.observe.host.reader import TICK_NS
from leadline.observe.network.sockets import listening, sockets_in
from leadline.observe.reading import Counters, Request, Row, missing

if TYPE_CHECKING:
    from leadline.study.target import TargetFacts


_INIT = 1  # where it listens for others, everything is its child


def gateways_here(ports: Collection[int], proc: Path = Path("/proc")) -> dict[int, str]:
    """`proxy.NAME.PID` by process: those that listen on one of the ports, and what they have started."""
    if not ports:
        return {}
    networks: dict[str, list[int]] = {}
    for pid, network in _networks(proc):
        networks.setdefault(network, []).append(pid)
    found: set[int] = set()
    for pids in networks.values():
        net = proc / str(pids[0]) / "net"
        inodes = {inode for port in ports for inode in listening(port, net)}
        if inodes:
            found |= {pid for pid in pids if pid != _INIT and inodes & sockets_in(proc / str(pid) / "fd")}
    if not found:
        return {}
    stats = {
        pid: stat
        for pids in networks.values()
        for pid in pids
        if (stat := task_stat(proc / str(pid) / "stat")) is not None
    }
    while more := {pid for pid, stat in stats.items() if stat.parent in found} - found:
        found |= more  # a server of files by SMB starts one process for each client
    return {pid: f"proxy.{stats[pid].name}.{pid}" for pid in found & set(stats)}


def _networks(proc: Path) -> Iterator[tuple[int, str]]:
    for pid in pids_in(proc):
        with suppress(OSError):
            yield pid, os.readlink(proc / str(pid) / "ns" / "net")  # noqa: PTH115 - no path: net:[…]


SOURCE = "daemon"
_KINDS = {"ceph-osd": "osd", "ceph-mds": "mds", "ceph-mon": "mon", "ceph-mgr": "mgr", "radosgw": "rgw"}
_CONF, _ID = ("-c", "--conf"), ("-i", "--id")
_USUAL_CONF = "/etc/ceph/ceph.conf"
_CONF_BYTES_MAX = 1 << 20
_FSID = re.compile(r"^[ \t]*fsid[ \t]*=[ \t]*([0-9a-fA-F-]{36})", re.MULTILINE)
_LOOK_AGAIN = 10  # samples until daemons are looked for anew
_COST_SHARE = 0.002  # of one CPU: an OSD has 60 threads, and a host may have 60 OSDs
_THREADS_EVERY_MAX = 5
# Of an OSD those on the way of a request: compaction waits for the device, too, and nobody for it.
_STORE_THREADS = ("tp_osd_tp", "bstore_kv_sync", "bstore_aio")
_IDLE_SHARE = 0.02
_STOPPED = frozenset("Tt")


def cluster_of(conf: str) -> str:
    """The cluster that a configuration is of: its fsid, or the file itself where it names none."""
    try:
        text = read_plain(Path(conf), _CONF_BYTES_MAX).decode("utf-8", "replace")
    except (LeadlineError, OSError, ValueError):
        return conf
    found = _FSID.search(text)
    return found.group(1) if found else conf


def daemons_here(clusters: Collection[str], proc: Path = Path("/proc")) -> dict[int, str]:
    """Ceph's daemons of these clusters (as `cluster_of` has them) on this host, `osd.3` by process."""
    found, known = {}, dict[str, str]()
    for pid in pids_in(proc):
        try:
            kind = _KINDS.get((proc / str(pid) / "comm").read_text().strip())
            words = (proc / str(pid) / "cmdline").read_text(errors="replace").split("\0") if kind else []
        except OSError:
            continue
        own = _option(words, _ID)
        if kind is None or own is None:
            continue
        conf = _option(words, _CONF) or _USUAL_CONF
        if known.setdefault(conf, cluster_of(conf)) in clusters:
            found[pid] = f"{kind}.{own}"
    return found


def _option(words: list[str], names: tuple[str, ...]) -> str | None:
    for at, word in enumerate(words):
        if word in names and at + 1 < len(words):
            return words[at + 1]
        for name in names:
            if name.startswith("--") and word.startswith(f"{name}="):
                return word.partition("=")[2]
    return None


class DaemonReader:
    """All of them as one source."""

    name = "the servers' processes"

    def __init__(self, targets: Mapping[str, TargetFacts], proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._clusters = frozenset(
            cluster_of(facts.ceph.conf or _USUAL_CONF) for facts in targets.values() if facts.ceph is not None
        )
        servers = (facts.server for facts in targets.values())
        self._ports = frozenset(one.port for one in servers if one is not None and one.port is not None)
        self._daemons: dict[int, str] = {}
        self._groups: dict[str, tuple[Path, ...]] = {}
        self._rates = CounterRates()
        self._threads: dict[int, ProcessThreads] = {}
        self._looks = self._next_threads = 0

    def sample(self, now_ns: int) -> list[Row]:
        """CPU of each and its threads, storage I/O, throttling, whether it stands still or waits."""
        if self._looks % _LOOK_AGAIN == 0:
            self._daemons = self.here()
            self._threads = {pid: ProcessThreads(self._proc / str(pid)) for pid in self._daemons}
            self._next_threads = self._looks
        rows: list[Row] = []
        for pid, name in self._daemons.items():
            stat = task_stat(self._proc / str(pid) / "stat")
            if stat is not None:
                rows += self._of_process(pid, name, stat, now_ns)
        if self._looks >= self._next_threads:
            rows += self._of_all_threads(now_ns)
        else:
            rows += self._blocked()
        self._looks += 1
        rows += self._of_networks(now_ns)
        self._rates.end_look(keep=True)
        return rows

    def here(self) -> dict[int, str]:
        """The daemons and gateways as they are now, by process."""
        daemons = daemons_here(self._clusters, self._proc) if self._clusters else {}
        return daemons | gateways_here(self._ports, self._proc)

    def counters(self, _request: Request, /) -> Counters:
        """Nothing: no figure of a trial is read here."""
        return missing((), "")

    def _of_process(self, pid: int, name: str, stat: TaskStat, now_ns: int) -> Iterator[Row]:
        yield (SOURCE, name, "stopped", float(stat.state in _STOPPED), "share")
        cpu = self._rates.of(f"{pid}.{stat.started_ticks}", stat.cpu_ticks, now_ns)
        if cpu is not None:
            yield (SOURCE, name, "cpu", cpu * TICK_NS / 1e9, "cores")
        for metric, rate in io_rates(self._rates, self._proc, pid, now_ns):
            yield (SOURCE, name, metric, rate, "B/s")
        for metric, count in zip(("throttled", "periods"), self._throttled(pid), strict=True):
            growth = None if count is None else self._rates.of(f"{pid}.{metric}", count, now_ns)
            if growth is not None:
                yield (SOURCE, name, metric, growth, "1/s")

    def _of_all_threads(self, now_ns: int) -> list[Row]:
        """At each sample where that is cheap, and the more seldom the more it costs."""
        begun_s = time.thread_time()
        rows = [row for pid, name in self._daemons.items() for row in self._of_threads(pid, name, now_ns)]
        rows += self._blocked()
        cost_s = time.thread_time() - begun_s
        self._next_threads = self._looks + min(1 + int(cost_s / _COST_SHARE), _THREADS_EVERY_MAX)
        return rows

    def _of_threads(self, pid: int, name: str, now_ns: int) -> Iterator[Row]:
        for thread, thread_name, used_ns in self._threads[pid].look():
            cpu = self._rates.of(f"{pid}/{thread}", used_ns, now_ns)
            if cpu is not None and (share := cpu / 1e9) >= _IDLE_SHARE:
                yield (SOURCE, f"{name}/{thread_name}.{thread}", "cpu", share, "cores")

    def _blocked(self) -> Iterator[Row]:
        """Whether the threads wait for a device that requests pass through: of what has some."""
        for pid, name in self._daemons.items():
            blocked = self._threads[pid].is_blocked(_STORE_THREADS)
            if blocked is not None:
                yield (SOURCE, name, "blocked", float(blocked), "share")

    def _of_networks(self, now_ns: int) -> Iterator[Row]:
        """TCP segments sent again, once for each network that daemons are in, under the first of these."""
        seen = set()
        for pid, name in sorted(self._daemons.items(), key=lambda pair: pair[1]):
            try:
                network = (self._proc / str(pid) / "ns" / "net").stat().st_ino
                if network in seen:
                    continue
                seen.add(network)
                resent = _resent((self._proc / str(pid) / "net" / "snmp").read_text())
            except OSError:
                continue
            rate = None if resent is None else self._rates.of(f"net.{network}", resent, now_ns)
            if rate is not None:
                yield (SOURCE, name, "resent_segments", rate, "1/s")

    def _throttled(self, pid: int) -> tuple[int | None, int | None]:
        """Periods in which its control group was stopped, and all in which it had something to do."""
        try:
            text = (self._proc / str(pid) / "cgroup").read_text()
        except OSError:
            return None, None
        if text not in self._groups:  # where hierarchies are mounted is a long list to read
            group = group_path("cpu", self._proc, of=str(pid))
            self._groups[text] = group.directories if group else ()
        for directory in self._groups[text]:
            try:
                found = parse_flat((directory / "cpu.stat").read_text())
                return found["nr_throttled"], found.get("nr_periods")
            except (OSError, KeyError):
                continue
        return None, None


def _resent(text: str) -> int | None:
    """`RetransSegs` of /proc/net/snmp, whose lines come in pairs: names, and values."""
    lines = [line.split() for line in text.splitlines() if line.startswith("Tcp:")]
    if len(lines) != 2 or "RetransSegs" not in lines[0]:
        return None
    return int(lines[1][lines[0].index("RetransSegs")])
