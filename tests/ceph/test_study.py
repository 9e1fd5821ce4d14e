"""The main job: one study on a local directory and on CephFS, replicated and erasure-coded."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from healthy import wait_until_healthy

from leadline import lab as leadline_lab
from leadline.store.reader import Result, open_result
from measured import BRIEF, CACHED, MOVING, assert_measured
from support import Command, command_line

pytestmark = pytest.mark.ceph

STUDY = """
format: leadline.study/1
blocks: 2
limits: {reserve: 100M}
defaults: {size: 8M, runtime: 1s, time_based: true, iodepth: 4, direct: true}
works:
  seqwrite_1m: {rw: write, bs: 1M}
  randwrite_64k: {rw: randwrite, bs: 64k}
  randread_64k: {rw: randread, bs: 64k}
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "small.yaml"
    path.write_text(STUDY)
    return path


def targets_of(lab: leadline_lab.Lab) -> tuple[str, ...]:
    found = lab.status().targets
    return tuple(word for name in found for word in ("--target", f"{name}={found[name]}"))


@pytest.fixture(scope="module")
def result(
    lab: leadline_lab.Lab, leadline: Command, study: Path, tmp_path_factory: pytest.TempPathFactory
) -> Result:
    base = tmp_path_factory.mktemp("run")
    (base / "local").mkdir()
    local = ("--target", f"local={base / 'local'}")
    done = leadline("run", str(study), *local, *targets_of(lab), "--out", str(base / "r"))
    assert_measured(done, base / "r", CACHED)
    return open_result(base / "r")


def test_every_trial_on_every_mount_is_complete(result: Result) -> None:
    trials = result.trials()
    assert len(trials) == 3 * 3 * 2
    assert {trial.state for trial in trials} == {"complete"}
    assert {trial.target for trial in trials} == {"local", "replicated", "erasure"}


def test_targets_know_what_they_are_on(result: Result, leadline: Command) -> None:
    shown = json.loads(leadline("show", str(result.path), "--json").stdout)
    access = {target["name"]: target["access"] for target in shown["targets"]}
    assert access == {"local": "local", "replicated": "ceph-fuse", "erasure": "ceph-fuse"}
    facts = {name: found["ceph"] for name, found in result.manifest["targets"].items()}
    assert [facts["replicated"][name] for name in ("protection", "size")] == ["replicated", 3]
    assert facts["replicated"]["lab"]
    assert [facts["erasure"][name] for name in ("protection", "k", "m")] == ["erasure", 2, 1]


def test_bytes_are_followed_to_the_osds_and_their_stores(result: Result) -> None:
    """Replication writes three bytes for one, erasure coding 2+1 one and a half; both some more."""
    writes = [trial for trial in result.trials() if trial.work == "seqwrite_1m"]
    for target, least in (("replicated", 2.9), ("erasure", 1.4)):
        own = [trial for trial in writes if trial.target == target]
        application = sum(trial.total_write_bytes for trial in own)
        osd, store = (sum(getattr(t, f"{n}_written_bytes") for t in own) for n in ("osd", "store"))
        assert osd >= 0.95 * application
        assert store >= least * application
    for trial in result.trials():
        if trial.target != "local" and trial.work == "randread_64k":
            assert trial.wire_received_bytes is not None
            assert trial.wire_received_bytes >= 0.95 * trial.total_read_bytes


def test_the_chain_of_every_cell_adds_up_and_ends_at_the_stores(result: Result, leadline: Command) -> None:
    """Direct I/O on a lab without other users: no cache of the host keeps anything, all of it arrives."""
    shown = json.loads(leadline("show", str(result.path), "--json").stdout)
    cells = {cell["id"]: cell["chains"] for cell in shown["cells"]}
    assert {name for name, chains in cells.items() if not chains} == set()
    for name, chains in cells.items():
        for chain in chains:
            if name.startswith("local.") and chain["places"][-1]["share"] is None:
                assert "by all" in chain["places"][-1]["reason"]  # somebody else wrote to the same disk
                continue
            assert sum(place["share"] for place in chain["places"]) == pytest.approx(1.0), name
            assert chain["places"][-1]["name"] == ("device" if name.startswith("local.") else "store")
    for name in ("replicated.seqwrite_1m", "erasure.seqwrite_1m"):
        (chain,) = cells[name]
        *_, store = chain["places"]
        assert store["share"] >= 0.95
        assert store["model"] == (3.0 if "replicated" in name else 1.5)
        assert store["bytes_per_byte"] >= 0.95 * store["model"]
    (read,) = cells["replicated.randread_64k"]
    assert read["places"][0]["name"] == "page_cache+client_cache"
    assert read["places"][0]["share"] <= 0.05


def test_the_cluster_was_seen_clean_before_and_after_each_trial(result: Result) -> None:
    for trial in result.trials():
        if trial.target != "local":
            state = json.loads(trial.start_state)
            assert state["osds"] == state["osds_up"] == 4
            assert all({"active", "clean"} <= set(name.split("+")) for name in state["pgs"])


def test_nothing_stays_on_the_mounts(result: Result, lab: leadline_lab.Lab) -> None:
    assert result.complete
    for target in lab.status().targets:
        assert nothing_left(lab, target)


def nothing_left(lab: leadline_lab.Lab, target: str) -> bool:
    return not list(lab.status().targets[target].glob("leadline-*"))


def test_the_report_says_what_was_measured(result: Result, leadline: Command, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = leadline("report", str(result.path), "-o", str(page))
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    for words in ("replicated", "erasure", "randread_64k", "ceph-fuse", "95"):
        assert words in text


def test_a_cluster_that_loses_an_osd_makes_its_cells_invalid(
    lab: leadline_lab.Lab, leadline: Command, study: Path, tmp_path: Path
) -> None:
    """An OSD that is out makes PGs move; the lab is whole again afterwards."""
    lab.ceph.run("osd", "out", "3")
    try:
        done = leadline(
            *("run", str(study), *targets_of(lab)[:2], "--blocks", "1", "--out", str(tmp_path / "r")),
            "--ignore-health",
        )
        assert_measured(done, tmp_path / "r", CACHED, MOVING)
        assert _codes(leadline, tmp_path / "r") & {"cluster_not_clean", "scrub_or_recovery"}
    finally:
        lab.ceph.run("osd", "in", "3")
        wait_until_healthy(lab)


def _codes(leadline: Command, result: Path) -> set[str]:
    shown = json.loads(leadline("show", str(result), "--json").stdout)
    return {code["code"] for cell in shown["cells"] for code in cell["validity"]["codes"]}


def test_a_hung_mount_does_not_hang_the_run(
    lab: leadline_lab.Lab,
    leadline: Command,
    study: Path,
    tmp_path: Path,
    stopped_osds: Callable[[], AbstractContextManager[None]],
) -> None:
    """Stopped OSDs answer nothing: trial and run end by their deadlines, and nothing stays afterwards."""
    out = tmp_path / "r"
    process = subprocess.Popen(
        [
            *command_line("run", str(study), *targets_of(lab)[:2], "--out", str(out)),
            *("--blocks", "1", "--set", "runtime=6s", "--grace", "2s", "--ignore-health", "--quiet"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: '"trial_started"' in (out / "events.jsonl").read_text() if out.exists() else False)
    with stopped_osds():
        _, errors = process.communicate(timeout=150)
    assert process.returncode == 3, errors
    assert "did not end by its deadline: process" in errors, errors
    undone = leadline("undo", str(out))
    assert undone.returncode == 0, undone.stderr
    assert nothing_left(lab, "replicated")


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s")


SMALL = ("--set", "size=8M", "--set", "runtime=1s", "--set", "ramp_time=200ms", "--blocks", "1")


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("interference", SMALL),
        ("shared", SMALL),
        ("metadata", ("--blocks", "1", "--set", "files=100")),
    ],
)
def test_the_built_in_studies_of_several_jobs_run_on_cephfs(
    lab: leadline_lab.Lab, leadline: Command, tmp_path: Path, name: str, changes: tuple[str, ...]
) -> None:
    """A stream beside small random I/O, many writers to one file, and operations on the tree itself."""
    done = leadline("run", name, *targets_of(lab)[:2], *changes, "--out", str(tmp_path / "r"))
    assert_measured(done, tmp_path / "r", CACHED, BRIEF)
    result = open_result(tmp_path / "r")
    assert result.complete
    assert {trial.state for trial in result.trials()} == {"complete"}
    assert nothing_left(lab, "replicated")
