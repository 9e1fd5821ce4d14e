"""Bytes over time: nothing is lost or doubled in the bins, whatever the calls and the batches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_tables import SECOND, segment, segments_table

from leadline.tracing.times import COLUMNS, OverTime, direction, over_time, over_time_of_heat
from leadline.workloads.replay.script import vocabulary


def summed(rows: list[dict], wall_s: float = 1.0, bins: int = 10, batch: int = 1000) -> OverTime:
    table = segments_table(rows).select(list(COLUMNS))
    found = over_time(table.to_batches(max_chunksize=batch), wall_s, [0], bins)
    assert found is not None
    return found


def test_a_call_within_a_bin_counts_there() -> None:
    found = summed([segment(start_ns=SECOND // 4, duration_ns=1000, result=100)])
    assert found.read == (0, 0, 100, 0, 0, 0, 0, 0, 0, 0)
    assert not any(found.written)


def test_a_long_call_is_spread_over_the_time_that_it_took() -> None:
    found = summed(
        [segment(call="pwrite64", start_ns=SECOND // 20, duration_ns=SECOND * 3 // 10, result=300)]
    )
    assert found.written == pytest.approx((50, 100, 100, 50, 0, 0, 0, 0, 0, 0))


def test_a_failed_call_moves_nothing_and_is_counted_as_failed() -> None:
    found = summed([segment(result=-5), segment(result=4096)])
    assert sum(found.read) == 4096
    assert [(c.call, c.count, c.failed, c.bytes) for c in found.calls] == [("pread64", 2, 1, 4096)]


def test_a_copy_within_the_kernel_is_read_and_written() -> None:
    found = summed([segment(call="copy_file_range", result=7)])
    assert (sum(found.read), sum(found.written)) == (7, 7)


def test_only_the_named_processes_have_rows_of_their_own() -> None:
    found = summed([segment(process=0, result=1), segment(process=5, result=2)])
    assert sum(found.read) == 3
    assert {number: sum(row) for number, row in found.read_by_process.items()} == {0: 1}


@pytest.mark.parametrize(
    ("call", "way"),
    [
        ("readv", "read"),
        ("__pread64_chk", "read"),
        ("fwrite", "write"),
        ("readlink", None),
        ("readdir", None),
        ("openat", None),
        ("sendfile", "both"),
        ("io_uring:write", "write"),
    ],
)
def test_a_call_moves_bytes_in_its_direction(call: str, way: str | None) -> None:
    assert direction(call) == way


@pytest.mark.parametrize("way", ["read", "write"])
def test_what_a_replay_reads_and_writes_has_its_bytes_in_the_course_of_time(way: str) -> None:
    calls = vocabulary()["replayed"][way]
    assert [call for call in calls if direction(call) != way] == []


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, SECOND), st.integers(0, 2 * SECOND), st.integers(-40, 1 << 40)),
        min_size=1,
        max_size=30,
    ),
    st.integers(1, 7),
)
def test_no_byte_within_the_run_is_lost_or_doubled(calls: list[tuple[int, int, int]], batch: int) -> None:
    rows = [segment(start_ns=start, duration_ns=took, result=moved) for start, took, moved in calls]
    found = summed(rows, wall_s=4.0, batch=batch)
    assert sum(found.read) == pytest.approx(sum(max(moved, 0) for _, _, moved in calls))
    assert min(found.read) >= -1e-3


def test_nothing_recorded_gives_nothing() -> None:
    assert over_time([], 1.0, []) is None


def test_sums_by_slices_keep_every_byte_and_their_process() -> None:
    slices = {
        "copy": 0,
        "process": 3,
        "layer": "POSIX",
        "bin_s": 0.5,
        "bytes_read": [8, 0, 4],
        "bytes_written": [0] * 3,
    }
    found = over_time_of_heat([slices, {**slices, "layer": "MPIIO"}], [3], bins=6)
    assert found is not None
    assert found.read == pytest.approx((4, 4, 0, 0, 2, 2))
    assert found.bin_s == pytest.approx(0.25)
    assert list(found.read_by_process) == [3]
    assert over_time_of_heat([], [3]) is None


def test_only_the_named_processes_have_rows_of_their_own_in_sums_by_slices() -> None:
    """A job of thousands of ranks would have a page of a hundred megabytes."""
    rows = [
        {"process": n, "layer": "POSIX", "bin_s": 1.0, "bytes_read": [n], "bytes_written": [1]}
        for n in range(5)
    ]
    found = over_time_of_heat(rows, [4, 1], bins=2)
    assert found is not None
    assert found.read == (5, 5)
    assert found.read_by_process == {1: (0.5, 0.5), 4: (2, 2)}
    assert found.written_by_process == {1: (0.5, 0.5), 4: (0.5, 0.5)}
