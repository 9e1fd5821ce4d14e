"""Every way to the session's lab in one table, and what one way sees of another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leadline import lab as leadline_lab
from measured import assert_measured
from support import Command

pytestmark = pytest.mark.ceph

TINY = """
format: leadline.study/1
where_possible: true
blocks: 1
limits: {reserve: 100M}
works:
  stream: {rw: write, bs: 256k, size: 2M, iodepth: 2, time_based: true, runtime: 400ms}
  names: {operations: [create, unlink], files: 10}
compare: {table: true}
"""
KERNEL = ("kernel-ceph", "kernel-nfs", "kernel-smb")


def _ways(found: dict[str, Any], figure: str) -> dict[str, dict[str, Any]]:
    (table,) = found["ways"]
    place = table["columns"].index("stream")
    return {row["keys"][1]: row["values"][place] for row in table["rows"] if row["keys"][0] == figure}


def test_every_way_to_a_lab_is_a_row_and_what_is_not_there_has_its_reason(
    lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    study, out = tmp_path / "tiny.yaml", tmp_path / "r"
    study.write_text(TINY)
    done = leadline("run", str(study), "--lab", str(lab.directory), "--out", str(out), "--quiet")
    # The kernel's clients are in no guest here: rows without figures are exit code 3.
    assert done.returncode == 3, done.stderr
    found = json.loads(leadline("show", str(out), "--json").stdout)
    rates, ratios = _ways(found, "measured"), _ways(found, "against ceph-fuse")
    assert {"ceph-fuse", "libcephfs", "rados", "local", *KERNEL} <= set(rates)
    for way in ("ceph-fuse", "libcephfs", "rados", "local"):
        assert rates[way]["value"] > 0
        assert ratios[way]["value"] > 0
    for way in KERNEL:
        assert rates[way]["value"] is None
        assert "--guest" in rates[way]["reason"]
    # What the library sent is counted at its own sockets: all that it wrote, and not much more.
    wire = _ways(found, "wire per byte or operation")
    assert wire["ceph-fuse"]["value"] > 0.9
    for way in ("libcephfs", "rados"):
        assert wire[way]["value"] is None or 0.9 < wire[way]["value"] < 3
    assert "has no figure of names" in leadline("show", "--all", str(out)).stdout


def test_the_mount_and_the_library_see_what_each_other_writes(
    lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    ways = {
        item.name: item.where for item in lab.targets() if item.same_bytes == "cephfs" and not item.reason
    }
    out = tmp_path / "c"
    done = leadline(
        *("run", "coherence", "--out", str(out), "--quiet", "--blocks", "1"),
        *("--set", "repetitions=1", "--set", "questions=[name, bytes_closed, lock_fcntl]"),
        *("--target", f"mount={ways['ceph-fuse']}", "--target", f"library={ways['libcephfs']}"),
    )
    assert_measured(done, out)
    found = json.loads(leadline("show", str(out), "--json").stdout)
    rows = {tuple(row["keys"]): row["values"] for row in found["ways"][1]["rows"]}
    assert all(item["value"] > 0 for item in rows["a new file's name", "library"])
    assert rows["a lock by fcntl", "mount"][0]["text"] == "honoured"
    assert "takes no lock" in rows["a lock by fcntl", "library"][0]["reason"]
    assert not [path for path in Path(ways["ceph-fuse"]).iterdir() if path.name.startswith("leadline-")]


def test_a_labs_ways_are_listed_ready_to_paste(lab: leadline_lab.Lab, leadline: Command) -> None:
    done = leadline("targets", "--lab", str(lab.directory), "--json")
    assert done.returncode == 0, done.stderr
    found = {item["name"]: item for item in json.loads(done.stdout)["lab"]}
    assert found["ceph-fuse"]["where"].startswith("/")
    assert found["rados"]["where"].startswith("rados://")
    assert found["kernel-ceph"]["reason"]


def test_coherence_plans_the_pairs_that_share_files_and_names_the_rest(
    lab: leadline_lab.Lab, leadline: Command
) -> None:
    plan = json.loads(leadline("plan", "coherence", "--lab", str(lab.directory), "--json").stdout)
    same = {one.name for one in lab.targets() if one.same_bytes == "cephfs" and not one.reason}
    pairs = {(cell["target"], cell["job"]["reader"]) for cell in plan["cells"]}
    assert pairs == {(writer, reader) for writer in same for reader in same}
    assert {"local", "xrootd"} <= {one["target"] for one in plan["left_out"]}
    assert plan["seconds"] < 600
