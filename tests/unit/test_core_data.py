"""What is written: incompressible, no two blocks equal; damage is found and named, holes are counted."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest
from core_jobs import MIB, job, run

from leadline import _core

BLOCK = 4096


def test_no_two_blocks_are_equal_and_nothing_compresses(tmp_path: Path) -> None:
    _core.layout(job(tmp_path, numjobs=2, nrfiles=2, size=8 * MIB))
    run(tmp_path, prefix="fresh", rw="write", bs=1 << 20, size=4 * MIB)
    contents = [path.read_bytes() for path in sorted(tmp_path.glob("*.?.?"))]
    blocks = [one[at : at + BLOCK] for one in contents for at in range(0, len(one), BLOCK)]
    assert len(blocks) == len(set(blocks)) == (16 + 4) * MIB // BLOCK
    for content in contents:
        assert len(zlib.compress(content, 9)) / len(content) > 0.99


def test_compressible_data_compresses_and_still_verifies(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"incompressible": False, "verify": True}
    _core.layout(job(tmp_path, **changes))
    content = (tmp_path / "data.0.0").read_bytes()
    assert len(zlib.compress(content)) / len(content) < 0.1
    summary, _ = run(tmp_path, **changes)
    assert (summary["state"], summary["verified_blocks"]) == ("complete", 256)


@pytest.mark.parametrize("byte", [0, 17, 4095])
def test_verification_finds_a_flipped_byte_and_names_file_and_offset(tmp_path: Path, byte: int) -> None:
    _core.layout(job(tmp_path))
    path = tmp_path / "data.0.0"
    content = bytearray(path.read_bytes())
    content[100 * BLOCK + byte] ^= 1
    path.write_bytes(content)
    summary, record = run(tmp_path, verify=True)
    assert summary["state"] == "error"
    error = summary["error"]
    assert (error["kind"], error["file"], error["offset"]) == ("verify", str(path), 100 * BLOCK)
    assert record["summary"] == summary
    found = _core.check(job(tmp_path))
    assert [(one["file"], one["offset"]) for one in found["mismatches"]] == [(str(path), 100 * BLOCK)]


def test_a_block_moved_elsewhere_is_a_mismatch(tmp_path: Path) -> None:
    _core.layout(job(tmp_path))
    path = tmp_path / "data.0.0"
    content = bytearray(path.read_bytes())
    content[:BLOCK] = content[BLOCK : 2 * BLOCK]
    path.write_bytes(content)
    (mismatch,) = _core.check(job(tmp_path))["mismatches"]
    assert "offset 4096" in mismatch["reason"]


def test_blocks_of_zeros_are_counted_and_by_verification_found(tmp_path: Path) -> None:
    _core.layout(job(tmp_path))
    with (tmp_path / "data.0.0").open("r+b") as file:
        file.seek(7 * BLOCK)
        file.write(bytes(2 * BLOCK))
    summary, _ = run(tmp_path)
    assert (summary["state"], summary["unwritten_blocks_read"]) == ("complete", 2)
    summary, _ = run(tmp_path, verify=True)
    assert (summary["state"], summary["wrong_blocks"]["zeroed"]) == ("error", 2)
    assert summary["verified_blocks"] == 254


def test_a_file_that_is_too_short_is_a_mismatch_and_stops_a_trial(tmp_path: Path) -> None:
    _core.layout(job(tmp_path))
    path = tmp_path / "data.0.0"
    with path.open("r+b") as file:
        file.truncate(MIB // 2)
    checked = _core.check(job(tmp_path))
    assert (checked["mismatches"][0]["offset"], checked["wrong_blocks"]["lost"]) == (MIB // 2, 128)
    summary, _ = run(tmp_path)
    assert (summary["state"], summary["error"]["kind"]) == ("error", "short")


def test_a_layout_and_what_reads_it_back_keep_their_rate(tmp_path: Path) -> None:
    laid_out = _core.layout(job(tmp_path, size=4 * MIB, layout_rate_bytes_per_s=10 * MIB))
    assert laid_out["elapsed_ns"] >= 350_000_000
    checked = _core.check(job(tmp_path, size=4 * MIB, layout_rate_bytes_per_s=10 * MIB))
    assert checked["elapsed_ns"] >= 350_000_000
