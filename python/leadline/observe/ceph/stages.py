"""Single operations of OSDs and metadata servers, as their trackers remember them: where each waited.

A client's operation and those that its primary OSD sent to peers bear the same request id; the peer whose
part took longest is the one that all waited for. OSDs remember twenty operations each (osd_op_history_size),
the slowest are asked for; those that an earlier look had are left out, so that no clocks are compared.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from leadline.observe.reading import Row

COMMAND = "dump_historic_ops_by_duration"
REQUEST = re.compile(r"\b(client\.\d+\.\d+:\d+)")
PEERS_BEGIN = "waiting for subops from"
_PEERS_END = ("sub_op_commit_rec",)
_QUEUE = ("queued_for_pg", "reached_pg")
_REMEMBERED_OF_OSDS = 4000  # request ids of earlier looks, of all OSDs
_MOST = 0.5  # of an operation's time that its slowest part must take to be what it waited for


@dataclass(frozen=True)
class TrackedOperation:
    """One operation of an OSD; times are seconds, None where the tracker did not say."""

    request: str
    is_client: bool
    duration_s: float
    queue_s: float | None
    peers_s: float | None


def tracked(answer: Mapping[str, Any]) -> tuple[TrackedOperation, ...]:
    """What an OSD's tracker remembers; what it says in other words than these is left out."""
    found = []
    for one in answer.get("ops") or ():
        words = str(one.get("description", ""))
        request = REQUEST.search(words)
        duration = one.get("duration")
        if request is None or not isinstance(duration, int | float):
            continue
        times = list(timed((one.get("type_data") or {}).get("events") or ()))
        found.append(
            TrackedOperation(
                request.group(1),
                words.startswith("osd_op("),
                float(duration),
                _between(times, _QUEUE[:1], _QUEUE[1:]),
                _between(times, (PEERS_BEGIN,), _PEERS_END),
            )
        )
    return tuple(found)


def timed(events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    """The events of a tracked operation with their times, s; those without a time are left out."""
    for event in events:
        try:
            at = datetime.fromisoformat(str(event["time"])).timestamp()
        except (KeyError, ValueError):
            continue
        yield str(event.get("event", "")), at


def _between(
    times: Sequence[tuple[str, float]], begin: tuple[str, ...], end: tuple[str, ...]
) -> float | None:
    """From the first that begins so to the last that ends so, s."""
    begun = [at for name, at in times if name.startswith(begin)]
    ended = [at for name, at in times if name.startswith(end)]
    return max(ended[-1] - begun[0], 0.0) if begun and ended else None


class StageBook:
    """Joins what the OSDs of one cluster remember, and knows what it had before."""

    def __init__(self) -> None:
        self._known: deque[tuple[int, str]] = deque(maxlen=_REMEMBERED_OF_OSDS)
        self._looked = False

    def rows(self, answers: Mapping[int, Mapping[str, Any]]) -> list[Row]:
        """Of new operations: who came last, and the parts of their time in queues and waiting for peers."""
        known = set(self._known)
        fresh = {
            osd: tuple(one for one in tracked(answer) if (osd, one.request) not in known)
            for osd, answer in answers.items()
        }
        self._known.extend((osd, one.request) for osd, found in fresh.items() for one in found)
        if not self._looked:  # what is remembered from before may be from another run
            self._looked = True
            return []
        return [*_stages(fresh), *_last(fresh)]


def _stages(fresh: Mapping[int, Sequence[TrackedOperation]]) -> Iterator[Row]:
    for osd, found in fresh.items():
        own = [one for one in found if one.is_client and one.duration_s > 0]
        for metric, times in (
            ("op_queue_part", [(one.queue_s, one.duration_s) for one in own]),
            ("op_peers_part", [(one.peers_s, one.duration_s) for one in own]),
        ):
            known = [(part, whole) for part, whole in times if part is not None]
            if known:
                share = sum(part for part, _ in known) / sum(whole for _, whole in known)
                yield ("ceph", f"osd.{osd}", metric, min(share, 1.0), "share")


def _last(fresh: Mapping[int, Sequence[TrackedOperation]]) -> Iterator[Row]:
    """In which share of the operations that can be joined each OSD's part took longest, and most of it."""
    parts: dict[str, dict[int, float]] = {}
    for osd, found in fresh.items():
        for one in found:
            if not one.is_client:
                of_request = parts.setdefault(one.request, {})
                of_request[osd] = max(of_request.get(osd, 0.0), one.duration_s)
    whole = {one.request: one.duration_s for found in fresh.values() for one in found if one.is_client}
    joined = [request for request in whole if request in parts]
    if not joined:
        return
    last = dict.fromkeys(fresh, 0)
    for request in joined:
        osd, took_s = max(parts[request].items(), key=lambda pair: pair[1])
        last[osd] += took_s >= _MOST * whole[request]
    for osd, times in last.items():
        yield ("ceph", f"osd.{osd}", "came_last", times / len(joined), "share")
    yield ("ceph", "cluster", "operations_joined", float(len(joined)), "count")


LOCKS_COMMAND = "dump_historic_ops"
_REQUEST = "client_request("
_WAITS = ("failed to rdlock", "failed to wrlock", "failed to xlock", "failed to authpin")
_REMEMBERED_OF_SERVERS = 1000


class LockBook:
    """Knows which requests of each server it has seen before."""

    def __init__(self) -> None:
        self._known: deque[tuple[str, str]] = deque(maxlen=_REMEMBERED_OF_SERVERS)
        self._looked: set[str] = set()

    def rows(self, server: str, answer: Mapping[str, Any]) -> list[Row]:
        """Of the slowest new requests' time the part in which they waited for locks of others."""
        known = set(self._known)
        fresh = []
        for one in answer.get("ops") or ():
            words = str(one.get("description", ""))
            if words.startswith(_REQUEST) and (server, words) not in known:
                self._known.append((server, words))
                fresh.append(one)
        if server not in self._looked:  # what is remembered from before may be from another run
            self._looked.add(server)
            return []
        whole = sum(float(one["duration"]) for one in fresh if isinstance(one.get("duration"), int | float))
        if whole <= 0:
            return []
        waited = sum(_waited_s((one.get("type_data") or {}).get("events") or ()) for one in fresh)
        return [("ceph", f"mds.{server}", "lock_part", min(waited / whole, 1.0), "share")]


def _waited_s(events: Sequence[Mapping[str, Any]]) -> float:
    """From each time that a lock was not to be had to whatever came next."""
    times = list(timed(events))
    return sum(max(after - at, 0.0) for (name, at), (_, after) in pairwise(times) if name.startswith(_WAITS))
