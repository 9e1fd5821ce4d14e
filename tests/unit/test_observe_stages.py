"""Single operations of OSDs: joined by request id, once each, and whose part came last."""

from __future__ import annotations

from typing import Any

import pytest

from leadline.observe.ceph.stages import LockBook, StageBook, tracked


def event(at_s: float, words: str) -> dict[str, str]:
    return {"time": f"2026-11-23T10:00:{at_s:09.6f}+0000", "event": words}


def operation(request: str, words: str, took_s: float, *events: dict[str, str]) -> dict[str, Any]:
    description = words.format(request)
    return {"description": description, "duration": took_s, "type_data": {"events": list(events)}}


OSD_OP = "osd_op({} 2.3 2:c0ffee:::name:head [write 0~4096] snapc 0=[] ondisk+write e13)"
REPLICA = "osd_repop({} 2.3 e13/12 2:c0ffee:::name:head v 13'1, mlcod=0'0)"
SHARD = "MOSDECSubOpWrite(2.3s1 13/12 ECSubWrite(tid=5, reqid={}, at_version=13'1))"


def write(request: str, took_s: float) -> dict[str, Any]:
    """A tenth of it in the queue, eight tenths waiting for peers."""
    return operation(
        request,
        OSD_OP,
        took_s,
        event(1.0, "queued_for_pg"),
        event(1.0 + 0.1 * took_s, "reached_pg"),
        event(1.0 + 0.1 * took_s, "waiting for subops from 1,2"),
        event(1.0 + 0.2 * took_s, "sub_op_commit_rec"),
        event(1.0 + 0.9 * took_s, "sub_op_commit_rec"),
        event(1.0 + 0.95 * took_s, "commit_sent"),
    )


def test_an_operation_is_read_with_its_parts() -> None:
    (one,) = tracked({"ops": [write("client.41.0:7", 2.0)]})
    assert (one.request, one.is_client, one.duration_s) == ("client.41.0:7", True, 2.0)
    assert one.queue_s == pytest.approx(0.2)
    assert one.peers_s == pytest.approx(1.6)
    (shard,) = tracked({"ops": [operation("client.41.0:7", SHARD, 0.5)]})
    assert (shard.request, shard.is_client, shard.queue_s, shard.peers_s) == (
        "client.41.0:7",
        False,
        None,
        None,
    )


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"ops": None},
        {"ops": [{}]},
        {"ops": [{"description": "osd_op(client.1.0:1)", "duration": "long"}]},
        {"ops": [{"description": "pg_info(2.3)", "duration": 1.0}]},
    ],
)
def test_other_words_than_these_are_left_out(answer: dict[str, Any]) -> None:
    assert tracked(answer) == ()


def test_who_came_last_is_counted_once_and_not_of_what_was_there_before() -> None:
    book = StageBook()
    old = {0: {"ops": [write("client.41.0:1", 2.0)]}, 1: {"ops": [operation("client.41.0:1", REPLICA, 1.9)]}}
    assert book.rows(old) == []
    new = {
        0: {"ops": [*old[0]["ops"], *(write(f"client.41.0:{n}", 2.0) for n in range(2, 6))]},
        1: {"ops": [*old[1]["ops"], *(operation(f"client.41.0:{n}", REPLICA, 1.5) for n in range(2, 6))]},
        2: {"ops": [operation(f"client.41.0:{n}", REPLICA, 1.6 if n == 5 else 0.1) for n in range(2, 6)]},
    }
    rows = {(subject, metric): value for _, subject, metric, value, _ in book.rows(new)}
    assert rows["osd.1", "came_last"] == 0.75
    assert rows["osd.2", "came_last"] == 0.25
    assert rows["cluster", "operations_joined"] == 4.0
    assert rows["osd.0", "op_queue_part"] == pytest.approx(0.1)
    assert rows["osd.0", "op_peers_part"] == pytest.approx(0.8)
    assert book.rows(new) == []


def test_a_short_part_is_not_what_an_operation_waited_for() -> None:
    book = StageBook()
    book.rows({})
    rows = book.rows(
        {0: {"ops": [write("client.41.0:1", 2.0)]}, 1: {"ops": [operation("client.41.0:1", SHARD, 0.3)]}}
    )
    assert {value for _, _, metric, value, _ in rows if metric == "came_last"} == {0.0}


def request(number: int, *events: dict[str, str]) -> dict[str, Any]:
    words = f"client_request(client.4123:{number} create #0x1/file {number})"
    return {"description": words, "duration": 2.0, "type_data": {"events": list(events)}}


def test_what_a_request_waited_for_locks_is_its_part() -> None:
    book = LockBook()
    waited = (event(1.0, "dispatched"), event(1.2, "failed to xlock, waiting"), event(2.2, "acquired locks"))
    assert book.rows("a", {"ops": [request(1, *waited)]}) == []
    new = {"ops": [request(1, *waited), request(2, *waited), request(3, event(1.0, "dispatched"))]}
    assert book.rows("a", new) == [("ceph", "mds.a", "lock_part", pytest.approx(0.25), "share")]
    assert book.rows("a", new) == []
    assert book.rows("a", {"ops": [{}, {"description": "peer_request(1)"}]}) == []
