"""`leadline hosts`: two runs under two host names, each with the same two targets."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from measured import CACHED, assert_measured
from support import Command, command_line

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="another host name needs root (unshare --uts)")


def run_as_host(name: str, study: Path, places: list[Path], out: Path) -> None:
    targets = [word for place in places for word in ("--target", f"{place.name}={place}")]
    words = command_line("run", str(study), *targets, "--out", str(out), "--no-ceph")
    shell = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name, *words]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=120, check=False)
    assert_measured(done, out, CACHED)


@needs_root
def test_host_and_file_system_are_told_apart(leadline: Command, study: Path, tmp_path: Path) -> None:
    places = [tmp_path / "old", tmp_path / "new"]
    for place in places:
        place.mkdir()
    outs = [tmp_path / "result-a", tmp_path / "result-b"]
    for name, out in zip(("node-a", "node-b"), outs, strict=True):
        run_as_host(name, study, places, out)
    done = leadline("hosts", *map(str, outs), "--metric", "iops", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["hosts"] == ["node-a", "node-b"]
    works = {item["work"] for item in found["file_system"]}
    assert works == {"randread_4k", "seqwrite_64k"}
    assert [item["other"] for item in found["file_system"]] == [
        "new on node-a", "new on node-a", "new on node-b", "new on node-b",
    ]  # fmt: skip
    assert {item["other"] for item in found["host"]} == {"old on node-b", "new on node-b"}
    by_work = {
        (group, item["work"], item["other"]): item["ratio"]
        for group in ("file_system", "interaction")
        for item in found[group]
    }
    for work in works:
        quotient = (
            by_work["file_system", work, "new on node-b"] / by_work["file_system", work, "new on node-a"]
        )
        assert by_work["interaction", work, "the same on node-b"] == pytest.approx(quotient)
    shown = leadline("hosts", *map(str, outs))
    assert "the file systems differ" in shown.stdout or "depends on the host" in shown.stdout

    same = leadline("hosts", str(outs[0]), str(outs[0]))
    assert same.returncode == 2
    assert "of one host: node-a, node-a" in same.stderr


@pytest.mark.parametrize(("words", "expected"), [((), "two results at least"), (("/", "/"), "no result")])
def test_what_is_no_pair_of_results_is_refused(
    leadline: Command, words: tuple[str, ...], expected: str
) -> None:
    done = leadline("hosts", *words)
    assert done.returncode == 2
    assert expected in done.stderr
