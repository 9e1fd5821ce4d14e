"""What bounds a cell: causes that hold for made figures, and what is not told where nobody could see it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from builders import trial_row

from leadline.errors import SpecError
from leadline.store.tables import SeriesRow
from leadline.study.target import CephAccess, TargetFacts
from leadline.verdict.diagnosis.causes import FIGURES, CauseInTrial, applying, causes, judged, read_causes
from leadline.verdict.diagnosis.ceilings import Ceiling, RateCeilings, TrialSeen, ceilings, should_of
from leadline.verdict.diagnosis.judge import diagnose
from leadline.verdict.diagnosis.samples import Figures, Samples, outlier
from leadline.verdict.diagnosis.section import found_json, measured_by
from leadline.verdict.diagnosis.trial_figures import figures_of

S = 1_000_000_000


def rows(*samples: tuple[str, str, str, float]) -> list[SeriesRow]:
    """Each as it was sampled in six seconds."""
    return [
        SeriesRow("t0001", at * S, source, subject, metric, value, "")
        for at in range(1, 7)
        for source, subject, metric, value in samples
    ]


def seen(*samples: tuple[str, str, str, float], asked: int | None = None, **changes: Any) -> Figures:
    """The figures of a trial of six seconds, on a quiet host."""
    quiet = {"cpu_busy_share": 0.2, "cpu_steal_share": 0.0, "other_cpu_share": 0.0, "busy_share_max": 0.1}
    row = replace(trial_row(), ramp_ns=0, measured_ns=6 * S, **{**quiet, **changes})
    return figures_of(row, (), Samples.of_rows(row, rows(*samples)), asked)


def named(*trials: Figures) -> list[str]:
    return [one.entry.name for one in diagnose(trials).named]


def port(name: str, rate: float, sent: float) -> list[tuple[str, str, str, float]]:
    return [("wire", name, "rate_bytes_per_s", rate), ("wire", name, "tx_bytes_per_s", sent)]


def test_nothing_seen_is_nothing_said() -> None:
    """Not even by what nobody could see: each figure that is needed is None."""
    row = replace(trial_row(), cpu_busy_share=None)
    found = diagnose([figures_of(row, (), Samples(row, {}), None)])
    assert found.outcome == "undecided"
    assert found.behind == ()
    assert "link_full" in {one.entry.name for one in found.open}


def test_a_full_port_is_named_with_its_rate() -> None:
    full = seen(*port("client1", 25e6, 23.5e6), *port("disk1", 125e6, 20e6), *port("disk2", 125e6, 20e6))
    (cause,) = diagnose([full]).named
    assert cause.entry.name == "link_full"
    assert cause.title == "a full link, client1"
    assert cause.share == pytest.approx(23.5 / 25 / 0.956)
    half = seen(*port("client1", 25e6, 12e6), *port("disk1", 125e6, 20e6))
    assert named(half) == []


def test_a_cause_holds_in_most_of_the_trials_or_not_at_all() -> None:
    full, free = seen(*port("client1", 25e6, 23.5e6)), seen(*port("client1", 25e6, 2e6))
    assert named(full, full, free) == ["link_full"]
    assert named(full, free, free) == []


def test_what_a_counter_says_by_itself_stands_before_what_is_full() -> None:
    slow, periods = ("daemon", "osd.1", "throttled", 9.0), ("daemon", "osd.1", "periods", 10.0)
    assert named(seen(*port("client1", 25e6, 23.5e6), slow, periods)) == ["osd_throttled", "link_full"]
    little = ("daemon", "osd.1", "throttled", 1.5)
    assert named(seen(*port("client1", 25e6, 23.5e6), little, periods)) == ["link_full"]


def test_a_cause_that_nothing_measures_is_present_and_stands_after_what_is_measured() -> None:
    """By the trials that show it, and never by a constant."""
    full = {**seen(*port("client1", 25e6, 23.5e6)), "pgs_snaptrim": 2.0}
    found = diagnose([{**full, **HOLDS["mds_cache"]}, {**full, **HOLDS["mds_cache"]}, full])
    assert [one.entry.name for one in found.named] == ["link_full", "snaptrim", "mds_cache"]
    assert [one.share is None for one in found.named] == [False, True, True]
    assert [one.held for one in found.named] == [3, 3, 2]
    assert found.words.endswith("snapshot trimming (present) and the metadata server's cache (present)")
    for one in found_json(found)["named"]:
        assert (one["share"] is None) == (one["share_kind"] is None) == bool(one["measured_by"])


def test_what_was_not_observed_makes_no_share_of_everything() -> None:
    """`least` passes over what is not known: a request whose reply time nobody saw took 90 %."""
    each = {**seen(), **HOLDS["metadata_each"], "mds_reply_s": None}
    (cause,) = diagnose([each]).named
    assert (cause.entry.name, cause.share, cause.lacks) == ("metadata_each", None, ("mds_reply_s",))
    assert cause.words.endswith("(present)")
    assert "ceph tell mds.0 perf dump" in measured_by(cause)


@pytest.mark.parametrize("state", ["versions_differ", "deferred_writes", "store_amplifies", "frequency"])
def test_a_state_of_which_nothing_waits_is_never_what_bounds(state: str) -> None:
    """Small writes are written twice on every lab, with nothing wrong."""
    found = diagnose([{**seen(), **HOLDS[state]}])
    assert (found.outcome, found.named) == ("undecided", ())
    assert [one.entry.name for one in found.behind] == [state]


def test_how_full_a_part_is_does_not_hide_where_the_time_goes() -> None:
    """Shares of one kind are compared, and a depth that is used up stands behind a part of the time."""
    late = {**seen(), **HOLDS["peers_late"], **HOLDS["latency_bound"]}
    assert named(late) == ["peers_late"]
    full = {**seen(*port("client1", 25e6, 23.5e6)), **HOLDS["store_device"], "osd_aio_wait_s": 0.045}
    assert named(full) == ["link_full"]  # as waits for the device are not judged beside a full port


def test_how_long_an_event_held_is_measured_over_the_samples() -> None:
    quiet = {"checks": {}, "flags": [], "osds": 4, "osds_up": 4, "recovering": False}
    state = json.dumps({**quiet, "osds_up": 3})
    row = replace(trial_row(), ramp_ns=0, measured_ns=6 * S, start_state=state, end_state=json.dumps(quiet))
    up = [
        SeriesRow("t0001", at * S, "ceph", "cluster", "osds_up", 3.0 if at <= 3 else 4.0, "")
        for at in range(1, 7)
    ]
    figures = figures_of(row, (), Samples.of_rows(row, up), None)
    (cause,) = diagnose([figures]).named
    assert (cause.entry.name, cause.share, cause.entry.share_kind) == ("osds_lost", 0.5, "part")


def test_two_at_once_are_both_named() -> None:
    found = seen(("daemon", "osd.1", "throttled", 9.0), ("daemon", "mds.a", "throttled", 8.0))
    assert named(found) == ["osd_throttled", "mds_throttled"]


def test_an_osd_is_slow_beside_others_and_not_by_itself() -> None:
    commits = {"osd.0": 10.0, "osd.1": 12.0, "osd.2": 90.0}
    samples = [("ceph", osd, "store_commit_latency", value) for osd, value in commits.items()]
    assert named(seen(*samples)) == ["osd_slow_device"]
    assert named(seen(*[("ceph", osd, "store_commit_latency", 90.0) for osd in commits])) == []
    assert outlier({"a": 1.0, "b": 9.0}) is None


def test_an_osd_that_waits_for_its_device_is_told_from_one_that_shares_it() -> None:
    def waiting(*shares: float) -> Figures:
        return seen(*[("daemon", f"osd.{at}", "blocked", share) for at, share in enumerate(shares)])

    assert named(waiting(0.0, 1.0, 0.1)) == ["osd_waits_for_device"]
    assert named(waiting(0.9, 1.0, 0.8)) == []
    assert named(waiting(1.0)) == []


def test_the_states_of_a_cluster() -> None:
    def state(**changes: Any) -> str:
        quiet = {"checks": {}, "flags": [], "osds": 4, "osds_up": 4, "recovering": False}
        return json.dumps({**quiet, **changes})

    assert named(seen(start_state=state(osds_up=3), end_state=state())) == ["osds_lost"]
    full = {"OSD_NEARFULL": "1 nearfull osd(s)"}
    assert named(seen(start_state=state(), end_state=state(checks=full))) == ["nearly_full"]
    assert named(seen(start_state=state(), end_state=state(recovering=True))) == ["recovery"]
    assert named(seen(start_state=state(), end_state=state())) == []


def test_too_little_in_flight_only_where_nothing_is_full() -> None:
    quiet = {**seen(asked=1), "in_flight": 0.97, "latency_s": 0.01}
    assert named(quiet) == ["latency_bound"]
    assert named({**quiet, "cpu_share": 0.9}) == ["host_cpu"]
    assert named({**quiet, "in_flight": 0.3}) == []
    assert named({**quiet, "port_share": 0.95, "port": "client1", "port_rate": 1e7}) == ["link_full"]


def test_every_figure_is_said_what_it_is() -> None:
    assert set(seen()) == set(FIGURES)


def test_every_cause_can_be_judged_and_says_what_to_do() -> None:
    every: Figures = {name: ("x" if isinstance(value, str) else 0.0) for name, value in seen().items()}
    texts = seen(("daemon", "osd.1", "throttled", 1.0))
    every |= {name: "osd.1" for name, value in texts.items() if isinstance(value, str)}
    assert set(judged([every])[0]) == {one.name for one in causes()}
    for one in causes():
        assert set(one.needs) <= set(every), one.name
        assert one.remedy, one.name
        assert one.experiment, one.name


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"told": "loudly"}, "told: .loudly. is not one of them"),
        ({"colour": "red"}, "colour: unknown key"),
        ({"share_kind": "more or less"}, "measured by nothing"),
    ],
)
def test_an_entry_that_is_wrong_is_named(change: dict[str, str], complaint: str) -> None:
    entry = {
        "told": "full",
        "needs": [],
        "share_kind": "time",
        **dict.fromkeys(
            ("title", "means", "seen", "share", "evidence", "experiment", "remedy", "price", "source"), "x"
        ),
    }
    with pytest.raises(SpecError, match=complaint):
        read_causes(json.dumps({"mine": {**entry, **change}}), "osd")
    (one,) = read_causes(json.dumps({"mine": {**entry, "seen": "no_such_figure > 1"}}), "osd")
    with pytest.raises(SpecError, match="no_such_figure"):
        judged([seen()], (one,))


# What each cause is told by, on a host where nothing else was seen.
HOLDS: dict[str, dict[str, float | str]] = {
    "latency_bound": {"asked": 4.0, "in_flight": 3.9, "cpu_share": 0.2},
    "sync_each_write": {"syncs_per_write": 1.0, "sync_latency_s": 0.01, "latency_s": 0.001},
    "metadata_each": {
        "metadata_per_operation": 2.0,
        "mds_reply_s": 0.01,
        "latency_s": 0.001,
        "operations_per_s": 5.0,
    },
    "client_thread": {"client_thread": "fuse", "client_thread_share": 0.95},
    "client_throttled": {"throttled_per_s": 9.0},
    "load_generator": {"engine_share": 0.99, "submission_share": 0.9},
    "client_cache_full": {"client_blocked_per_s": 5e6, "bytes_per_s": 1e7},
    "others_here": {"other_cpu_share": 0.6, "cpu_share": 0.95},
    "stolen": {"steal_share": 0.4},
    "host_cpu": {"cpu_share": 0.97},
    "device_here": {"device_share": 1.0},
    "device_latency": {"device_request_s": 0.002, "latency_s": 0.002, "device_carried": 1.0},
    "client_in_turn": {
        **{"asked": 16.0, "in_flight": 16.0, "client_in_flight": 2.0},
        **{"operations_per_s": 600.0, "client_operations_per_s": 600.0},
    },
    "memory_short": {"memory_stalled_share": 0.5, "memory_available": 1e6},
    "frequency": {"governor": "powersave", "latency_s": 0.0005, "cpu_share": 0.2},
    "deep_sleep": {"wake_s": 0.0002, "latency_s": 0.0005, "cpu_share": 0.2},
    "memory_nodes": {"memory_nodes": 2.0, "bytes_per_s": 3e9},
    "addresses_translated": {"addresses_translated": 1.0, "bytes_per_s": 3e9},
    "link_full": {"port": "client1", "port_share": 0.97, "port_rate": 1e7},
    "link_shared": {"port": "client1", "port_share": 0.97, "port_rate": 1e7, "port_own_share": 0.3},
    "links_in_turn": {"port": "disk1", "port_share": 0.6, "ports_share": 0.95},
    "link_full_here": {"link_share": 0.95},
    "packets_lost": {"resent_share": 0.05, "resent_per_s": 90.0, "resent_at": "osd.1"},
    "packets_vanish": {"unanswered_share": 0.9, "unanswered_at": "osd.1"},
    "connections_break": {"connections_per_s": 12.0},
    "receiver_full": {"receiver_full_share": 0.8, "receiver_full_at": "here"},
    "pings_slow": {"pings_slow": 1.0},
    "on_the_way": {"outside_osd_share": 0.9, "latency_s": 0.1, "osd_s": 0.01, "request_bytes": 4096.0},
    "peers_late": {
        **{"write_share": 1.0, "osd_peers_s": 0.08, "operation_s": 0.1, "request_bytes": 4096.0},
        **{"osd_write_s": 0.09, "osd_store_commit_s": 0.001},
    },
    "proxy_stopped": {"proxy_stopped": "proxy.xrootd.1", "proxy_stopped_share": 0.5, "behind_server": 1.0},
    "proxy_throttled": {
        "proxy_throttled": "proxy.xrootd.1",
        "proxy_throttled_per_s": 9.0,
        "behind_server": 1.0,
    },
    "proxy_pieces": {"behind_server": 1.0, "request_bytes": 1048576.0, "transfer_bytes": 65536.0},
    "proxy_one_connection": {
        **{"behind_server": 1.0, "server_connections": 1.0, "asked": 8.0, "in_flight": 8.0},
        **{"cpu_share": 0.2, "bytes_per_s": 1e8},
    },
    "proxy_cpu": {"proxy_thread": "proxy.xrootd.1/x", "proxy_thread_share": 0.99, "behind_server": 1.0},
    "osd_stopped": {"osd_stopped": "osd.1", "osd_stopped_share": 0.9},
    "osd_throttled": {"osd_throttled": "osd.1", "osd_throttled_per_s": 9.0},
    "osd_slow_device": {
        **{"slow_osd": "osd.1", "slow_osd_factor": 9.0},
        **{"slow_osd_commit_s": 0.2, "operation_s": 0.21},
    },
    "osd_waits_for_device": {"blocked_osd": "osd.1", "blocked_osd_share": 0.9, "blocked_others_share": 0.1},
    "osds_uneven": {
        "loaded_osd": "osd.1",
        "loaded_osd_factor": 2.9,
        "osd_thread_share": 0.75,
        "chance_factor": 1.1,
    },
    "osd_cpu": {"osd_thread": "osd.1/tp_osd_tp", "osd_thread_share": 0.97},
    "osd_last": {
        **{"last_osd": "osd.1", "last_osd_share": 0.9, "last_others_share": 0.1, "operations_joined": 20.0},
        **{"osd_peers_part": 0.9, "write_share": 1.0},
    },
    "osd_logs": {"logging_osd": "osd.1", "logging_share": 0.3},
    "osd_queue": {
        **{"write_share": 1.0, "osd_write_queue_s": 0.08, "osd_queue_share": 0.9},
        "operation_s": 0.09,
    },
    "store_flush": {
        **{"write_share": 1.0, "osd_kv_sync_s": 0.05, "osd_write_s": 0.09},
        **{"osd_store_commit_s": 0.08, "operation_s": 0.1},
    },
    "store_device": {"write_share": 1.0, "osd_aio_wait_s": 0.08, "operation_s": 0.1},
    "store_log_queue": {
        **{"write_share": 1.0, "osd_kv_queued_s": 0.08, "osd_kv_sync_s": 0.01},
        "operation_s": 0.1,
    },
    "store_throttle": {"write_share": 1.0, "osd_store_throttle_s": 0.08, "operation_s": 0.1},
    "deferred_writes": {
        **{"write_share": 1.0, "osd_deferred_share": 0.9, "osd_store_commit_s": 0.05},
        "operation_s": 0.1,
    },
    "store_amplifies": {"write_share": 1.0, "request_bytes": 4096.0, "store_amplification": 20.0},
    "osd_scheduler": {"mclock_waiting": 40.0, "osd_queue_share": 0.9, "osd_thread_share": 0.2},
    "too_few_groups": {
        **{"groups_per_osd": 4.0, "loaded_osd": "osd.1", "loaded_osd_factor": 2.5},
        "chance_factor": 1.1,
    },
    "pool_groups": {
        **{"pool_groups": 1.0, "osds": 4.0, "loaded_osd": "osd.1", "loaded_osd_factor": 4.0},
        "in_flight": 8.0,
    },
    "read_ahead_small": {
        **{"read_ahead_bytes": 4096.0, "streamed": 1.0, "asked": 1.0, "in_flight": 1.0},
        **{"client_operations_per_s": 400.0, "osd_read_s": 0.002},
    },
    "slow_interface": {"link_share": 0.97, "faster_link_factor": 10.0},
    "slow_port": {
        **{"slowest_port": "host2", "slowest_port_factor": 8.0},
        **{"port": "host2", "port_share": 0.8, "port_rate": 6e6},
    },
    "half_duplex": {"half_duplex": 1.0, "half_duplex_at": "eth1"},
    "own_computing": {"asked": 4.0, "in_flight": 0.4, "pause_s": 0.01},
    "read_ahead": {"streamed": 1.0, "asked": 1.0, "in_flight": 1.0, "cpu_share": 0.2, "bytes_per_s": 5e7},
    "fuse_requests": {
        **{"cut_into": 8.0, "client_thread": "fuse", "client_thread_share": 0.6, "request_bytes": 1048576.0},
        "operations_per_s": 10.0,
    },
    "mds_one_rank": {"mds_thread": "mds.a/ms", "mds_thread_share": 0.97, "mds_ranks": 1.0},
    "read_modify_write": {
        "coded": 1.0,
        "write_share": 1.0,
        "osd_penalty_reads": 2.0,
        "request_bytes": 4096.0,
    },
    "osds_lost": {"osds_down": 1.0, "health_checks": "OSD_DOWN"},
    "recovery": {"recovering": 1.0, "recovery_per_s": 1e7, "bytes_per_s": 1e7, "pgs_not_clean": 9.0},
    "scrub": {"pgs_scrubbing": 2.0},
    "snaptrim": {"pgs_snaptrim": 2.0},
    "nearly_full": {"full_count": 1.0, "full_checks": "OSD_NEARFULL"},
    "cluster_paused": {"paused": 1.0, "flags": "pauserd, pausewr"},
    "out_of_room": {"no_room": 1.0},
    "monitor_lost": {"monitors_down": 1.0},
    "manager_lost": {"managers_down": 1.0},
    "clocks_apart": {"clocks_apart": 1.0},
    "versions_differ": {"versions_differ": 1.0},
    "mds_stopped": {"mds_stopped": "mds.a", "mds_stopped_share": 0.9},
    "mds_throttled": {"mds_throttled": "mds.a", "mds_throttled_per_s": 9.0},
    "mds_cpu": {"mds_thread": "mds.a/ms_dispatch", "mds_thread_share": 0.95, "mds_requests_per_s": 900.0},
    "mds_cache": {"cache_oversized": 1.0, "mds_inodes": 9.0, "mds_caps": 5.0},
    "mds_journal": {"journal_behind": 1.0, "mds_journal_s": 0.1},
    "mds_locks": {"mds_lock_part": 0.8, "mds_requests_per_s": 90.0, "mds_reply_s": 0.02},
    "mds_recall": {"caps_recalled": 1.0, "mds_caps": 9.0},
}


@pytest.mark.parametrize("cause", [one.name for one in causes()])
def test_each_cause_holds_by_what_it_is_told_by_and_not_without(cause: str) -> None:
    quiet = seen()
    assert set(HOLDS[cause]) <= set(quiet)
    found = diagnose([{**quiet, **HOLDS[cause]}])
    assert cause in {one.entry.name for one in (*found.named, *found.behind)}
    assert "not known" not in " ".join(one.title for one in found.named)
    before = diagnose([quiet])
    assert cause not in {one.entry.name for one in (*before.named, *before.behind)}


def test_a_local_file_system_has_neither_links_nor_osds() -> None:
    local = TargetFacts("local", "ext4", "ext4 on vda")
    assert {one.place for one in applying(local)} == {"load", "client", "host"}
    assert "client_thread" not in {one.name for one in applying(local)}
    assert "client_throttled" in {one.name for one in applying(local)}
    on_ceph = replace(local, access="ceph-fuse", ceph=CephAccess())
    assert {one.place for one in applying(on_ceph)} == {one.place for one in causes()} - {"proxy"}


@pytest.mark.parametrize(
    "facts",
    [
        TargetFacts("rados", "rados", "RADOS pool data", ceph=CephAccess()),
        TargetFacts("libcephfs", "cephfs", "CephFS through libcephfs", ceph=CephAccess()),
        TargetFacts("local", "ext4", "ext4 on vda"),
    ],
    ids=lambda facts: facts.access,
)
def test_what_no_ceph_fuse_serves_is_not_bound_by_one_of_the_same_host(facts: TargetFacts) -> None:
    """Another target's, or somebody else's: neither named, nor left open, nor a figure of this trial."""
    of_fuse = {"client_thread", "client_in_turn", "client_cache_full", "fuse_requests"}
    assert not of_fuse & {one.name for one in applying(facts)}
    through_one = replace(facts, access="ceph-fuse", ceph=CephAccess())
    assert of_fuse <= {one.name for one in applying(through_one)}
    samples = rows(("client", "ceph-fuse.7", "operations_in_flight", 1.0))
    row = replace(trial_row(), ramp_ns=0, measured_ns=6 * S)
    figures = figures_of(row, (), Samples.of_rows(row, samples), 8, target=facts)
    assert figures["client_in_flight"] is None


def test_what_no_client_caches_is_not_bound_by_a_read_ahead() -> None:
    rados = TargetFacts("rados", "rados", "RADOS pool data", ceph=CephAccess())
    assert "read_ahead" not in {one.name for one in applying(rados)}
    assert "read_ahead" in {one.name for one in applying(replace(rados, access="libcephfs"))}


def test_whom_writes_wait_for_is_told_by_looks_where_there_are_enough() -> None:
    found = [("ceph", f"osd.{at}", "seen_alone", count) for at, count in enumerate((0.0, 3.0, 0.0))]
    remembered = [("ceph", f"osd.{at}", "came_last", share) for at, share in enumerate((0.9, 0.0, 0.0))]
    looks = [*found, ("ceph", "cluster", "seen_parts_of", 4.0)]
    by_looks = seen(*looks, *remembered)
    assert (by_looks["last_osd"], by_looks["last_osd_share"]) == ("osd.1", 0.75)
    assert by_looks["operations_joined"] == 24.0
    few = seen(("ceph", "cluster", "seen_parts_of", 1.0), *found, *remembered)
    assert (few["last_osd"], few["last_osd_share"]) == ("osd.0", 0.9)


def test_reads_for_parts_of_stripes_are_told_only_where_clients_hardly_read() -> None:
    def reads(asked: float) -> float:
        found = seen(
            ("ceph", "osd.0", "operations_written", 100.0),
            ("ceph", "osd.0", "operations_read", asked),
            ("ceph", "osd.0", "penalty_reads", 10.0),
            ("ceph", "osd.0", "store_reads", 200.0 + asked),
        )
        assert isinstance(found["osd_penalty_reads"], float)
        return found["osd_penalty_reads"]

    assert reads(0.0) == pytest.approx(2.1)
    assert reads(4.0) == pytest.approx(2.1)  # what clients asked for is not for parts of stripes
    assert reads(90.0) == pytest.approx(0.1)


@pytest.mark.parametrize(("counted", "first"), [(0.4, "direct"), (0.2, "rest")])
def test_what_is_left_over_is_named_only_where_no_counter_says_a_share(counted: float, first: str) -> None:
    direct, rest = (next(one for one in causes() if one.told == told) for told in ("direct", "rest"))
    shares = {direct.name: counted, rest.name: 0.6}
    said = {name: CauseInTrial(name, holds=True, share=share) for name, share in shares.items()}
    found = diagnose([seen()], (direct, rest), [said])
    assert [one.entry.told for one in found.named] == [first]
    assert len(found.behind) == 1


def test_trials_that_name_different_osds_name_no_osd() -> None:
    def slow(name: str) -> Figures:
        return {
            **seen(),
            "slow_osd": name,
            "slow_osd_factor": 9.0,
            "slow_osd_commit_s": 0.2,
            "operation_s": 0.21,
        }

    assert named(slow("osd.1"), slow("osd.1")) == ["osd_slow_device"]
    assert named(slow("osd.1"), slow("osd.2")) == []
    assert named(slow("osd.1"), slow("osd.2"), slow("osd.1")) == ["osd_slow_device"]


def test_what_a_manifest_says_of_links() -> None:
    row = replace(trial_row(), wire_limit_bytes_per_s=125_000_000)
    host = {"links": "eth0 1000 full, eth1 10000 half, eth2 fast"}
    found = figures_of(row, (), Samples(row, {}), None, host=host)
    assert (found["half_duplex"], found["half_duplex_at"]) == (1.0, "eth1")
    assert found["faster_link_factor"] == pytest.approx(10.0)
    none = figures_of(row, (), Samples(row, {}), None)
    assert (none["half_duplex"], none["faster_link_factor"]) == (None, None)


@pytest.mark.parametrize(
    ("job", "streamed"),
    [
        ({"rw": "read"}, 1.0),
        ({"rw": "read", "direct": True}, 0.0),
        ({"rw": "randread"}, 0.0),
        ({"jobs": [{"rw": "read"}, {"rw": "write"}]}, 0.0),
        ({"operations": ["stat"]}, None),
    ],
)
def test_what_reads_in_order_through_caches(job: dict[str, Any], streamed: float | None) -> None:
    assert seen(job=json.dumps(job))["streamed"] == streamed


def test_a_thread_that_is_busy_for_a_moment_is_not_full() -> None:
    trial = replace(trial_row(), ramp_ns=0, measured_ns=6 * S)
    busy = [SeriesRow("t0001", 2 * S, "daemon", "osd.1/tp_osd_tp.7", "cpu", 0.96, "cores")]
    others = [SeriesRow("t0001", at * S, "daemon", "osd.2/msgr.9", "cpu", 0.1, "cores") for at in range(1, 7)]
    found = figures_of(trial, (), Samples.of_rows(trial, [*busy, *others]), None)
    assert found["osd_thread"] == "osd.1/tp_osd_tp"
    assert found["osd_thread_share"] == pytest.approx(0.16)


def test_what_is_passed_by_more_than_measurements_scatter_is_no_ceiling() -> None:
    def should(rate: float) -> RateCeilings | None:
        figures = {**seen(), "bytes_per_s": rate}
        ceilings = (Ceiling(100.0, "what is in flight"), Ceiling(900.0, "a link"))
        return should_of([TrialSeen(trial_row(), figures, ceilings, 1)])

    near, far = should(110.0), should(150.0)
    assert near is not None
    assert far is not None
    assert (near.ceilings[0].by, near.share) == ("what is in flight", 1.0)
    assert (far.ceilings[0].by, far.share) == ("a link", pytest.approx(150 / 900))
    assert should(2000.0) is None


@pytest.mark.parametrize(("used", "share"), [(0.2, 0.2), (0.9, None)])
def test_a_thread_that_nobody_saw_is_cleared_by_its_process_and_never_accused(
    used: float, share: float | None
) -> None:
    found = seen(*(("daemon", f"osd.{at}", "cpu", used) for at in range(4)))
    assert found["osd_cores"] == pytest.approx(4 * used)
    assert found["osd_thread_share"] == share
    assert "osd_cpu" not in named(found)


def test_a_client_that_sends_few_is_named_where_its_requests_are_the_works() -> None:
    found = {**seen(), **HOLDS["client_in_turn"]}
    assert named(found) == ["client_in_turn"]
    assert "client_in_turn" not in named({**found, "client_in_flight": 14.0})
    assert "client_in_turn" not in named({**found, "client_operations_per_s": 0.0})
    assert "client_in_turn" not in named({**found, "asked": 1.0, "client_in_flight": 0.2})
    assert "client_in_turn" not in named({**found, "pause_s": 0.1})


def test_of_several_mounts_only_the_targets_own_is_asked() -> None:
    def figures(pid: int | None, *pids: int) -> Figures:
        row = replace(trial_row(), ramp_ns=0, measured_ns=6 * S)
        seen_there = [("client", f"ceph-fuse.{one}", "operations_in_flight", float(one)) for one in pids]
        busy = [("client", f"ceph-fuse.{one}/fn.{one}", "cpu", one / 100) for one in pids]
        facts = TargetFacts("ceph-fuse", "CephFS", "CephFS", ceph=CephAccess(client_pid=pid))
        return figures_of(row, (), Samples.of_rows(row, rows(*seen_there, *busy)), None, target=facts)

    both = figures(70, 40, 70)
    assert (both["client_in_flight"], both["client_thread_share"]) == (70.0, pytest.approx(0.7))
    assert figures(None, 40)["client_in_flight"] == 40.0
    assert figures(9, 40)["client_in_flight"] == 40.0  # mounted anew since it was planned
    unknown = figures(9, 40, 70)
    assert (unknown["client_in_flight"], unknown["client_thread_share"]) == (None, None)


def test_time_at_the_targets_own_device_is_told_from_writing_back() -> None:
    def figures(device: str | None) -> Figures:
        row = replace(trial_row(), ramp_ns=0, measured_ns=6 * S, device_read_bytes=9000, read_bytes=9000)
        row = replace(row, device_written_bytes=0, write_bytes=0)
        queued = [("host", "sda", "queue", 8.0), ("host", "sda", "operations_read", 400.0)]
        facts = TargetFacts("local", "ext4", "ext4 on sda", device=device)
        return figures_of(row, (), Samples.of_rows(row, rows(*queued)), None, target=facts)

    at_device = figures("sda")
    assert (at_device["device_carried"], at_device["device_request_s"]) == (1.0, 0.02)
    assert named({**at_device, "latency_s": 0.024}) == ["device_latency"]
    assert named({**at_device, "latency_s": 0.2}) == []
    # What is written back meanwhile is at the device, too, and nobody waits for it.
    assert named({**at_device, "latency_s": 0.001}) == []
    assert named({**at_device, "latency_s": 0.024, "device_carried": 0.1}) == []
    assert figures(None)["device_request_s"] is None


def test_in_flight_is_no_ceiling_where_requests_are_cut_into_pieces() -> None:
    facts, row = TargetFacts("ceph-fuse", "CephFS", "CephFS"), trial_row()
    figures = {**seen(), "asked": 16.0, "request_bytes": 4096.0, "operations_per_s": 100.0}

    def allowed(pieces: float, **changes: float) -> list[tuple[float, str]]:
        samples = Samples.of_rows(row, rows(("ceph", "osd.1", "operations_written", 100.0 * pieces)))
        found = ceilings(row, samples, {**figures, **changes}, facts)
        return [(round(one.bytes_per_s), one.by.partition(" latency of ")[2]) for one in found]

    assert allowed(1.0, osd_s=0.002) == [(16 * 4096 * 500, "an OSD")]
    assert allowed(8.0, osd_s=0.002) == []
    device = {"device_request_s": 0.004, "device_request_bytes": 4096.0, "device_carried": 1.0}
    assert allowed(1.0, **device) == [(16 * 4096 * 250, "the device")]
    assert allowed(1.0, **{**device, "device_request_bytes": 1024.0}) == []
    assert allowed(1.0, **{**device, "device_carried": 0.1}) == []


def test_how_a_mount_asks_its_server_is_told_by_its_options() -> None:
    def figures(*options: str, write: int = 0) -> Figures:
        row = replace(trial_row(), read_operations=1 - write, write_operations=write)
        facts = TargetFacts("a", "b", "c", options=options)
        return figures_of(row, (), Samples(row, {}), None, target=facts)

    read = figures("rw", "rsize=65536", "wsize=131072", "proto=tcp")
    assert (read["transfer_bytes"], read["server_connections"]) == (65536.0, 1.0)
    assert figures("rsize=65536", "wsize=131072", write=1)["transfer_bytes"] == 131072.0
    assert figures("proto=tcp6", "nconnect=4")["server_connections"] == 4.0
    assert figures("rsize=auto", "proto=rdma")["transfer_bytes"] is None
    for options in (("vers=3.1.1",), ("proto=rdma",), ()):
        assert figures(*options)["server_connections"] is None


def test_what_was_done_before_a_trial_is_no_sample_of_it() -> None:
    """Samplers run on: the first sample of a trial may have the writes that laid out its files."""
    row = replace(trial_row(), ramp_ns=0, measured_ns=6 * S)
    late = [SeriesRow("t0001", at * S + S // 4, "host", "sda", "written", 0.0, "") for at in range(1, 6)]
    first = SeriesRow("t0001", S // 4, "host", "sda", "written", 16e6, "")
    assert Samples.of_rows(row, [first, *late]).mean("host", "sda", "written") == 0.0
    most = replace(first, t_ns=3 * S // 4)  # most of its time is the trial's
    assert Samples.of_rows(row, [most, *late]).mean("host", "sda", "written") > 0.0
