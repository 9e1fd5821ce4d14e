"""What a topology says of pools, as the commands that the monitors are given."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from leadline.lab.cluster import cluster
from leadline.lab.cluster.command import CephCommand
from leadline.lab.journal import LabJournal
from leadline.lab.network.placement import LabNetwork, failure_domain, place
from leadline.lab.network.topology import Link, Topology, simple
from leadline.lab.record import LabRecord
from leadline.lab.spec import LabSpec

PLAIN = simple(5, 0, 1, 6, Link(), Link())  # host1 has OSDs 0 and 1


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each `ceph` command of a lab whose monitors agree to everything."""
    found: list[str] = []
    monkeypatch.setattr(CephCommand, "run", lambda _, *words, **__: found.append(" ".join(words)))
    return found


def builder(directory: Path, topology: Topology | None) -> cluster.Builder:
    spec = LabSpec(name="x", topology=topology)
    network = None if topology is None else LabNetwork(topology, "10.4.2.0/23", "llnd0", place(topology))
    record = LabRecord("x", "fsid", spec, directory, directory, True, 0, 0.0, network=network)
    return cluster.Builder(LabJournal(record, {}), lambda _: None, random.Random(1))  # noqa: S311


def made(said: list[str], pool: str) -> str:
    (command,) = (words for words in said if words.startswith(f"osd pool create {pool} "))
    return command


def test_pools_of_a_lab_without_hosts_have_no_rules_of_their_own(tmp_path: Path, said: list[str]) -> None:
    cluster._make_pools(builder(tmp_path, None))
    assert made(said, "meta") == "osd pool create meta 8 --size 3"
    assert made(said, "striped") == "osd pool create striped 8 --size 3"
    assert not [words for words in said if "crush rule" in words or "crush-device-class" in words]


def test_metadata_lies_on_its_own_osds_and_nothing_else_does(tmp_path: Path, said: list[str]) -> None:
    topology = replace(PLAIN, metadata=("host1",))
    asked = builder(tmp_path, topology)
    cluster._set_metadata_apart(asked, topology)
    cluster._make_pools(asked)
    assert "osd crush set-device-class metadata osd.0 osd.1" in said
    assert "osd crush set-device-class data osd.2 osd.3 osd.4 osd.5" in said
    assert "osd crush rule create-replicated metadata default osd metadata" in said  # two copies, one host
    assert "osd crush rule create-replicated data default host data" in said
    assert made(said, "meta") == "osd pool create meta 8 8 replicated metadata --size 2"
    for pool, groups in (("data", 32), ("objects", 8), ("striped", 8)):
        assert made(said, pool) == f"osd pool create {pool} {groups} {groups} replicated data --size 3"
    (profile,) = (words for words in said if "erasure-code-profile" in words)
    assert "crush-device-class=data" in profile


def test_two_hosts_for_metadata_hold_a_copy_each(tmp_path: Path, said: list[str]) -> None:
    topology = replace(PLAIN, metadata=("host1", "host2"))
    cluster._set_metadata_apart(builder(tmp_path, topology), topology)
    assert "osd crush rule create-replicated metadata default osd metadata" in said  # three copies
    topology = replace(simple(5, 0, 1, 5, Link(), Link()), metadata=("host1", "host2"))
    cluster._set_metadata_apart(builder(tmp_path, topology), topology)
    assert "osd crush rule create-replicated metadata default host metadata" in said


def test_striped_files_are_erasure_coded_where_the_topology_says_so(tmp_path: Path, said: list[str]) -> None:
    cluster._make_pools(builder(tmp_path, replace(PLAIN, striped_erasure=True)))
    assert made(said, "striped") == "osd pool create striped 8 8 erasure k2m1"
    assert "osd pool set striped allow_ec_overwrites true" in said
    assert "osd pool application enable striped leadline" in said


def test_hosts_of_metadata_are_no_failure_domains_of_the_data() -> None:
    assert failure_domain(PLAIN, 5) == "host"
    assert failure_domain(replace(PLAIN, metadata=("host1",)), 5) == "osd"
