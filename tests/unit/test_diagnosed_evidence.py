"""What the measurement itself does is no cause: it connects, opens files, begins slowly, has few objects."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from builders import trial_row

from leadline.store.tables import SeriesRow
from leadline.study.target import CephAccess, TargetFacts
from leadline.verdict.diagnosis.causes import applying, causes
from leadline.verdict.diagnosis.judge import diagnose
from leadline.verdict.diagnosis.samples import Figures, Samples
from leadline.verdict.diagnosis.trial_figures import between, figures_of, operation_s

S = 1_000_000_000
MIB = 1 << 20
JOB = json.dumps({"rw": "read", "numjobs": 1})


def named(*trials: Figures) -> list[str]:
    return [one.entry.name for one in diagnose(trials).named]


def begun(
    *rates: float, subject: str = "osd.1", metric: str = "connections_made", source: str = "ceph"
) -> list[SeriesRow]:
    """A sample each two seconds, the first of a trial's beginning."""
    return [
        SeriesRow("t0001", 2 * at * S, source, subject, metric, rate, "1/s")
        for at, rate in enumerate(rates, start=1)
    ]


def made_anew(series: list[SeriesRow], **changes: Any) -> Figures:
    row = replace(trial_row(), **{"ramp_ns": 0, "measured_ns": 8 * S, "job": JOB, **changes})
    here = [SeriesRow("t0001", 2 * S, "daemon", f"osd.{at}", "cpu", 0.1, "cores") for at in (1, 2)]
    return figures_of(row, (), Samples.of_rows(row, [*here, *series]), None)


def test_connections_that_a_trial_opens_when_it_begins_are_not_broken_ones() -> None:
    fresh = made_anew(begun(7.0, 0.0, 0.0, 0.0))
    assert fresh["connections_per_s"] == 0.0
    assert "connections_break" not in named(fresh)


def test_connections_that_break_all_the_time_are_named() -> None:
    broken = made_anew(begun(6.5, 5.5, 7.5, 6.5))
    assert broken["connections_per_s"] == pytest.approx(6.0)
    assert named(broken) == ["connections_break"]


def test_each_job_may_connect_to_each_osd_when_it_first_needs_it() -> None:
    late, job = begun(0.0, 8.0, 8.0, 8.0), {"rw": "read", "numjobs": 16}
    assert named(made_anew(late, job=json.dumps(job))) == []
    assert named(made_anew(late)) == ["connections_break"]


@pytest.mark.parametrize(
    "changes",
    [{"job": json.dumps({"command": "rados get"})}, {"measured_ns": S}],
    ids=["programs connect as they like", "a trial that ends as it begins"],
)
def test_nobody_can_tell_what_made_connections(changes: dict[str, Any]) -> None:
    rates = [7.0] if "measured_ns" in changes else [7.0] * 4
    assert made_anew(begun(*rates), **changes)["connections_per_s"] is None


def test_connections_of_others_to_the_same_cluster_are_not_broken_ones() -> None:
    """OSDs of other hosts count whoever connects; this host's own connections stand all the while."""
    elsewhere = begun(30.0, 30.0, 30.0, 30.0, subject="osd.99")
    own = begun(9.0, 0.0, 0.0, 0.0, subject="here", metric="new_connections", source="tcp")
    broken = begun(9.0, 4.0, 4.0, 4.0, subject="here", metric="new_connections", source="tcp")
    assert made_anew(elsewhere)["connections_per_s"] is None
    assert named(made_anew([*elsewhere, *own])) == []
    assert named(made_anew([*elsewhere, *broken])) == ["connections_break"]


def test_files_that_a_trial_opens_when_it_begins_are_no_requests_of_each_operation() -> None:
    def each(*rates: float) -> Figures:
        asked = begun(*rates, subject="mds.a", metric="client_requests")
        answered = begun(*[5.0] * len(rates), subject="mds.a", metric="reply_latency")
        found = made_anew([*asked, *answered], read_operations=80, write_operations=0)
        return {**found, "latency_s": 0.01}

    assert "metadata_each" not in named(each(100.0, 0.0, 0.0, 0.0))
    assert "metadata_each" in named(each(100.0, 20.0, 20.0, 20.0))


def test_a_first_slow_write_makes_no_osd_slow() -> None:
    def series(slow: str) -> list[SeriesRow]:
        """The first moment has one write of 300 ms on one OSD; later ones have a hundred."""
        found = []
        for osd in ("osd.0", "osd.1", "osd.2"):
            times = (300.0 if osd == "osd.0" else 5.0, *([90.0 if osd == slow else 5.0] * 3))
            found += begun(*times, subject=osd, metric="store_commit_latency")
            found += begun(1.0, 100.0, 100.0, 100.0, subject=osd, metric="operations_written")
        return found

    assert "osd_slow_device" not in named(made_anew(series("none")))
    assert "osd_slow_device" in named(made_anew(series("osd.2")))


def figures(
    *samples: tuple[str, str, str, float], facts: TargetFacts | None = None, asked: int = 8, **changes: Any
) -> Figures:
    """Of a trial that saw the same in each of four samples."""
    quiet = {"ramp_ns": 0, "measured_ns": 8 * S, "cpu_busy_share": 0.2, "other_cpu_share": 0.0}
    row = replace(trial_row(), **{**quiet, **changes})
    series = [
        SeriesRow("t0001", 2 * at * S, source, subject, metric, value, "")
        for at in range(1, 5)
        for source, subject, metric, value in samples
    ]
    return figures_of(row, (), Samples.of_rows(row, series), asked, target=facts)


def loaded(*operations: float) -> list[tuple[str, str, str, float]]:
    """Operations of each OSD; the thread of the first is busy."""
    found = [("ceph", f"osd.{at}", "operations_read", value) for at, value in enumerate(operations)]
    written = [("ceph", f"osd.{at}", "operations_written", float(at == 3)) for at in range(len(operations))]
    return [*found, *written, ("daemon", "osd.0/tp_osd_tp.7", "cpu", 0.75)]


def job(size: int, rw: str = "randread", jobs: int = 1) -> str:
    return json.dumps({"rw": rw, "size": size, "nrfiles": 1, "numjobs": jobs})


def test_few_objects_of_the_study_itself_lie_unevenly_by_chance() -> None:
    """Eight objects on four OSDs: recorded labs with nothing wrong had up to three times an even part."""
    uneven = loaded(300.0, 50.0, 30.0, 20.0)
    few, many = (figures(*uneven, job=job(size * MIB)) for size in (32, 32_768))
    assert few["loaded_osd_factor"] == many["loaded_osd_factor"] == pytest.approx(1200 / 401)
    assert few["loaded_osd"] == "osd.0"
    assert named(few) == []
    assert named(many) == ["osds_uneven"]


def test_what_is_read_in_order_touches_few_objects_of_a_large_file() -> None:
    uneven = loaded(300.0, 50.0, 30.0, 20.0)
    slow = figures(*uneven, job=job(1 << 40, "read"), total_read_bytes=40 * MIB, total_write_bytes=0)
    assert named(slow) == []


def test_a_pool_of_one_placement_group_is_named_where_requests_wait_for_its_osd() -> None:
    def of_pool(groups: int | None, in_flight: float, osds: int | None = 4) -> Figures:
        facts = TargetFacts("rados", "rados", "pool", ceph=CephAccess(groups=groups))
        state = "null" if osds is None else json.dumps({"osds": osds, "osds_up": osds})
        found = figures(*loaded(400.0, 0.0, 0.0, 0.0), facts=facts, job=job(32 * MIB), start_state=state)
        return {**found, "in_flight": in_flight, "osd_thread_share": 0.3}

    (cause,) = diagnose([of_pool(1, 8.0)]).named
    assert cause.entry.name == "pool_groups"
    assert "placement groups of the pool: 1, OSDs: 4" in cause.evidence
    assert named(of_pool(1, 1.0)) == []  # one request at a time waits for one OSD anyway
    assert "pool_groups" not in named(of_pool(64, 8.0))
    for unknown in (of_pool(None, 8.0), of_pool(1, 8.0, osds=None)):
        assert "pool_groups" in {one.entry.name for one in diagnose([unknown]).open}


def through_fuse(**settings: str) -> TargetFacts:
    ceph = CephAccess(client_pid=7, settings=settings, layout={"object_size": 4 * MIB, "stripe_count": 1})
    return TargetFacts("ceph-fuse", "fuse.ceph-fuse", "CephFS", ceph=ceph)


def test_a_read_ahead_of_a_page_is_named_where_streams_wait_for_it() -> None:
    facts = through_fuse(client_readahead_max_bytes="4096", client_readahead_max_periods="4")
    waiting = (
        ("client", "ceph-fuse.7", "operations_read", 400.0),
        *(("ceph", "osd.1", *one) for one in (("operations_read", 400.0), ("op_read_latency", 2.0))),
    )
    found = figures(*waiting, facts=facts, asked=1, job=json.dumps({"rw": "read", "numjobs": 1}))
    (cause,) = diagnose([found], applying(facts)).named
    assert (cause.entry.name, cause.title, cause.share) == (
        *("read_ahead_small", "a small read-ahead, 4 KiB", pytest.approx(0.8)),
    )
    at_random = figures(*waiting, facts=facts, asked=1, job=job(MIB))
    assert named(at_random) == []


@pytest.mark.parametrize(
    ("most", "periods", "ahead"),
    [("4096", "4", 4096.0), ("0", "4", 16.0 * MIB), ("0", "0", None), ("33554432", "4", 16.0 * MIB)],
)
def test_the_least_limit_of_a_read_ahead_holds(most: str, periods: str, ahead: float | None) -> None:
    facts = through_fuse(client_readahead_max_bytes=most, client_readahead_max_periods=periods)
    assert figures(facts=facts)["read_ahead_bytes"] == ahead


def test_devices_of_this_host_are_not_those_of_a_target_elsewhere() -> None:
    """A log, the result itself: another device may be busy, and nobody waits for it."""
    busy = [
        *(("host", "vda", metric, value) for metric, value in (("busy", 1.0), ("operations_written", 9.0))),
        *(("host", "vdb", metric, value) for metric, value in (("busy", 0.1), ("operations_written", 9.0))),
    ]
    far = TargetFacts("nfs", "nfs4", "NFS")
    near = TargetFacts("local", "ext4", "ext4 on vdb", device="vdb")
    lab = ("daemon", "osd.1", "cpu", 0.1)
    assert figures(*busy, facts=far)["device_share"] is None
    assert figures(*busy, facts=near)["device_share"] == pytest.approx(0.1)
    assert figures(*busy, lab, facts=far)["device_share"] == pytest.approx(1.0)


@pytest.mark.parametrize("own", ["engine_share", "cpu_share"])
def test_a_receiver_that_this_run_keeps_busy_is_not_accused(own: str) -> None:
    full = {**figures(), "receiver_full_share": 0.8, "receiver_full_at": "osd.1"}
    assert named(full) == ["receiver_full"]
    assert "receiver_full" not in named({**full, own: 0.97})


def slow_pings(**changes: Any) -> Figures:
    """Of a trial in which Ceph warns of slow pings, and the OSDs that run here wait for each other."""
    late = {"osd_peers_s": 0.08, "operation_s": 0.1, "osd_thread_share": 0.1, "cpu_share": 0.3}
    return {**made_anew([]), "pings_slow": 1.0, "health_checks": "OSD_SLOW_PING_TIME_BACK", **late, **changes}


def test_slow_pings_of_osds_that_run_here_name_the_network_where_nothing_here_explains_them() -> None:
    assert "pings_slow" in named(slow_pings())
    for other in (
        {"cpu_share": 0.99},
        {"cpu_share": None},
        {"osd_stopped_share": 0.1},
        {"osd_throttled_per_s": 5.0},
        {"osd_peers_s": 0.001},
    ):
        assert "pings_slow" not in named(slow_pings(**other)), other


def test_slow_pings_of_osds_that_run_elsewhere_are_named_whatever_this_host_does() -> None:
    assert "pings_slow" in named(slow_pings(osd_thread_share=None, cpu_share=0.85))


def test_a_store_that_commits_late_on_a_host_with_full_cpus_has_no_slow_device() -> None:
    late = {"slow_osd": "osd.1", "slow_osd_factor": 9.0, "slow_osd_commit_s": 0.2, "operation_s": 0.21}
    here = {**made_anew([]), **late, "osd_thread_share": 0.1, "cpu_share": 0.3}
    assert "osd_slow_device" in named(here)
    assert "osd_slow_device" not in named({**here, "cpu_share": 0.99})
    assert "osd_slow_device" in named({**here, "cpu_share": 0.99, "osd_thread_share": None})


def test_locks_of_few_requests_beside_many_writes_do_not_hold_the_writes_up() -> None:
    """As a gateway's load of 4 KiB writes had it, in which nothing was broken."""
    writes = {"operations_per_s": 300.0, "in_flight": 8.0, "asked": 8.0, "latency_s": 0.026}
    locks = {"mds_lock_part": 0.9, "mds_requests_per_s": 6.9, "mds_reply_s": 0.03}
    assert "mds_locks" not in named({**made_anew([]), **writes, **locks})
    many = {"mds_requests_per_s": 400.0}
    assert "mds_locks" in named({**made_anew([]), **writes, **locks, **many})


@pytest.mark.parametrize(
    ("each", "share"),
    [
        pytest.param(1.0, pytest.approx(0.958, abs=0.001), id="a read is an operation"),
        pytest.param(1.92, None, id="and the lock of a library another"),
        pytest.param(0.2, None, id="most are answered by a cache"),
        pytest.param(None, None, id="not observed"),
    ],
)
def test_only_of_requests_that_are_an_operation_each_the_rest_is_the_way_to_the_osds(
    each: float | None, share: object
) -> None:
    """Reads by libradosstriper take 6.2 ms, of which OSDs need 0.26: its locks are writes there."""
    found = between(
        {
            "write_share": 0.0,
            "latency_s": 0.0062,
            "osd_read_s": 0.00026,
            "osd_each": each,
            "osd_write_s": None,
        }
    )
    assert found["outside_osd_share"] == share
    figures = {**made_anew([]), **found, "latency_s": 0.0062, "request_bytes": 4096.0}
    assert ("on_the_way" in named(figures)) == (share is not None)


@pytest.mark.parametrize(
    ("writes", "read_s", "osd_s"),
    [(0.0, 0.001, 0.001), (0.3, 0.001, 0.0037), (0.3, None, None), (1.0, None, 0.010), (0.6, 0.001, 0.0064)],
)
def test_the_time_of_reads_and_writes_in_an_osd_is_the_mean_of_both(
    writes: float, read_s: float | None, osd_s: float | None
) -> None:
    """Of seven reads and three writes the writes take most; by reads alone it was the network that did."""
    times = {"latency_s": 0.005, "osd_read_s": read_s, "osd_write_s": 0.010, "osd_each": 1.0}
    found = between({**times, "write_share": writes})["osd_s"]
    assert found == (None if osd_s is None else pytest.approx(osd_s))


@pytest.mark.parametrize(("waited_s", "share"), [(0.0040, 0.8), (0.0052, 1.0), (0.0097, None)])
def test_a_wait_that_is_longer_than_the_request_is_no_part_of_it(waited_s: float, share: object) -> None:
    """Writes that a server caches go on while its own writes wait at the OSDs."""
    waiting = {"operation_s": 0.005, "write_share": 1.0, "osd_store_throttle_s": waited_s}
    (cause,) = diagnose([{**made_anew([]), **waiting}]).named
    assert (cause.entry.name, cause.share) == ("store_throttle", pytest.approx(share) if share else None)


@pytest.mark.parametrize(
    ("cut", "sent", "time_s"),
    [(8.2, 1.0, 0.080), (8.2, None, 0.646), (1.2, 1.0, 0.646), (None, None, 0.646)],
)
def test_a_slow_device_takes_the_time_of_each_piece_of_a_request(
    cut: float | None, sent: float | None, time_s: float
) -> None:
    """FUSE cuts 1 MiB into eight, one after the other: each waits 73 ms, and the whole 646 ms."""
    client = {"cut_into": cut, "client_in_flight": sent, "client_operations_per_s": 12.5, "latency_s": 0.646}
    found = operation_s(client)
    assert found == pytest.approx(time_s)
    slow = {"slow_osd": "osd.1", "slow_osd_factor": 25.0, "slow_osd_commit_s": 0.073, "operation_s": found}
    (cause,) = (*(one := diagnose([{**made_anew([]), **slow}])).named, *one.behind)
    assert (cause.entry.name, cause.share) == ("osd_slow_device", pytest.approx(0.073 / time_s))


def test_an_osds_time_is_held_against_the_operation_that_it_is_of_and_never_against_a_request_of_many() -> (
    None
):
    """A client may cut a request into pieces, and an OSD's counters are those of one piece."""
    wrong = [
        one.name
        for one in causes()
        for text in (one.seen, one.share, one.evidence)
        if re.search(r"\bosd_\w+_s\b", text) and re.search(r"\blatency_s\b", text)
    ]
    assert wrong == []
