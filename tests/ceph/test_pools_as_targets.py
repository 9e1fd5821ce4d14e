"""Replicas and an erasure code as two targets of one mounted directory, and pools that are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leadline import lab as leadline_lab
from leadline.store.reader import open_result
from measured import BRIEF, CACHED, assert_measured
from support import Command

pytestmark = pytest.mark.ceph

STUDY = """
format: leadline.study/1
blocks: 2
limits: {reserve: 100M}
defaults: {size: 8M, runtime: 1s, time_based: true, bs: 1M, direct: true}
works:
  write: {rw: write}
"""


@pytest.fixture
def words(lab: leadline_lab.Lab, tmp_path: Path) -> tuple[str, ...]:
    """A study with the lab's replicated directory under two names."""
    (tmp_path / "s.yaml").write_text(STUDY)
    top = lab.status().targets["replicated"]
    return str(tmp_path / "s.yaml"), "--target", f"rep={top}", "--target", f"ec={top}"


def test_one_directory_is_measured_with_replicas_and_with_an_erasure_code(
    lab: leadline_lab.Lab, leadline: Command, words: tuple[str, ...], tmp_path: Path
) -> None:
    done = leadline("run", *words, "--layout", "ec=ecdata", "--out", str(tmp_path / "r"))
    assert_measured(done, tmp_path / "r", CACHED, BRIEF)
    manifest = open_result(tmp_path / "r").manifest
    kept = {name: facts["ceph"] for name, facts in manifest["targets"].items()}
    assert (kept["rep"]["pool"], kept["rep"]["size"], kept["rep"]["failure_domain"]) == ("data", 3, "osd")
    assert (kept["ec"]["pool"], kept["ec"]["k"], kept["ec"]["m"]) == ("ecdata", 2, 1)
    events = [json.loads(line) for line in (tmp_path / "r" / "events.jsonl").read_text().splitlines()]
    assert [(e["target"], e["pool"]) for e in events if e["event"] == "pool_set"] == [("ec", "ecdata")]
    assert [*Path(lab.status().targets["replicated"]).glob("leadline-*")] == []


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        ("nothere", "the cluster has no pool nothere"),
        ("objects", "add it: ceph fs add_data_pool fs objects"),
    ],
)
def test_a_pool_that_will_not_do_is_refused_before_anything_is_made(
    lab: leadline_lab.Lab, leadline: Command, words: tuple[str, ...], pool: str, message: str, tmp_path: Path
) -> None:
    done = leadline("run", *words, "--layout", f"ec={pool}", "--out", str(tmp_path / "r"))
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "r").exists()
    assert [*Path(lab.status().targets["replicated"]).glob("*leadline-*")] == []
