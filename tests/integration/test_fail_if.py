"""Gates from the command line: the exit code, and nothing measured for a condition that cannot be read."""

from __future__ import annotations

import json
import re
from pathlib import Path

from measured import CACHED, assert_measured
from support import Command, show


def test_a_gate_decides_the_exit_code(leadline: Command, study: Path, target: Path, tmp_path: Path) -> None:
    out = tmp_path / "r"
    run = ("run", str(study), "--target", f"a={target}", "--out", str(out), "--no-ceph")
    refused = leadline(*run, "--fail-if", "b.randread_4k.iops < 5")
    assert refused.returncode == 2
    assert not out.exists()
    done = leadline(*run, "--fail-if", "a.seqwrite_64k.iops < 1e9")
    assert done.returncode == 2  # a plain number has no exponent
    # Two blocks on a disk that others use may differ a hundredfold, and their interval by far more.
    fails = f"a.seqwrite_64k.iops < 1{'0' * 60}"
    done = leadline(*run, "--fail-if", fails)
    assert done.returncode == 4, done.stderr
    assert f"\u2717 FAILED: {fails} is true" in done.stderr
    holds = leadline("show", str(out), "--fail-if", f"a.seqwrite_64k.iops < 0.{'0' * 60}1")
    assert_measured(holds, out, CACHED)
    assert re.search(r"\u2713 ok: .* is false \([0-9,.]+ IOPS", holds.stderr)
    bandwidth = show(leadline, out)["cells"][1]["metrics"]["iops"]["value"]
    undecided = ("show", str(out), "--fail-if", f"a.seqwrite_64k.iops < {bandwidth:.3f}")
    usable = holds.returncode == 0
    open_ = leadline(*undecided)
    assert open_.returncode == (5 if usable else 3), open_.stderr
    assert "? inconclusive (not allowed)" in open_.stderr
    assert leadline(*undecided, "--allow-undecided").returncode == holds.returncode
    shown = leadline("show", str(out), "--json", "--fail-if", fails)
    assert shown.returncode == 4
    assert json.loads(shown.stdout)["gates"][0]["fails"] is True
