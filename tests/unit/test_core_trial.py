"""Trials on real files: every engine moves the bytes it says, and its record adds up to its summary."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from core_jobs import MIB, SECOND_NS, job, merged, metadata_job, run

from leadline import _core

FILE_ENGINES = [one["name"] for one in _core.engines() if one["available"] and "file" in one["schemes"]]


def depth_of(engine: str) -> int:
    return 8 if engine == "io_uring" else 1


def test_version_is_the_packages() -> None:
    cargo = (Path(__file__).parents[2] / "Cargo.toml").read_text()
    assert f'version = "{_core.version()}"' in cargo


def test_every_engine_says_what_it_is() -> None:
    names = [one["name"] for one in _core.engines()]
    local = ["io_uring", "psync", "mmap", "null"]
    ceph, servers = ["rados", "radosstriper", "libcephfs"], ["libsmbclient", "xrootd", "libnfs", "s3"]
    assert names == [*local, *ceph, *servers]
    for one in _core.engines():
        assert one["words"]
        assert one["available"] == (one["reason"] is None)


@pytest.mark.parametrize("engine", FILE_ENGINES)
@pytest.mark.parametrize("rw", ["read", "randread", "randwrite", "randrw", "write"])
def test_every_engine_does_every_block_once_and_leaves_good_data(
    tmp_path: Path, engine: str, rw: str
) -> None:
    changes: dict[str, Any] = {"engine": engine, "rw": rw, "iodepth": depth_of(engine), "verify": True}
    changes |= {"numjobs": 2, "nrfiles": 2, "ledger": str(tmp_path / "ledger")}
    laid_out = _core.layout(job(tmp_path, **changes))
    assert (laid_out["files"], laid_out["bytes_written"]) == (4, 2 * MIB)
    summary, _ = run(tmp_path, **changes)
    assert summary["state"] == "complete", summary["error"]
    assert sum(one["bytes"] for one in summary["total"].values()) == 2 * MIB
    assert summary["passes"] == 1.0
    checked = _core.check(job(tmp_path, **changes))
    assert (checked["blocks"], checked["mismatches"], checked["good_blocks"]) == (512, [], 512)


@pytest.mark.parametrize("engine", [*FILE_ENGINES, "null"])
def test_intervals_add_up_to_the_summary(tmp_path: Path, engine: str) -> None:
    changes: dict[str, Any] = {
        "engine": engine,
        "iodepth": depth_of(engine),
        "numjobs": 2,
        "time_based": True,
    }
    changes |= {"runtime_ns": SECOND_NS // 2, "ramp_time_ns": SECOND_NS // 5}
    _core.layout(job(tmp_path, **changes))
    summary, record = run(tmp_path, **changes)
    assert record["summary"] == summary
    assert not record["truncated"]
    for key, measured_only in (("directions", True), ("total", False)):
        rows = [one for one in record["intervals"] if one["measured"] or not measured_only]
        assert sum(one["operations"] for one in rows) == summary[key]["read"]["operations"]
        assert sum(sum(one["threads"]) for one in rows) == summary[key]["read"]["bytes"]
    total = merged(record, "read", "total")
    assert _core.histogram_summary(total)["count"] == summary["directions"]["read"]["operations"]
    assert sum(one["operations"] for one in summary["threads"]) == summary["directions"]["read"]["operations"]


@pytest.mark.processors  # an engine without storage that gets no CPU for 40 ms has another last interval
def test_interval_times_are_whole_and_the_ramp_is_apart(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"engine": "null", "time_based": True}
    changes |= {"runtime_ns": 3 * SECOND_NS // 10, "ramp_time_ns": SECOND_NS // 4}
    summary, record = run(tmp_path, **changes)
    spans = [(one["start_ns"] // 10**7, one["measured"]) for one in record["intervals"]]
    assert spans[:5] == [(0, False), (10, False), (25, True), (35, True), (45, True)]
    assert spans[5:] in ([], [(55, True)])  # what was begun in time may end after it
    assert abs(summary["measured_ns"] - 3 * SECOND_NS // 10) < SECOND_NS // 20
    assert record["intervals"][-1]["end_ns"] == summary["last_done_ns"]


def test_direct_io_is_done_where_the_file_system_has_it(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"engine": FILE_ENGINES[0], "direct": True, "verify": True}
    _core.layout(job(tmp_path, **changes))
    summary, _ = run(tmp_path, **changes)
    if summary["state"] == "error":
        assert "direct: false" in summary["error"]["message"]
    else:
        assert summary["verified_blocks"] == 256


def test_offsets_and_data_follow_from_the_seed(tmp_path: Path) -> None:
    files = []
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        directory = tmp_path / name
        directory.mkdir()
        run(directory, rw="write", seed=seed)
        files.append((directory / "data.0.0").read_bytes())
    assert files[0] == files[1]
    assert files[0] != files[2]


def test_rwmixread_is_honoured(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"rw": "randrw", "rwmixread": 30, "size": 64 * MIB, "engine": "null"}
    summary, _ = run(tmp_path, **changes)
    reads, writes = (summary["total"][one]["operations"] for one in ("read", "write"))
    assert reads + writes == 16384
    # Standard error of a share of 0.3 over 16,384 draws is 0.36 %: five of them.
    assert abs(reads / (reads + writes) - 0.3) < 0.018


@pytest.mark.parametrize("engine", FILE_ENGINES)
def test_syncs_are_counted_and_timed_apart(tmp_path: Path, engine: str) -> None:
    changes: dict[str, Any] = {"engine": engine, "rw": "write", "fsync": 64, "end_fsync": True, "nrfiles": 2}
    summary, record = run(tmp_path, **changes)
    assert summary["total"]["write"]["operations"] == 256
    assert summary["total"]["sync"]["operations"] == 4 + 2
    assert _core.histogram_summary(merged(record, "sync", "total"))["min"] > 0


def test_a_closed_loop_has_no_intended_latency(tmp_path: Path) -> None:
    summary, record = run(tmp_path, engine="null")
    assert summary["pacer"] is None
    assert all(one["histograms"]["intended"] is None for one in record["intervals"])


def test_fresh_writes_replace_what_was_there_and_overwrites_do_not(tmp_path: Path) -> None:
    (tmp_path / "data.0.0").write_bytes(b"x" * (2 * MIB))
    run(tmp_path, rw="write", overwrite=True)
    assert (tmp_path / "data.0.0").stat().st_size == 2 * MIB
    run(tmp_path, rw="write")
    assert (tmp_path / "data.0.0").stat().st_size == MIB


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"iodepth": 4}, "io_uring"),
        ({"rw": "sideways"}, "sideways"),
        ({"blocksize": 4096}, "blocksize"),
        ({"engine": "mmap", "direct": True}, "psync"),
    ],
)
def test_a_bad_job_is_a_value_error_that_says_the_remedy(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        _core.run_trial(job(tmp_path, **changes), tmp_path / "trial.llrec")
    assert not (tmp_path / "trial.llrec").exists()


def test_a_record_that_cannot_be_written_is_an_os_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        _core.run_trial(job(tmp_path, engine="null"), tmp_path / "missing" / "trial.llrec")
    assert str(caught.value.filename).endswith("trial.llrec")


def test_garbage_and_newer_records_are_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "trial.llrec"
    path.write_bytes(b"garbage")
    with pytest.raises(RuntimeError, match="no trial record"):
        _core.read_record(path)
    run(tmp_path, engine="null")
    content = bytearray(path.read_bytes())
    content[8] = 99
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match="newer leadline"):
        _core.read_record(path)


def test_the_golden_record_is_read() -> None:
    golden = Path(__file__).parents[1] / "data" / "record-v1.llrec"
    with pytest.raises(RuntimeError, match="HdrHistogram"):
        _core.histogram_summary(b"submission")
    record = _core.read_record(golden)
    assert [one["index"] for one in record["intervals"]] == [0, 1]
    assert json.dumps(record["summary"]) == '{"state": "complete"}'


def test_the_kernels_submission_thread_moves_the_same_bytes(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"engine": "io_uring", "iodepth": 8, "sqthread_poll": True, "verify": True}
    _core.layout(job(tmp_path, **changes))
    summary, _ = run(tmp_path, **changes)
    assert (summary["state"], summary["total"]["read"]["bytes"]) == ("complete", MIB)
    assert summary["verified_blocks"] == MIB // 4096


def test_a_submission_thread_without_io_uring_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sqthread_poll"):
        run(tmp_path, sqthread_poll=True)


@pytest.mark.parametrize("of", ["data", "metadata"])
def test_a_trial_starts_not_before_the_instant_that_it_is_told_once_it_is_open(
    tmp_path: Path, of: str
) -> None:
    asked = job(tmp_path, rw="write") if of == "data" else metadata_job(tmp_path)
    meeting, told = _core.Meeting(), []

    def tell() -> None:
        assert meeting.wait_until_open()
        told.append(time.time_ns() + SECOND_NS // 4)
        # The two clocks are read one after the other: what lies between only makes the start later.
        meeting.tell(time.monotonic_ns() + SECOND_NS // 4)

    teller = threading.Thread(target=tell)
    teller.start()
    summary = _core.run_trial(asked, str(tmp_path / "record"), meeting)
    teller.join()
    assert summary["state"] == "complete"
    assert summary["started_unix_ns"] >= told[0]


def test_a_trial_that_is_called_off_does_nothing(tmp_path: Path) -> None:
    meeting = _core.Meeting()
    meeting.tell(None)
    summary = _core.run_trial(job(tmp_path, rw="write"), str(tmp_path / "record"), meeting)
    assert (summary["state"], summary["total"]["write"]["operations"]) == ("interrupted", 0)
