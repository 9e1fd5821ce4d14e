"""A film through a media platform's stages on CephFS beside a local directory, at a very small size."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from leadline import lab as leadline_lab
from leadline.store.own import read_stages
from leadline.store.reader import open_result
from measured import CACHED, assert_measured
from support import Command, show

pytestmark = pytest.mark.ceph


def test_every_stage_runs_on_cephfs_and_is_compared_with_the_local_directory(
    lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    if subprocess.run(["sh", "-c", "command -v ffmpeg"], capture_output=True, check=False).returncode != 0:
        pytest.skip("ffmpeg is not installed")
    local, out = tmp_path / "local", tmp_path / "r"
    local.mkdir()
    replicated = lab.status().targets["replicated"]
    done = leadline(
        *("run", "media", "--target", f"local={local}", "--target", f"fuse={replicated}", "--blocks", "1"),
        *("--set", "resolution=64x36", "--set", "duration=1s", "--set", "frame_rate=2"),
        *("--set", "enlarge=true", "--set", "cache=warm", "--set", "limits.reserve=100M", "--out", str(out)),
        XDG_CACHE_HOME=str(tmp_path / "cache"),
        deadline_s=400.0,
    )
    assert_measured(done, out, CACHED)  # so small a film stays in caches, and may
    result = open_result(out)
    assert {trial.state for trial in result.trials()} == {"complete"}
    rows = read_stages(result)
    assert len(rows) == 2 * 10
    shown = show(leadline, out)
    compared = next(t for t in shown["application"]["tables"] if t["name"].startswith("comparison"))
    assert compared["columns"] == ["local", "fuse", "fuse \u2212 local"]
    for row in compared["rows"]:
        local_s, fuse_s, longer_s = (value["value"] for value in row["values"])
        assert min(local_s, fuse_s) > 0
        assert longer_s == pytest.approx(fuse_s - local_s)
    assert not list(replicated.glob("leadline-*"))
