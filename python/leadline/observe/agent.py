"""`python -m leadline.observe.agent`: the observers' own process, one per study.

The first line of standard input is the configuration, each later one a command; standard output
carries JSON lines (see docs/observers.md). It ends at the end of its input, or with its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any

from leadline.counters.catalogue import marked
from leadline.observe.ceph.cluster import ClientReader, ClusterReader, MdsReader
from leadline.observe.ceph.osds import IN_FLIGHT_PERIOD_S, InFlightReader, key_of
from leadline.observe.host.daemon_reader import DaemonReader
from leadline.observe.host.processes import ProcessReader, ProcessTable
from leadline.observe.host.reader import HostReader
from leadline.observe.mounts.kernel_client import KernelClientReader
from leadline.observe.mounts.servers import addresses_of
from leadline.observe.network.interfaces import (
    INTERFACE,
    WIRE,
    WIRE_LIMIT,
    LabPortReader,
    host_interfaces,
    interface_counters,
    interface_totals,
    interface_towards,
    server_addresses,
)
from leadline.observe.network.tcp import (
    SOCKETS_PERIOD_S,
    TCP_PERIOD_S,
    ServerEndpoint,
    SocketReader,
    TcpReader,
)
from leadline.observe.reading import (
    ClusterState,
    Counters,
    Reader,
    Request,
    Row,
    SourceThread,
    joined,
    missing,
    steady_unix_ns,
)
from leadline.study.target import TargetFacts

_PR_SET_PDEATHSIG = 1
_CLUSTER_PERIOD_S = 5.0  # perf dumps of OSDs are the observers' largest cost
_MARK_DEADLINE_S = 2.0


class Speaker:
    """Writes JSON lines from several threads; ends the process where nobody listens any more."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._lock = descriptor, threading.Lock()

    def say(self, value: Mapping[str, Any]) -> None:
        """One line, whole."""
        line = json.dumps({**value, "cpu_ns": time.process_time_ns()}).encode() + b"\n"
        with self._lock:
            view = memoryview(line)
            try:
                while view:
                    view = view[os.write(self._descriptor, view) :]
            except OSError:
                os._exit(0)

    def sample(self, now_ns: int, rows: list[Row]) -> None:
        """A line of samples."""
        self.say({"kind": "sample", "t_ns": now_ns, "rows": rows})


class WireReader:
    """Network interfaces as a source, for targets that no client daemon and no cluster speaks for."""

    name = "the network interfaces"

    def __init__(self, targets: Mapping[str, TargetFacts]) -> None:
        self._targets = targets

    def sample(self, _now_ns: int, /) -> list[Row]:
        """Nothing: the host's source samples interfaces."""
        return []

    def counters(self, request: Request) -> Counters:
        """Bytes of the interfaces towards the target's servers."""
        facts = self._targets[request.target]
        if not facts.is_remote:
            absent = "a file system of this host uses no network" if facts.is_local else "no storage is used"
            return missing((*WIRE, *INTERFACE, WIRE_LIMIT), absent)
        known = interfaces_of(facts)
        wire = interface_counters(known, "no client daemon's own count can be read")
        return joined(wire, interface_totals(known))


def interfaces_of(facts: TargetFacts) -> tuple[str, ...]:
    """The interfaces towards the servers that the mount names; none where one of them is not known."""
    names = [interface_towards(address, host_interfaces) for address in server_addresses(facts)]
    return () if None in names else tuple(dict.fromkeys(name for name in names if name))


def _server_is_here(facts: TargetFacts) -> bool:
    return (facts.server is not None and facts.server.here) or "lo" in interfaces_of(facts)


class Agent:
    """The sources of all targets, and which of them speak for which target, the better ones last."""

    def __init__(self, config: Mapping[str, Any], speaker: Speaker) -> None:
        targets = {name: TargetFacts.from_json(value) for name, value in config["targets"].items()}
        interval_s = float(config.get("interval_s", 1.0))
        self._speaker = speaker
        self._listening: list[ClusterReader | MdsReader] = []
        self._interval_s, self._cluster_period_s = interval_s, max(_CLUSTER_PERIOD_S, interval_s)
        table = ProcessTable(targets, os.getppid(), server_is_here=_server_is_here)
        readers = (HostReader(targets), ProcessReader(targets), table)
        always = [self._thread(reader) for reader in readers]
        self._of_target = {name: [*always, self._thread(WireReader(targets))] for name in targets}
        self._threads = [*always, *(threads[-1] for threads in self._of_target.values())]
        ceph = {name: facts for name, facts in targets.items() if facts.ceph is not None}
        if config.get("ceph", True) and config.get("clusters", True):
            self._add_clusters(ceph)
        if config.get("ceph", True):
            self._add_clients(ceph)
        servers: Callable[[], Mapping[int, str]] = dict
        served = {name: facts for name, facts in targets.items() if facts.ceph or facts.server}
        if served and config.get("ceph", True) and config.get("clusters", True):
            daemons = DaemonReader(served)
            self._threads.append(self._thread(daemons))
            servers = daemons.here
        remote = [facts for facts in targets.values() if facts.is_remote]
        if remote:
            reader = TcpReader(servers, lambda: self._server_endpoints(remote))
            self._threads.append(self._thread(reader, max(TCP_PERIOD_S, interval_s)))
        self._add_sockets(targets)
        if config.get("labs"):
            self._threads.append(self._thread(LabPortReader(config["labs"])))

    def _thread(self, reader: Reader, period_s: float | None = None) -> SourceThread:
        return SourceThread(reader, period_s or self._interval_s, self._speaker.sample)

    def _add_clusters(self, targets: Mapping[str, TargetFacts]) -> None:
        clusters: dict[Any, list[SourceThread]] = {}
        for name, facts in targets.items():
            key = key_of(facts)
            if key is None:
                continue
            if key not in clusters:
                coded = frozenset(
                    other
                    for other, its in targets.items()
                    if key_of(its) == key and its.ceph is not None and its.ceph.protection == "erasure"
                )
                served = frozenset(name for name, its in targets.items() if its.behind_server)
                readers = (ClusterReader(key, coded, served), MdsReader(key))
                self._listening += readers
                clusters[key] = [self._thread(reader, self._cluster_period_s) for reader in readers]
                self._threads += clusters[key]
                looks = InFlightReader(key)
                self._threads.append(self._thread(looks, max(IN_FLIGHT_PERIOD_S, self._interval_s)))
            self._of_target[name] += clusters[key]

    def _add_clients(self, targets: Mapping[str, TargetFacts]) -> None:
        """The clients of this host, whoever asks the cluster: they know most of what is on its way there."""
        clients: dict[str, SourceThread] = {}
        for name, facts in targets.items():
            if facts.ceph is None or key_of(facts) is None:
                continue
            identity = facts.ceph.kernel_client
            if identity is not None and identity not in clients:
                clients[identity] = self._thread(KernelClientReader(identity))
                self._threads.append(clients[identity])
            if identity is not None:
                self._of_target[name].append(clients[identity])
            path, pid = facts.ceph.client_socket, facts.ceph.client_pid
            if path is None or pid is None:
                continue
            if path not in clients:
                clients[path] = self._thread(ClientReader(path, pid))
                self._threads.append(clients[path])
            self._of_target[name].append(clients[path])

    def _add_sockets(self, targets: Mapping[str, TargetFacts]) -> None:
        """What a library reaches is counted at the worker's own sockets, better than at any interface."""
        reached = [n for n, facts in targets.items() if not facts.mount_point and facts.is_remote]
        if reached:
            self._threads.append(self._thread(SocketReader(), SOCKETS_PERIOD_S))
        for name in reached:
            self._of_target[name].append(self._threads[-1])

    def _server_endpoints(self, targets: Iterable[TargetFacts]) -> Iterator[ServerEndpoint]:
        """Of the clusters that answer, and of the servers that a mount or a URL names."""
        for reader in self._listening:
            yield from reader.endpoints()
        for facts in targets:
            if facts.behind_server:
                port = None if facts.server is None else facts.server.port
                yield from ((address, port) for address in addresses_of(facts, facts.source or ""))

    def start(self) -> None:
        """Begin to sample."""
        for thread in self._threads:
            thread.start()
        self._speaker.say({"kind": "ready"})

    def mark(self, command: Mapping[str, Any]) -> None:
        """Ask all sources of a target at once, and say what they know by the deadline."""
        target, deadline_s = command["target"], float(command.get("deadline_s", _MARK_DEADLINE_S))
        request = Request(target, command.get("pid"))
        t_ns = steady_unix_ns()
        asked = [(thread, thread.ask(request)) for thread in self._of_target[target]]
        wait([answer for _, answer in asked], timeout=deadline_s)
        answers = [_answer(thread.name, answer, deadline_s) for thread, answer in asked]
        found = merge([*answers, sample_counters([thread for thread, _ in asked])])
        self._speaker.say(
            {
                "kind": "mark",
                "id": command["mark"],
                "t_ns": t_ns,
                "counters": dict(found.values),
                "sources": dict(found.sources),
                "reasons": dict(found.reasons),
                "state": None if found.state is None else found.state.as_json(),
            }
        )


def sample_counters(threads: Sequence[SourceThread]) -> Counters:
    """How many samples these sources should have taken, and did not."""
    counts = [thread.samples for thread in threads]
    values = {"samples_due": sum(due for due, _ in counts), "samples_missed": sum(lost for _, lost in counts)}
    return Counters(values, dict.fromkeys(values, "the observers' own sources"))


def _answer(name: str, answer: Future[Counters], deadline_s: float) -> Counters:
    if not answer.done():
        answer.cancel()
        why = f"{name} did not answer within {deadline_s:g} s"
        return Counters(reasons={"*": why, **({"state": why} if name == ClusterReader.name else {})})
    error = answer.exception()
    if error is not None:
        return Counters(reasons={"*": f"{name}: {error}"})
    return answer.result()


def merge(parts: list[Counters]) -> Counters:
    """One set of counters: a value of a later part replaces an earlier one, a missing value never does."""
    values: dict[str, int | None] = dict.fromkeys(marked())
    sources: dict[str, str] = {}
    reasons: dict[str, str] = {}
    state: ClusterState | None = None
    silent = [part.reasons["*"] for part in parts if "*" in part.reasons]
    for part in parts:
        state = part.state or state
        if "state" in part.reasons:
            reasons["state"] = part.reasons["state"]
        sources.update({name: words for name, words in part.sources.items() if name not in part.values})
        for name, value in part.values.items():
            if value is not None:
                values[name], sources[name] = value, part.sources.get(name, "")
                reasons.pop(name, None)
            elif values.get(name) is None:
                reasons[name] = part.reasons.get(name, "not observable")
            elif name in part.reasons:
                sources[name] += f"; {part.reasons[name]}"
    for name, value in values.items():
        if value is None and name not in reasons:
            reasons[name] = "; ".join(silent) or "the target has no cluster"
    return Counters(values, sources, reasons, state)


def _die_with_parent() -> None:
    """Ask for SIGHUP when the parent dies.

    It also comes when only the thread that started this process ends, and is then ignored.
    """
    parent = os.getppid()

    def ended(_signal: int, _frame: object) -> None:
        if os.getppid() != parent:
            os._exit(0)

    signal.signal(signal.SIGHUP, ended)
    with contextlib.suppress(OSError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGHUP, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def main() -> None:
    """Serve until told to stop; leave without joining threads, which may be stuck in the kernel."""
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    speaker = Speaker(sys.stdout.fileno())
    try:
        agent = Agent(json.loads(sys.stdin.readline()), speaker)
    except (ValueError, KeyError, TypeError) as error:
        sys.stderr.write(f"the observers' configuration is not valid: {error}\n")
        os._exit(2)
    agent.start()
    for line in sys.stdin:
        command = json.loads(line)
        if command.get("stop"):
            break
        agent.mark(command)
    speaker.say({"kind": "end"})
    os._exit(0)


if __name__ == "__main__":
    main()
