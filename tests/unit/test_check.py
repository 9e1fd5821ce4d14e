"""`leadline check`: facts against expectations, hosts against each other, what /proc, /sys and Ceph say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from leadline.check.document import as_document, changes, read_facts
from leadline.check.judge import Checked, host_of, judge
from leadline.check.measured.echoes import echo_all, path_facts
from leadline.check.measured.streams import HostAnswer, Words, parsed, stream_facts
from leadline.check.reading.cluster import cluster_facts
from leadline.check.reading.devices import device_facts
from leadline.check.reading.host import host_facts
from leadline.check.reading.interfaces import interface_values
from leadline.check.rows import ROLES, Fact, Row, rows, told
from leadline.check.view import findings, shown
from leadline.errors import ResultError
from leadline.knowledge.tables import Value
from leadline.observe.ceph.client import NotObservableError
from leadline.verdict.sections import section
from ports import free_ports


def states(facts: list[Fact], *roles: str) -> dict[tuple[str, str], str]:
    return {(one.row.name, one.subject): one.state for one in judge(facts, rows(), roles or ROLES)}


def found(facts: list[Fact], name: str) -> list[Checked]:
    return [one for one in judge(facts, rows(), ROLES) if one.row.name == name]


def rows_by_name(name: str) -> Row:
    return next(row for row in rows() if row.name == name)


def hosts(name: str, *values: Any, kind: str = "host", network: str = "") -> list[Fact]:
    return [Fact(kind, f"h{number}{network}", name, value) for number, value in enumerate(values)]


@pytest.mark.parametrize(
    ("fact", "row", "state"),
    [
        (Fact("host", "a", "cpu_governor", "performance"), "governor", "fine"),
        (Fact("host", "a", "cpu_governor", "powersave"), "governor", "out_of_line"),
        (Fact("host", "a", "cpu_governor", None, "no cpufreq"), "governor", "unknown"),
        (Fact("host", "a", "cpu_wake_us", 11), "wake", "out_of_line"),
        (Fact("host", "a", "cpu_wake_us", 10), "wake", "fine"),
        (Fact("host", "a", "cpu_wake_us", "long"), "wake", "unknown"),
        (Fact("host", "a", "clock_synchronized", False), "clock", "out_of_line"),
        (Fact("cluster", "cluster", "flags_set", "noout"), "flags", "out_of_line"),
        (Fact("cluster", "cluster", "flags_set", ""), "flags", "fine"),
        (Fact("interface", "a/eth0", "duplex", "half"), "duplex", "out_of_line"),
        (Fact("path", "a > b", "full_size_loss", 1.0), "full-size", "out_of_line"),
    ],
)
def test_a_fact_is_held_against_what_is_expected_of_it(fact: Fact, row: str, state: str) -> None:
    assert states([fact])[(row, fact.subject)] == state


def test_what_a_hypervisor_decides_is_not_asked_of_its_guests() -> None:
    facts = [Fact("host", "a", "cpu_governor", "powersave"), Fact("host", "a", "virtual", True)]
    assert ("governor", "a") not in states(facts)


def test_rows_of_other_roles_are_left_out() -> None:
    fact = Fact("host", "a", "open_files_max", 1024)
    assert ("open-files", "a") in states([fact], "osd")
    assert ("open-files", "a") not in states([fact], "mon")


def test_a_host_with_roles_of_its_own_is_asked_what_these_ask() -> None:
    facts = [Fact("host", host, "open_files_max", 1024) for host in ("a", "b")]
    judged = judge(facts, rows(), ROLES, {"b": ("mon",)})
    assert {one.subject for one in judged if one.row.name == "open-files"} == {"a"}
    devices = [Fact("device", f"{host}/sda", "scheduler", "bfq") for host in ("a", "b")]
    of_osds = replace(rows_by_name("scheduler"), roles=("osd",))
    assert [one.subject for one in judge(devices, [of_osds], ROLES, {"b": ("mon",)})] == ["a/sda"]


@pytest.mark.parametrize(
    "subject",
    ["node1.site", "node1.site/sda", "node1.site/eth0@10.0.0.0/24", "node1.site:/mnt", "node1.site > b"],
)
def test_a_part_is_of_the_host_that_its_name_begins_with(subject: str) -> None:
    assert host_of(subject) == "node1.site"


def test_the_odd_host_is_the_one_that_differs_from_most() -> None:
    odd = found(hosts("kernel", "6.1", "6.1", "5.10"), "kernel")
    assert [(one.subject, one.expected) for one in odd if one.state == "out_of_line"] == [
        ("h2", "6.1, as 2 of 3 have")
    ]
    assert found(hosts("kernel", "6.1"), "kernel") == []


def test_where_two_disagree_both_are_named() -> None:
    assert [one.state for one in found(hosts("kernel", "6.1", "5.10"), "kernel")] == ["out_of_line"] * 2


def test_memory_of_nearly_the_same_size_is_the_same() -> None:
    assert {one.state for one in found(hosts("memory_bytes", 1000, 1000, 990), "memory")} == {"fine"}


def test_interfaces_are_compared_within_their_network() -> None:
    facts = hosts("mtu", 9000, 9000, kind="interface", network="/a@10.0.0.0/24")
    facts += hosts("mtu", 1500, 1500, kind="interface", network="/b@10.1.0.0/24")
    assert {one.state for one in found(facts, "mtu-of-its-network")} == {"fine"}
    facts += [Fact("interface", "h3/a@10.0.0.0/24", "mtu", 1500)]
    odd = [one.subject for one in found(facts, "mtu-of-its-network") if one.state == "out_of_line"]
    assert odd == ["h3/a@10.0.0.0/24"]


def test_the_worst_comes_first() -> None:
    facts = [Fact("host", "a", "pid_max", 1), Fact("host", "a", "clock_synchronized", False)]
    assert [one.row.severity for one in judge(facts, rows(), ROLES)][:2] == ["serious", "note"]


def test_facts_of_a_host_are_what_its_files_say(tmp_path: Path) -> None:
    sys, proc = tmp_path / "sys", tmp_path / "proc"
    (proc / "sys/kernel").mkdir(parents=True)
    (proc / "sys/kernel/pid_max").write_text("4194304\n")
    (proc / "meminfo").write_text("MemTotal: 1024 kB\nSwapTotal: 100 kB\nSwapFree: 60 kB\n")
    (sys / "devices/system/cpu/cpu0/cpufreq").mkdir(parents=True)
    (sys / "devices/system/cpu/cpu0/cpufreq/scaling_governor").write_text("powersave\n")
    facts = {fact.name: fact for fact in host_facts("a", proc, sys)}
    assert facts["pid_max"].value == 4194304
    assert facts["swap_used_bytes"].value == 40 << 10
    assert facts["cpu_governor"].value == "powersave"
    assert facts["rmem_max"].value is None
    assert facts["rmem_max"].missing
    assert all(fact.missing for fact in facts.values() if fact.value is None)


@pytest.mark.parametrize(("bits", "returned"), [("01100101", True), ("01100001", False), ("011", False)])
def test_free_memory_goes_back_where_the_balloon_has_that_bit(
    bits: str, returned: bool, tmp_path: Path
) -> None:
    balloon = tmp_path / "bus/virtio/drivers/virtio_balloon/virtio0"
    balloon.mkdir(parents=True)
    (balloon / "features").write_text(bits + "0" * 56 + "\n")
    (tmp_path / "meminfo").write_text("MemTotal: 1024 kB\n")
    facts = [fact for fact in host_facts("a", tmp_path, tmp_path) if fact.name == "free_memory_returned"]
    assert [fact.value for fact in facts] == [returned]
    assert states(facts) == {("memory-returned", "a"): "out_of_line" if returned else "fine"}


def test_without_a_balloon_nothing_goes_back(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 1024 kB\n")
    facts = {fact.name: fact.value for fact in host_facts("a", tmp_path, tmp_path)}
    assert facts["free_memory_returned"] is False


def _no_health(devices: Sequence[str]) -> dict[str, tuple[dict[str, Value], dict[str, str]]]:
    return {device: ({"smart_passed": None}, {"smart_passed": "no smartctl"}) for device in devices}


def test_facts_of_a_device_are_those_of_its_queue_and_its_link(tmp_path: Path) -> None:
    device = tmp_path / "devices/pci/nvme0n1"
    (device / "queue").mkdir(parents=True)
    (device / "holders/dm-0").mkdir(parents=True)
    (device / "device").mkdir()
    for name, text in {
        "queue/scheduler": "none [bfq] kyber", "queue/rotational": "0", "queue/read_ahead_kb": "128",
        "ro": "0", "size": "2048", "device/current_link_width": "2", "device/max_link_width": "4",
        "device/current_link_speed": "8.0 GT/s PCIe", "device/max_link_speed": "16.0 GT/s PCIe",
    }.items():  # fmt: skip
        (device / name).write_text(text + "\n")
    block = tmp_path / "class/block"
    block.mkdir(parents=True)
    (block / "nvme0n1").symlink_to(device)
    (block / "loop0").mkdir()
    facts = {fact.name: fact.value for fact in device_facts("a", tmp_path, _no_health)}
    assert (facts["scheduler"], facts["rotational"], facts["holders"]) == ("bfq", False, "dm-0")
    assert (facts["pcie_width_share"], facts["pcie_speed_share"], facts["size_bytes"]) == (0.5, 0.5, 1 << 20)
    judged = states(device_facts("a", tmp_path, _no_health))
    assert judged[("scheduler", "a/nvme0n1")] == judged[("pcie-width", "a/nvme0n1")] == "out_of_line"


def test_shares_of_few_frames_are_none() -> None:
    link = {
        "mtu": 1500,
        "stats64": {"rx": {"packets": 9_000, "errors": 9}, "tx": {"packets": 0, "errors": 0}},
    }
    assert interface_values(link)["error_share"] is None
    link["stats64"]["rx"] = {"packets": 100_000, "errors": 10, "dropped": 50}  # type: ignore[index]
    assert interface_values(link)["error_share"] == pytest.approx(1e-4)
    assert interface_values(link)["drop_share"] == pytest.approx(5e-4)


class _Cluster:
    """Answers as a cluster of three OSDs does, one of which has settings of its own."""

    answers: ClassVar[dict[str, Any]] = {
        "status": {"health": {"status": "HEALTH_WARN",
                              "checks": {"X": {"summary": {"message": "noout set"}}}}},
        "versions": {"overall": {"ceph version 16.2.5 (0) pacific (stable)": 3}},
        "osd dump": {
            "flags": "sortbitwise,noout", "osds": [{"osd": n, "up": 1, "in": int(n < 2)} for n in range(3)],
            "pools": [{"pool_name": "ec", "size": 3, "min_size": 2, "pg_num": 8, "crush_rule": 0,
                       "erasure_code_profile": "p"}],
        },
        "osd df": {"nodes": [{"id": n, "pgs": 10 + 20 * (n == 0), "status": "up",
                              "utilization": 90.0 if n else 1.0} for n in range(3)]},
        "osd crush rule dump": [{"rule_id": 0, "steps": [{"op": "take", "item_name": "default"},
                                                         {"op": "chooseleaf_indep", "type": "osd"}]}],
        "osd erasure-code-profile get": {"k": "2", "m": "1"},
        "osd metadata": [{"id": n, "rotational": "0", "bluestore_min_alloc_size": "4096"} for n in range(3)],
        "osd tree": {}, "fs ls": [], "fs dump": {"filesystems": [], "standbys": []},
    }  # fmt: skip

    def mon(self, prefix: str, **_: Any) -> Any:
        return self.answers[prefix]

    def osd(self, osd: int, prefix: str, **arguments: Any) -> Any:
        if osd == 2 and prefix == "config get":
            raise NotObservableError("osd.2 hangs")
        own = {"osd_max_backfills": {"final": "8"}} if osd == 1 else {}
        return {"diff": own} if prefix == "config diff" else {arguments["var"]: "4096"}


def test_facts_of_a_cluster_are_what_it_answers() -> None:
    facts = {(fact.subject, fact.name): fact for fact in cluster_facts(_Cluster())}  # type: ignore[arg-type]
    assert facts[("cluster", "health")].value == "HEALTH_WARN (noout set)"
    assert facts[("cluster", "flags_set")].value == "noout"
    assert facts[("cluster", "osds_away")].value == 1
    assert facts[("cluster", "pg_spread")].value == pytest.approx(30 / (50 / 3))
    assert str(facts[("cluster", "bad_release")].value).startswith("16.2.5: converting")
    assert facts[("ec", "protection")].value == "EC 2+1"
    assert facts[("ec", "spare_copies")].value == 0
    assert facts[("ec", "failure_domain")].value == "osd"
    assert facts[("osd.1", "own_settings")].value == "osd_max_backfills=8"
    assert facts[("osd.0", "own_settings")].value == ""
    assert facts[("osd.2", "osd_memory_target")].missing == "osd.2 does not answer"
    judged = states(list(facts.values()))
    assert judged[("full", "osd.1")] == judged[("odd-settings", "osd.1")] == "out_of_line"
    assert judged[("full", "osd.0")] == judged[("odd-settings", "osd.0")] == "fine"


def test_a_peer_that_is_silent_is_not_said_to_lose_large_packets() -> None:
    answers = {"10.0.0.2": {"small_us": [], "sent": 10, "large": 0}, "10.0.0.3": {"error": "no route"}}
    facts = path_facts("a", {"10.0.0.2": "b", "10.0.0.3": "c"}, answers)
    judged = states(facts)
    assert judged[("loss", "a > b")] == "out_of_line"
    assert judged[("full-size", "a > b")] == judged[("loss", "a > c")] == "unknown"


def test_echoes_of_both_sizes_come_back_from_this_host() -> None:
    answer = echo_all(["127.0.0.1"], count=2)["127.0.0.1"]
    if "error" in answer:
        pytest.skip(f"a raw socket is not allowed here: {answer['error']}")
    assert (len(answer["small_us"]), answer["large"]) == (2, 2)


def test_a_stored_check_is_read_back_and_compared(tmp_path: Path) -> None:
    before = told("host", "a", {"kernel": "6.1", "swap_used_bytes": 0, "tcp_sack": 1}, {})
    after = told("host", "a", {"kernel": "6.2", "swap_used_bytes": 9, "tcp_sack": 1}, {})
    path = tmp_path / "c.json"
    path.write_text(json.dumps(as_document(before, judge(before, rows(), ROLES), {})))
    assert read_facts(path) == before
    assert [(one.name, one.before, one.after) for one in changes(before, after)] == [("kernel", "6.1", "6.2")]
    assert [one.subject for one in changes(before, [])] == ["a"]


@pytest.mark.parametrize(
    "facts", [None, 1, [1], [{"kind": "host"}], [{"kind": "host", "subject": "a", "name": "b", "value": []}]]
)
def test_a_file_that_is_no_check_is_one_clear_error(tmp_path: Path, facts: object) -> None:
    path = tmp_path / "c.json"
    path.write_text("{" if facts is None else json.dumps({"format": "leadline.check/1", "facts": facts}))
    with pytest.raises(ResultError, match=r"c\.json"):
        read_facts(path)


def test_each_row_is_whole_and_has_a_source() -> None:
    names = [(row.kind, row.name) for row in rows()]
    assert len(set(names)) == len(names)
    for row in rows():
        assert row.why and row.remedy and row.verify and row.source and row.expected, row.name  # noqa: PT018
        assert set(row.roles) <= set(ROLES)


def test_a_figure_that_is_far_from_the_median_is_the_odd_one() -> None:
    rates = (940e6, 950e6, 100e6, 900e6, 960e6)
    facts = [Fact("path", f"a > b{number}", "stream_bit_s", rate) for number, rate in enumerate(rates)]
    odd = [one for one in found(facts, "odd-stream") if one.state == "out_of_line"]
    assert [one.subject for one in odd] == ["a > b2"]
    assert odd[0].expected == "950 Mbit/s within 30%, as 4 of 5 have"


def _between(rates: Mapping[str, float]) -> list[Fact]:
    """A way between each two hosts carries what the slower link of both does."""
    pairs = [(one, other) for one in rates for other in rates if one != other]
    return [Fact("path", f"{a} > {b}", "stream_bit_s", min(rates[a], rates[b])) for a, b in pairs]


def _slow(facts: list[Fact]) -> set[str]:
    return {one.subject for one in found(facts, "odd-stream") if one.state == "out_of_line"}


@pytest.mark.parametrize("count", [3, 4, 5, 8])
def test_a_slow_link_is_named_by_its_ways_and_never_the_fast_ones(count: int) -> None:
    facts = _between({f"h{number}": 1e8 if number == 1 else 1e9 for number in range(count)})
    assert _slow(facts) == {fact.subject for fact in facts if "h1" in fact.subject}


def test_of_two_ways_the_slower_is_named_and_of_equal_ones_none() -> None:
    facts = [Fact("path", "a > b", "stream_bit_s", 1e9), Fact("path", "b > a", "stream_bit_s", 3e8)]
    assert _slow(facts) == {"b > a"}
    assert _slow(_between({"a": 1e9, "b": 1e9, "c": 9e8})) == set()


def test_of_ways_that_all_differ_none_is_named() -> None:
    rates = iter((12.3e9, 9.4e9, 14.3e9, 3.5e9, 4.1e9, 3.3e9, 7e9, 2.5e9, 8e9, 6.4e9, 3.8e9, 4.7e9))
    facts = [replace(fact, value=next(rates)) for fact in _between(dict.fromkeys("abcd", 1.0))]
    assert {one.state for one in found(facts, "odd-stream")} == {"unknown"}


def test_figures_of_hosts_that_all_differ_name_none() -> None:
    assert {one.state for one in found(hosts("memory_bytes", 100, 200, 400, 800), "memory")} == {"unknown"}


def test_a_stream_that_busy_processors_bound_is_no_odd_link() -> None:
    rates = (9e8, 9e8, 9e8, 1e8, 1e8)
    facts = [Fact("path", f"a > b{number}", "stream_bit_s", rate) for number, rate in enumerate(rates)]
    facts += [Fact("path", f"a > b{number}", "processors_busy", number != 3) for number in range(5)]
    states_of = {one.subject: (one.state, one.reason) for one in found(facts, "odd-stream")}
    assert states_of["a > b3"][0] == "out_of_line"
    assert states_of["a > b4"] == ("unknown", rows_by_name("odd-stream").undecided_why)
    assert states_of["a > b0"][0] == "fine"


def test_what_could_not_be_read_names_a_few_parts_of_many() -> None:
    facts = [Fact("path", f"a > b{number}", "echo_loss", None, "no route") for number in range(9)]
    sections = {one.name: one for one in shown(facts, judge(facts, rows(), ROLES), None).sections}
    (part,) = sections["unknown"].parts
    assert isinstance(part, section.Words)
    (line,) = (item.text for item in part.items)
    assert (
        line
        == "Small echoes that are lost of a > b0, a > b1, a > b2, a > b3, a > b4, a > b5 and 3 more: no route"
    )


def test_all_at_once_is_no_host_that_ways_share() -> None:
    facts = [Fact("path", f"{host} > all at once", "at_once_share", 0.1) for host in "ab"]
    (one,) = findings(judge(facts, rows(), ROLES))
    assert "begin or end" not in one.evidence


def test_what_iperf3_received_and_sent_again() -> None:
    end = {"sum_received": {"bits_per_second": 9e8}, "sum_sent": {"bytes": 144_800, "retransmits": 5}}
    assert parsed({"end": end}) == {"bit_s": 9e8, "sent_again_share": 0.05}


def test_a_host_without_iperf3_is_a_named_gap() -> None:
    def without(words: Mapping[str, Words], _: float) -> dict[str, HostAnswer]:
        return {host: HostAnswer(b'{"error": "no iperf3"}') for host in words}

    facts = stream_facts({"a": "10.0.0.1", "b": "10.0.0.2"}, without)
    assert {fact.subject for fact in facts} == {"a > b", "b > a"}
    assert {(fact.value, fact.missing) for fact in facts} == {
        (None, "no iperf3 on a"),
        (None, "no iperf3 on b"),
    }


def test_a_host_that_does_not_answer_takes_its_own_ways_only() -> None:
    def but_c(words: Mapping[str, Words], _: float) -> dict[str, HostAnswer]:
        return {
            host: HostAnswer(problem="it is gone") if host == "c" else carried(own, 1e9)
            for host, own in words.items()
        }

    facts = {(fact.subject, fact.name): fact for fact in stream_facts(THREE, but_c)}
    assert facts["a > b", "stream_bit_s"].value == 1e9
    assert facts["a > c", "stream_bit_s"].missing == "c: it is gone"
    assert facts["a > all at once", "at_once_share"].missing == "c: it is gone"


THREE = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}


def carried(words: Words, rate: float, busy: float = 0.1) -> HostAnswer:
    """What a host prints whose streams each carry so much; the first and last second are of no use."""
    turns = json.loads(words[1])["turns"]
    end = {
        "sum_received": {"bits_per_second": rate},
        "sum_sent": {"bytes": 1, "retransmits": 0},
    }
    sent = [{one["to"]: {"end": end, "seconds": [9e9, rate, rate, 0.0]} for one in turn} for turn in turns]
    return HostAnswer(json.dumps({"sent": sent, "busy": [busy] * len(turns)}).encode())


@pytest.mark.parametrize(
    ("at_once", "busy", "share"),
    [(5e8, 0.1, 1.0), (2e8, 0.1, 0.4), (2e8, 0.95, None)],
    ids=["its own link", "the network between", "processors"],
)
def test_what_a_host_sends_to_all_is_held_against_what_it_sends_along_one_way(
    at_once: float, busy: float, share: float | None
) -> None:
    """Two streams at once from each of three hosts, of 1 Gbit/s that one has alone."""

    def on_hosts(words: Mapping[str, Words], _: float) -> dict[str, HostAnswer]:
        rate = at_once if len(words) == 3 else 1e9
        return {host: carried(own, rate, busy) for host, own in words.items()}

    facts = {(fact.subject, fact.name): fact for fact in stream_facts(THREE, on_hosts)}
    found = facts["a > all at once", "at_once_share"]
    assert found.value == share
    assert found.missing == ("" if share else "the processors of a host were busy 95% of the time")
    assert facts["a > all at once", "at_once_bit_s"].value == 2 * at_once


def test_streams_on_this_host_are_measured() -> None:
    addresses = {"a": "127.0.0.1", "b": "127.0.0.2"}
    port = free_ports(4, tuple(addresses.values()))

    def here(words: Mapping[str, Words], limit_s: float) -> dict[str, HostAnswer]:
        children = {
            host: subprocess.Popen([sys.executable, "-m", *own], stdout=subprocess.PIPE)
            for host, own in words.items()
        }
        return {host: HostAnswer(child.communicate(timeout=limit_s)[0]) for host, child in children.items()}

    facts = stream_facts(addresses, here, port)
    assert {fact.name for fact in facts if fact.value is None} == set(), facts


class _Unknown(_Cluster):
    """Says `nan` for how full its OSDs are, as one without data does."""

    answers: ClassVar[dict[str, Any]] = {
        **_Cluster.answers,
        "osd df": {"nodes": [{"id": n, "pgs": 10, "status": "up", "utilization": None} for n in range(3)]},
    }


def test_a_number_that_ceph_does_not_know_is_missing_with_that_reason() -> None:
    facts = {(fact.subject, fact.name): fact for fact in cluster_facts(_Unknown())}  # type: ignore[arg-type]
    found = facts[("osd.0", "used_share")]
    assert (found.value, found.missing) == (None, "`ceph osd df` has no number for it")
    assert facts[("osd.1", "own_settings")].value == "osd_max_backfills=8"
