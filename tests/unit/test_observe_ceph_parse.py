"""What Ceph answers becomes numbers, for several releases; what one lacks is not observable, never 0."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from leadline.counters.catalogue import read_at, sampled
from leadline.observe.ceph import parse
from leadline.observe.ceph.cluster import active_mds, client_counters, osd_counters, state_rows
from leadline.observe.ceph.osds import Dump
from leadline.observe.reading import ClusterState, group_is_clean

DATA = Path(__file__).parents[1] / "data" / "observe"


def load(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text())


def figures_of_osd(dump: Any) -> dict[str, int | None]:
    return {figure.name: parse.figure_in(dump, figure, "osds") for figure in read_at("osds")}


def wire_of_client(dump: Any) -> tuple[int | None, int | None]:
    sent, received = (
        parse.figure_in(dump, figure, "client")
        for figure in read_at("client")
        if figure.client_part == "messengers"
    )
    return sent, received


def test_bytes_of_an_osd() -> None:
    found = figures_of_osd(load("pacific_osd_perf_dump"))
    assert found["osd_read_bytes"] == 25165824
    assert found["osd_written_bytes"] == 33554944
    assert found["osd_subop_received_bytes"] == 29597658
    assert found["store_read_bytes"] == 25179053
    # data 60841984 + 125162, padding 360371, BlueFS log 3670016, write-ahead log 12300288, tables 8192
    assert found["store_written_bytes"] == 60841984 + 125162 + 360371 + 3670016 + 12300288 + 8192


def test_later_names_give_the_same_figures() -> None:
    pacific, later = load("pacific_osd_perf_dump"), load("later_osd_perf_dump")
    assert figures_of_osd(later) == figures_of_osd(pacific)
    for figure in sampled("osd"):
        if figure.kind == "mean":
            assert parse.average(later, figure.names) == parse.average(pacific, figure.names)
            assert parse.average(later, figure.names) is not None


@pytest.mark.parametrize(
    ("section", "name", "field"),
    [
        ("osd", "op_in_bytes", "osd_written_bytes"),
        ("bluestore", "bluestore_write_small_bytes", "store_written_bytes"),
        ("bluefs", "bytes_written_wal", "store_written_bytes"),
    ],
)
def test_missing_counter_is_not_observable(section: str, name: str, field: str) -> None:
    dump = load("pacific_osd_perf_dump")
    del dump[section][name]
    assert figures_of_osd(dump)[field] is None
    found = osd_counters({0: Dump(0.0, dump), 1: Dump(0.0, load("pacific_osd_perf_dump"))}, 28)
    missing = {key for key, value in found.values.items() if value is None}
    assert len(missing) == 1
    assert "osd.0" in found.reasons[missing.pop()]


def test_sum_over_osds_is_unknown_when_one_is_silent() -> None:
    found = osd_counters({0: Dump(0.0, load("pacific_osd_perf_dump")), 3: "no answer within 1.5 s"}, 28)
    assert set(found.values.values()) == {None}
    assert found.reasons["osd_read_bytes"] == "1 of 2 OSDs did not answer; osd.3: no answer within 1.5 s"


def test_source_of_a_sum_changes_when_an_osd_was_restarted() -> None:
    dumps = {osd: Dump(0.0, load("pacific_osd_perf_dump")) for osd in (0, 1, 2, 5)}
    before, after = osd_counters(dumps, 28), osd_counters(dumps, 31)
    assert (
        before.sources["osd_read_bytes"]
        == "perf counters of 4 OSDs (0-2,5, last up in epoch 28), everybody's I/O"
    )
    assert before.sources != after.sources


def test_messengers_of_a_client_are_added() -> None:
    dump = load("pacific_client_perf_dump")
    sent, received = wire_of_client(dump)
    assert sent == 8430909 + 33719832 + 42170644
    assert received == 8421882 + 25303023 + 33740445
    del dump["AsyncMessenger::Worker-1"]["msgr_send_bytes"]
    assert wire_of_client(dump) == (None, received)
    assert wire_of_client({"client": {}}) == (None, None)
    # One direction alone would be held against another source's: neither is observable.
    assert client_counters(dump, "of the client daemon").values["wire_received_bytes"] is None


def test_rates_and_latencies_between_two_dumps() -> None:
    before = load("pacific_osd_perf_dump")
    after = copy.deepcopy(before)
    after["osd"]["op_in_bytes"] += 10 << 20
    after["osd"]["op_w_latency"]["avgcount"] += 10
    after["osd"]["op_w_latency"]["sum"] += 0.05
    figures = sampled("osd")
    rows = {metric: (value, unit) for metric, value, unit in parse.perf_rows(before, after, 5.0, figures)}
    assert rows["client_written"] == (2 << 20, "B/s")
    assert rows["client_read"] == (0.0, "B/s")
    assert rows["op_write_latency"] == (pytest.approx(5.0), "ms")
    assert "op_read_latency" not in rows  # nothing was read: no mean, not a mean of 0


def test_restarted_daemon_gives_no_rate() -> None:
    before = load("pacific_osd_perf_dump")
    after = copy.deepcopy(before)
    after["osd"]["op_in_bytes"] = 5
    after["osd"]["op_w_latency"] = {"avgcount": 1, "sum": 0.001}
    figures = sampled("osd")
    metrics = {metric for metric, _, _ in parse.perf_rows(before, after, 5.0, figures)}
    assert "client_written" not in metrics
    assert "op_write_latency" not in metrics
    assert "client_read" in metrics


@pytest.mark.parametrize("name", ["pacific_client_perf_dump", "pacific_mds_perf_dump"])
def test_all_tabled_counters_are_in_what_was_recorded(name: str) -> None:
    dump = load(name)
    figures = sampled("client" if "client" in name else "mds")
    averages = [figure for figure in figures if figure.kind == "mean"]
    numbers = [figure for figure in figures if figure.kind != "mean"]
    assert averages
    assert numbers
    assert [figure.metric for figure in averages if parse.average(dump, figure.names) is None] == []
    assert [figure.metric for figure in numbers if parse.number(dump, figure.names) is None] == []


def test_osd_perf_of_two_releases() -> None:
    assert parse.osd_perf(load("pacific_osd_perf"))[0] == (2.0, 2.0)
    assert parse.osd_perf(load("luminous_osd_perf")) == {0: (4.0, 5.0)}
    assert parse.osd_perf({}) == {}


def test_clean_cluster() -> None:
    state = parse.cluster_state(load("pacific_status_clean"), load("pacific_osd_dump"))
    assert state.clean
    assert state.health == "HEALTH_WARN"
    assert state.pgs == {"active+clean": 33}
    assert state.degraded_objects == 0
    assert state.slow_ops == 0
    assert state.nearfull_share == pytest.approx(0.85)
    assert ClusterState.from_json(json.loads(json.dumps(state.as_json()))) == state


def test_slow_operations_and_flags() -> None:
    state = parse.cluster_state(load("pacific_status_slow_ops"), load("pacific_osd_dump"))
    assert state.slow_ops == 1
    assert state.flags == ("noscrub",)
    assert "SLOW_OPS" in state.checks


def test_an_operation_that_has_just_become_slow_counts() -> None:
    """Ceph's own words at that moment, as a lab printed them."""
    status = load("pacific_status_slow_ops")
    words = "0 slow ops, oldest one blocked for 30 sec, osd.3 has slow ops"
    status["health"]["checks"]["SLOW_OPS"]["summary"]["message"] = words
    assert parse.cluster_state(status, None).slow_ops == 1


def test_degraded_cluster() -> None:
    state = parse.cluster_state(load("pacific_status_degraded"), load("pacific_osd_dump"))
    assert not state.clean
    assert state.degraded_objects == 16
    assert (state.osds, state.osds_up, state.osds_in) == (4, 3, 4)
    assert ("ceph", "cluster", "pgs_not_clean", 17.0, "count") in state_rows(state)


def test_recovery_and_scrub() -> None:
    state = parse.cluster_state(load("status_recovering"), None)
    assert state.recovering
    assert state.scrubbing == 2
    assert state.misplaced_objects == 31
    assert state.flags is None
    assert state.full_share is None


def test_older_status() -> None:
    state = parse.cluster_state(load("luminous_status"), None)
    assert state.osds == 4
    assert state.slow_ops == 12
    assert parse.osdmap_epoch(load("luminous_status")) == 26
    assert parse.osdmap_epoch(load("pacific_status_clean")) == 26


def test_degraded_groups_without_a_count_are_not_observable() -> None:
    status = load("status_recovering")
    del status["pgmap"]["degraded_objects"]
    assert parse.cluster_state(status, None).degraded_objects is None
    assert parse.cluster_state({}, None).degraded_objects is None
    assert not parse.cluster_state({}, None).clean


@pytest.mark.parametrize(
    ("state", "clean"),
    [
        ("active+clean", True),
        ("active+clean+scrubbing+deep", True),
        ("stale+active+clean", False),
        ("active+clean+inconsistent", False),
        ("active+undersized+degraded", False),
        ("unknown", False),
    ],
)
def test_states_of_placement_groups(state: str, clean: bool) -> None:
    assert group_is_clean(state) is clean


def test_osds_and_their_addresses() -> None:
    dump = load("pacific_osd_dump")
    assert parse.up_osds(dump) == (0, 1, 2)
    assert parse.osd_addresses(dump) == ("127.0.0.1",)
    assert parse.last_up_epoch(dump) is not None
    assert parse.last_up_epoch({}) is None
    assert parse.osd_addresses({"osds": [{"up": 1, "public_addr": "[fd00::1]:6800/1"}]}) == ("fd00::1",)


def test_active_metadata_servers() -> None:
    assert active_mds(load("pacific_status_clean")) == ("a",)
    assert active_mds({}) == ()
