"""Trials that do not end well: what was measured is kept, what happened is said, nothing hangs."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import IO, Any

import pytest
from core_jobs import MIB, SECOND_NS, job, run, start

from leadline import _core

ENDLESS: dict[str, Any] = {"time_based": True, "runtime_ns": 40 * SECOND_NS}


def first_event(stream: IO[str], wanted: str) -> dict[str, Any]:
    """The first event of a kind that a trial's process prints."""
    for line in stream:
        event: dict[str, Any] = json.loads(line)
        if event["event"] == wanted:
            return event
    raise AssertionError(f"no {wanted} event")


def wait_for_intervals(record: Path, count: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if record.exists() and record.stat().st_size > 12:
            done = _core.read_record(record)["intervals"]
            if len(done) >= count:
                return
        time.sleep(0.02)
    raise AssertionError("the trial wrote no intervals")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("engine", ["psync", "null"])
def test_a_signal_ends_a_trial_cleanly(tmp_path: Path, sent: signal.Signals, engine: str) -> None:
    _core.layout(job(tmp_path))
    with start(tmp_path, engine=engine, **ENDLESS) as process:
        assert process.stdout is not None
        first_event(process.stdout, "progress")
        wait_for_intervals(tmp_path / "trial.llrec", 2)
        process.send_signal(sent)
        summary = first_event(process.stdout, "summary")
        assert process.wait(timeout=20) == 0
    assert summary["state"] == "interrupted"
    record = _core.read_record(tmp_path / "trial.llrec")
    assert record["summary"]["directions"] == summary["directions"]
    assert not record["truncated"]


def test_ctrl_c_during_a_layout_is_a_keyboard_interrupt(tmp_path: Path) -> None:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        _core.layout(job(tmp_path, size=64 * MIB, layout_rate_bytes_per_s=MIB))


def test_a_killed_trial_leaves_its_intervals_readable(tmp_path: Path) -> None:
    record = tmp_path / "trial.llrec"
    with start(tmp_path, engine="null", **ENDLESS) as process:
        wait_for_intervals(record, 3)
        process.kill()
        assert process.wait(timeout=20) == -signal.SIGKILL
    read = _core.read_record(record)
    assert read["truncated"]
    assert read["summary"] is None
    assert len(read["intervals"]) >= 3
    assert all(one["operations"] > 0 for one in read["intervals"])


def test_a_trial_dies_with_the_program_that_asked_for_it(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="is gone"):
        # No process is its own parent.
        _core.run_trial(job(tmp_path, engine="null", parent_pid=os.getpid()), tmp_path / "trial.llrec")


@pytest.mark.parametrize("engine", ["psync", "io_uring"])
def test_a_file_size_limit_ends_the_trial_as_no_space(tmp_path: Path, engine: str) -> None:
    with start(tmp_path, 256 * 1024, rw="write", engine=engine) as process:
        assert process.stdout is not None
        summary = first_event(process.stdout, "summary")
        assert process.wait(timeout=20) == 0
    error = summary["error"]
    assert (summary["state"], error["kind"], error["errno"]) == ("error", "no_space", errno.EFBIG)
    assert summary["total"]["write"]["bytes"] == error["offset"] == 256 * 1024


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_file_system_ends_the_trial_as_no_space(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k,mode=0700", "small", tmp_path], check=True)
    try:
        with pytest.raises(OSError, match="No space") as caught:
            _core.layout(job(tmp_path))
        assert caught.value.errno == errno.ENOSPC
        (tmp_path / "data.0.0").unlink()
        summary = _core.run_trial(job(tmp_path, rw="write"), tmp_path.parent / "trial.llrec")
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert summary["error"]["kind"] == "no_space"
    assert 0 < summary["total"]["write"]["bytes"] < MIB


def test_a_missing_file_ends_the_trial_as_vanished(tmp_path: Path) -> None:
    summary, _ = run(tmp_path)
    error = summary["error"]
    assert (error["kind"], error["operation"], error["errno"]) == ("vanished", "open", errno.ENOENT)


def test_a_file_deleted_during_the_trial_ends_it_as_vanished(tmp_path: Path) -> None:
    changes = {"time_based": True, "runtime_ns": SECOND_NS}
    _core.layout(job(tmp_path))
    threading.Timer(0.3, (tmp_path / "data.0.0").unlink).start()
    summary, _ = run(tmp_path, **changes)
    assert summary["error"]["kind"] == "vanished"
    assert summary["total"]["read"]["operations"] > 0


@pytest.mark.parametrize(("engine", "kind"), [("psync", "short"), ("mmap", "short")])
def test_a_file_cut_during_the_trial_is_an_error_not_a_crash(tmp_path: Path, engine: str, kind: str) -> None:
    _core.layout(job(tmp_path))
    threading.Timer(0.3, os.truncate, (tmp_path / "data.0.0", MIB // 2)).start()
    summary, record = run(tmp_path, engine=engine, **ENDLESS)
    assert (summary["state"], summary["error"]["kind"]) == ("error", kind)
    assert sum(one["operations"] for one in record["intervals"]) > 0


def test_a_thread_that_the_kernel_keeps_is_named_at_the_deadline(tmp_path: Path) -> None:
    # Opening a FIFO for reading blocks until someone writes: nobody does.
    os.mkfifo(tmp_path / "data.0.0")
    begun = time.monotonic()
    summary, record = run(tmp_path, deadline_ns=SECOND_NS // 2)
    assert time.monotonic() - begun < 5
    assert summary["state"] == "deadline"
    (thread,) = summary["stuck_threads"]
    assert Path(f"/proc/self/task/{thread}").exists()
    assert any(str(thread) in note for note in summary["notes"])
    assert record["summary"] == summary
    os.close(os.open(tmp_path / "data.0.0", os.O_RDWR | os.O_NONBLOCK))


def test_a_job_that_needs_longer_than_its_deadline_keeps_what_it_measured(tmp_path: Path) -> None:
    summary, _ = run(tmp_path, engine="null", rate_iops=100.0, deadline_ns=SECOND_NS // 2)
    assert (summary["state"], summary["stuck_threads"]) == ("deadline", [])
    assert 30 <= summary["total"]["read"]["operations"] <= 60
