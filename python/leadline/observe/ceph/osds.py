"""Asks a cluster's OSDs, each by itself, so that one that hangs costs no other's answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.observe.ceph import parse
from leadline.observe.ceph.client import Cluster, NotObservableError, ask_socket, connect
from leadline.observe.ceph.stages import PEERS_BEGIN, REQUEST
from leadline.observe.mounts.fuse_client import PROC, admin_socket_of, processes_named
from leadline.observe.reading import ClusterState, Counters, Request, Row
from leadline.trusted import account_of_ceph, accounts_of, believed_accounts

if TYPE_CHECKING:
    from leadline.study.target import TargetFacts


DEADLINE_S = 2.0
# A mark that comes while a sample waits for an OSD must still be answered within 2.4 s.
SAMPLE_DEADLINE_S = 0.5
_RETRY_S = 30.0
_OSDS_PER_SAMPLE = 16  # a large cluster is sampled in turns: a dump costs this host about 2 ms of CPU
_OSD_THREADS = 8


@dataclass(frozen=True)
class ClusterKey:
    """Which cluster, asked as whom; targets that agree in it share one connection."""

    conf: str | None
    name: str | None
    keyring: str | None
    distrusted: str | None = None


def key_of(facts: TargetFacts) -> ClusterKey | None:
    """The cluster behind a target, None where it has none."""
    ceph = facts.ceph
    return None if ceph is None else ClusterKey(ceph.conf, ceph.name, ceph.keyring, ceph.distrusted)


@dataclass(frozen=True)
class Dump:
    """One daemon's perf dump and when it was read (monotonic)."""

    at_s: float
    counters: Mapping[str, Any]


class Connection:
    """Connects when first used, and again `_RETRY_S` after a failure."""

    def __init__(self, key: ClusterKey, clock: Callable[[], float] = time.monotonic) -> None:
        self._key, self._clock = key, clock
        self._cluster: Cluster | None = None
        self._failure = ""
        self._retry_at_s = 0.0

    def get(self) -> Cluster:
        """The cluster; raises NotObservableError with the last failure until it is time to try again."""
        if self._cluster is not None:
            return self._cluster
        if self._key.distrusted:
            raise NotObservableError(f"the cluster is not asked: {self._key.distrusted}")
        if self._failure and self._clock() < self._retry_at_s:
            raise NotObservableError(self._failure)
        try:
            self._cluster = connect(self._key.conf, self._key.name, self._key.keyring, DEADLINE_S)
        except NotObservableError as error:
            self._failure, self._retry_at_s = str(error), self._clock() + _RETRY_S
            raise
        return self._cluster


class OsdAsker:
    """One cluster and its OSDs, for the sources that ask them."""

    def __init__(self, key: ClusterKey) -> None:
        self._connection = Connection(key)
        self._pool = ThreadPoolExecutor(_OSD_THREADS, thread_name_prefix="osd")
        self._epoch: int | None = None
        self._osd_dump: Mapping[str, Any] | None = None
        self._turn = 0
        self._sockets: Mapping[int, tuple[str, int]] | None = None

    def state(self) -> ClusterState:
        """The cluster's state, and with it which OSDs there are. Raises NotObservableError."""
        cluster = self._connection.get()
        status = cluster.mon("status")
        epoch = parse.osdmap_epoch(status)
        if self._osd_dump is None or epoch is None or epoch != self._epoch:
            self._osd_dump, self._epoch = cluster.mon("osd dump"), epoch
        return parse.cluster_state(status, self._osd_dump)

    def up(self) -> tuple[int, ...]:
        """All OSDs that are up, as of the last look at the state."""
        return parse.up_osds(self._osd_dump or {})

    def endpoints(self) -> Iterator[tuple[str, int]]:
        """Addresses and ports of these, as of then."""
        return parse.osd_endpoints(self._osd_dump or {})

    def in_turn(self) -> tuple[int, ...]:
        """The OSDs of this look: all, or of a large cluster the next."""
        osds = self.up()
        if len(osds) <= _OSDS_PER_SAMPLE:
            return osds
        start = self._turn % len(osds)
        self._turn += _OSDS_PER_SAMPLE
        return (osds + osds)[start : start + _OSDS_PER_SAMPLE]

    def ask_osds(
        self, osds: tuple[int, ...], deadline_s: float, command: str = "perf dump"
    ) -> dict[int, Dump | str]:
        """Each OSD's answer or why there is none. One that hangs does not cost the others' answers."""

        def ask(osd: int) -> Dump | str:
            try:
                return Dump(time.monotonic(), self._connection.get().osd(osd, command))
            except NotObservableError as error:
                return self._ask_socket(osd, str(error), command)

        asked = {osd: self._pool.submit(ask, osd) for osd in osds}
        wait(asked.values(), timeout=deadline_s)
        late = f"no answer within {deadline_s:g} s"
        return {
            osd: answer.result() if answer.done() else _give_up(answer, late) for osd, answer in asked.items()
        }

    def _ask_socket(self, osd: int, refusal: str, command: str) -> Dump | str:
        """Where the client's name may not ask an OSD, its admin socket may still answer, if it runs here."""
        if self._sockets is None:
            self._sockets = local_osd_sockets(str((self._osd_dump or {}).get("fsid", "")))
        path = self._sockets.get(osd)
        if path is None:
            return refusal
        try:
            return Dump(time.monotonic(), ask_socket(*path, command, DEADLINE_S))
        except NotObservableError as error:
            return f"{refusal}; {error}"


def _give_up(answer: Future[Dump | str], why: str) -> str:
    answer.cancel()
    return why


def local_osd_sockets(fsid: str, proc: Path = PROC) -> dict[int, tuple[str, int]]:
    """Admin sockets and processes of the OSDs of a cluster that run on this host, by their number."""
    believed, found = believed_accounts() | account_of_ceph(), {}
    for pid in processes_named("ceph-osd", proc):
        path = admin_socket_of(pid, proc)
        try:
            if path is None or not accounts_of(proc / str(pid)) <= believed:
                continue
            status = ask_socket(path, pid, "status", DEADLINE_S)
        except (NotObservableError, OSError):
            continue
        if fsid and status.get("cluster_fsid") == fsid:
            found[int(status["whoami"])] = (path, pid)
    return found


IN_FLIGHT_PERIOD_S = 1.0
_MAP_EVERY = 30  # looks, after which it is asked again which OSDs there are
COMMAND = "dump_ops_in_flight"
_CLIENT, _WRITE = "osd_op(", "+write"
_REACHED, _OWN_DONE = "reached_pg", ("op_commit", "sub_op_committed")


class InFlightReader(OsdAsker):
    """What OSDs are at work on, as a source: often, since a look finds a moment only."""

    name = "outstanding operations"

    def __init__(self, key: ClusterKey) -> None:
        super().__init__(key)
        self._looks = 0

    def sample(self, _now_ns: int, /) -> list[Row]:
        """One look at all OSDs, of a large cluster in turns."""
        try:
            if self._looks % _MAP_EVERY == 0:
                self.state()
        except NotObservableError:
            return []
        self._looks += 1
        answers = self.ask_osds(self.in_turn(), SAMPLE_DEADLINE_S, COMMAND)
        known = {osd: answer.counters for osd, answer in answers.items() if isinstance(answer, Dump)}
        return list(in_flight_rows(known, every_osd=len(known) == len(self.up())))

    def counters(self, _request: Request, /) -> Counters:
        """Nothing: no figure of a trial is read here."""
        return Counters()


def in_flight_rows(answers: Mapping[int, Mapping[str, Any]], *, every_osd: bool) -> Iterator[Row]:
    """Of one look at some OSDs: how many operations of clients each has, how many of them wait for what.

    Without `every_osd` a peer may have a part that nobody looked for: only writes that name all theirs count.
    """
    parts: dict[str, set[int]] = {}
    writes: set[str] = set()
    for osd, answer in answers.items():
        queued = waiting = every = 0
        for one in answer.get("ops") or ():
            words, events = str(one.get("description", "")), _events(one)
            request = REQUEST.search(words)
            if request is None:
                continue
            own_done = any(event.startswith(_OWN_DONE) for event in events)
            if not own_done:
                parts.setdefault(request.group(1), set()).add(osd)
            if words.startswith(_CLIENT):
                every += 1
                queued += _REACHED not in events
                waiting += own_done
                if _WRITE in words and (every_osd or _peers(events) <= answers.keys()):
                    writes.add(request.group(1))
        if every:
            yield ("ceph", f"osd.{osd}", "seen_in_flight", float(every), "count")
            yield ("ceph", f"osd.{osd}", "seen_queued", float(queued), "count")
            yield ("ceph", f"osd.{osd}", "seen_waiting_for_peers", float(waiting), "count")
    yield from _alone(answers, [parts[request] for request in writes if request in parts])


def _events(one: Mapping[str, Any]) -> list[str]:
    return [str(event.get("event", "")) for event in (one.get("type_data") or {}).get("events") or ()]


def _peers(events: Sequence[str]) -> set[int]:
    """Those that a write names; of one that names none an OSD that does not exist."""
    for event in events:
        if event.startswith(PEERS_BEGIN):
            numbers = event.removeprefix(PEERS_BEGIN).replace(",", " ").split()
            return {int(number) for number in numbers if number.isdecimal()}
    return {-1}


def _alone(osds: Mapping[int, Any], waited_for: Sequence[set[int]]) -> Iterator[Row]:
    """For which single OSD writes wait, all others having done their part."""
    if not waited_for:
        return
    alone = [next(iter(one)) for one in waited_for if len(one) == 1]
    for osd in osds:
        yield ("ceph", f"osd.{osd}", "seen_alone", float(alone.count(osd)), "count")
    yield ("ceph", "cluster", "seen_parts_of", float(len(waited_for)), "count")
