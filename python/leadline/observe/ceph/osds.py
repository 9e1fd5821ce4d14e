"""Asks a cluster's OSDs, each by itself: one that hangs costs no other's answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.observe.ceph import parse
from leadline.observe.ceph.client import Cluster, NotObservableError, ask_socket, connect
from leadline.observe.model import ClusterState
from leadline.observe.mounts.fuse_client import admin_socket_of
from leadline.observe.mounts.fuse_server import PROC, processes_named
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
