"""`lab up` with hosts: what it asks for, what contradicts itself, and the documents' clusters in small."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic import TypeAdapter

from leadline import lab
from leadline.cli.main import leadline
from leadline.errors import LabError, LeadlineError, UsageError
from leadline.lab.network.checks import notes
from leadline.lab.network.topology import Link, simple
from leadline.lab.network.topology_file import reference_lab, reference_names
from leadline.lab.spec import LabSpec, check_spec

TWO_RACKS = "--hosts 3 --clients 1 --switches 2 --link 1Gbit --uplink 2Gbit"


def plan(*words: str) -> dict[str, Any]:
    """What `lab up WORDS` would start, as values."""
    done = CliRunner().invoke(leadline, ["lab", "up", *words, "--dry-run", "--json"])
    assert done.exit_code == 0, done.exception or done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(*words: str) -> LeadlineError:
    done = CliRunner().invoke(leadline, ["lab", "up", *words])
    assert isinstance(done.exception, LeadlineError), done.output
    assert done.exception.remedy
    return done.exception


def test_hosts_clients_and_switches_become_a_topology() -> None:
    words = "--hosts 4 --clients 2 --switches 2 --link 1Gbit --uplink 2Gbit --gateways nfs,xrootd --ec 2+1"
    found = plan(*words.split())
    spec = TypeAdapter(LabSpec).validate_python(found["spec"])
    assert spec.topology is not None
    assert [switch.name for switch in spec.topology.switches] == ["core", "switch1", "switch2"]
    assert {member.link.rate_bit_s for member in spec.topology.members} == {10**9}
    assert spec.topology.switches[1].uplink.rate_bit_s == 2 * 10**9
    assert spec.gateways == ("xrootd", "nfs")
    assert (found["placement"]["nfs"], found["placement"]["xrootd"]) == ("host4", "host3")
    assert found["placement"]["mon.a"] == "host1"
    check_spec(spec)


@pytest.mark.parametrize(
    ("words", "osds"),
    [("", 4), ("--ec 6+3", 9), ("--osds 5", 5), ("--hosts 6", 6), ("--hosts 11 --ec 8+3", 11)],
)
def test_osds_are_what_the_pools_need_and_one_a_host_at_least(words: str, osds: int) -> None:
    hosts = "" if "--hosts" in words else "--hosts 3"
    assert (
        TypeAdapter(LabSpec).validate_python(plan(*hosts.split(), *words.split())["spec"]).osd_count == osds
    )


def test_without_hosts_the_lab_is_that_of_before() -> None:
    spec = TypeAdapter(LabSpec).validate_python(plan()["spec"])
    assert spec == LabSpec()
    assert plan("--osd-size", "4G", "--ec", "3+1")["spec"]["osd_size_bytes"] == 4 << 30


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--clients 2", "--clients needs --hosts"),
        ("--switches 2", "--switches needs --hosts"),
        ("--link 1Gbit", "--link needs --hosts"),
        ("--uplink 1Gbit", "--uplink needs --hosts"),
        ("--hosts 3 --reference suse", "--hosts and --reference contradict"),
        ("--hosts 3 --topology FILE", "--hosts and --topology contradict"),
        ("--topology FILE --reference suse", "--topology and --reference contradict"),
        ("--reference suse --clients 0", "--reference already defines clients"),
        ("--reference suse --osds 11", "--reference already defines osds"),
        ("--topology FILE --link 1Gbit", "--topology already defines link"),
        ("--topology FILE --gateways nfs --dry-run", "both name gateways"),
        ("--topology FILE --ec 3+1", "line 1: ec: the file says 2+1, --ec 3+1"),
        ("--topology FILE --osd-size 5G --dry-run", "--osd-size 5G and 4g in the topology contradict"),
        (
            "--reference opencast --subvolume team/x --dry-run",
            "--subvolume team/x and opencast in the topology",
        ),
        ("--hosts 2 --switches 3", "3 switches are more than 2 hosts"),
        ("--hosts 2 --uplink 1Gbit", "one switch has no uplink"),
        ("--hosts 3 --link fast", "--link: 'fast' is not a rate of a link"),
        ("--hosts 3 --link 0Gbit", "--link: '0Gbit': nothing would pass"),
        ("--hosts 3 --bridge --dry-run", "addresses of its own"),
        ("--hosts 3 --address 127.0.0.2 --dry-run", "addresses of its own"),
        ("--hosts 3 --osds 2 --dry-run", "2 OSDs are too few"),
        ("--hosts 3 --clients 198 --dry-run", "201 hosts and clients are more than 200"),
        ("--hosts 3 --osds 65 --dry-run", "65 OSDs"),
        ("--reference castr", "'castr' is no cluster that leadline knows"),
    ],
)
def test_what_contradicts_itself_is_refused_before_anything_starts(
    tmp_path: Path, words: str, message: str
) -> None:
    file = tmp_path / "centre.yaml"
    file.write_text(
        "ec: 2+1\nosd_size: 4G\nswitches: {core: }\nhosts:\n"
        "  host[1-3]: {switch: core, osds: 1, runs: [mon, mgr, mds, nfs]}\n"
    )
    assert message in refused(*words.replace("FILE", str(file)).split()).message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_hosts_need_root_and_say_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    error = refused("--hosts", "3", "--dir", str(tmp_path / "lab"))
    assert not (tmp_path / "lab").exists()
    if isinstance(error, LabError):
        pytest.skip(error.message)  # Ceph's packages lack: that is said before
    assert "need root" in error.message
    assert plan("--hosts", "3")["placement"]


def test_a_plan_is_drawn() -> None:
    done = CliRunner().invoke(
        leadline,
        ["lab", "up", *TWO_RACKS.split(), "--dry-run"],
    )
    assert done.stdout.splitlines() == [
        "core",
        "  client1  1.00 Gbit/s",
        "  switch1  uplink 2.00 Gbit/s",
        "    host1  1.00 Gbit/s; 2 OSDs mon mgr mds",
        "    host2  1.00 Gbit/s; 1 OSD mon mgr mds",
        "  switch2  uplink 2.00 Gbit/s",
        "    host3  1.00 Gbit/s; 1 OSD mon",
        "EC 2+1, 4 OSDs",
    ]


@pytest.mark.parametrize("name", reference_names())
def test_a_reference_can_be_started_and_says_what_it_left_out(name: str) -> None:
    spec = TypeAdapter(LabSpec).validate_python(plan("--reference", name)["spec"])
    assert spec.topology is not None
    assert (spec.topology.reference, bool(spec.topology.source)) == (name, True)
    said = " ".join(spec.topology.scaled)
    assert "published" in said
    assert "left out" in said
    assert spec.osd_count <= 11
    assert list(notes(spec.topology)) == []
    done = CliRunner().invoke(leadline, ["lab", "up", "--reference", name, "--dry-run"])
    assert f"scaled: {spec.topology.scaled[0]}" in done.stderr


def test_the_references_have_the_shape_of_their_documents() -> None:
    assert reference_names() == ("castor", "fermilab", "opencast", "suse")
    castor, suse = reference_lab("castor"), reference_lab("suse")
    assert castor.erasure == (8, 3)
    assert sum(host.osds == 1 for host in castor.topology.hosts) == 11
    assert castor.topology.gateways == ("xrootd",)
    assert castor.topology.striped_erasure
    assert sum(bool(switch.uplink.rate_bit_s) for switch in castor.topology.switches) == 6
    assert suse.erasure == (6, 3)
    assert suse.topology.metadata
    fast = [host for host in suse.topology.hosts if host.name in suse.topology.metadata]
    assert all(host.osds and not host.limits.any for host in fast)
    assert reference_lab("opencast").subvolume
    assert any(client.limits.cpu for client in reference_lab("fermilab").topology.clients)


def test_a_program_that_starts_a_lab_meets_the_same_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_far(**_: object) -> None:
        raise AssertionError("it would have been started")

    monkeypatch.setattr("leadline.lab.requirements.require_packages", too_far)
    topology = simple(3, 0, 1, 4, Link(), Link())
    lost = replace(topology, hosts=(*topology.hosts[:2], replace(topology.hosts[2], switch="nowhere")))
    with pytest.raises(UsageError, match=r"hosts\.host3\.switch: there is no switch 'nowhere'"):
        lab.start(LabSpec(directory=tmp_path / "lab", topology=lost))
    assert not (tmp_path / "lab").exists()
