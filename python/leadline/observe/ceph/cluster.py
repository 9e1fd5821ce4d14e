"""Samples a Ceph cluster: its state, its OSDs and MDS daemons, and the client daemon's own counters."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from leadline.counters.catalogue import read_at, sampled
from leadline.observe.ceph import parse, stages
from leadline.observe.ceph.client import Cluster, MetadataServers, NotObservableError, ask_socket
from leadline.observe.ceph.osds import DEADLINE_S, SAMPLE_DEADLINE_S, ClusterKey, Connection, Dump, OsdAsker
from leadline.observe.network.interfaces import (
    WIRE,
    host_interfaces,
    interface_counters,
    interface_totals,
    interface_towards,
)
from leadline.observe.reading import ClusterState, Counters, Request, Row, group_is_clean, joined, missing

_MARK_DEADLINE_S = 1.5
_OSD = tuple(figure.name for figure in read_at("osds"))
_MDS = tuple(figure.name for figure in read_at("mds"))
_CLIENT = tuple(figure.name for figure in read_at("client"))


class ClusterReader(OsdAsker):
    """One cluster's state and OSD counters as a source."""

    name = "the cluster"

    def __init__(
        self,
        key: ClusterKey,
        erasure_coded: frozenset[str] = frozenset(),
        behind_servers: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(key)
        self._erasure_coded, self._behind_servers = erasure_coded, behind_servers
        self._dumps: dict[int, Dump] = {}
        self._stages = stages.StageBook()
        self._interfaces: tuple[str, ...] | None = None

    def sample(self, _now_ns: int, /) -> list[Row]:
        """State, `osd perf`, and some OSDs' rates and latencies; nothing while no cluster answers."""
        try:
            rows = state_rows(self.state())
            cluster = self._connection.get()
        except NotObservableError:
            return []
        try:
            for osd, (commit_ms, apply_ms) in parse.osd_perf(cluster.mon("osd perf")).items():
                rows.append(("ceph", f"osd.{osd}", "commit_latency", commit_ms, "ms"))
                rows.append(("ceph", f"osd.{osd}", "apply_latency", apply_ms, "ms"))
        except NotObservableError:
            pass  # the manager may be away while monitors and OSDs answer
        osds = self.in_turn()
        return [*rows, *self._rates(self.ask_osds(osds, SAMPLE_DEADLINE_S)), *self._single(osds)]

    def _rates(self, answers: Mapping[int, Dump | str]) -> Iterator[Row]:
        """What each OSD did since it was last asked, for a sample or a mark."""
        for osd, answer in answers.items():
            if isinstance(answer, Dump):
                yield from _dump_rows("osd", ("ceph", f"osd.{osd}"), self._dumps.get(osd), answer)
                self._dumps[osd] = answer

    def _single(self, osds: tuple[int, ...]) -> list[Row]:
        asked = self.ask_osds(osds, SAMPLE_DEADLINE_S, stages.COMMAND)
        known = {osd: answer.counters for osd, answer in asked.items() if isinstance(answer, Dump)}
        return self._stages.rows(known)

    def counters(self, request: Request, /) -> Counters:
        """Bytes of all OSDs, the state, and the wire by interface (a client daemon's count is better)."""
        try:
            state = self.state()
        except NotObservableError as error:
            names = _OSD if request.target in self._behind_servers else (*_OSD, *WIRE)
            absent = missing(names, str(error))
            return Counters(absent.values, absent.sources, {**absent.reasons, "state": str(error)})
        osds = self.up()
        found, rows = missing(_OSD, "no OSD is up"), list[Row]()
        if osds:
            answers = self.ask_osds(osds, _MARK_DEADLINE_S)
            found = osd_counters(answers, parse.last_up_epoch(self._osd_dump or {}))
            rows = list(self._rates(answers))
        if request.target in self._erasure_coded:
            found = _without_replicas(found)
        found = joined(found, Counters(rows=rows))
        if request.target in self._behind_servers:
            return joined(
                found, Counters(state=state)
            )  # this host's wire leads to the server, not to the OSDs
        wire = interface_counters(self._towards_osds(), "no client daemon's own count can be read")
        return joined(found, wire, interface_totals(self._towards_osds()), Counters(state=state))

    def _towards_osds(self) -> tuple[str, ...]:
        if self._interfaces is None:
            hosts = parse.osd_addresses(self._osd_dump or {})
            names = [interface_towards(host, host_interfaces) for host in hosts]
            self._interfaces = () if None in names else tuple(dict.fromkeys(name for name in names if name))
        return self._interfaces


def osd_counters(answers: Mapping[int, Dump | str], last_up_epoch: int | None) -> Counters:
    """Sums over OSDs; one that does not answer, or lacks a counter, leaves the sum unknown.

    `last_up_epoch` is the epoch in which an OSD last came up: were one restarted, its counters would
    begin anew while the sum may go on growing.
    """
    silent = {osd: answer for osd, answer in answers.items() if isinstance(answer, str)}
    if silent:
        osd, why = next(iter(silent.items()))
        return missing(_OSD, f"{len(silent)} of {len(answers)} OSDs did not answer; osd.{osd}: {why}")
    dumps = {osd: answer.counters for osd, answer in answers.items() if isinstance(answer, Dump)}
    # OSDs and epoch belong to the source: a sum over others, or over restarted ones, is another counter.
    which = f"{_ranges(sorted(dumps))}, last up in epoch {last_up_epoch}"
    source = f"perf counters of {len(dumps)} OSDs ({which}), everybody's I/O"
    return _sums("osds", {f"osd.{osd}": dump for osd, dump in dumps.items()}, source)


def _sums(place: str, dumps: Mapping[str, Mapping[str, Any]], source: str) -> Counters:
    """Sums over daemons of all that is read there; one that lacks a counter leaves its sum unknown."""
    values: dict[str, int | None] = {}
    reasons: dict[str, str] = {}
    for figure in read_at(place):
        parts = {daemon: parse.figure_in(dump, figure, place) for daemon, dump in dumps.items()}
        known = [part for part in parts.values() if part is not None]
        lacking = [daemon for daemon, part in parts.items() if part is None]
        values[figure.name] = None if lacking else sum(known)
        if lacking:
            reasons[figure.name] = f"the release of {', '.join(lacking[:4])} lacks a counter that it needs"
    return Counters(values, {name: source for name, value in values.items() if value is not None}, reasons)


def _without_replicas(found: Counters) -> Counters:
    """What OSDs do not count of an erasure-coded pool."""
    why = {figure.name: figure.replicated_only for figure in read_at("osds") if figure.replicated_only}
    return Counters({**found.values, **dict.fromkeys(why)}, found.sources, {**found.reasons, **why})


def _ranges(numbers: list[int]) -> str:
    """0,1,2,5 as "0-2,5"."""
    parts: list[list[int]] = []
    for value in numbers:
        if parts and value == parts[-1][1] + 1:
            parts[-1][1] = value
        else:
            parts.append([value, value])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in parts)


def _dump_rows(daemon: str, subject: tuple[str, str], before: Dump | None, now: Dump) -> list[Row]:
    elapsed_s = 0.0 if before is None else now.at_s - before.at_s
    then = None if before is None else before.counters
    found = parse.perf_rows(then, now.counters, elapsed_s, sampled(daemon))
    return [(*subject, metric, value, unit) for metric, value, unit in found]


def state_rows(state: ClusterState) -> list[Row]:
    """The state as figures of a series."""
    healths = {"HEALTH_OK": 0.0, "HEALTH_WARN": 1.0, "HEALTH_ERR": 2.0}
    dirty = sum(count for name, count in state.pgs.items() if not group_is_clean(name))
    rows: list[Row] = [
        (
            "ceph",
            "cluster",
            "pgs_not_clean",
            float(dirty),
            "count",
        ),
        ("ceph", "cluster", "pgs_scrubbing", float(state.scrubbing), "count"),
        ("ceph", "cluster", "slow_ops", float(state.slow_ops), "count"),
    ]
    if state.health in healths:
        rows.append(("ceph", "cluster", "health", healths[state.health], "level"))
    for metric, value in (("degraded_objects", state.degraded_objects), ("osds_up", state.osds_up)):
        if value is not None:
            rows.append(("ceph", "cluster", metric, float(value), "count"))
    if state.used_share is not None:
        rows.append(("ceph", "cluster", "used", state.used_share, "share"))
    return rows


class ClientReader:
    """The admin socket of one client daemon as a source."""

    name = "the client's admin socket"

    def __init__(self, path: str, pid: int) -> None:
        self._path, self._subject = path, f"ceph-fuse.{pid}"
        self._before: Dump | None = None
        self._pid = pid

    def sample(self, _now_ns: int, /) -> list[Row]:
        """Operations in flight, rates, latencies, and bytes on the wire."""
        try:
            now = Dump(time.monotonic(), ask_socket(self._path, self._pid, "perf dump", DEADLINE_S))
        except NotObservableError:
            return []
        before, self._before = self._before, now
        return _dump_rows("client", ("client", self._subject), before, now)

    def counters(self, _request: Request, /) -> Counters:
        """What the daemon itself counts: its messengers (data, metadata and heartbeats), its object cache."""
        try:
            dump = ask_socket(self._path, self._pid, "perf dump", DEADLINE_S)
        except NotObservableError as error:
            return missing(_CLIENT, str(error))
        return client_counters(dump, f"of the client daemon, process {self._pid}")


def client_counters(dump: Mapping[str, Any], daemon: str) -> Counters:
    """All figures of one part of the daemon, or none: they are held against each other."""
    parts: dict[str, dict[str, int | None]] = {}
    for figure in read_at("client"):
        parts.setdefault(figure.client_part, {})[figure.name] = parse.figure_in(dump, figure, "client")
    return joined(*(_all_or_none(amounts, f"{part} {daemon}") for part, amounts in parts.items()))


def _all_or_none(amounts: Mapping[str, int | None], source: str) -> Counters:
    names = tuple(amounts)
    if None in amounts.values():
        return missing(names, f"this release does not count the bytes of the {source}")
    return Counters(amounts, dict.fromkeys(names, source))


class MdsReader:
    """The active MDS daemons of a cluster as a source."""

    name = "the metadata servers"

    def __init__(self, key: ClusterKey) -> None:
        self._connection = Connection(key)
        self._servers: MetadataServers | None = None
        self._before: dict[str, Dump] = {}
        self._epoch: int | None = None
        self._endpoints: tuple[tuple[str, int], ...] = ()
        self._locks = stages.LockBook()

    def sample(self, _now_ns: int, /) -> list[Row]:
        """Rates, latencies and caches of each active MDS, and what its slowest requests waited for."""
        return self._look()[1]

    def counters(self, _request: Request, /) -> Counters:
        """Sums over the active MDS daemons of what a trial takes from them."""
        dumps, rows, error = self._look()
        if error:
            return joined(missing(_MDS, error), Counters(rows=rows))
        if not dumps:
            return missing(_MDS, "no metadata server is active")
        found = _sums("mds", dumps, f"perf counters of {', '.join(dumps)}, everybody's work")
        return joined(found, Counters(rows=rows))

    def endpoints(self) -> tuple[tuple[str, int], ...]:
        """Addresses and ports of the metadata servers, as of the last change of their map."""
        return self._endpoints

    def _look(self) -> tuple[dict[str, Mapping[str, Any]], list[Row], str]:
        """Each server's counters and what it did since the last look, of those that answered; why no more."""
        dumps, rows = dict[str, Mapping[str, Any]](), list[Row]()
        try:
            for name, now in self._ask():
                dumps[f"mds.{name}"] = now.counters
                rows.extend(_dump_rows("mds", ("ceph", f"mds.{name}"), self._before.get(name), now))
                self._before[name] = now
                if self._servers is not None:
                    rows.extend(self._locks.rows(name, self._servers.ask(name, stages.LOCKS_COMMAND)))
        except NotObservableError as error:
            return dumps, rows, str(error)
        return dumps, rows, ""

    def _ask(self) -> Iterator[tuple[str, Dump]]:
        cluster = self._connection.get()
        if self._servers is None:
            self._servers = MetadataServers(cluster)
        status = cluster.mon("status")
        self._find_endpoints(cluster, status)
        for name in active_mds(status):
            yield name, Dump(time.monotonic(), self._servers.ask(name, "perf dump"))

    def _find_endpoints(self, cluster: Cluster, status: Mapping[str, Any]) -> None:
        """Again once the map has changed. A key that may not read it still shows the servers' counters."""
        epoch = (status.get("fsmap") or {}).get("epoch")
        if epoch is None or epoch != self._epoch:
            self._epoch = epoch
            with suppress(NotObservableError):
                self._endpoints = tuple(parse.mds_endpoints(cluster.mon("fs dump")))


def active_mds(status: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the MDS daemons that hold a rank and are active."""
    ranks = (status.get("fsmap") or {}).get("by_rank") or []
    return tuple(str(rank["name"]) for rank in ranks if str(rank.get("status", "")).startswith("up:active"))
