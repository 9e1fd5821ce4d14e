"""`leadline check` on a lab with hosts: what is broken on purpose is found, each alone, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from healthy import wait_until_healthy

from leadline import lab as leadline_lab
from leadline.lab.inject import engine
from support import Command

pytestmark = pytest.mark.ceph

# This machine's state is no part of the lab; 2+1 has no copy to spare; a busy machine is slow to answer.
BY_DESIGN = ("clock", "swap", "min-size", "health", "round-trip", "unanswered-mount")


@pytest.fixture
def lab(network_lab: leadline_lab.Lab) -> Iterator[leadline_lab.Lab]:
    """The lab of three hosts, well; left as it was found."""
    wait_until_healthy(network_lab)
    yield network_lab
    assert engine.clear(network_lab.directory, os.environ)[1] == []
    wait_until_healthy(network_lab)


def _ceph(lab: leadline_lab.Lab, *words: str) -> str:
    paths = lab.record.paths
    command = ["ceph", "-c", str(paths.conf), "-k", str(paths.keyring), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def _out_of_line(leadline: Command) -> dict[str, set[str]]:
    """Names of rows with their subjects, of what a lab's members and cluster have of their own."""
    done = leadline("check", "--lab", "network", "--json", "--no-streams")
    assert done.returncode in (0, 3), done.stderr
    found: dict[str, set[str]] = {}
    for one in json.loads(done.stdout)["checked"]:
        # Notes are of this machine, or of how evenly groups lie, which is chance.
        if one["state"] == "out_of_line" and one["severity"] != "note" and one["name"] not in BY_DESIGN:
            found.setdefault(one["name"], set()).add(one["subject"])
    return found


def _facts(leadline: Command) -> dict[tuple[str, str], Any]:
    found = json.loads(leadline("check", "--lab", "network", "--json", "--no-streams").stdout)
    return {(fact["subject"], fact["name"]): fact["value"] for fact in found["facts"]}


def test_of_a_lab_that_is_well_only_what_is_so_by_design_is_named(
    leadline: Command, lab: leadline_lab.Lab
) -> None:
    assert _out_of_line(leadline) == {}


def test_facts_are_those_of_ceph_s_own_commands(leadline: Command, lab: leadline_lab.Lab) -> None:
    facts = _facts(leadline)
    assert facts[("cluster", "release")] in _ceph(lab, "versions")
    assert facts[("cluster", "osds")] == json.loads(_ceph(lab, "osd", "stat", "-f", "json"))["num_osds"]
    shown = json.loads(_ceph(lab, "config", "show", "osd.1", "osd_memory_target", "-f", "json"))
    assert facts[("osd.1", "osd_memory_target")] == int(shown)
    (active,) = [one["name"] for one in json.loads(_ceph(lab, "fs", "status", "-f", "json"))["mdsmap"]
                 if one["state"] == "active"]  # fmt: skip
    limit = json.loads(_ceph(lab, "config", "show", f"mds.{active}", "mds_cache_memory_limit", "-f", "json"))
    assert facts[(f"mds.{active}", "cache_limit_bytes")] == int(limit)
    assert facts[(f"mds.{active}", "clients")] == len(
        json.loads(_ceph(lab, "tell", f"mds.{active}", "session", "ls"))
    )
    for pool in json.loads(_ceph(lab, "osd", "pool", "ls", "detail", "-f", "json")):
        assert facts[(pool["pool_name"], "pg_num")] == pool["pg_num"]
        assert facts[(pool["pool_name"], "places_left")] == 3 - pool["size"]  # three hosts have OSDs


def test_a_flag_that_was_left_set_is_found(leadline: Command, lab: leadline_lab.Lab) -> None:
    _ceph(lab, "osd", "set", "noout")
    try:
        assert _out_of_line(leadline) == {"flags": {"cluster"}}
    finally:
        _ceph(lab, "osd", "unset", "noout")


def test_an_osd_with_settings_of_its_own_is_found(leadline: Command, lab: leadline_lab.Lab) -> None:
    _ceph(lab, "tell", "osd.1", "config", "set", "osd_memory_target", "2000000000")
    _ceph(lab, "tell", "osd.2", "config", "set", "osd_max_scrubs", "3")
    try:
        assert _out_of_line(leadline) == {"odd-memory": {"osd.1"}, "odd-settings": {"osd.2"}}
    finally:
        _ceph(lab, "tell", "osd.1", "config", "unset", "osd_memory_target")
        _ceph(lab, "tell", "osd.2", "config", "unset", "osd_max_scrubs")


def test_a_port_that_drops_large_packets_is_found_with_its_host(
    leadline: Command, lab: leadline_lab.Lab
) -> None:
    engine.inject(lab.directory, os.environ, "mtu-mismatch", "client2", {})
    found = _out_of_line(leadline)
    assert set(found) == {"full-size"}
    assert set.intersection(*(set(way.split(" > ")) for way in found["full-size"])) == {"client2"}


def test_a_link_that_loses_packets_is_found(leadline: Command, lab: leadline_lab.Lab) -> None:
    engine.inject(lab.directory, os.environ, "link-loss", "client2", {"share": "60%"})
    ways = _out_of_line(leadline)["loss"]
    assert set.intersection(*(set(way.split(" > ")) for way in ways)) == {"client2"}
