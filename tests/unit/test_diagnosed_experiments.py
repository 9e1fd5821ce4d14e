"""Which experiment is chosen by what the likely causes predict, and which of them its outcome speaks for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from test_cli_options import parsed
from test_diagnosed import seen

from leadline.cli.explain.active import AskedExperiment
from leadline.verdict.diagnosis.experiments import choose, decide, possible
from leadline.verdict.diagnosis.judge import Diagnosed, diagnose

JOB: dict[str, Any] = {
    **{"rw": "randread", "bs": 4096, "size": 1 << 26, "numjobs": 1, "iodepth": 4, "engine": "io_uring"},
    **{"rate_iops": None, "rate_bytes_per_s": None, "bssplit": None, "fsync": 0, "fdatasync": 0},
}


def found(**figures: Any) -> Diagnosed:
    """With everything seen: nothing is left that cannot be ruled out."""
    return replace(diagnose([{**seen(), **figures}]), open=())


def experiments(**changes: Any) -> dict[str, dict[str, Any]]:
    return {one.name: dict(one.changes) for one in possible({**JOB, **changes}, "io")}


def test_one_option_is_changed_at_a_time() -> None:
    assert experiments() == {
        "depth": {"iodepth": 8},
        "jobs": {"numjobs": 2, "iodepth": 2},
        "block": {"bs": 8192},
    }
    assert experiments(engine="psync", iodepth=1) == {"depth": {"numjobs": 2}, "block": {"bs": 8192}}
    assert experiments(fsync=1)["syncs"] == {"fsync": 0, "fdatasync": 0}
    assert "block" not in experiments(bssplit="4k/50:8k/50")
    assert "block" not in experiments(bs=1 << 26)


def test_an_open_loop_has_no_experiment() -> None:
    assert experiments(rate_iops=100.0) == {}
    assert [one.name for one in possible({**JOB, "numjobs": 2}, "metadata")] == ["depth"]
    assert list(possible(JOB, "pipeline")) == []


def test_a_full_link_is_held_against_too_little_in_flight() -> None:
    chosen = choose(found(port="client1", port_share=0.97, port_rate=1e7), tuple(possible(JOB, "io")))
    assert chosen is not None
    assert chosen.experiment.name in ("depth", "block")
    assert {one.cause.name: one.ratio for one in chosen.predictions} == {"link_full": 1, "latency_bound": 2}
    same = decide(chosen, 1.02, 0.97, 1.07)
    assert [one.cause.name for one in same.for_it] == ["link_full"]
    assert [one.cause.name for one in same.against] == ["latency_bound"]
    twice = decide(chosen, 1.9, 1.8, 2.0)
    assert [one.cause.name for one in twice.for_it] == ["latency_bound"]
    neither = decide(chosen, 1.4, 1.39, 1.41)
    assert neither.for_it == ()


def test_a_load_generator_is_told_by_more_jobs() -> None:
    chosen = choose(found(engine_share=0.99, submission_share=0.9), tuple(possible(JOB, "io")))
    assert chosen is not None
    assert chosen.experiment.name in ("jobs", "depth")


def test_without_syncs_the_time_is_what_is_left() -> None:
    slow = found(syncs_per_write=1.0, sync_latency_s=0.03, latency_s=0.01)
    chosen = choose(slow, tuple(possible({**JOB, "fsync": 1, "rw": "randwrite"}, "io")))
    assert chosen is not None
    predicted = {one.cause.name: one.ratio for one in chosen.predictions}
    assert chosen.experiment.name == "syncs"
    assert predicted == {"sync_each_write": pytest.approx(4.0), "latency_bound": 1}


def test_a_cause_that_stands_alone_is_held_against_no_change() -> None:
    seen = {"asked": 1.0, "in_flight": 1.0, "cpu_share": 0.2, "device_share": 0.01}
    chosen = choose(found(**seen), tuple(possible({**JOB, "iodepth": 1, "engine": "psync"}, "io")))
    assert chosen is not None
    assert chosen.experiment.name == "depth"


def test_where_all_predict_the_same_nothing_is_run() -> None:
    assert choose(found(osds_down=1.0, health_checks="OSD_DOWN"), tuple(possible(JOB, "io"))) is None
    assert choose(found(), ()) is None


def test_what_nobody_could_see_is_weighed_too() -> None:
    """In flight all the time, and no link was seen: nor any thread: that one is full is held against it."""
    blind = diagnose([{**seen(), "asked": 1.0, "in_flight": 0.98, "latency_s": 0.01}])
    chosen = choose(blind, tuple(possible(JOB, "io")))
    assert chosen is not None
    assert {"latency_bound", "client_thread"} <= {one.cause.name for one in chosen.predictions}


def test_an_interval_that_holds_both_tells_nothing() -> None:
    chosen = choose(found(port="client1", port_share=0.97, port_rate=1e7), tuple(possible(JOB, "io")))
    assert chosen is not None
    assert not decide(chosen, 1.4, 0.9, 2.2).tells
    assert decide(chosen, 1.0, 0.9, 1.1).tells
    assert decide(chosen, 1.4, 1.39, 1.41).tells


def test_an_experiment_is_run_as_any_study_unless_told_by_name() -> None:
    """On a cluster in trouble, and on a lab with a fault in force, it adds no load."""
    usual = AskedExperiment(None, 60.0, None, yes=True, trusted=False)
    told = replace(usual, ignore_health=True, under_fault=True)

    assert not usual.choices.ignore_health
    assert not usual.choices.under_fault
    assert told.choices.ignore_health
    assert told.choices.under_fault
    assert parsed("diagnose", "r", "--active", "--ignore-health")["ignore_health"]
    assert not parsed("diagnose", "r", "--active")["ignore_health"]
