"""Operations in flight: in a queue, waiting for peers, and for which of them alone."""

from __future__ import annotations

from typing import Any

import pytest

from leadline.observe.ceph.osds import in_flight_rows

OSD_OP = "osd_op({} 2.3 2:c0ffee:::name:head [write 0~4096] snapc 0=[] ondisk+write e13)"
REPLICA = "osd_repop({} 2.3 e13/12 2:c0ffee:::name:head v 13'1, mlcod=0'0)"
SHARD = "MOSDECSubOpWrite(2.3s1 13/12 ECSubWrite(tid=5, reqid={}, at_version=13'1))"
BEGUN = ("initiated", "queued_for_pg", "reached_pg", "started")


def operation(request: str, words: str, *events: str) -> dict[str, Any]:
    named = [{"time": "2026-11-23T10:00:00.000000+0000", "event": event} for event in events]
    return {"description": words.format(request), "age": 0.1, "type_data": {"events": named}}


def looked(*, every_osd: bool = True, **osds: list[dict[str, Any]]) -> dict[tuple[str, str], float]:
    answers = {int(name.removeprefix("osd_")): {"ops": found} for name, found in osds.items()}
    return {
        (subject, metric): value
        for _, subject, metric, value, _ in in_flight_rows(answers, every_osd=every_osd)
    }


def test_what_operations_wait_for() -> None:
    found = looked(
        osd_0=[
            operation("client.1.0:1", OSD_OP, "initiated", "queued_for_pg"),
            operation("client.1.0:2", OSD_OP, *BEGUN, "waiting for subops from 1,2"),
            operation("client.1.0:3", OSD_OP, *BEGUN, "waiting for subops from 1,2", "op_commit"),
        ]
    )
    assert found["osd.0", "seen_in_flight"] == 3
    assert found["osd.0", "seen_queued"] == 1
    assert found["osd.0", "seen_waiting_for_peers"] == 1


@pytest.mark.parametrize("peer", [REPLICA, SHARD])
def test_a_write_waits_for_one_osd_where_all_others_have_done_their_part(peer: str) -> None:
    waits = (*BEGUN, "waiting for subops from 1,2")
    found = looked(
        osd_0=[
            operation("client.1.0:1", OSD_OP, *waits, "op_commit"),
            operation("client.1.0:2", OSD_OP, *waits, "op_commit"),
            operation("client.1.0:3", OSD_OP, *waits),
            operation("client.1.0:4", OSD_OP, *BEGUN[:2]),
        ],
        osd_1=[operation(f"client.1.0:{at}", peer, *BEGUN) for at in (1, 2, 3)],
        osd_2=[
            operation("client.1.0:2", peer, *BEGUN),
            operation("client.1.0:1", peer, *BEGUN, "sub_op_committed"),
        ],
    )
    assert found["cluster", "seen_parts_of"] == 4
    assert [found[f"osd.{at}", "seen_alone"] for at in (0, 1, 2)] == [1, 1, 0]


def test_where_not_every_osd_was_asked_only_writes_that_name_those_who_were_count() -> None:
    asked = operation("client.1.0:1", OSD_OP, *BEGUN, "waiting for subops from 1", "op_commit")
    other = operation("client.1.0:2", OSD_OP, *BEGUN, "waiting for subops from 1,2")
    unnamed = operation("client.1.0:3", OSD_OP, *BEGUN)
    peer = operation("client.1.0:1", REPLICA, *BEGUN)
    found = looked(every_osd=False, osd_0=[asked, other, unnamed], osd_1=[peer])
    assert found["cluster", "seen_parts_of"] == 1
    assert found["osd.1", "seen_alone"] == 1


def test_nothing_in_flight_is_no_row_and_other_words_are_left_out() -> None:
    assert looked(osd_0=[], osd_1=[]) == {}
    assert looked(osd_0=[{}, {"description": "pg_info(2.3)"}, {"description": None, "type_data": None}]) == {}
