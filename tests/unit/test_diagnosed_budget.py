"""Where a request's time goes: segments sum to it, and what nobody observed is no zero."""

from __future__ import annotations

import pytest
from test_bounds_section import cell, with_bounds
from test_diagnosed import seen

from leadline.report import render
from leadline.verdict.diagnosis.budget import REST, LatencyBudget, bar_of, budget_of, nothing_seen
from leadline.verdict.diagnosis.judge import diagnose
from leadline.verdict.diagnosis.samples import Figures
from leadline.verdict.diagnosis.section import found_json

REMOTE = frozenset({"load", "client", "host", "network", "osd", "mds", "cluster"})
LOCAL = frozenset({"load", "client", "host"})
# A write of 30 ms: 10 in the client, 2 on the way, of 16 in its OSD 9 waiting for peers.
WRITE: Figures = {
    **{"latency_s": 0.030, "write_share": 1.0, "operations_per_s": 100.0, "osd_each": 1.0, "cut_into": 1.0},
    **{"client_in_flight": 2.0, "client_operations_per_s": 100.0, "round_trip_least_s": 0.002},
    **{"osd_write_s": 0.016, "osd_write_queue_s": 0.003, "osd_dispatch_s": 0.001},
    **{"osd_write_prepare_s": 0.0005, "osd_store_commit_s": 0.0035, "osd_aio_wait_s": 0.001},
    **{"osd_kv_queued_s": 0.0005, "osd_kv_sync_s": 0.0015, "request_bytes": 4096.0},
}


def figures(**changes: float | None) -> Figures:
    return {**seen(), **WRITE, **changes}


def budget(*trials: Figures, places: frozenset[str] = REMOTE) -> LatencyBudget:
    found = budget_of(trials or (figures(),), places)
    assert found is not None
    return found


def milliseconds(found: LatencyBudget) -> dict[str, float | None]:
    return {one.name: None if one.seconds is None else 1e3 * one.seconds.value for one in found.segments}


def test_the_time_of_a_write_is_split_into_what_was_measured() -> None:
    assert milliseconds(budget()) == pytest.approx(
        {
            **{"client": 10.0, "wire": 2.0, "osd_dispatch": None, "osd_queue": 3.0, "osd_work": 1.0},
            **{"store_data": 1.0, "store_log": 2.0, "peers": 9.0, REST: 2.0},
        }
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"round_trip_least_s": 0.5},
        {"client_in_flight": 0.0},
        {"osd_write_s": 0.034},
        {"osd_store_commit_s": 0.5},
        {"osd_aio_wait_s": 0.2, "osd_kv_sync_s": 0.2},
        {"osd_dispatch_s": 0.2},
    ],
)
def test_segments_are_never_more_than_the_whole_and_with_the_rest_they_are_it(
    changes: dict[str, float],
) -> None:
    found = budget(figures(**changes))
    seconds = [one.seconds.value for one in found.seen if one.seconds is not None]
    assert min(seconds) >= 0
    assert sum(seconds) == pytest.approx(found.whole_s)
    assert sum(one.share or 0.0 for one in found.segments) == pytest.approx(1.0)


def test_the_rate_of_a_link_makes_no_time_that_nobody_measured() -> None:
    """A shaper lets a burst through: on a link of 2 Mbit/s 4 KiB need not take the 16 ms of its rate."""
    assert milliseconds(budget(figures(port_rate=250e3)))["wire"] == pytest.approx(2.0)


# 100 metadata operations a second of 12 ms each; every second one sends a request to the server, of 6 ms.
METADATA: Figures = {
    **{"latency_s": None, "write_share": None, "operations_per_s": 0.0, "osd_write_s": None},
    **{"metadata_latency_s": 0.012, "metadata_operations_per_s": 100.0, "round_trip_least_s": 0.002},
    **{"mds_reply_s": 0.006, "mds_requests_per_s": 50.0},
}


def test_the_time_of_a_metadata_operation_has_that_of_the_metadata_server() -> None:
    found = budget({**figures(), **METADATA})
    assert found.whole_s == pytest.approx(0.012)
    assert milliseconds(found) == pytest.approx({"wire": 1.0, "mds": 3.0, REST: 8.0})


@pytest.mark.parametrize("lacks", [{"mds_requests_per_s": None}, {"mds_requests_per_s": 200.0}])
def test_a_metadata_server_that_others_ask_too_is_not_said_to_take_that_long(lacks: dict[str, None]) -> None:
    found = milliseconds(budget({**figures(), **METADATA, **lacks}))
    assert found == pytest.approx({"wire": None, "mds": None, REST: 12.0})


def test_reads_and_writes_wait_for_no_metadata_server_and_other_files_have_no_budget() -> None:
    assert "mds" not in milliseconds(budget(figures(mds_reply_s=0.006, mds_requests_per_s=50.0)))
    assert budget_of([{**figures(), **METADATA}], LOCAL) is None


def test_the_commits_of_peers_beside_the_own_one_count_once() -> None:
    """The own store needs all that the operation waits for: nothing is left that is the peers' alone."""
    found = milliseconds(budget(figures(osd_store_commit_s=0.0125)))
    assert found["peers"] == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("lacks", "unseen"),
    [
        ({"round_trip_least_s": None}, {"wire"}),
        ({"client_in_flight": None}, {"client"}),
        ({"osd_kv_sync_s": None}, {"store_log", "osd_work"}),
        (
            {"osd_write_s": None},
            {"osd_dispatch", "osd_queue", "osd_work", "store_data", "store_log", "peers"},
        ),
    ],
)
def test_what_nobody_observed_is_said_with_what_would_show_it_and_is_no_zero(
    lacks: dict[str, None], unseen: set[str]
) -> None:
    found = budget(figures(**lacks))
    assert {one.name for one in found.unseen} == unseen | {"osd_dispatch"}
    assert all(one.shown_by and one.share is None for one in found.unseen)
    whole = milliseconds(budget())
    assert milliseconds(found)[REST] == pytest.approx(sum(whole[name] or 0.0 for name in (*unseen, REST)))
    _, said, words = bar_of(found, 50)
    assert all(one.title in words for one in found.unseen)
    assert not any(one.title in line for one in found.unseen for line in said)


def test_requests_that_are_cut_into_several_have_no_time_in_an_osd() -> None:
    found = budget(figures(osd_each=8.0, cut_into=8.0))
    assert {one.name for one in found.seen} == {"wire", REST}


def test_what_nobody_waits_for_is_not_in_the_time_of_a_request() -> None:
    """Written behind a cache: an OSD takes ten times as long as the program waits."""
    found = budget(figures(latency_s=0.0016, client_in_flight=0.0))
    assert "peers" in {one.name for one in found.unseen}


def test_reads_and_writes_are_weighed_by_how_many_there_are() -> None:
    read = {"osd_read_s": 0.004, "osd_read_queue_s": 0.001, "osd_store_read_s": 0.002, "coded": 0.0}
    found = milliseconds(budget(figures(write_share=0.5, **read)))
    assert found["store_data"] == pytest.approx((1.0 + 2.0) / 2)
    assert found["osd_queue"] == pytest.approx((3.0 + 1.0) / 2)
    alone = budget(figures(write_share=0.5, osd_read_s=None))
    assert "osd_queue" in {one.name for one in alone.unseen}


@pytest.mark.parametrize(
    ("write_share", "coded", "split"),
    [(0.0, 0.0, True), (0.5, 0.0, False), (0.0, 1.0, False), (0.0, None, False)],
)
def test_the_dispatch_queue_is_apart_only_where_no_operation_of_peers_is_in_it(
    write_share: float, coded: float | None, split: bool
) -> None:
    """Seen on a lab: 20 ms before each write were 2.5 ms there, by eight operations of peers for each."""
    read = {"osd_read_s": 0.004, "osd_read_queue_s": 0.003, "osd_store_read_s": 0.0005, "coded": coded}
    found = milliseconds(budget(figures(write_share=write_share, **read)))
    parts = (found["osd_dispatch"], found["osd_queue"])
    assert parts == pytest.approx((1.0, 2.0)) if split else parts == (None, pytest.approx(3.0))


def test_several_trials_have_an_interval_and_what_one_lacks_none_has() -> None:
    found = budget(figures(), figures(round_trip_least_s=0.003), figures(round_trip_least_s=0.004))
    (wire,) = [one for one in found.segments if one.name == "wire"]
    assert wire.seconds is not None
    assert wire.seconds.value == pytest.approx(0.003)
    assert wire.seconds.low is not None
    assert wire.seconds.high is not None
    assert wire.seconds.low < 0.003 < wire.seconds.high
    without = budget(figures(), figures(round_trip_least_s=None))
    assert "wire" in {one.name for one in without.unseen}
    assert sum(one.seconds.value for one in without.seen if one.seconds) == pytest.approx(0.030)


def test_a_local_file_system_has_its_device_and_no_osd() -> None:
    device = {"device_request_s": 0.02, "device_request_bytes": 4096.0, "device_carried": 1.0}
    found = milliseconds(budget(figures(**device), places=LOCAL))
    assert found == pytest.approx({"device": 20.0, REST: 10.0})
    cached = budget(figures(**{**device, "device_carried": 0.1}), places=LOCAL)
    assert [one.name for one in cached.unseen] == ["device"]
    assert "carries its requests one by one" in nothing_seen(cached)
    assert nothing_seen(budget(figures(**device), places=LOCAL)) == ""


def test_where_no_latency_is_known_there_is_no_budget() -> None:
    assert budget_of([figures(latency_s=None)], REMOTE) is None
    assert diagnose([seen()]).budget is None


def test_one_bar_has_a_letter_for_each_segment() -> None:
    bar, said, unseen = bar_of(budget(), 60)
    assert bar == "a" * 20 + "b" * 4 + "c" * 6 + "d" * 2 + "e" * 2 + "f" * 4 + "g" * 18 + "." * 4
    assert said[0] == "a client queue and daemon 10.0 ms, 33 %"
    assert said[-1] == ". unexplained rest 2.00 ms, 7 %"
    assert unseen == "Not observed separately: OSD, dispatch queue."


def test_reports_and_json_have_it() -> None:
    found = found_json(diagnose([figures()]))["budget"]
    assert found["seconds"] == 0.030
    segments = {one["segment"]: one for one in found["segments"]}
    assert segments["peers"]["seconds"] == pytest.approx(0.009)
    assert (segments["gateway"]["seconds"], segments["gateway"]["share"]) == (None, None)
    full = {**figures(), "port": "client1", "port_share": 0.97, "port_rate": 1e9}
    findings = with_bounds(cell("w", full))
    for form in ("md", "html"):
        assert "Where the time of a request goes" in render(findings, form)
        assert "client queue and daemon" in render(findings, form)
