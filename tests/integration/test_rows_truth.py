"""What a run stores of a trial against what its study had it do, counted here block by block."""

from __future__ import annotations

import os

import pytest

from forking import Forks
from leadline import _core
from leadline.store.reader import Result, open_result
from leadline.store.tables import LatencyRow, TrialRow

STUDY = """
format: leadline.study/1
blocks: 1
limits: {reserve: 1M}
defaults: {engine: psync, direct: false, size: 4M}
works:
  whole_write: {rw: write, bs: 64k, fsync: 16}
  whole_read: {rw: read, bs: 64k, verify: true}
  ramped: {rw: randread, bs: 4k, size: 1M, rate_iops: 200, time_based: true, ramp_time: 300ms, runtime: 500ms}
"""
BYTES, BLOCK = 4 << 20, 64 << 10


@pytest.fixture(scope="module")
def result(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Result:
    place = tmp_path_factory.mktemp("rows")
    (place / "target").mkdir()
    (place / "study.yaml").write_text(STUDY)
    words = ("--target", f"a={place / 'target'}", "--out", str(place / "r"), "--no-ceph")
    forks.command(("run", str(place / "study.yaml"), *words), dict(os.environ), 120)
    return open_result(place / "r")


def row_of(result: Result, work: str) -> TrialRow:
    (row,) = (row for row in result.trials() if row.work == work)
    assert row.state == "complete", row.error
    return row


def latencies(result: Result, row: TrialRow) -> tuple[LatencyRow, list[LatencyRow]]:
    """Of a trial's reads, from their actual start: the whole measured interval, and each interval."""
    found = [
        one
        for one in result.latency()
        if (one.trial, one.direction, one.clock) == (row.trial, "read", "total")
    ]
    (whole,) = (one for one in found if one.interval < 0)
    return whole, [one for one in found if one.interval >= 0]


def test_a_row_has_every_byte_and_operation_that_was_written(result: Result) -> None:
    row = row_of(result, "whole_write")
    assert (row.write_bytes, row.total_write_bytes, row.write_operations) == (BYTES, BYTES, BYTES // BLOCK)
    assert row.sync_operations == BYTES // BLOCK // 16 + 1  # and one at the end, as buffered writes have
    assert (row.read_bytes, row.total_read_bytes, row.read_operations) == (0, 0, 0)


def test_a_row_has_every_byte_and_operation_that_was_read_and_verified(result: Result) -> None:
    row = row_of(result, "whole_read")
    assert (row.read_bytes, row.total_read_bytes, row.read_operations) == (BYTES, BYTES, BYTES // BLOCK)
    assert (row.write_bytes, row.total_write_bytes, row.write_operations) == (0, 0, 0)
    assert row.verified_blocks == BYTES // 4096


def test_the_ramp_is_in_the_total_and_not_in_what_was_measured(result: Result) -> None:
    row = row_of(result, "ramped")
    _, intervals = latencies(result, row)
    ramp = sum(one.operations for one in intervals if not one.measured)
    measured = sum(one.operations for one in intervals if one.measured)
    assert ramp > 0
    assert measured > 0
    assert (row.read_operations, row.read_bytes) == (measured, 4096 * measured)
    assert row.total_read_bytes == 4096 * (ramp + measured)


def test_the_latencies_of_the_measured_interval_are_those_of_all_its_operations(result: Result) -> None:
    row = row_of(result, "ramped")
    whole, intervals = latencies(result, row)
    assert whole.operations == row.read_operations
    assert _core.histogram_summary(whole.histogram)["count"] == row.read_operations
    assert whole.max_ns == max(one.max_ns for one in intervals if one.measured)


def test_rates_are_over_the_time_in_which_the_operations_were_measured(result: Result) -> None:
    row = row_of(result, "ramped")
    whole, _ = latencies(result, row)
    assert whole.start_ns == row.ramp_ns
    # What was in flight at its end is drained after it.
    assert row.measured_ns <= whole.end_ns - whole.start_ns < 1.5 * row.measured_ns
