"""An unchanged program on CephFS: the tables of the document that the study follows, at a small size."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from leadline import lab as leadline_lab
from leadline.store.reader import open_result
from measured import assert_measured
from support import Command, command_line

pytestmark = pytest.mark.ceph


def test_the_real_analysis_runs_on_cephfs_beside_a_local_directory(
    lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    pytest.importorskip("uproot")
    module = (command_line()[0], "-m", "leadline.demo.events")
    subprocess.run([*module, "make", str(tmp_path / "events"), "--size", "4M", "--files", "2"], check=True)
    (tmp_path / "local").mkdir()
    places = lab.status().targets
    done = leadline(
        *("run", "analysis", "--target", f"local={tmp_path / 'local'}"),
        *("--target", f"replicated={places['replicated']}", "--input", str(tmp_path / "events")),
        *("--set", "factors.copies=[1,2]", "--blocks", "1", "--set", "limits.reserve=100M"),
        *("--out", str(tmp_path / "r"), "--", *module, "analyse", "{input}", "{output}/found"),
    )
    assert_measured(done, tmp_path / "r")
    result = open_result(tmp_path / "r")
    assert {trial.state for trial in result.trials()} == {"complete"}
    staged = [event.details for event in result.events if event.event == "layout_finished"]
    assert len({details["sha256"] for details in staged}) == 1
    assert len(staged) == 2
    shown = json.loads(leadline("show", str(result.path), "--json").stdout)
    by_copies = next(t for t in shown["application"]["tables"] if t["name"] == "by_copies")
    assert by_copies["columns"] == ["local", "replicated"]
    assert all(value["value"] > 0 for row in by_copies["rows"] for value in row["values"])
    assert not list(places["replicated"].glob("leadline-*"))
    page = tmp_path / "report.html"
    assert leadline("report", str(result.path), "-o", str(page)).returncode == 0
    assert "Run time by number of runs" in page.read_text()
