"""Shares and speeds of traces: the definitions of docs/trace.md, on tables small enough to reckon by hand."""

from __future__ import annotations

import pytest
from trace_tables import SECOND, file_row, files_table, process, tables

from leadline.tracing.figures import shares, speeds, wall_seconds
from leadline.tracing.slowest import slowest_process
from leadline.tracing.tables import TraceTables


def test_one_process_has_the_same_share_by_both_definitions() -> None:
    seconds = {"read": 0.25, "write": 0.125, "meta": 0.125, "sync": None}
    own = shares(tables(processes=(process(seconds=seconds),)), 1.0).whole
    counted = files_table([file_row(F_READ_TIME=0.25, F_WRITE_TIME=0.125, F_META_TIME=0.125)])
    darshan = shares(tables(processes=(process(seconds={}),), files=counted), 1.0).whole
    for found in (own, darshan):
        assert (found.read, found.write, found.meta, found.rest) == (0.25, 0.125, 0.125, 0.5)
    assert (own.basis, darshan.basis) == ("process time", "run time x processes")


def test_what_the_tracer_took_itself_is_in_no_share() -> None:
    """A tenth of a second of reading in half a second of the program's own."""
    slowed = tables(processes=(process(tracer_ns=SECOND // 2),))
    share = shares(slowed, 1.0).whole
    assert (share.base_s, share.read, share.rest) == pytest.approx((0.5, 0.2, 0.8))
    threads = tables(processes=(process(tracer_ns=SECOND // 2, threads=5),))  # they may have recorded at once
    assert shares(threads, 1.0).whole.base_s == pytest.approx(0.9)
    hardly_more = tables(processes=(process(tracer_ns=SECOND),))  # never less than it spent in I/O
    assert shares(hardly_more, 1.0).whole.base_s == pytest.approx(0.1)


def test_a_shell_that_waits_for_its_child_counts_no_time() -> None:
    shell = process(0, seconds={"read": 0.0, "write": 0.0, "meta": 0.0, "sync": 0.0})
    child = process(1, parent=0, seconds={"read": 0.5, "write": 0.0, "meta": 0.0, "sync": 0.0})
    found = shares(tables(processes=(shell, child)), 1.0).whole
    assert (found.base_s, found.read, found.rest) == (1.0, 0.5, 0.5)


def test_a_shell_waits_for_its_child_through_its_exec_and_through_its_own() -> None:
    """As the kernel's tracer sees a fork: the child's first image ends at once, and its second runs."""
    nothing = {"read": 0.0, "write": 0.0, "meta": 0.0, "sync": 0.0}
    half, rest = SECOND // 10, SECOND // 2
    rows = (
        process(0, pid=7, ended_ns=rest, end="exec", seconds=nothing),
        process(1, pid=8, parent=0, ended_ns=half, end="exec", seconds=nothing),
        process(2, pid=8, parent=1, started_ns=half, seconds=nothing),
        process(3, pid=7, parent=0, started_ns=rest, seconds=nothing),
    )
    assert shares(tables(processes=rows), 1.0).whole.base_s == pytest.approx(1.0)


def test_threads_in_io_for_longer_than_their_process_lived_leave_no_known_remainder() -> None:
    found = shares(
        tables(processes=(process(seconds={"read": 3.0, "write": 1.0, "meta": 0, "sync": 0}),)), 1.0
    )
    assert found.whole.overlapped
    assert (found.whole.read, found.whole.write, found.whole.rest) == (0.75, 0.25, None)


@pytest.mark.parametrize(
    "note", ["asynchronous I/O", "io_uring", "io_submit: the end of 2 operations is not in the log"]
)
def test_requests_beside_the_program_leave_no_known_remainder(note: str) -> None:
    found = shares(tables(processes=(process(notes=[note]),)), 1.0)
    assert found.whole.overlapped
    assert (found.whole.read, found.whole.rest, found.whole.compute) == (0.1, None, None)


def test_each_copy_has_its_own_shares_and_all_together_weigh_by_time() -> None:
    quick = process(0, copy=0, seconds={"read": 0.5, "write": 0, "meta": 0, "sync": 0})
    slow = process(1, copy=1, ended_ns=3 * SECOND, seconds={"read": 0.0, "write": 0, "meta": 0, "sync": 0})
    found = shares(tables(processes=(quick, slow)), 3.0)
    assert [part.read for part in found.copies] == [0.5, 0.0]
    assert found.whole.read == pytest.approx(0.125)


def test_shares_that_a_source_cannot_give_are_unknown_not_zero() -> None:
    found = shares(
        tables(processes=(process(seconds={}),), files=files_table([file_row(READS=3)])), 1.0
    ).whole
    assert (found.read, found.write, found.meta, found.rest) == (None, None, None, None)


def test_the_slowest_process_decides_the_speed_over_io_time() -> None:
    rows = [
        file_row(0, process=0, BYTES_READ=100, F_READ_TIME=0.5, F_META_TIME=0.5),
        file_row(1, process=1, BYTES_WRITTEN=300, F_WRITE_TIME=4.0),
        file_row(2, process=1, module="MPI-IO", BYTES_WRITTEN=300, F_WRITE_TIME=4.0),
    ]
    processes = (process(0, bytes_read=100), process(1, bytes_read=0, bytes_written=300))
    found = speeds(tables(processes=processes, files=files_table(rows)), 8.0)
    assert (found.agg_perf_by_slowest, found.wall_throughput) == (100.0, 50.0)


def spanning(*spans: tuple[float, float]) -> TraceTables:
    """Processes of one program that read for 0.2 s each, and the last one for 0.9 s, within these spans."""
    rows = [
        file_row(place, process=place, F_READ_START_TIMESTAMP=start, F_READ_END_TIMESTAMP=end)
        for place, (start, end) in enumerate(spans)
    ]
    read_s = [0.2] * (len(spans) - 1) + [0.9]
    processes = [
        process(place, pid=100 + place, seconds={"read": seconds, "write": 0, "meta": 0, "sync": 0})
        for place, seconds in enumerate(read_s)
    ]
    return tables(processes=tuple(processes), files=files_table(rows))


def test_processes_that_read_side_by_side_wait_for_the_slowest() -> None:
    found = slowest_process(spanning((0.0, 0.5), (0.4, 0.8), (0.1, 1.0)))
    assert found is not None
    assert (found.processes, found.io_s) == (3, 0.9)


def test_processes_that_read_one_after_another_wait_for_none() -> None:
    """As fio, which lays a file out before it starts the process that reads it."""
    assert slowest_process(spanning((0.0, 0.2), (0.3, 0.5), (0.5, 1.4))) is None


def test_one_that_read_before_the_others_is_none_of_them() -> None:
    found = slowest_process(spanning((0.0, 0.2), (0.3, 0.9), (0.4, 1.4)))
    assert found is not None
    assert (found.processes, found.mean_io_s) == (2, pytest.approx(0.55))


def test_a_speed_without_times_is_unknown_with_a_reason() -> None:
    found = speeds(tables(files=files_table([file_row(BYTES_READ=5)])), None)
    assert (found.agg_perf_by_slowest, found.wall_throughput) == (None, None)
    assert set(found.reasons) == {"agg_perf_by_slowest", "wall_throughput"}


def test_the_run_time_is_the_measured_one_or_the_span_of_the_processes() -> None:
    assert wall_seconds(tables(extra={"wall_s": 7.5})) == 7.5
    assert wall_seconds(tables(processes=(process(0, started_ns=SECOND, ended_ns=3 * SECOND),))) == 2.0
    assert wall_seconds(tables(processes=(process(0, ended_ns=None),))) is None
