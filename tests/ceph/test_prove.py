"""A setting of a real cluster, proved: in force when it must be, read back at each daemon, and put back."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from leadline import lab as leadline_lab
from leadline.store.reader import Result, open_result
from support import Command, Start, show

pytestmark = pytest.mark.ceph

STUDY = """
format: leadline.study/1
blocks: 2
limits: {reserve: 100M}
defaults: {size: 4M, runtime: 1s, time_based: true, iodepth: 4, direct: true}
works:
  randwrite_64k: {rw: randwrite, bs: 64k}
"""
OPTION = "osd_max_backfills"


def set_there(lab: leadline_lab.Lab) -> list[str]:
    """Options that the monitors keep."""
    conf = str(lab.status().directory / "ceph.conf")
    words = ["ceph", "--conf", conf, "config", "dump", "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    return [row["name"] for row in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def result(lab: leadline_lab.Lab, leadline: Command, tmp_path_factory: pytest.TempPathFactory) -> Result:
    base = tmp_path_factory.mktemp("prove")
    (base / "small.yaml").write_text(STUDY)
    target = f"a=cephfs:///replicated?conf={lab.status().directory / 'ceph.conf'}"
    words = ("--target", target, "--with", f"{OPTION}=7", "--out", str(base / "r"))
    done = leadline("tune", "prove", str(base / "small.yaml"), *words)
    assert (base / "r").exists(), done.stderr
    return open_result(base / "r")


def test_every_trial_was_measured_with_what_it_was_to_be_at_every_osd(result: Result) -> None:
    rows = result.trials()
    assert [row.target for row in rows] in (
        ["with", "without", "without", "with"],
        ["without", "with", "with", "without"],
    )
    values = {"without": set(), "with": set()}
    for row in rows:
        said = json.loads(str(row.states))
        assert said["state"] == row.target
        assert said["before"].keys() == said["after"].keys()
        assert len(said["before"]) == 4  # OSDs of the lab
        values[row.target] |= {one["found"] for one in (*said["before"].values(), *said["after"].values())}
    assert values["with"] == {"7"}
    assert len(values["without"]) == 1
    assert values["without"] != {"7"}


@pytest.mark.provokes("setting_not_in_force")
def test_a_value_that_somebody_changes_during_a_trial_makes_its_state_invalid(
    lab: leadline_lab.Lab, leadline: Command, start: Start, tmp_path: Path
) -> None:
    study, out = tmp_path / "long.yaml", tmp_path / "r"
    study.write_text(STUDY.replace("blocks: 2", "blocks: 1").replace("runtime: 1s", "runtime: 6s"))
    conf = str(lab.status().directory / "ceph.conf")
    target = f"a=cephfs:///replicated?conf={conf}"
    words = ("--target", target, "--with", f"{OPTION}=7", "--seed", "1", "--out", str(out), "--quiet")
    proving = start("tune", "prove", str(study), *words)
    tell = ["ceph", "--conf", conf, "tell", "osd.0", "config"]
    try:
        wait_for_state(out, "with")
        subprocess.run([*tell, "set", OPTION, "9"], check=True, timeout=60, capture_output=True)
        proving.wait(timeout=120)
    finally:
        subprocess.run([*tell, "unset", OPTION], check=True, timeout=60, capture_output=True)
        if proving.poll() is None:
            proving.kill()
            proving.wait()
    cells = {one["target"]: one for one in show(leadline, out)["cells"]}
    codes = {target: {one["code"] for one in cells[target]["validity"]["codes"]} for target in cells}
    assert "setting_not_in_force" in codes["with"]
    assert "setting_not_in_force" not in codes["without"]


def wait_for_state(out: Path, state: str) -> None:
    """Until a trial of that state is running, by the journal."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        journal = out / "events.jsonl"
        lines = journal.read_text().splitlines() if journal.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("}")]
        cells = [one.get("cell", "") for one in events if one.get("event") == "trial_started"]
        if cells and cells[-1].startswith(f"{state}."):
            return
        time.sleep(0.05)
    raise AssertionError(f"no trial of state {state} began in {out}")


def test_what_was_set_is_gone_when_it_has_ended(result: Result, lab: leadline_lab.Lab) -> None:
    assert result.manifest["proof"]["settings"][0]["before"] is None
    assert OPTION not in set_there(lab)


def test_a_run_cannot_go_on_with_it_and_what_somebody_left_set_is_put_back(
    result: Result, lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    """As after a kill: the value is in force, and the result is all that knows of it."""
    refused = leadline("run", "--resume", str(result.path))
    assert refused.returncode == 2, refused.stderr
    conf = str(lab.status().directory / "ceph.conf")
    words = ["ceph", "--conf", conf, "config", "set", "osd", OPTION, "7"]
    subprocess.run(words, check=True, timeout=60)
    assert OPTION in set_there(lab)
    undone = leadline("undo", str(result.path))
    assert undone.returncode == 0, undone.stderr
    assert OPTION not in set_there(lab)
