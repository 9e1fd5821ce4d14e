"""`leadline mount` on the lab's real ceph-fuse mount: a plan, a check by writing, and no key anywhere."""

from __future__ import annotations

import json

import pytest

from leadline import lab as leadline_lab
from support import Command

pytestmark = pytest.mark.ceph


def test_the_plan_names_the_lab_s_monitor_and_prints_no_key(lab: leadline_lab.Lab, leadline: Command) -> None:
    mount = str(lab.record.paths.mount)
    done = leadline("mount", "plan", mount, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    address = lab.status().mon_address.removeprefix("v2:")
    assert found["mount"]["device"] == f"{address}:/"
    assert "mds_namespace=" in found["mount"]["option_text"]
    assert key_of(lab) not in done.stdout


def key_of(lab: leadline_lab.Lab) -> str:
    """The administrator's key, or what is in no text where the lab has no keys."""
    keyring = lab.record.paths.keyring
    lines = keyring.read_text().splitlines() if keyring.exists() else []
    return next((line.partition("=")[2].strip() for line in lines if "key" in line and "==" in line), "\0")


def test_a_check_writes_reads_and_leaves_nothing(lab: leadline_lab.Lab, leadline: Command) -> None:
    place = lab.status().targets["replicated"]
    before = sorted(place.iterdir())
    done = leadline("mount", "check", str(place), "--probe", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["probe"]["files"] == 16
    assert {entry["name"]: entry["holds"] for entry in found["findings"]}[
        "fuse-writes-of-4k"
    ] == "does not hold"
    assert sorted(place.iterdir()) == before


def test_a_path_that_is_no_cephfs_is_refused(lab: leadline_lab.Lab, leadline: Command) -> None:
    done = leadline("mount", "plan", "/")
    assert done.returncode == 2
    assert "no CephFS" in done.stderr
