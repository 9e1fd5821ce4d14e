"""Metadata operations where a library reaches the storage, on the session's lab."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from healthy import wait_until_healthy

from leadline import _core
from leadline import lab as leadline_lab
from leadline.store.reader import open_result
from measured import BRIEF, assert_measured
from support import Command

pytestmark = pytest.mark.ceph

OPERATIONS = ["mkdir", "create", "open", "stat", "readdir", "rename", "unlink", "rmdir"]
STUDY = f"""
format: leadline.study/1
blocks: 1
limits: {{reserve: 100M}}
works:
  tree:
    operations: [{", ".join(OPERATIONS)}]
    files: 20
    file_size: 8k
    branch: 2
    depth: 1
    numjobs: 2
  first: {{operations: [first_byte], files: 10, file_size: 64k, bs: 4k}}
"""


def url(lab: leadline_lab.Lab) -> str:
    return f"cephfs:///replicated?conf={lab.status().directory / 'ceph.conf'}"


def test_every_operation_is_done_through_the_library_and_nothing_is_left(
    lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    study, out = tmp_path / "study.yaml", tmp_path / "r"
    study.write_text(STUDY)
    done = leadline("run", str(study), "--target", f"library={url(lab)}", "--out", str(out))
    assert_measured(done, out, BRIEF)
    summaries = {trial.work: json.loads(trial.summary) for trial in open_result(out).trials()}
    assert {summary["state"] for summary in summaries.values()} == {"complete"}
    found = {name: row["operations"] for name, row in summaries["tree"]["directions"].items()}
    assert found == {name: 6 if name == "readdir" else 40 for name in OPERATIONS}
    assert summaries["first"]["directions"]["first_byte"]["bytes"] == 10 * 4096
    assert not list(lab.status().targets["replicated"].glob("leadline-*"))


def job(directory: str, location: str, **changes: Any) -> str:
    plain: dict[str, Any] = {
        "format": "leadline.metadata/1", "trial": "t1", "directory": directory, "prefix": "tree",
        "operations": ["create", "stat", "unlink"], "files": 10, "branch": 2, "depth": 2, "private": True,
        "file_size": 0, "bs": 4096, "direct": False, "numjobs": 2, "time_based": False, "runtime_ns": 0,
        "seed": 1, "generation": 1, "interval_ns": 1_000_000_000, "deadline_ns": 60_000_000_000,
        "parent_pid": None, "location": location,
    }  # fmt: skip
    return json.dumps({**plain, **changes})


def test_what_an_ended_trial_left_is_removed_with_its_directories(
    lab: leadline_lab.Lab, tmp_path: Path
) -> None:
    """The tree stays after a trial; through the mount it is seen to go."""
    volume = _core.Volume(url(lab))
    mounted = lab.status().targets["replicated"] / "trees"
    volume.make_directory("/trees")
    try:
        summary = _core.run_trial(job("/trees", url(lab)), str(tmp_path / "record"))
        assert summary["state"] == "complete"
        assert (mounted / "tree.1" / "t1" / "t0").is_dir()
        while volume.remove_files("/trees", "tree.", 0.01):
            pass
        assert not list(mounted.iterdir())
    finally:
        volume.remove_files("/trees", "", 30.0)
        volume.remove_directory("/trees", ".leadline")


def test_a_path_that_is_not_there_is_the_trials_error(lab: leadline_lab.Lab, tmp_path: Path) -> None:
    summary = _core.run_trial(job("/nowhere", url(lab)), str(tmp_path / "record"))
    assert summary["state"] == "error"
    assert summary["error"]["file"] in ("/nowhere/tree.0", "/nowhere/tree.1")  # whichever thread was first
    assert "No such file" in summary["error"]["message"]


def test_a_metadata_server_that_stops_answering_ends_the_trial_by_its_deadline(
    lab: leadline_lab.Lab, tmp_path: Path
) -> None:
    """In a process of its own, as a trial runs: the threads that it leaves end with it."""
    words = job("/", url(lab), deadline_ns=2_000_000_000, prefix="hung")
    code = "import sys; from leadline import _core; print(_core.run_trial(*sys.argv[1:])['state'])"
    servers = [daemon.pid for daemon in lab.status().daemons if daemon.name.startswith("mds.")]
    for pid in servers:
        os.kill(pid, signal.SIGSTOP)
    process = subprocess.Popen(
        [sys.executable, "-c", code, words, str(tmp_path / "record")], stdout=subprocess.PIPE, text=True
    )
    try:
        line = ""
        while line.strip() != "deadline":  # progress comes before it
            line = process.stdout.readline() if process.stdout else ""
            assert line, "it ended without its state"
    finally:
        process.kill()
        process.communicate(timeout=30)
        for pid in servers:
            os.kill(pid, signal.SIGCONT)
        wait_until_healthy(lab)
