"""A topology file: what it becomes, and each thing that is refused before anything starts, with its line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from leadline.errors import SpecError, UsageError
from leadline.lab.network import checks
from leadline.lab.network.checks import available_bytes, check_topology, expand, notes
from leadline.lab.network.topology import LabHost, Link, MachineLimits, Switch, Topology, simple
from leadline.lab.network.topology_file import AskedLab, load_topology, read_topology
from leadline.lab.spec import LabSpec

WHOLE = """\
ec: 2+1
osd_size: 4G
metadata: [fast1]
switches:
  core:
  rack[1-2]: {uplink: core, rate: 2Gbit}
  back:
hosts:
  store[1-4]:
    switch: rack[1-2]
    link: 1Gbit
    osds: 1
    runs: [mon]
    memory: 1G
    disk: {read: 100M, write: 50M/s}
    cluster: {switch: back, link: 10Gbit, mtu: 9000}
  fast1: {switch: core, osds: 2, runs: [mgr, mds], cpu: 0.5, cluster: {switch: back}}
  proxy[1-2]: {switch: core, link: 500Mbit, runs: [xrootd]}
clients:
  user01: {switch: core, link: 100Mbit, cpu: 1}
"""


def read(text: str) -> AskedLab:
    return read_topology(text, "centre.yaml", {})


def refused(text: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        read(text)
    assert caught.value.source == "centre.yaml"
    assert caught.value.remedy
    return caught.value


def test_a_file_becomes_values() -> None:
    asked = read(WHOLE)
    assert (asked.erasure, asked.osd_size_bytes, asked.subvolume) == ((2, 1), 4 << 30, "")
    topology = asked.topology
    assert topology.switches == (
        Switch("core"),
        Switch("rack1", "core", Link(2 * 10**9)),
        Switch("rack2", "core", Link(2 * 10**9)),
        Switch("back"),
    )
    assert [host.switch for host in topology.hosts] == ["rack1", "rack1", "rack2", "rack2", *["core"] * 3]
    assert topology.hosts[0] == LabHost(
        "store1",
        "rack1",
        Link(10**9),
        osds=1,
        runs=("mon",),
        limits=MachineLimits(0.0, 1 << 30, 100 << 20, 50 << 20),
        cluster_switch="back",
        cluster_link=Link(10**10, 9000),
    )
    assert topology.clients[0].limits.cpu == 1.0
    assert (topology.metadata, topology.osd_count, topology.data_osd_count) == (("fast1",), 6, 4)
    assert topology.gateways == ("xrootd",)


def test_a_tree_of_switches_may_be_as_deep_as_they_are_many() -> None:
    deep = "  s1:\n" + "".join(f"  s{n}: {{uplink: s{n - 1}}}\n" for n in range(2, 100))
    text = f"switches:\n{deep}hosts:\n  h[1-3]: {{switch: s99, osds: 1}}\n"
    assert len(read(text).topology.switches) == 99


def test_roles_are_dealt_out_where_nobody_said() -> None:
    found = read("switches: {core: }\nhosts:\n  host[1-4]: {switch: core, osds: 1}\n").topology
    assert [host.runs for host in found.hosts] == [
        host.runs for host in simple(4, 0, 1, 4, Link(), Link()).hosts
    ]


def test_the_documentation_s_example_is_read() -> None:
    page = Path(__file__).parents[2] / "docs" / "lab-topology.md"
    (example,) = re.findall("```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    asked = read(example)
    assert (asked.erasure, asked.topology.osd_count, asked.subvolume) == ((4, 2), 8, "team/projects")
    assert asked.topology.striped_erasure


def test_an_mtu_at_the_top_is_that_of_every_link() -> None:
    text = WHOLE.replace("ec: 2+1", "mtu: 9000").replace("back:\nhosts", "back:\nhosts")
    links = [member.link for member in read(text).topology.members]
    assert {link.mtu_bytes for link in links} == {9000}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("host1", ["host1"]),
        ("host[1-3]", ["host1", "host2", "host3"]),
        ("host[08-10]", ["host08", "host09", "host10"]),
        ("r[1,3-4]h", ["r1h", "r3h", "r4h"]),
    ],
)
def test_a_range_is_many_names(text: str, names: list[str]) -> None:
    assert list(expand(text)) == names


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("host[3-1]", "counts down"),
        ("host[1-3", "neither a name nor a range"),
        ("host[]", "neither a name nor a range"),
        ("host[1-]", "neither a name nor a range"),
        ("a[1][2]", "neither a name nor a range"),
        ("host[1-999999]", "more than 200"),
        ("host[1-100,1-101]", "more than 200"),
        ("host[1-3,2]", "twice"),
        ("host[1000000000000-1000000000001]", "neither a name nor a range"),
        ("host1234567890", "name of a device"),
        ("hostnumbers[9-10]", "name of a device"),
        ("9host", "name of a device"),
        ("-h", "name of a device"),
        ("../x", "name of a device"),
        ("h_1", "name of a device"),
        ("höst", "name of a device"),
        ("", "name of a device"),
        ("switches", "something else"),
        ("console", "something else"),
        ("default", "something else"),
        ("host1-back", "something else"),
    ],
)
def test_what_cannot_be_a_name_is_refused(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        expand(text)
    assert caught.value.remedy


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.parametrize(
    ("before", "after", "words", "remedy"),
    [
        ("uplink: core", "uplink: croe", "there is no switch 'croe'", "did you mean core?"),
        ("  core:\n", "  core: {uplink: rack1}\n", "make a loop: core -> rack1 -> core", "leave out"),
        ("  core:\n", "  core: {uplink: core}\n", "make a loop: core -> core", "leave out"),
        ("switch: rack[1-2]", "switch: rock[1-2]", "no switch 'rock1'", "did you mean rack1?"),
        ("metadata: [fast1]", "metadata: [fats1]", "there is no host 'fats1'", "did you mean fast1?"),
        ("metadata: [fast1]", "metadata: [proxy1]", "no OSD for the metadata", "hosts with OSDs"),
        ("core, osds: 2", "core, osds: 1", "no second copy of the metadata", "2 OSDs"),
        ("user01:", "proxy2:", "the name proxy2 is taken in line 18", "another"),
        ("user01:", "rack1:", "the name rack1 is taken in line 6", "another"),
        ("user01:", "a_name_that_is_long:", "cannot be the name of a device", "at most 12"),
        ("user01:", "switches:", "something else", "another"),
        ("rack[1-2]: {uplink: core, rate", "rack[1-2]: {rate", "is of an uplink", "add `uplink`"),
        ("  rack[1-2]: {uplink: core, rate: 2Gbit}", "  rack[1-2]:", "are not joined", "an uplink"),
        ("cluster: {switch: back}", "cluster: {switch: core}", "core and back are not joined", "an uplink"),
        (", cluster: {switch: back}", "", "fast1 has OSDs without one", "or none"),
        ("link: 500Mbit", "link: 0Gbit", "nothing would pass such a link", "1Gbit"),
        ("link: 500Mbit", "link: 500", "is not a rate of a link", "100Mbit"),
        ("link: 500Mbit", "link: 500kbit", "500 kbit/s is no rate that a lab works with", "1Mbit"),
        ("link: 500Mbit", "link: 900Gbit", "is no rate that a lab works with", "400Gbit"),
        ("mtu: 9000", "mtu: 100", "out of range", "576"),
        ("link: 500Mbit", "mtu: 9000", "sends frames of 9000 bytes", "mtu: 9000"),
        ("runs: [mon]", "runs: [mno]", "'mno' is nothing that a host runs", "did you mean mon?"),
        ("runs: [mon]", "runs: [mon, mon]", "runs mon twice", "once"),
        ("runs: [mon]", "runs: []", "no host runs mon", "add mon"),
        ("runs: [mgr, mds]", "runs: [mds]", "no host runs mgr", "add mgr"),
        ("runs: [mgr, mds]", "runs: [mgr]", "no host runs mds", "add mds"),
        ("runs: [xrootd]", "runs: [xrotd]", "'xrotd' is nothing that a host runs", "xrootd"),
        ("store[1-4]", "store[1-6]", "6 hosts run mon", "5 are the most"),
        ("store[1-4]", "store[1-2]", "2 OSDs next to those for the metadata are too few", "3 or more"),
        ("ec: 2+1", "ec: 6+3", "4 OSDs next to those for the metadata are too few for 6+3", "9 or more"),
        ("ec: 2+1", "ec: 7", "'7' is not K+M", "6+3"),
        ("osds: 1\n", "osds: 65\n", "out of range", "64"),
        ("osds: 1\n", "osds: 20\n", "82 OSDs are too many", "64"),
        ("user01:", "user[1-200]:", "207 hosts and clients are more than 200", "fewer"),
        ("memory: 1G", "memory: 100M", "100 MiB do not hold what store1 runs", "220 MiB"),
        ("memory: 1G", "memory: 0", "no memory is no machine", "2G"),
        ("cpu: 0.5", "cpu: 0", "is no number of cores", "0.5"),
        ("cpu: 0.5", "cpu: half", "is no number of cores", "0.5"),
        ("read: 100M", "read: 0", "a rate of 0", "100M"),
        ("read: 100M", "reed: 100M", "unknown key", "did you mean read?"),
        ("memory: 1G", "memry: 1G", "unknown key", "did you mean memory?"),
        ("osd_size: 4G", "osdsize: 4G", "unknown key", "did you mean osd_size?"),
        ("uplink: core, rate", "uplink: core, rat", "unknown key", "did you mean rate?"),
        ("runs: [mon]", "runs: mon", "a list is needed here", "[a, b, c]"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(before: str, after: str, words: str, remedy: str) -> None:
    text = WHOLE.replace(before, after, 1)
    assert text != WHOLE
    error = refused(text)
    assert words in error.message
    assert remedy in error.remedy
    assert error.line is not None


def test_the_line_is_that_of_the_value() -> None:
    assert refused(WHOLE.replace("switch: rack[1-2]", "switch: rock[1-2]")).line == line_of(
        WHOLE, "switch: rack"
    )
    assert refused(WHOLE.replace("user01", "rack1")).line == line_of(WHOLE, "user01")
    assert refused(WHOLE.replace("cluster: {switch: back}", "cluster: {switch: bak}")).line == line_of(
        WHOLE, "fast1:"
    )
    assert "hosts.store[1-4].switch: " in refused(WHOLE.replace("rack[1-2]\n", "rock[1-2]\n")).message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "a: 1",
        "switches: {core: }\nhosts: {}\n",
        "switches: {}\nhosts: {h1: {switch: core}}\n",
        "[" * 500,
    ],
)
def test_what_is_no_topology_is_refused(text: str) -> None:
    refused(text)


def test_more_than_the_memory_of_this_machine_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("leadline.lab.network.topology_file.available_bytes", lambda: 1 << 29)
    assert "of memory, and this machine has 512 MiB to give" in refused(WHOLE).message
    file = tmp_path / "meminfo"
    file.write_text("MemTotal:       2 kB\nMemAvailable:       1024 kB\n")
    assert available_bytes(file) == 1 << 20
    file.write_text("MemAvailable: much\n")
    assert available_bytes(file) is None


def test_an_unknown_memory_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leadline.lab.network.topology_file.available_bytes", lambda: None)
    assert read(WHOLE).topology.hosts


def test_erasure_of_the_command_line_and_of_the_file_must_agree() -> None:
    assert read_topology(WHOLE, "centre.yaml", {}, "2+1").erasure == (2, 1)
    with pytest.raises(SpecError, match=r"line 1: ec: the file says 2\+1, --ec 3\+1"):
        read_topology(WHOLE, "centre.yaml", {}, "3+1")
    assert read_topology(WHOLE.replace("ec: 2+1\n", ""), "centre.yaml", {}, "3+1").erasure == (3, 1)


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere\.yaml: cannot be read: No such file"):
        load_topology(tmp_path / "nowhere.yaml", {})
    (tmp_path / "latin.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match="not UTF-8"):
        load_topology(tmp_path / "latin.yaml", {})


SMALL = simple(3, 1, 2, 4, Link(10**9), Link(2 * 10**9))


@pytest.mark.parametrize(
    ("topology", "words"),
    [
        (replace(SMALL, hosts=()), "a switch and a host at least"),
        (replace(SMALL, switches=()), "a switch and a host at least"),
        (replace(SMALL, hosts=(*SMALL.hosts, SMALL.hosts[0])), "the name host1 is one of hosts already"),
        (replace(SMALL, clients=(replace(SMALL.clients[0], name="a/b"),)), "name of a device"),
        (
            replace(SMALL, clients=(replace(SMALL.clients[0], link=Link(-1)),)),
            "no rate that a lab works with",
        ),
        (replace(SMALL, clients=(replace(SMALL.clients[0], link=Link(0, 10)),)), "MTU of 10"),
        (replace(SMALL, hosts=tuple(replace(host, osds=0) for host in SMALL.hosts)), "no host has an OSD"),
        (replace(SMALL, switches=tuple(Switch(f"s{n}") for n in range(101))), "more than 100 switches"),
    ],
)
def test_values_made_by_a_program_are_checked_too(topology: Topology, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_topology(LabSpec(topology=topology))


def test_a_good_topology_and_a_lab_without_one_pass() -> None:
    check_topology(LabSpec(topology=SMALL))
    check_topology(LabSpec())


def test_what_the_machine_cannot_hold_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.os, "cpu_count", lambda: 2)
    assert list(notes(SMALL)) == []
    fast = replace(SMALL.hosts[0], link=Link(25 * 10**9), limits=MachineLimits(cpu=4))
    said = list(notes(replace(SMALL, hosts=(fast, *SMALL.hosts[1:]))))
    assert "25.0 Gbit/s is more than a core of this machine moves" in said[0]
    assert "host1: more cores than the 2 of this machine" in said[1]
