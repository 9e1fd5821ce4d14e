"""The open loop: rates are kept, and a target too slow for its rate shows in the intended latency."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from core_jobs import MIB, SECOND_NS, job, merged, run

from leadline import _core


@pytest.mark.parametrize("engine", ["psync", "null"])
@pytest.mark.parametrize("arrival", ["constant", "poisson"])
def test_a_rate_is_kept_over_all_threads(tmp_path: Path, engine: str, arrival: str) -> None:
    changes: dict[str, Any] = {"engine": engine, "arrival": arrival, "rate_iops": 2000.0, "numjobs": 2}
    changes |= {"time_based": True, "runtime_ns": SECOND_NS}
    _core.layout(job(tmp_path, **changes))
    summary, record = run(tmp_path, **changes)
    # A Poisson count of 2,000 has a standard deviation of 45: five of them; constant arrivals have none.
    allowed = 225 if arrival == "poisson" else 20
    operations, pacer = summary["total"]["read"]["operations"], summary["pacer"]
    assert operations <= 2000 + allowed
    # A disk that others use does not follow, and what is late at the end is never begun: the pacer's own
    # account of it is the test's, since how fast the machine is just now is no matter of the pacer.
    slowest_ns = _core.histogram_percentiles(merged(record, "read", "intended"), [100.0])[0]
    assert operations + 2000 * slowest_ns / SECOND_NS >= 2000 - allowed
    assert pacer["late_ns_max"] >= pacer["late_ns_mean"] >= 0


def test_a_rate_in_bytes_is_a_rate_of_blocks(tmp_path: Path) -> None:
    """64 blocks at 64 a second: never sooner, and later only by what the pacer says that it was late."""
    changes: dict[str, Any] = {"engine": "null", "rate_bytes_per_s": 4 * MIB, "bs": 1 << 16, "size": 4 * MIB}
    summary, _ = run(tmp_path, **changes)
    assert summary["total"]["read"]["operations"] == 64
    assert summary["measured_ns"] >= 63 * SECOND_NS // 64
    # Whoever has the processors meanwhile makes the last one late; half the rate would take twice the second.
    assert summary["measured_ns"] - summary["pacer"]["late_ns_max"] < 3 * SECOND_NS // 2


def test_a_target_too_slow_for_the_rate_shows_in_the_intended_latency_only(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"bs": MIB, "size": 16 * MIB, "verify": True, "rate_iops": 1e6}
    changes |= {"time_based": True, "runtime_ns": SECOND_NS // 2}
    _core.layout(job(tmp_path, **changes))
    summary, record = run(tmp_path, **changes)
    intended, total = (
        _core.histogram_percentiles(merged(record, "read", clock), [50.0])[0]
        for clock in ("intended", "total")
    )
    assert intended > 10 * total
    pacer = summary["pacer"]
    assert pacer["waited_share"] > 0.9
    # What was late was the target, not the pacer.
    assert pacer["own_late_ns_mean"] < pacer["late_ns_mean"] / 10


def test_intended_latency_is_never_below_the_actual(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"engine": "null", "rate_iops": 500.0, "arrival": "poisson"}
    _, record = run(tmp_path, **changes, time_based=True, runtime_ns=SECOND_NS // 2)
    means = {
        clock: _core.histogram_summary(merged(record, "read", clock))["mean"]
        for clock in ("intended", "total")
    }
    assert means["intended"] >= means["total"]


def test_a_low_rate_is_of_the_time_that_was_asked_and_not_of_its_last_operation(tmp_path: Path) -> None:
    """One operation each second and a half: the second is due when the time is over."""
    changes: dict[str, Any] = {"engine": "null", "rate_iops": 2 / 3, "time_based": True}
    summary, _ = run(tmp_path, **changes, runtime_ns=SECOND_NS)
    assert summary["total"]["read"]["operations"] == 1
    assert summary["last_done_ns"] < SECOND_NS / 2
    assert summary["measured_ns"] == SECOND_NS
