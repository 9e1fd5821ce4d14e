"""What is asked of a link or a client is checked before anything is done, and planned with its undo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from leadline.errors import LeadlineError, SpecError
from leadline.lab.inject import clients, wires
from leadline.lab.inject.fault import FaultScene
from leadline.lab.inject.injection import Injection
from leadline.lab.inject.kinds import KINDS, find
from leadline.lab.network.placement import LabNetwork, place
from leadline.lab.network.topology import Link, Switch, Topology, simple
from leadline.lab.record import LabRecord
from leadline.lab.spec import LabSpec

FLAT = simple(hosts=3, clients=2, switches=2, osds=4, link=Link(10**9), uplink=Link())
BACK = {"cluster_switch": "back", "cluster_link": Link(10**10)}
APART = replace(
    FLAT, hosts=tuple(replace(host, **BACK) for host in FLAT.hosts), switches=(*FLAT.switches, Switch("back"))
)  # fmt: skip


def lab(topology: Topology | None = FLAT) -> LabRecord:
    place_ = Path("/none")
    network = LabNetwork(topology, "10.4.2.0/23", "llnd1", place(topology)) if topology else None
    spec = LabSpec(directory=place_, topology=topology)
    return LabRecord("toy", "12345678-f", spec, place_, place_ / "run", True, 0, 0.0, network=network)


def planned(kind: str, on: str, record: LabRecord | None = None, **options: str) -> list[tuple[str, ...]]:
    """The actions of a fault, then those that undo them."""
    found = find(kind)
    given = {
        option.name: options.pop(option.name.replace("-", "_"), option.default) for option in found.options
    }
    for option in found.options:
        option.check(given[option.name])
    plan = found.plan(FaultScene(record or lab(), on, given, {}))
    actions = [step.do for step in plan.steps] + [step.undo for step in plan.steps if step.undo]
    return [(action.kind, *action.words) for action in actions]


def test_a_direction_of_a_link_is_one_step() -> None:
    assert planned("link-rate", "switch1", rate="100Mbit") == [
        ("link-rate", "switch1", "to", "100000000"), ("link-rate", "switch1", "from", "100000000"),
        ("link-rate", "switch1", "to"), ("link-rate", "switch1", "from"),
    ]  # fmt: skip
    assert [words[2] for words in planned("link-loss", "host1", direction="to")] == ["to", "to"]


def test_a_partition_is_of_both_networks_and_a_switch_is_all_below_it() -> None:
    steps = planned("partition", "switch2", lab(APART), **{"from": "host1"})
    assert steps[:4] == [
        ("drop", cable, direction, "parted", "host1")
        for cable in ("host3", "host3-back")
        for direction in ("to", "from")
    ]
    assert planned("partition", "host1", **{"with": "host2", "from": "others"})[0][4:] == (
        "host3", "client1", "client2",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "on", "options", "match"),
    [
        ("partition", "host1", {"from": "host1,host2"}, "host1 is on both sides"),
        ("partition", "host1", {"from": "hots2"}, "'hots2' is no host, client or switch"),
        ("partition", "core", {}, "nobody on the other side"),
        ("mtu-mismatch", "host1", {"mtu": "1500"}, "all its packets pass"),
        ("mtu-mismatch", "host1", {"mtu": "100"}, "is no MTU"),
        ("link-rate", "host1", {"rate": "0Mbit"}, "nothing would pass"),
        ("link-rate", "host1", {"direction": "up"}, "is no direction"),
        ("connection-resets", "host1", {"one_in": "2"}, "no number of operations"),
        ("client-busy-cpu", "client1", {"cores": "0"}, "no number of this machine's cores"),
        ("client-low-memory", "client1", {"memory": "1M"}, "no program of Ceph's starts"),
        ("client-clock", "client1", {"offset": "0s"}, "is right"),
        ("client-clock", "client1", {"offset": "soon"}, "is not a time"),
    ],
)
def test_what_cannot_be_is_refused(kind: str, on: str, options: dict[str, str], match: str) -> None:
    with pytest.raises(LeadlineError, match=match):
        planned(kind, on, **options)


def test_ceph_is_told_of_a_host_by_its_name_in_crush() -> None:
    record = lab()
    scene = FaultScene(record, "host1", {"max": "1s"}, {})
    assert find("message-delay").plan(scene).holds == ("osd.0/delay", "osd.1/delay")
    assert find("message-delay").plan(replace(scene, on="osd.3")).holds == ("osd.3/delay",)


@pytest.mark.parametrize("kind", ["link-rate", "link-loss", "partition", "client-slow-cpu", "client-clock"])
def test_a_lab_without_hosts_says_what_would_have_them(kind: str) -> None:
    assert "lab up --hosts" in find(kind).lacking(lab(None))


def test_a_clock_is_off_only_for_its_client_and_keeps_what_was_preloaded() -> None:
    fault = Injection("1", "client-clock", "client1", {"offset": "-1m"}, "", (), (), 0.0)
    record = replace(lab(), injections=(fault,))
    assert clients.environment(record, "client2", {}) == {}
    found = clients.environment(record, "client1", {"LD_PRELOAD": "/trace.so"})
    assert found["FAKETIME"] == "-60.000000000"
    assert found["LD_PRELOAD"].endswith("/trace.so")
    assert found["FAKETIME_SHARED"] == "/leadline-12345678-client1 /leadline-12345678-client1"


def test_a_share_of_packets_is_a_share_of_all_random_numbers() -> None:
    assert f"53 1 0 {2**31}," in wires.drop_share(0.5)
    assert f"53 1 0 {2**32 - 1}," in wires.drop_share(1.0)


def test_addresses_are_compared_in_ipv4_and_arp() -> None:
    text = wires.going_to(["10.0.0.1"])
    assert text.split(",")[0] == "10"
    assert "32 0 0 30" in text
    assert "32 0 0 38" in text
    assert f"21 0 1 {(10 << 24) + 1}" in text


def test_a_rate_is_no_time() -> None:
    with pytest.raises(SpecError):
        planned("link-delay", "host1", delay="1Mbit")


def test_every_fault_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs/lab-faults.md").read_text()
    assert [kind.name for kind in KINDS if f"`{kind.name}`" not in page] == []
