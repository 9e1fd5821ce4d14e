"""`leadline replay` from a stored trace to a result that can be shown, compared and reported."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from trace_tables import file_row, files_table, segment, segments_table, tables

from leadline.store.reader import open_result
from leadline.tracing import store as traces
from measured import BRIEF, CACHED, assert_measured
from support import Command, show

MS = 1_000_000


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Two threads: one reads a file of 1 MiB with pauses, one writes, syncs and maps another."""
    rows = [
        segment(thread=1, call="openat", offset=None, length=None, result=3),
        *(
            segment(thread=1, offset=n * 4096, start_ns=(n + 1) * 2 * MS, duration_ns=MS // 2)
            for n in range(100)
        ),
        segment(thread=2, file=1, call="openat", offset=None, length=None, result=4),
        *(
            segment(
                thread=2, file=1, call="write", offset=None, length=1000, result=1000, start_ns=(n + 1) * MS
            )
            for n in range(100)
        ),
        segment(thread=2, file=1, call="fsync", offset=None, length=None, result=0, start_ns=150 * MS),
        segment(thread=2, file=1, call="mmap", start_ns=160 * MS),
    ]
    files = files_table([file_row(0, path="/data/in"), file_row(1, path="/data/out")])
    content = tables(files=files, segments=segments_table(rows))
    path = tmp_path / "trace"
    details = {"command": ["prog"]}
    now = itertools.count(1).__next__
    traces.create_trace_result(path, {"t0001": content}, title="prog", details=details, now_ns=now)
    return path


def test_every_call_is_repeated_on_each_target_and_nothing_stays(
    leadline: Command, trace: Path, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    other = tmp_path / "other"
    other.mkdir()
    done = leadline(
        *("replay", str(trace), "--target", f"a={target}", "--target", f"b={other}", "--blocks", "2"),
        *("--out", str(out)),
    )
    assert_measured(done, out, CACHED, BRIEF)
    assert "1 x mmap" in leadline("show", "--all", str(out)).stdout
    assert list(target.iterdir()) == list(other.iterdir()) == []
    for row in open_result(out).trials():
        assert (row.state, row.error) == ("complete", None)
        assert (row.read_bytes, row.read_operations) == (100 * 4096, 100)
        assert (row.write_bytes, row.write_operations, row.sync_operations) == (100_000, 100, 1)
        assert row.measured_ns >= 149 * MS
    shown = show(leadline, out)
    assert shown["kind"] == "study"
    metrics = shown["cells"][0]["metrics"]
    assert {"run_time", "io_time", "read_latency_p50", "write_latency_p50", "meta_latency_p50"} <= set(
        metrics
    )
    assert metrics["run_time"]["unit"] == "s"
    assert {item["metric"] for item in shown["comparisons"]} >= {"io_time"}
    page = tmp_path / "r.html"
    assert leadline("report", str(out), "-o", str(page)).returncode == 0
    assert "Replay of prog" in page.read_text()


@pytest.mark.provokes("replay_differs")
def test_bytes_that_cannot_be_replayed_are_said(leadline: Command, target: Path, tmp_path: Path) -> None:
    rows = [
        *(segment(offset=n * 4096, start_ns=n * MS, duration_ns=MS // 2) for n in range(10)),
        segment(call="copy_file_range", offset=0, length=1 << 20, result=1 << 20, start_ns=20 * MS),
    ]
    content = tables(files=files_table([file_row(0, path="/data/in")]), segments=segments_table(rows))
    trace, out = tmp_path / "trace", tmp_path / "r"
    now = itertools.count(1).__next__
    details = {"command": ["prog"]}
    traces.create_trace_result(trace, {"t0001": content}, title="prog", details=details, now_ns=now)
    done = leadline("replay", str(trace), "--target", f"a={target}", "--blocks", "1", "--out", str(out))
    assert_measured(done, out, CACHED, BRIEF)
    (cell,) = show(leadline, out)["cells"]
    assert "replay_differs" in {code["code"] for code in cell["validity"]["codes"]}


def test_as_fast_as_possible_leaves_the_pauses_out(
    leadline: Command, trace: Path, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    words = ("replay", str(trace), "--target", f"a={target}", "--blocks", "1", "--as-fast-as-possible")
    done = leadline(*words, "--out", str(out))
    assert_measured(done, out, CACHED, BRIEF)
    (row,) = open_result(out).trials()
    assert row.read_operations == 100
    assert "as fast as possible" in leadline("show", "--all", str(out)).stdout


def test_a_dry_run_says_what_would_be_done_and_makes_nothing(
    leadline: Command, trace: Path, target: Path
) -> None:
    done = leadline("replay", str(trace), "--dry-run", "--target", f"a={target}")
    assert done.returncode == 0
    assert "203 of 204 calls" in done.stdout
    assert "not replayed: 1 x mmap" in done.stdout
    assert list(target.iterdir()) == []


def test_a_result_that_is_no_trace_and_a_target_without_files_are_refused(
    leadline: Command, trace: Path, target: Path, tmp_path: Path
) -> None:
    done = leadline("replay", str(target), "--target", f"a={target}")
    assert done.returncode == 2
    assert "is no result of leadline" in done.stderr
    done = leadline("replay", str(trace), "--target", "n=null://")
    assert done.returncode == 2
    assert "has no files" in done.stderr
    assert leadline("replay", str(trace)).returncode == 2
