"""What a cluster says of a target that a server stands before: OSDs' bytes, nothing of this host's wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from leadline.observe.ceph.client import NotObservableError
from leadline.observe.ceph.cluster import ClusterReader
from leadline.observe.ceph.osds import ClusterKey, Dump
from leadline.observe.network.interfaces import WIRE
from leadline.observe.reading import Counters, Request, Row, SourceThread, joined

ROW = ("ceph", "osd.0", "operations_written", 100.0, "1/s")
OSD = {"osd": {"op_out_bytes": 7, "op_in_bytes": 8}}


class Answering(ClusterReader):
    """A cluster with one OSD, or one that does not answer."""

    silent = False
    asked = 0

    def state(self) -> Any:
        if self.silent:
            raise NotObservableError("no monitor answers")
        self._osd_dump: Mapping[str, Any] = {"osds": [{"osd": 0, "up": 1}]}

    def ask_osds(
        self, osds: tuple[int, ...], deadline_s: float, command: str = "perf dump"
    ) -> dict[int, Dump | str]:
        del deadline_s
        if command != "perf dump":
            return {}
        self.asked += 1
        grown = {"osd": {**OSD["osd"], "op_w": 100 * self.asked}}
        return {osd: Dump(float(self.asked), grown) for osd in osds}

    def _towards_osds(self) -> tuple[str, ...]:
        return ("lo",)


@pytest.fixture
def reader() -> Answering:
    return Answering(ClusterKey(None, None, None), behind_servers=frozenset({"nfs"}))


def test_the_wire_to_a_server_is_not_counted_as_that_to_its_cluster(reader: Answering) -> None:
    behind = reader.counters(Request("nfs", None)).values
    assert (behind["osd_read_bytes"], behind["osd_written_bytes"]) == (7, 8)
    assert not set(WIRE) & behind.keys()
    assert set(WIRE) <= reader.counters(Request("rados", None)).values.keys()


def test_a_cluster_that_does_not_answer_says_nothing_of_the_wire_to_a_server(reader: Answering) -> None:
    reader.silent = True
    found = reader.counters(Request("nfs", None))
    assert found.values["osd_read_bytes"] is None
    assert found.reasons["osd_read_bytes"] == "no monitor answers"
    assert not set(WIRE) & {*found.values, *found.reasons}


def test_what_osds_did_between_two_marks_is_a_sample_of_its_own(reader: Answering) -> None:
    """A trial may be shorter than the time between two samples, and those before it are not of it."""
    first = reader.counters(Request("rados", None)).rows
    assert not [row for row in first if row[2] == "operations_written"]
    found = reader.counters(Request("rados", None)).rows
    assert ROW in found


def test_rows_of_a_mark_are_said_before_its_answer() -> None:
    class Seldom:
        name = "what is seldom sampled"

        def sample(self, _now_ns: int, /) -> list[Row]:
            return []

        def counters(self, _request: Request, /) -> Counters:
            return joined(Counters(rows=[ROW]), Counters())

    said = list[Row]()
    thread = SourceThread(Seldom(), 60.0, lambda _now_ns, rows: said.extend(rows))
    thread.start()
    thread.ask(Request("rados", None)).result(timeout=60)
    assert said == [ROW]
