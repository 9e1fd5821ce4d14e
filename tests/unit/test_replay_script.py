"""From segments to a script: which calls, at which offsets, after what pause; what is left out, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from trace_tables import file_row, files_table, segment, segments_table, tables

from leadline.errors import ResultError
from leadline.store.files import SCRIPT, write_script
from leadline.workloads.replay.judge import replay_answer
from leadline.workloads.replay.script import (
    CREATED,
    DIRECTORY,
    KINDS,
    NOT_LAID_OUT,
    WRITTEN,
    ReplayScript,
    make_script,
    vocabulary,
)

US = 1_000


def script(
    *rows: dict[str, Any], paths: tuple[str, ...] = ("/data/a", "/data/b"), **options: Any
) -> ReplayScript:
    """The script of these segments, each a microsecond after the one before where it does not say when."""
    timed = [{"start_ns": n * 2 * US, "duration_ns": US} | row for n, row in enumerate(rows)]
    files = files_table([file_row(n, path=path) for n, path in enumerate(paths)])
    found = tables(files=files, segments=segments_table([segment(**row) for row in timed]))
    return make_script(found, **options)


def call(name: str, **changes: Any) -> dict[str, Any]:
    return {"call": name, "offset": None, "length": None, "result": 0, **changes}


def kinds(found: ReplayScript) -> list[str]:
    return [KINDS[kind] for kind in found.calls["kind"]]


def test_pauses_are_the_time_between_calls_of_a_thread_and_before_its_first() -> None:
    found = script(
        call("openat", thread=1, start_ns=1000, duration_ns=50),
        call("close", thread=1, start_ns=1200, duration_ns=10),
        call("openat", thread=2, start_ns=1100, duration_ns=50),
        call("close", thread=2, start_ns=1120, duration_ns=10),
    )
    assert found.calls["pause_ns"].tolist() == [0, 150, 100, 0]
    assert found.threads == ((0, 2), (0, 2))
    assert found.duration_ns == 210


def test_threads_of_different_processes_and_copies_are_told_apart() -> None:
    found = script(
        *(call("openat", copy=copy, process=process) for copy, process in ((0, 0), (0, 1), (1, 0)))
    )
    assert sorted(found.threads) == [(0, 1), (1, 1), (2, 1)]


def test_reads_without_an_offset_follow_opens_and_seeks() -> None:
    read = call("read", length=100, result=100)
    found = script(
        call("openat"),
        read,
        read,
        call("lseek", result=5000),
        read,
        call("openat"),
        read,
        call("pread64", offset=7, length=1, result=1),
    )
    reads = found.calls[found.calls["kind"] == KINDS.index("read")]
    assert reads["offset"].tolist() == [0, 100, 5000, 0, 7]


def test_the_c_librarys_buffer_reads_and_writes_whole_blocks() -> None:
    gets = [call("fgets", length=3000, result=3000) for _ in range(3)]
    puts = [call("fputs", file=1, length=2500, result=2500) for _ in range(3)]
    found = script(call("fopen"), *gets, call("fopen", file=1), *puts)
    rows = [(KINDS[row["kind"]], int(row["offset"]), int(row["length"])) for row in found.calls]
    assert rows == [
        *(("open", 0, 0), ("read", 0, 4096), ("read", 4096, 4096), ("read", 8192, 4096)),
        *(("open", 0, 0), ("write", 0, 4096), ("write", 4096, 3404)),
    ]
    assert found.calls["expected"].tolist() == [0, 4096, 4096, 808, 0, 4096, 3404]
    assert found.sizes[0] == 9000
    assert found.coverage.calls_replayed == 8


@pytest.mark.parametrize("name", ["io_uring:read", "io_submit:read", "lio_listio:read", "aio_read"])
def test_operations_in_flight_together_get_threads_of_their_own(name: str) -> None:
    reads = [
        call(name, offset=n * 10, length=10, result=10, start_ns=n * 100, duration_ns=250) for n in range(6)
    ]
    found = script(*reads)
    assert sorted(count for _, count in found.threads) == [2, 2, 2]


def test_a_size_that_the_trace_does_not_hold_is_not_made_up() -> None:
    found = script(call("openat"), call("ftruncate"), call("ftruncate", length=70))
    assert kinds(found) == ["open", "truncate"]
    assert found.calls["length"].tolist() == [0, 70]
    assert found.coverage.skipped[0].reason == "the trace does not hold the size"


def test_files_are_laid_out_as_far_as_they_are_read_before_they_are_written() -> None:
    found = script(
        call("openat", file=0),
        call("pread64", file=0, offset=100, length=900, result=400),
        call("openat", file=1),
        call("pwrite64", file=1, offset=0, length=1000, result=1000),
        call("pread64", file=1, offset=0, length=1000, result=1000),
    )
    assert found.sizes.tolist() == [500, NOT_LAID_OUT]
    assert found.flags.tolist() == [0, WRITTEN | CREATED]
    assert (found.layout_bytes, found.cold_bytes) == (500, 400)


def test_a_file_that_is_looked_at_first_is_there_and_one_that_is_removed_may_come_again() -> None:
    found = script(call("stat", file=0), call("unlink", file=0), call("mkdir", file=1), call("rmdir", file=1))
    assert found.sizes.tolist() == [0, NOT_LAID_OUT]
    assert found.flags.tolist() == [CREATED, DIRECTORY | CREATED]


def test_bytes_read_again_are_cold_once() -> None:
    read = call("pread64", offset=0, length=1000, result=1000)
    found = script(read, read, call("pread64", offset=500, length=1000, result=1000))
    assert found.cold_bytes == 1500
    assert found.read_bytes == 3000


def test_a_call_on_a_file_that_was_not_there_is_replayed_as_one() -> None:
    found = script(call("openat", result=-2), call("stat", file=1, result=-2), call("openat", file=1))
    assert found.calls["absent"].tolist() == [1, 1, 0]


def test_what_cannot_be_replayed_is_listed_with_its_reason_and_what_it_moved() -> None:
    found = script(
        call("openat"),
        call("sendfile", result=4096),
        call("write", file=1, length=10, result=10),
        call("openat", result=-13),
        call("frobnicate"),
        call("read", file=None, length=5, result=5),
        paths=("/data/a", "/dev/null"),
    )
    assert kinds(found) == ["open"]
    listed = {item.call: (item.reason.split(":")[0], item.bytes) for item in found.coverage.skipped}
    assert listed == {
        "sendfile": ("two files at once, of which a trace names one", 4096),
        "write": ("not on a file", 10),
        "openat": ("they failed in the traced program", 0),
        "frobnicate": ("unknown to this version", 0),
        "read": ("on no file that the trace names", 5),
    }
    assert (found.coverage.calls, found.coverage.calls_replayed, found.coverage.bytes) == (6, 1, 4111)


def test_an_offset_that_no_file_has_is_left_out() -> None:
    wild = [call("pread64", offset=(1 << 63) - 5, length=10, result=10), call("lseek", result=1 << 62)]
    found = script(call("openat"), *wild)
    assert kinds(found) == ["open"]
    assert {item.reason for item in found.coverage.skipped} == {"at an offset beyond any file"}


def test_only_files_that_match_are_replayed() -> None:
    found = script(call("openat", file=0), call("openat", file=1), only=("*/b",))
    assert len(found.calls) == 1
    assert found.coverage.skipped[0].reason == "left out by --only"


def test_a_trace_without_segments_or_without_files_is_refused_with_a_remedy() -> None:
    with pytest.raises(ResultError, match="did not record each"):
        make_script(tables())
    with pytest.raises(ResultError, match="no call of the trace"):
        script(call("mmap"))
    with pytest.raises(ResultError, match="no call of the trace"):
        script()


def test_no_call_has_two_meanings() -> None:
    known = [
        name
        for part in ("replayed", "not_replayed")
        for names in vocabulary()[part].values()
        for name in names
    ]
    assert len(known) == len(set(known))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("pread64", "pwrite64", "read", "write", "openat", "unlink", "lseek")),
            st.integers(0, 1),
            st.integers(0, 10_000),
            st.integers(0, 5_000),
        ),
        min_size=1,
        max_size=40,
    )
)
@example([("pwrite64", 0, 1, 0), ("pread64", 0, 0, 1)])  # a write of nothing, beyond what is read
def test_every_read_of_a_script_finds_its_bytes(rows: list[tuple[str, int, int, int]]) -> None:
    """Played one after the other on byte counts, no read ends beyond what was laid out or written before."""
    found = script(
        *(
            call(name, file=file, offset=offset if name.startswith("p") else None, length=size, result=size)
            for name, file, offset, size in rows
        )
    )
    size = [0 if value == NOT_LAID_OUT else int(value) for value in found.sizes]
    for row in found.calls:
        kind, end = KINDS[row["kind"]], int(row["offset"] + row["length"])
        if kind == "write" and row["length"]:
            size[row["file"]] = max(size[row["file"]], end)
        elif kind == "read" and row["expected"]:
            assert end <= size[row["file"]]


def test_the_script_file_has_its_size(tmp_path: Path) -> None:
    found = script(call("openat"), call("read", length=100, result=100))
    write_script(tmp_path, found.calls, found.threads, found.sizes, found.flags)
    assert (tmp_path / SCRIPT).stat().st_size == 32 + 16 * (1 + 1) + 40 * 2
    assert np.dtype(found.calls.dtype).itemsize == 40


@pytest.mark.parametrize(("pace", "metric"), [("recorded", "io_time"), ("fastest", "run_time")])
def test_the_time_of_a_replay_is_named(pace: str, metric: str) -> None:
    coverage = {"calls": 10, "calls_replayed": 9, "bytes": 100, "bytes_replayed": 50}
    text = replay_answer({"replay": {"pace": pace, "title": "tar", "coverage": coverage}}).text
    assert f"({metric}). Repeated: 9 of 10 calls of tar" in text
