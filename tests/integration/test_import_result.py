"""Results of other machines: copied once, never over another, and not when damaged or newer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from many_results import copy_results
from measured import CACHED, assert_measured
from support import Command, show


def test_results_of_another_machine_are_merged(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    one, away, here = tmp_path / "one", tmp_path / "away", tmp_path / "here"
    done = leadline("run", str(study), "--target", f"fuse={target}", "--out", str(one), "--no-ceph")
    assert_measured(done, one, CACHED)
    away.mkdir()
    copy_results(one, away, 5)
    newer = json.loads((away / "r0001" / "manifest.json").read_text()) | {"format": "leadline.result/99"}
    (away / "r0001" / "manifest.json").write_text(json.dumps(newer))
    damaged = away / "r0002" / "trials" / "t0001.parquet"
    damaged.write_bytes(damaged.read_bytes()[:100])
    (away / "r0003" / "latency" / "t0002.parquet").unlink()
    (away / "r0004" / "link").symlink_to("/etc/passwd")
    found = leadline("import", "result", str(away), "--into", str(here))
    assert found.returncode == 1, found.stdout
    assert "1 copied, 0 there already, 4 refused" in found.stdout
    for words in ("newer leadline", "damaged", "lacks tables of t0002", "no plain file"):
        assert words in found.stderr
    assert {path.name for path in here.iterdir()} == {"r0000"}
    assert show(leadline, here / "r0000")["cells"] == show(leadline, away / "r0000")["cells"]
    again = leadline("import", "result", str(away / "r0000"), "--into", str(here))
    assert again.returncode == 0
    assert "0 copied, 1 there already" in again.stdout

    other = tmp_path / "other" / "r0000"  # another result of the same name
    shutil.copytree(one, other)
    leadline("import", "result", str(other), "--into", str(here))
    names = sorted(path.name for path in here.iterdir())
    assert len(names) == 2
    assert names[1].startswith("r0000-")
    printed = Path("output/t0001/copy-0.out"), Path("host_files/alpha/t0001/log.darshan")
    for path in printed:  # as a program's trials leave them, also those of other hosts
        (other / path).parent.mkdir(parents=True)
        (other / path).write_bytes(path.name.encode())
    whole = tmp_path / "whole"
    assert leadline("import", "result", str(other), "--into", str(whole)).returncode == 0
    assert [(whole / "r0000" / path).read_bytes() for path in printed] == [
        path.name.encode() for path in printed
    ]
    nothing = leadline("import", "result", str(target), "--into", str(here))
    assert nothing.returncode == 2
    assert "no result at or below" in nothing.stderr
