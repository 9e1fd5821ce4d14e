"""`leadline tune audit` on a real cluster: what is dangerous is seen at its daemon, pools and flags too."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from leadline import lab as leadline_lab
from support import Command

pytestmark = pytest.mark.ceph


def _ceph(lab: leadline_lab.Lab, *words: str) -> str:
    paths = lab.record.paths
    command = ["ceph", "-c", str(paths.conf), "-k", str(paths.keyring), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def _rows(leadline: Command, lab: leadline_lab.Lab) -> dict[tuple[str, str], dict[str, Any]]:
    done = leadline("tune", "audit", "--lab", lab.record.name, "--json")
    assert done.returncode == 3, done.stderr  # a lab allows pools of one copy
    document = json.loads(done.stdout)
    assert document["versions"]["ceph"] in _ceph(lab, "versions")
    return {(row["kind"], row["setting"]): row for row in document["rows"]}


def _subjects(row: dict[str, Any]) -> set[str]:
    return {place["subject"] for place in row["places"]}


def test_what_is_dangerous_in_force_is_seen_at_its_daemon_and_gone_when_it_is_taken_back(
    leadline: Command, lab: leadline_lab.Lab
) -> None:
    before = _rows(leadline, lab)
    # From the daemon's own file, which the monitors' configuration does not know.
    assert before[("dangerous", "mon_allow_pool_size_one")]["value"] == "true"
    assert ("dangerous", "osd_enable_op_tracker") not in before
    assert ("dangerous", "noscrub") not in before
    _ceph(lab, "config", "set", "osd.1", "osd_enable_op_tracker", "false")
    _ceph(lab, "osd", "set", "noscrub")
    try:
        found = _rows(leadline, lab)
    finally:
        _ceph(lab, "config", "rm", "osd.1", "osd_enable_op_tracker")
        _ceph(lab, "osd", "unset", "noscrub")
    assert _subjects(found[("dangerous", "osd_enable_op_tracker")]) == {"osd.1"}
    assert found[("dangerous", "osd_enable_op_tracker")]["to"] == "true"
    assert ("dangerous", "noscrub") in found
    assert set(_rows(leadline, lab)) == set(before)


def test_no_pool_of_a_lab_is_called_dangerous(leadline: Command, lab: leadline_lab.Lab) -> None:
    assert {row["setting"] for row in _rows(leadline, lab).values() if row["layer"] == "pool"} == set()
