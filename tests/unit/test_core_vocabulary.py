"""The engine's finer options on real files: sizes, shared files, syncs, pauses, content, places."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest
from core_jobs import MIB, SECOND_NS, job, metadata_job, run

from leadline import _core

_GENERATION = 36  # the lowest byte of a block's generation, in its header
SPLIT = {"read": [[4096, 60], [65536, 40]], "write": [[4096, 60], [65536, 40]]}


def data(directory: Path, name: str = "data.0.0") -> bytes:
    return (directory / name).read_bytes()


@pytest.mark.parametrize("engine", ["psync", "io_uring", "mmap"])
def test_reads_of_several_sizes_verify(tmp_path: Path, engine: str) -> None:
    changes: dict[str, Any] = {"bssplit": SPLIT, "verify": True, "size": 8 * MIB, "engine": engine}
    _core.layout(job(tmp_path, **changes))
    summary, _ = run(tmp_path, **changes)
    assert summary["state"] == "complete", summary["error"]
    read = summary["directions"]["read"]
    mean = read["bytes"] / read["operations"]
    assert 4096 < mean < 65536
    assert summary["verified_blocks"] == read["bytes"] // 4096


@pytest.mark.parametrize("shared", ["segmented", "strided"])
@pytest.mark.parametrize("engine", ["psync", "io_uring"])
def test_jobs_of_a_shared_file_fill_it_whole(tmp_path: Path, shared: str, engine: str) -> None:
    changes: dict[str, Any] = {
        "rw": "write", "numjobs": 3, "shared": shared, "bs": 16384, "engine": engine, "end_fsync": True,
        "verify": True, "ledger": str(tmp_path / "ledger"),
    }  # fmt: skip
    summary, _ = run(tmp_path, **changes)
    assert summary["state"] == "complete", summary["error"]
    assert summary["passes"] == 1.0
    assert [path.name for path in tmp_path.glob("data.*")] == ["data.0.0"]
    assert len(data(tmp_path)) == 3 * MIB
    checked = _core.check(job(tmp_path, **changes))
    assert (checked["mismatches_total"], checked["good_blocks"]) == (0, 3 * MIB // 4096)


def test_threads_of_a_shared_file_read_their_own_part_of_its_layout(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"numjobs": 4, "shared": "strided", "verify": True}
    assert _core.layout(job(tmp_path, **changes))["bytes_written"] == 4 * MIB
    summary, _ = run(tmp_path, **changes)
    assert summary["state"] == "complete", summary["error"]
    assert summary["verified_blocks"] == 4 * MIB // 4096


@pytest.mark.parametrize("engine", ["psync", "io_uring", "mmap"])
def test_data_syncs_follow_every_so_many_writes(tmp_path: Path, engine: str) -> None:
    summary, _ = run(tmp_path, rw="write", fdatasync=16, engine=engine)
    assert summary["directions"]["sync"]["operations"] == 256 // 16


@pytest.mark.parametrize(("engine", "depth"), [("psync", 1), ("io_uring", 1), ("io_uring", 8)])
def test_pauses_take_their_time(tmp_path: Path, engine: str, depth: int) -> None:
    pause_ns = 20_000_000
    changes: dict[str, Any] = {"engine": engine, "iodepth": depth, "size": 40 * 4096}
    _core.layout(job(tmp_path, **changes))
    summary, _ = run(tmp_path, thinktime_ns=pause_ns, thinktime_blocks=10, **changes)
    assert summary["directions"]["read"]["operations"] == 40
    # 40 operations in groups of 10 have three pauses between them.
    assert summary["measured_ns"] >= 3 * pause_ns


def test_a_pause_ends_with_the_runtime(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"time_based": True, "runtime_ns": SECOND_NS // 5}
    _core.layout(job(tmp_path))
    summary, _ = run(tmp_path, thinktime_ns=50 * SECOND_NS, **changes)
    assert summary["state"] == "complete"
    assert summary["directions"]["read"]["operations"] == 1


def test_what_lies_before_the_offset_is_never_touched(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"rw": "randwrite", "overwrite": True, "numjobs": 2, "generation": 5}
    changes |= {"offset": 65536, "offset_increment": 65536}
    _core.layout(job(tmp_path, **changes))
    before = [data(tmp_path, f"data.{thread}.0") for thread in (0, 1)]
    run(tmp_path, **changes)
    for thread, old in enumerate(before):
        new, first = data(tmp_path, f"data.{thread}.0"), 65536 * (1 + thread)
        assert new[:first] == old[:first]
        assert all(new[at : at + 4096] != old[at : at + 4096] for at in range(first, MIB, 4096))


@pytest.mark.parametrize("percent", [25, 50, 90])
def test_data_compresses_by_what_was_asked(tmp_path: Path, percent: int) -> None:
    changes = {"buffer_compress_percentage": percent, "incompressible": False, "size": 4 * MIB}
    _core.layout(job(tmp_path, **changes))
    content = data(tmp_path)
    blocks = [content[at : at + 4096] for at in range(0, len(content), 4096)]
    kept = sum(len(zlib.compress(block, 1)) for block in blocks) / len(content)
    assert kept == pytest.approx(1 - percent / 100, abs=0.03)
    assert _core.check(job(tmp_path, **changes))["mismatches_total"] == 0


def test_duplicates_are_whole_operations_and_verify(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"dedupe_percentage": 60, "incompressible": False, "bs": 8192, "size": 16 * MIB}
    _core.layout(job(tmp_path, **changes))
    content = data(tmp_path)
    units = [content[at : at + 8192] for at in range(0, len(content), 8192)]
    # 2,048 units: the standard error of the share is 1.1 %.
    assert 1 - len(set(units)) / len(units) == pytest.approx(0.6, abs=0.055)
    summary, _ = run(tmp_path, verify=True, **changes)
    assert summary["state"] == "complete", summary["error"]
    damaged = bytearray(content)
    damaged[units.index(max(set(units), key=units.count)) * 8192 + 5000] ^= 1
    (tmp_path / "data.0.0").write_bytes(damaged)
    assert _core.check(job(tmp_path, **changes))["mismatches_total"] == 1


def test_a_skewed_distribution_meets_few_blocks_often(tmp_path: Path) -> None:
    """Blocks that were overwritten tell which were met."""

    def met(distribution: str) -> int:
        changes: dict[str, Any] = {"rw": "randwrite", "overwrite": True, "size": 8 * MIB}
        _core.layout(job(tmp_path, **changes))
        run(tmp_path, random_distribution=distribution, generation=9, **changes)
        content = data(tmp_path)
        return sum(content[at + _GENERATION] == 9 for at in range(0, len(content), 4096))

    blocks = 8 * MIB // 4096
    assert met("map") == blocks
    # Of n uniform draws 1 - 1/e of the blocks are met at least once.
    assert met("random") == pytest.approx(0.632 * blocks, rel=0.05)
    assert met("zipf:1.2") < 0.4 * blocks


def test_a_metadata_job_runs_and_its_record_has_its_operations(tmp_path: Path) -> None:
    record = tmp_path / "record"
    summary = _core.run_trial(metadata_job(tmp_path), record)
    assert summary["state"] == "complete", summary["error"]
    intervals = _core.read_record(record)["intervals"]
    for operation in ("create", "stat", "unlink"):
        counted = sum(i["operations"] for i in intervals if i["direction"] == operation)
        assert counted == summary["directions"][operation]["operations"] == 1000
        assert summary["directions"][operation]["elapsed_ns"] > 0
