"""Known answers: on a mount whose delays and faults are known, latencies and errors come out as computed.

What a delay forbids is asserted exactly (nothing is quicker than it); what a busy host may add is not.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from core_jobs import SECOND_NS, job, merged

import slow_fuse
from leadline import _core
from slow_fuse import SlowMount

BLOCK = 4096
MS_NS = 1_000_000
# A histogram of 3 digits may give a value a thousandth lower than it was.
EXACT = 0.999

pytestmark = pytest.mark.skipif(slow_fuse.missing() is not None, reason=str(slow_fuse.missing()))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return slow_fuse.build()


@pytest.fixture
def slow(program: Path, tmp_path: Path) -> Iterator[SlowMount]:
    with slow_fuse.mounted(program, tmp_path) as mount:
        yield mount


def trial(slow: SlowMount, blocks: int, **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Lays out below the mount, without delay, and runs on it; summary and record."""
    options: dict[str, Any] = {"size": blocks * BLOCK, **changes}
    _core.layout(job(slow.backing, **options))
    record = slow.path.parent / "trial.llrec"
    summary = _core.run_trial(job(slow.path, **options), record)
    return summary, _core.read_record(record)


def percentiles(record: dict[str, Any], direction: str, clock: str, *asked: float) -> list[int]:
    return _core.histogram_percentiles(merged(record, direction, clock), list(asked))


@pytest.mark.parametrize("engine", ["psync", "io_uring"])
@pytest.mark.parametrize("rw", ["randread", "randwrite"])
def test_no_latency_is_below_the_delay_and_time_is_their_sum(slow: SlowMount, engine: str, rw: str) -> None:
    blocks, delay_ns = 25, 20 * MS_NS
    slow.rules(read_ms=20, write_ms=20)
    summary, record = trial(slow, blocks, engine=engine, rw=rw)
    direction = rw.removeprefix("rand")
    assert summary["total"][direction]["operations"] == blocks
    # The delay begins within the submission: so long it may be over before a completion is waited for.
    slowest_ns = max(percentiles(record, direction, "submission", 100), default=0)
    for clock, least_ns in (("total", delay_ns), ("completion", delay_ns - slowest_ns)):
        lowest, median, p99 = percentiles(record, direction, clock, 0, 50, 99)
        assert EXACT * least_ns <= lowest <= median <= p99 <= summary["last_done_ns"]
        # One after another: however busy the host is, together they cannot last longer than the trial.
        mean_ns = _core.histogram_summary(merged(record, direction, clock))["mean"]
        assert EXACT * mean_ns * blocks <= summary["last_done_ns"]
    assert summary["last_done_ns"] >= blocks * delay_ns


def test_directions_of_a_mix_keep_their_own_delays(slow: SlowMount) -> None:
    slow.rules(read_ms=2, write_ms=30)
    _, record = trial(slow, 60, rw="randrw", rwmixread=50)
    (read_median,) = percentiles(record, "read", "total", 50)
    (write_lowest,) = percentiles(record, "write", "total", 0)
    assert EXACT * 2 * MS_NS <= read_median < write_lowest
    assert write_lowest >= EXACT * 30 * MS_NS


def test_a_queue_before_one_server_waits_for_all_of_it(slow: SlowMount) -> None:
    """Little: with 8 always in flight and one served each 5 ms, the mean latency is 8 times 5 ms."""
    blocks, depth, delay_ns = 48, 8, 5 * MS_NS
    slow.rules(read_ms=5, servers=1)
    summary, record = trial(slow, blocks, engine="io_uring", iodepth=depth)
    assert summary["last_done_ns"] >= blocks * delay_ns
    in_flight_ns = sum(
        one["in_flight_mean"] * (one["end_ns"] - one["start_ns"])
        for one in record["intervals"]
        if one["direction"] == "read"
    )
    moments = _core.histogram_summary(merged(record, "read", "total"))
    assert moments["mean"] * blocks == pytest.approx(in_flight_ns, rel=0.02)
    # Until the last queue full, all slots are taken, but for the moment in which one is filled again.
    assert moments["mean"] >= 0.9 * depth * (blocks - depth) * delay_ns / blocks


def test_above_capacity_latency_from_the_intended_start_grows_by_what_is_lacking(slow: SlowMount) -> None:
    """Operation k is due at 5k ms and cannot end before 10 (k + 1) ms: it is 10 + 5k ms late at least."""
    blocks, delay_ns, gap_ns = 60, 10 * MS_NS, 5 * MS_NS
    slow.rules(read_ms=10)
    summary, record = trial(slow, blocks, rate_iops=200.0, deadline_ns=60 * SECOND_NS)
    assert (summary["state"], summary["total"]["read"]["operations"]) == ("complete", blocks)
    for percentile in (10, 25, 50, 75, 90, 99):
        (found,) = percentiles(record, "read", "intended", percentile)
        rank = -(-percentile * blocks // 100)  # as a percentile counts: the rank-th smallest
        assert found >= EXACT * (delay_ns + (rank - 1) * gap_ns), percentile
    (total,) = percentiles(record, "read", "total", 50)
    (intended,) = percentiles(record, "read", "intended", 50)
    # Seen from their real starts the operations look quick: that is what the correction is for.
    assert EXACT * delay_ns <= total < intended / 2
    assert (
        _core.histogram_summary(merged(record, "read", "intended"))["max"] <= summary["last_done_ns"] * 1.001
    )
    pacer = summary["pacer"]
    assert pacer["waited_share"] >= (blocks - 1) / blocks - 1e-9
    assert pacer["late_ns_max"] >= (blocks - 1) * (delay_ns - gap_ns)


def test_below_capacity_the_two_latencies_agree(slow: SlowMount) -> None:
    slow.rules(read_ms=5)
    summary, record = trial(slow, 30, rate_iops=20.0, deadline_ns=60 * SECOND_NS)
    (total,) = percentiles(record, "read", "total", 50)
    (intended,) = percentiles(record, "read", "intended", 50)
    assert EXACT * 5 * MS_NS <= total <= intended * 1.001
    # The 30th is due 29 gaps of 50 ms after the first.
    assert summary["last_done_ns"] >= 29 * 50 * MS_NS + 5 * MS_NS


@pytest.mark.parametrize("engine", ["psync", "io_uring"])
@pytest.mark.parametrize(
    ("code", "kind"),
    [(errno.EIO, "io"), (errno.ESTALE, "stale"), (errno.ENOSPC, "no_space"), (errno.ENOTCONN, "vanished")],
)
def test_an_error_of_the_storage_arrives_with_its_file_and_offset(
    slow: SlowMount, engine: str, code: int, kind: str
) -> None:
    slow.rules(error=code, fails=range(16 * BLOCK, 17 * BLOCK))
    for rw, operation in (("read", "read"), ("write", "write")):
        summary, _ = trial(slow, 32, engine=engine, rw=rw, overwrite=rw == "write")
        error = summary["error"]
        assert summary["state"] == "error"
        assert (error["kind"], error["operation"], error["errno"]) == (kind, operation, code)
        assert (error["file"], error["offset"]) == (str(slow.path / "data.0.0"), 16 * BLOCK)
        assert os.strerror(code) in error["message"]
        assert summary["total"][operation]["bytes"] == 16 * BLOCK


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize("engine", ["psync", "io_uring", "mmap"])
def test_a_target_that_became_read_only_is_named(tmp_path: Path, engine: str) -> None:
    place = tmp_path / "place"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "small", place], check=True)
    try:
        _core.layout(job(place))
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        summary = _core.run_trial(job(place, engine=engine, rw="randwrite"), tmp_path / "trial.llrec")
        reads = _core.run_trial(job(place, engine=engine), tmp_path / "trial.llrec")
        with pytest.raises(OSError, match="Read-only") as caught:
            _core.layout(job(place, prefix="other"))
    finally:
        subprocess.run(["umount", place], check=True)
    error = summary["error"]
    assert (summary["state"], error["kind"], error["operation"]) == ("error", "io", "open")
    assert (error["errno"], error["file"]) == (errno.EROFS, str(place / "data.0.0"))
    assert reads["state"] == "complete"
    assert (caught.value.errno, str(caught.value.filename)) == (errno.EROFS, str(place / "other.0.0"))


@pytest.mark.parametrize("engine", ["psync", "io_uring"])
def test_an_operation_longer_than_ramp_and_runtime_is_measured(slow: SlowMount, engine: str) -> None:
    """A row that is too slow for its runtime is the worst of a comparison, and must not be lost."""
    slow.rules(write_ms=400, servers=1)
    size = 4 << 20
    options = {"rw": "write", "bs": size, "engine": engine, "time_based": True, "iodepth": 1}
    times = {"ramp_time_ns": 100 * MS_NS, "runtime_ns": 200 * MS_NS}
    summary, _ = trial(slow, size // BLOCK, **options, **times)
    measured = summary["directions"]["write"]
    assert measured["operations"] >= 1
    assert summary["measured_ns"] > times["runtime_ns"]
