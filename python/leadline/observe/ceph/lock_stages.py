"""Single requests of metadata servers, as their trackers remember them: the part that waited for locks."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from leadline.observe.ceph.stages import timed
from leadline.observe.reading import Row

COMMAND = "dump_historic_ops"
_REQUEST = "client_request("
_WAITS = ("failed to rdlock", "failed to wrlock", "failed to xlock", "failed to authpin")
_REMEMBERED = 1000


class LockBook:
    """Knows which requests of each server it has seen before."""

    def __init__(self) -> None:
        self._known: deque[tuple[str, str]] = deque(maxlen=_REMEMBERED)
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
