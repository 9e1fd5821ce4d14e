"""Operations that OSDs are at work on at a moment: in a queue, at the store, or waiting for which peer.

A look finds an operation the likelier the longer it takes, so that shares of looks are shares of time. What
trackers remember of ended ones (stages.py) are the slowest of ten minutes, which a trial may have none of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leadline.observe.ceph.client import NotObservableError
from leadline.observe.ceph.osds import SAMPLE_DEADLINE_S, ClusterKey, Dump, OsdAsker
from leadline.observe.ceph.stages import PEERS_BEGIN, REQUEST
from leadline.observe.reading import Counters, Request, Row

PERIOD_S = 1.0
_MAP_EVERY = 30  # looks, after which it is asked again which OSDs there are
COMMAND = "dump_ops_in_flight"
_CLIENT, _WRITE = "osd_op(", "+write"
_REACHED, _OWN_DONE = "reached_pg", ("op_commit", "sub_op_committed")


class InFlightReader(OsdAsker):
    """What OSDs are at work on, as a source: often, since a look finds a moment only."""

    name = "operations in flight"

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
