"""An audit of many hosts judges each by itself, says once what is so on many, and names who differs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from leadline import _core
from leadline.cli.change.audit_view import AuditedWork, AuditShown, print_audit
from leadline.errors import ResultError
from leadline.knowledge.findings import Finding
from leadline.tuning.audit import AuditAsked, Audited, SettingSeen
from leadline.tuning.fleet import HostRead, audit_hosts, audit_json, where_words
from leadline.tuning.remote_audit import answer, question, told
from leadline.tuning.settings import ROLES, Role, SettingPlace, settings

NODES = tuple(f"node{number:02}" for number in range(1, 13))
SWAP = Finding("memory_short", "the memory of this host", "", "", share=0.5)
Read = tuple[str, str, str | None]  # setting, subject, value


def host(
    name: str, *read: Read, roles: tuple[Role, ...] = ROLES, kernel: str = "6.1", problem: str = ""
) -> HostRead:
    known = settings()
    seen = [
        SettingSeen(known[setting], SettingPlace(at, name), value, None, "" if value else "no")
        for setting, at, value in read
    ]
    return HostRead(name, roles, {"kernel": kernel}, tuple(seen), problem)


def audited(
    hosts: Sequence[HostRead], cluster: Sequence[SettingSeen] = (), causes: Sequence[Finding] = ()
) -> Audited:
    """Of the settings that anybody read, as all others would be recommended for their causes, too."""
    known = {
        one.setting.name: one.setting for one in (*cluster, *(one for each in hosts for one in each.seen))
    }
    return audit_hosts(known, hosts, cluster, AuditAsked({"ceph": "18.2.1"}, ROLES, causes=tuple(causes)))


def said(found: Audited, kind: str = "differs") -> list[tuple[str, str, str]]:
    """Setting, where, and why of each row of a kind."""
    return [
        (row.setting.name, where_words(row.places, ()), row.why) for row in found.rows if row.kind == kind
    ]


def test_the_one_that_differs_is_named_and_the_others_are_counted() -> None:
    hosts = [host(name, ("vm.swappiness", "", "1" if name == "node07" else "60")) for name in NODES]
    assert said(audited(hosts)) == [("vm.swappiness", "node07", "node07 has 1; the other 11 have 60")]


def test_of_values_that_as_many_hosts_have_none_is_the_odd_one() -> None:
    hosts = [host("a", ("vm.swappiness", "", "1")), host("b", ("vm.swappiness", "", "60"))]
    assert said(audited(hosts)) == [("vm.swappiness", "a and b", "a has 1, b has 60")]


def test_many_that_differ_are_counted() -> None:
    values = ["1", "1", "1", "1", "1", "2", "3", "4", "5", "60", "60", "60"]
    hosts = [host(name, ("vm.swappiness", "", value)) for name, value in zip(NODES, values, strict=True)]
    ((_, _, why),) = said(audited(hosts))
    assert why == (
        "node10, node11 and node12 have 60, node06 has 2, node07 has 3, 2 further values on other hosts;"
        " the other 5 have 1"
    )


def test_two_notations_of_one_value_do_not_differ() -> None:
    hosts = [
        host("a", ("net.ipv4.tcp_rmem", "", "4096\t131072 6291456"), ("net.ipv4.tcp_sack", "", "1")),
        host("b", ("net.ipv4.tcp_rmem", "", "4096 131072 6291456"), ("net.ipv4.tcp_sack", "", "on")),
    ]
    assert said(audited(hosts)) == []


def test_what_could_not_be_read_differs_from_nothing() -> None:
    hosts = [host("a", ("vm.swappiness", "", None)), host("b", ("vm.swappiness", "", "60"))]
    assert said(audited(hosts)) == []


def test_hosts_are_compared_with_those_of_the_same_role_only() -> None:
    value: Read = ("vm.swappiness", "", "1")
    other: Read = ("vm.swappiness", "", "60")
    assert said(audited([host("a", value, roles=("osd",)), host("b", other, roles=("client",))])) == []
    three = [
        host("a", value, roles=("osd", "mon")),
        host("b", other, roles=("osd", "mon")),
        host("c", other, roles=("osd",)),
    ]
    assert said(audited(three)) == [("vm.swappiness", "a", "a has 1; the other 2 have 60")]


def test_devices_are_compared_by_name_and_alike_ones_are_one_row() -> None:
    hosts = [
        host("a", ("scheduler", "sda", "none"), ("scheduler", "sdb", "none"), ("scheduler", "sdc", "bfq")),
        host("b", ("scheduler", "sda", "bfq"), ("scheduler", "sdb", "bfq"), ("scheduler", "sdd", "none")),
        host("c", ("scheduler", "sda", "bfq"), ("scheduler", "sdb", "bfq")),
    ]
    assert said(audited(hosts)) == [("scheduler", "sda and sdb on a", "a has none; the other 2 have bfq")]


def test_what_differs_stands_after_dangers_and_by_the_cause_that_it_serves() -> None:
    hosts = [
        host("a", ("vm.swappiness", "", "1"), ("fs.aio-max-nr", "", "65536"), ("net.ipv4.tcp_sack", "", "1")),
        host(
            "b", ("vm.swappiness", "", "60"), ("fs.aio-max-nr", "", "65536"), ("net.ipv4.tcp_sack", "", "0")
        ),
    ]
    bad = SettingSeen(settings()["ms_crc_data"], SettingPlace("osd.1", cluster="f"), "false", True)
    found = audited(hosts, [bad], [SWAP])
    assert [(row.kind, row.setting.name) for row in found.rows][:4] == [
        ("dangerous", "ms_crc_data"),
        ("differs", "vm.swappiness"),
        ("recommended", "vm.swappiness"),
        ("differs", "net.ipv4.tcp_sack"),
    ]
    assert found.dangerous


def test_what_is_the_same_on_all_hosts_is_one_row() -> None:
    hosts = [host(name, ("fs.aio-max-nr", "", "65536")) for name in NODES]
    (row,) = audited(hosts).rows
    assert (row.kind, where_words(row.places, hosts)) == ("recommended", "all 12 hosts")


def test_each_host_is_judged_by_its_own_kernel_and_roles() -> None:
    old: Read = ("net.ipv4.tcp_low_latency", "", "1")
    found = audited([host("a", old), host("b", old, kernel="4.12"), host("c", old, roles=("mon",))])
    mon = "mon" in settings()["net.ipv4.tcp_low_latency"].roles
    assert said(found, "obsolete")[0][1] == ("a and c" if mon else "a")
    assert [where for _, where, _ in said(found, "advice")] == ["b"]


def test_what_is_on_one_host_is_not_recommended_as_being_nowhere() -> None:
    window = Finding("client_cache_full", "the client's cache of data", "", "", share=0.9)
    one = host("a", ("client_oc_size", "/mnt", "209715200"))
    found = audited([one, host("b")], causes=[window])
    assert [where for _, where, _ in said(found, "recommended")] == ["/mnt on a"]
    asked = AuditAsked({}, ROLES, causes=(window,))
    nowhere = audit_hosts({one.seen[0].setting.name: one.seen[0].setting}, [host("b")], (), asked)
    assert [where for _, where, _ in said(nowhere, "recommended")] == ["not here"]


def test_a_host_that_was_not_read_is_neither_compared_nor_judged() -> None:
    hosts = [host("a", ("vm.swappiness", "", "1")), host("b", ("vm.swappiness", "", "60"), problem="is gone")]
    assert said(audited(hosts)) == []


@pytest.mark.parametrize(
    ("names", "problem", "words"),
    [
        (NODES, "", "all 12 hosts"),
        (NODES[:11], "is gone", "all 11 hosts that answered"),
        (NODES[:2], "", "node01 and node02"),
        (NODES[:5], "", "node01, node02, node03 and 2 more"),
    ],
)
def test_hosts_are_named_or_counted(names: Sequence[str], problem: str, words: str) -> None:
    hosts = [*(host(name) for name in NODES[:11]), host(NODES[11], problem=problem)]
    assert where_words([SettingPlace("", name) for name in names], hosts) == words
    assert where_words([SettingPlace("eth0", name) for name in names], hosts) == f"eth0 on {words}"


def test_the_cluster_and_this_host_are_named_so() -> None:
    assert where_words([SettingPlace("osd.1", cluster="f")], ()) == "osd.1 on the cluster"
    assert where_words([SettingPlace(cluster="f")], ()) == "the cluster"
    assert where_words([SettingPlace()], ()) == "this host"
    assert where_words([SettingPlace("eth0")], ()) == "eth0"


def test_gaps_stand_before_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    hosts = (host("a", ("vm.swappiness", "", "60")), host("b", problem="cannot be reached"))
    print_audit(AuditShown(audited(hosts), AuditedWork(), {}, hosts, "no key"), everything=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 of 2 hosts: nothing dangerous")
    assert lines[1] == "NOT AUDITED  b cannot be reached"
    assert lines[2].startswith("NO CLUSTER ASKED  no key.")


def test_what_is_always_worth_it_is_done_where_it_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    wanted: Read = ("fs.aio-max-nr", "", "1048576")
    hosts = (
        host("a", ("fs.aio-max-nr", "", "65536")),
        host("b", wanted),
        host("c", ("vm.swappiness", "", "1")),
    )
    print_audit(AuditShown(audited(hosts), AuditedWork(), {}, hosts), everything=True)
    out = capsys.readouterr().out
    assert "3 hosts: nothing known to be dangerous, 1 not the same on all hosts, 1 worth trying." in out
    assert "Do on a: leadline tune apply fs.aio-max-nr=1048576 --dry-run" in out
    assert "Nothing more is recommended without a cause" in out
    assert "vm.swappiness = 1, default 60  (c)" in out


def test_json_has_every_host_and_who_has_what() -> None:
    hosts = [host("a", ("vm.swappiness", "", "1")), host("b", ("vm.swappiness", "", "60"))]
    value = audit_json(audited(hosts), {}, [*hosts, host("c", roles=("osd",), problem="is gone")])
    assert value["rows"][0]["values"] == [{"value": "1", "hosts": ["a"]}, {"value": "60", "hosts": ["b"]}]
    assert value["hosts"][2] == {
        "name": "c",
        "roles": ["osd"],
        "versions": {"kernel": "6.1"},
        "problem": "is gone",
    }
    assert "hosts" not in audit_json(audited(hosts), {})


def test_a_host_tells_what_it_has_by_its_name_there() -> None:
    found = told(answer(question("", "16.2.15")).encode(), "node1", settings())
    read = {one.setting.name: one for one in found.seen if not one.place.subject}
    assert read["vm.swappiness"].value == Path("/proc/sys/vm/swappiness").read_text().strip()
    assert read["vm.swappiness"].place == SettingPlace("", "node1")
    assert found.versions["ceph"] == "16.2.15"
    assert not any(one.setting.access.kind.startswith("ceph_") for one in found.seen)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"not this", "is damaged"),
        (b"{}", "is damaged"),
        (json.dumps({"leadline": "0.0.1"}).encode(), "it has leadline 0.0.1"),
        (json.dumps({"leadline": _core.version(), "readings": [["x"]]}).encode(), "is damaged"),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_refused(text: bytes, words: str) -> None:
    with pytest.raises(ResultError) as caught:
        told(text, "node1", settings())
    assert words in caught.value.message
