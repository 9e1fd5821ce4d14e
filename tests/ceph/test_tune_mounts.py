"""What a mount has for life is proved on mounts of the proof's own, and nothing is left of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from leadline import lab as leadline_lab
from support import Command

pytestmark = pytest.mark.ceph

STUDY = """
format: leadline.study/1
blocks: 2
limits: {reserve: 100M}
defaults: {size: 4M, runtime: 500ms, time_based: true, direct: false}
works:
  reads: {rw: read, bs: 16k}
"""
SETTING = "client_readahead_max_periods=2"
ENDS_WITHIN_S = 60.0


def own_mounts() -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if "/leadline-mounts-" in line]


def names(directory: Path) -> list[str]:
    return sorted(one.name for one in directory.iterdir())


def wait_until(found: object, what: str) -> None:
    """Poll `found`, a function, until it is true."""
    until = time.monotonic() + ENDS_WITHIN_S
    while not found():  # type: ignore[operator]
        assert time.monotonic() < until, what
        time.sleep(0.1)


@pytest.fixture
def words(lab: leadline_lab.Lab, tmp_path: Path) -> list[str]:
    (tmp_path / "reads.yaml").write_text(STUDY)
    target = lab.status().directory / "mnt" / "replicated"
    out = ["--out", str(tmp_path / "r"), "--state", str(tmp_path / "journal")]
    return ["tune", "prove", str(tmp_path / "reads.yaml"), "--target", f"a={target}", "--with", SETTING, *out]


def test_each_state_has_a_mount_with_its_value_and_all_are_gone_at_the_end(
    words: list[str], leadline: Command, lab: leadline_lab.Lab, tmp_path: Path
) -> None:
    before = names(lab.status().directory / "mnt" / "replicated")
    planned = leadline(*words, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "client_readahead_max_periods: 4 -> 2" in planned.stdout
    done = leadline(*words)
    assert done.returncode in (0, 3), done.stderr  # 3: figures of so short trials are INVALID
    rows = duckdb.execute(
        "SELECT target, states FROM read_parquet(?) WHERE error IS NULL", [f"{tmp_path}/r/trials/*.parquet"]
    ).fetchall()
    found = {(target, one["found"]) for target, text in rows for one in json.loads(text)["after"].values()}
    assert found == {("without", "4"), ("with", "2")}
    assert own_mounts() == []
    assert names(lab.status().directory / "mnt" / "replicated") == before


def test_a_killed_proof_leaves_no_mount_and_its_files_can_be_removed(
    words: list[str], leadline: Command, lab: leadline_lab.Lab, tmp_path: Path
) -> None:
    target = lab.status().directory / "mnt" / "replicated"
    before = names(target)
    program = [sys.executable, "-m", "leadline", *words, "--quiet"]
    running = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: list(tmp_path.glob("r/trials/*.parquet")), "no trial was stored")
        assert len(own_mounts()) == 2
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    wait_until(lambda: not own_mounts(), "the proof's mounts outlive it")
    assert names(target) != before  # what it laid out is there still
    undone = leadline("undo", str(tmp_path / "r"))
    assert undone.returncode == 0, undone.stderr
    assert names(target) == before
    assert own_mounts() == []
    assert not list(Path("/tmp").glob("leadline-mounts-*"))
