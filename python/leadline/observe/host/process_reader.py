"""Samples processes: the worker that runs a trial, and the threads of a client daemon (ceph-fuse)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.counters.catalogue import read_at
from leadline.observe.ceph.parse import rate_between
from leadline.observe.host.proc_parse import TaskStat, parse_io, parse_task_stat
from leadline.observe.host.reader import TICK_NS
from leadline.observe.reading import Counters, Request, Row, missing, sum_of

if TYPE_CHECKING:
    from leadline.study.target import TargetFacts

_PROCESS = {figure.name: figure.places["worker"] for figure in read_at("worker")}
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_IDLE_SHARE = 0.001  # a daemon has dozens of threads that sleep: the total still counts them


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
        self._before: dict[str, tuple[int, int]] = {}

    def sample(self, now_ns: int) -> list[Row]:
        """CPU of the worker and of each busy client thread (shares of one core), and the worker's I/O."""
        now: dict[str, tuple[int, int]] = {}
        rows: list[Row] = []
        if self._worker is not None:
            rows.extend(self._worker_rows(self._worker, now_ns, now))
        for pid in sorted(set(self._clients.values())):
            rows.extend(self._client_rows(pid, now_ns, now))
        self._before = now
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
        stat = self._stat(f"{pid}/stat")
        if stat is None:
            return missing(("client_cpu_ns",), f"the client daemon, process {pid}, has ended")
        return Counters(
            {"client_cpu_ns": stat.cpu_ticks * TICK_NS},
            {"client_cpu_ns": f"process {pid} ({stat.name}), started at tick {stat.started_ticks}"},
        )

    def _stat(self, path: str) -> TaskStat | None:
        try:
            return parse_task_stat((self._proc / path).read_text(errors="replace"))
        except OSError:
            return None

    def _rate(self, key: str, value: int, now_ns: int, now: dict[str, tuple[int, int]]) -> float | None:
        now[key] = (now_ns, value)
        if key not in self._before:
            return None
        then_ns, then = self._before[key]
        return rate_between(then, value, (now_ns - then_ns) / 1e9)

    def _worker_rows(self, pid: int, now_ns: int, now: dict[str, tuple[int, int]]) -> list[Row]:
        stat = self._stat(f"{pid}/stat")
        if stat is None:
            return []
        rows: list[Row] = [("process", "worker", "resident", float(stat.resident_pages * _PAGE_BYTES), "B")]
        cpu = self._rate(f"{pid}", stat.cpu_ticks, now_ns, now)
        if cpu is not None:
            rows.append(("process", "worker", "cpu", cpu * TICK_NS / 1e9, "cores"))
        try:
            amounts = parse_io((self._proc / str(pid) / "io").read_text())
        except OSError:
            return rows
        for metric, key in (("read", "read_bytes"), ("written", "write_bytes")):
            rate = self._rate(f"{pid}.{key}", amounts[key], now_ns, now) if key in amounts else None
            if rate is not None:
                rows.append(("process", "worker", metric, rate, "B/s"))
        return rows

    def _client_rows(self, pid: int, now_ns: int, now: dict[str, tuple[int, int]]) -> list[Row]:
        rows: list[Row] = []
        whole = self._stat(f"{pid}/stat")
        if whole is None:
            return rows
        cpu = self._rate(f"{pid}", whole.cpu_ticks, now_ns, now)
        if cpu is not None:
            rows.append(("client", f"{whole.name}.{pid}", "cpu", cpu * TICK_NS / 1e9, "cores"))
        rows.append(
            ("client", f"{whole.name}.{pid}", "resident", float(whole.resident_pages * _PAGE_BYTES), "B")
        )
        for thread in self._threads(pid):
            stat = self._stat(f"{pid}/task/{thread}/stat")
            cpu = None if stat is None else self._rate(f"{pid}/{thread}", stat.cpu_ticks, now_ns, now)
            if stat is not None and cpu is not None and (share := cpu * TICK_NS / 1e9) >= _IDLE_SHARE:
                rows.append(("client", f"{whole.name}.{pid}/{stat.name}.{thread}", "cpu", share, "cores"))
        return rows

    def _threads(self, pid: int) -> list[str]:
        try:
            return sorted(os.listdir(self._proc / str(pid) / "task"))  # noqa: PTH208 - names are all it needs
        except OSError:
            return []
