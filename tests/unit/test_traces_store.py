"""Stored traces: what is written comes back, nulls stay nulls, and damage is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import clock, manifest, trial_row
from trace_tables import SECOND, file_row, files_table, process, segment, segments_table, tables

from leadline import _core
from leadline.errors import ResultError, UsageError
from leadline.store.reader import open_result
from leadline.store.writer import create_result
from leadline.tracing import store as traces
from leadline.tracing.tables import COUNTERS, OWN_COUNTERS, TIMES, TraceTables


def store(path: Path, content: TraceTables) -> Path:
    traces.create_trace_result(path, {"t0001": content}, title="tar", details={}, now_ns=clock())
    return path


def test_a_stored_trace_is_read_back_equal(tmp_path: Path) -> None:
    rows = [segment(start_ns=n, call=call) for n, call in enumerate(("pread64", "openat", "pread64"))]
    content = tables(
        segments=segments_table([*rows, segment(offset=None, length=None, file=None)]),
        warnings=("half of it is missing",),
        source="strace 6.1",
        extra={"wall_s": 1.5},
    )
    found = traces.read_trace(open_result(store(tmp_path / "r", content)))
    assert (found.mode, found.source, found.warnings, found.extra) == (
        content.mode,
        content.source,
        content.warnings,
        content.extra,
    )
    assert found.processes == content.processes
    assert found.files.equals(content.files)
    assert found.segments is not None
    assert found.segments.to_pylist() == content.segments.to_pylist()


def test_a_counter_that_a_source_does_not_know_stays_null(tmp_path: Path) -> None:
    content = tables(files=files_table([file_row(READS=None, BYTES_READ=0)]))
    row = traces.read_trace(open_result(store(tmp_path / "r", content))).files.to_pylist()[0]
    assert (row["READS"], row["BYTES_READ"], row["F_READ_TIME"]) == (None, 0, None)


def test_segments_come_in_bounded_batches(tmp_path: Path) -> None:
    content = tables(segments=segments_table([segment(start_ns=n) for n in range(10)]))
    result = open_result(store(tmp_path / "r", content))
    batches = list(traces.segment_batches(result, "t0001", ["start_ns"]))
    assert [value for batch in batches for value in batch["start_ns"].to_pylist()] == list(range(10))


def test_a_trace_stands_beside_the_tables_of_a_study(tmp_path: Path) -> None:
    writer = create_result(tmp_path / "r", manifest(), clock())
    traces.write_trace(writer, "t0001", tables(processes=(process(ended_ns=2 * SECOND),)))
    writer.write_trial(trial_row(), [], [])
    writer.close()
    result = open_result(tmp_path / "r")
    assert traces.traced_trials(result) == ("t0001",)
    assert traces.read_trace(result, "t0001").processes[0].ended_ns == 2 * SECOND


def test_a_trial_without_a_trace_says_so(tmp_path: Path) -> None:
    writer = create_result(tmp_path / "r", manifest(), clock())
    writer.write_trial(trial_row(), [], [])
    writer.close()
    with pytest.raises(ResultError, match="has no trace"):
        traces.read_trace(open_result(tmp_path / "r"))


def test_an_existing_directory_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        store(tmp_path / "r", tables())


@pytest.mark.parametrize("table", ["processes", "files", "segments"])
def test_a_damaged_table_is_named(tmp_path: Path, table: str) -> None:
    path = store(tmp_path / "r", tables(segments=segments_table([segment()])))
    (path / table / "t0001.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(ResultError, match=rf"{table}.*damaged"):
        traces.read_trace(open_result(path))


def test_a_full_disk_leaves_no_half_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(traces, "write_trace", full)
    with pytest.raises(UsageError, match="No space left"):
        store(tmp_path / "r", tables())
    assert list(tmp_path.iterdir()) == []


def test_the_tables_have_a_column_for_everything_that_tracers_count() -> None:
    counters, times = _core.traced_counters()
    assert sorted(counters) == sorted((*COUNTERS, *OWN_COUNTERS))
    assert tuple(times) == TIMES


@pytest.mark.parametrize("column", ["calls", "seconds", "lost", "notes"])
@pytest.mark.parametrize("text", ['{"read": NaN}', '["' * 2, "[" * 10_000, "5", '{"read": 1e999}'])
def test_json_of_a_process_that_is_none_of_a_trace_is_named(tmp_path: Path, column: str, text: str) -> None:
    path = store(tmp_path / "r", tables(processes=(process(**{column: text}),)))
    with pytest.raises(ResultError, match=r"processes/t0001\.parquet is damaged"):
        traces.read_processes(open_result(path), "t0001")
