"""A mount that becomes slower while a trial is measured: the figure is said to mix two levels."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import slow_fuse
from leadline import _core
from measured import CACHED, assert_measured
from support import Command, Start, show

pytestmark = pytest.mark.skipif(slow_fuse.missing() is not None, reason=str(slow_fuse.missing()))

STUDY = """format: leadline.study/1
blocks: 1
limits: {reserve: 1M}
defaults: {size: 4M, runtime: 6s, time_based: true, engine: psync, direct: false}
works:
  randread_4k: {rw: randread, bs: 4k}
"""


def intervals(record: Path) -> int:
    """How many a running trial has closed."""
    try:
        return len(_core.read_record(str(record))["intervals"])
    except (OSError, ValueError, RuntimeError):
        return 0  # not there yet


@pytest.mark.provokes("level_shift")
def test_a_level_that_shifts_within_a_trial_is_said_and_marked_on_its_chart(
    leadline: Command, start: Start, tmp_path: Path
) -> None:
    (tmp_path / "s.yaml").write_text(STUDY)
    out = tmp_path / "r"
    program = slow_fuse.build()
    with slow_fuse.mounted(program, tmp_path) as mount:
        mount.rules(read_ms=1)
        process = start(
            *("run", str(tmp_path / "s.yaml"), "--target", f"a={mount.path}", "--no-ceph"),
            *("--out", str(out), "--quiet"),
        )
        record = out / "records" / "t0001.llrec"
        end = time.monotonic() + 60
        while intervals(record) < 7 and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        mount.rules(read_ms=30)  # far beyond what a busy host adds
        process.wait(60)
        assert_measured(process, out, CACHED)
    cell = show(leadline, out)["cells"][0]
    code = next(code for code in cell["validity"]["codes"] if code["code"] == "level_shift")
    assert code["state"] == "DOUBTFUL"
    assert code["evidence"].startswith("1 of 1 trials; t0001: ")
    page = leadline("report", str(out), "--format", "html", "--output", "-").stdout
    assert "the level shifts" in page
