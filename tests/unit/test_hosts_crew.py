"""What is said of many hosts before any is reached: hosts files, addresses, clocks, differences, shares."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leadline import _core
from leadline.cli.measure.hosts_options import HostsOptions, asked_again
from leadline.errors import ResultError, SpecError, TargetError, UsageError
from leadline.hosts.model import StudyHost
from leadline.hosts.workers.calls import CallResult, Crew, CrewWorker, Order
from leadline.hosts.workers.checks import check_versions, hosts_of, look, needed_by_all, offset_of
from leadline.hosts.workers.collector import checked_path
from leadline.hosts.workers.connect import check_listener, check_plain
from leadline.hosts.workers.dask import DaskTransport
from leadline.hosts.workers.request import (
    HostAsked,
    HostsAsked,
    asked_hosts,
    is_list,
    listed_hosts,
    read_hosts,
)
from leadline.hosts.workers.study_hosts import StoredCrew
from leadline.study.target import Target, TargetFacts

WHOLE = """\
hosts:
  alpha:
  beta: {address: 10.0.0.2, targets: {ceph: /mnt/other}, python: /opt/python, ssh: {username: me}}
ssh: {username: root, port: 2222, client_keys: [~/.ssh/key]}
clock_limit: 100ms
wait: 10m
"""


def read(text: str) -> HostsAsked:
    return read_hosts(text, "hosts.yaml", {})


def test_a_whole_hosts_file() -> None:
    found = read(WHOLE)
    alpha, beta = found.hosts
    assert (alpha.address, alpha.ssh["username"], alpha.ssh["port"]) == ("alpha", "root", 2222)
    assert (beta.address, beta.targets, beta.python) == ("10.0.0.2", {"ceph": "/mnt/other"}, "/opt/python")
    assert beta.ssh == {"username": "me", "port": 2222, "client_keys": ["~/.ssh/key"]}
    assert (found.workers, found.clock_s, found.wait_s) == (2, 0.1, 600.0)
    assert HostsAsked.from_json(found.as_json()) == found


def test_what_a_host_is_may_be_a_word_or_a_list_and_is_kept() -> None:
    found = read("hosts:\n  alpha: {roles: osd}\n  beta: {roles: [mon, osd, mon]}\n  gamma:\n")
    assert [one.roles for one in found.hosts] == [("osd",), ("mon", "osd"), ()]
    stored = json.loads(json.dumps(found.as_json()))
    assert HostsAsked.from_json(stored) == found
    del stored["hosts"][0]["roles"]  # as older results have it
    assert HostsAsked.from_json(stored).hosts[0].roles == ()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("hosts:\n  alpha: {adress: x}\n", 2, "did you mean address?"),
        ("hosts:\n  alpha:\n  beta: {address: alpha}\n", 3, "alpha is listed twice, as alpha and as beta"),
        ("hosts:\n  alpha:\n  alpha:\n", 3, "given twice"),
        ("hosts:\n  a: {roles: [osd, disk]}\n", 2, "'disk' is no role of a host"),
        ("hosts:\n  a: {role: osd}\n", 2, "roles"),
        ("hosts:\n  a/b:\n", 2, "is no name of a host"),
        ("hosts:\n  a:\nworkers: 3\n", 3, "3 workers for 1 host by name"),
        ("scheduler: head:8786\n", 1, "no address of a Dask scheduler"),
        ("scheduler: tls://head:8786\nssh: {port: 1}\n", 2, "reached by SSH"),
        ("scheduler: tls://head:8786\nhosts:\n  a: {address: x}\n", 3, "knows its workers itself"),
        ("hosts:\n  a:\nssh: {prot: 1}\n", 3, "'prot' is no option of SSH here"),
        ("scheduler: tls://a:1\ntls: {ca: x}\n", 2, "cert: the key is missing"),
        ("hosts:\n  a:\ntls: {ca: x, cert: y}\n", 3, "SSH encrypts by itself"),
        ("plain_tcp: true\n", 1, "no host is named"),
    ],
)
def test_what_is_wrong_in_a_hosts_file(text: str, line: int, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(text)
    assert caught.value.line == line
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node1", ["node1"]),
        ("node[1-3]", ["node1", "node2", "node3"]),
        ("node[08-10,2]-ib,gw", ["node08-ib", "node09-ib", "node10-ib", "node2-ib", "gw"]),
        ("10.0.0.[4-5]", ["10.0.0.4", "10.0.0.5"]),
    ],
)
def test_a_list_of_hosts_is_read_as_slurm_writes_it(text: str, names: list[str]) -> None:
    found = listed_hosts(text)
    assert [one.name for one in found.hosts] == [one.address for one in found.hosts] == names
    assert (found.workers, found.source) == (len(names), f"--hosts {text}")


def test_a_list_may_name_the_account_of_each_host() -> None:
    assert [dict(one.ssh) for one in listed_hosts("me@a[1-2],b").hosts] == [{"username": "me"}] * 2 + [{}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("node[3-1]", "[3-1] is no range"),
        ("node[1-]", "[1-] is no range"),
        ("node[1-99999]", "is no range"),
        ("a,a", "a is listed twice"),
        ("a,,b", "'' is no name of a host"),
        ("-oProxyCommand=x", "is no name of a host"),
        ("a b", "'a b' is no name of a host"),
        ("a[1-4096],b", "more than 4096 hosts"),
    ],
)
def test_what_is_wrong_in_a_list_of_hosts(text: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        listed_hosts(text)
    assert words in str(caught.value)
    assert "--hosts" in str(caught.value)


def test_a_file_of_hosts_is_told_from_a_list_by_its_name() -> None:
    assert [one for one in ("hosts.yaml", "./hosts", "dir/hosts", "h.yml", "", "gw") if is_list(one)] == [
        "gw"
    ]


def test_the_damaged_hosts_of_a_manifest() -> None:
    with pytest.raises(ResultError, match="what the manifest says of its hosts"):
        HostsAsked.from_json({"hosts": [{"nom": "a"}], "tls": None})


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("scheduler: tcp://127.0.0.1:1", False),
        ("scheduler: tcp://localhost:1", False),
        ("scheduler: tcp://10.0.0.1:1", False),
        ("scheduler: tcp://localhost.example.org:1", False),
        ("scheduler: tls://10.0.0.1:1", True),
        ("scheduler: tcp://10.0.0.1:1\nplain_tcp: true", True),
        ("hosts:\n  a: {address: 10.0.0.1}", True),
    ],
)
def test_what_is_not_encrypted_is_refused_unless_it_was_asked_for(text: str, allowed: bool) -> None:
    if allowed:
        check_plain(read(text))
    else:
        with pytest.raises(UsageError, match="--plain-tcp"):
            check_plain(read(text))


def test_a_result_of_a_scheduler_without_tls_goes_on_once_that_is_allowed() -> None:
    stored = StoredCrew(HostsAsked(scheduler="tcp://127.0.0.1:1"), (HostAsked("alpha"),), "stop")
    with pytest.raises(UsageError, match="--plain-tcp"):
        check_plain(asked_again(stored, {}, HostsOptions()))
    check_plain(asked_again(stored, {}, HostsOptions(plain_tcp=True)))


TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2252 00000000:0000 0A 00000000:00000000 00:00000000 00000000  {uid}        0 1 1 0 100 0 0 10 0
   1: 0100007F:2253 0100007F:2252 01 00000000:00000000 00:00000000 00000000  4321        0 1 1 0 100 0 0 10 0
   2: 0200000A:2252 00000000:0000 0A 00000000:00000000 00:00000000 00000000  4321        0 1 1 0 100 0 0 10 0
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx rx tr uid
   0: {address}:2252 00000000000000000000000000000000:0000 0A 0:0 00:0 0 {uid} 0 1
"""
ANY, LOOPBACK, MAPPED = "0" * 32, "0" * 24 + "01000000", "0000000000000000FFFF00000100007F"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
@pytest.mark.parametrize("address", [ANY, LOOPBACK, MAPPED])
def test_who_listens_at_a_port_of_the_loopback_is_looked_up(host: str, address: str, tmp_path: Path) -> None:
    own, scheduler = os.geteuid(), f"tcp://{host}:8786"
    (tmp_path / "tcp").write_text(TCP.format(uid=own))
    (tmp_path / "tcp6").write_text(TCP6.format(address=address, uid=0))
    check_listener(scheduler, tmp_path)
    (tmp_path / "tcp6").write_text(TCP6.format(address=address, uid=4321))
    with pytest.raises(UsageError, match=r"another account \(uid 4321\)"):
        check_listener(scheduler, tmp_path)
    (tmp_path / "tcp6").unlink()
    (tmp_path / "tcp").write_text(TCP.format(uid=4322))
    with pytest.raises(UsageError, match=r"another account \(uid 4322\)"):
        check_listener(scheduler, tmp_path)
    check_listener(scheduler.replace("tcp:", "tls:"), tmp_path)
    check_listener("tcp://192.0.2.1:8786", tmp_path)  # of another host


def test_options_that_contradict() -> None:
    with pytest.raises(SpecError, match="both name hosts"):
        asked_hosts(Path("x"), "tls://a:1", None, plain_tcp=False, same_machine=False)
    with pytest.raises(SpecError, match="are for many hosts"):
        asked_hosts(None, None, 3, plain_tcp=False, same_machine=False)
    with pytest.raises(UsageError, match="--lost is for many hosts"):
        HostsOptions(lost="retry").asked()
    assert HostsOptions().asked() is None


def test_the_shortest_round_tells_the_clock() -> None:
    """Cristian: half the way is as far as it can be off."""
    found = offset_of([(0, 5_000_100, 200), (1000, 5_001_010, 1020), (2000, 5_004_000, 4000)])
    assert found is not None
    assert (found.offset_ns, found.error_ns, found.measured_unix_ns) == (5_000_000, 10, 1020)
    assert offset_of([]) is None


def test_which_workers_are_hosts() -> None:
    workers = [CrewWorker("alpha", "tcp://a:1"), CrewWorker("tcp://10.0.0.1:77", "tcp://10.0.0.1:77")]
    assert [one.name for one in hosts_of(HostsAsked(), workers)] == ["alpha", "10.0.0.1-77"]
    assert [one.name for one in hosts_of(HostsAsked(workers=1), workers)] == ["alpha"]
    asked = read("scheduler: tcp://x:1\nhosts:\n  alpha: {targets: {t: /a}}\n")
    assert hosts_of(asked, workers) == (StudyHost("alpha", "tcp://a:1", {"t": "/a"}),)


def test_versions_that_differ() -> None:
    hosts = [StudyHost(name, name) for name in ("a", "b")]
    crew = Answering({}, {"a": {"python": "3.9.2.final.0"}, "b": {"python": _python(), "leadline": None}})
    with pytest.raises(UsageError) as caught:
        check_versions(HostsAsked(), crew, hosts)
    assert "host a has Python 3.9" in caught.value.message
    assert "host b has no leadline" in caught.value.message
    assert caught.value.remedy == "start its Dask worker with the Python and the leadline that are here"


def test_a_slow_host_is_not_called_absent_nor_told_to_change_its_python() -> None:
    hosts = [StudyHost(name, name) for name in ("slow", "gone")]
    crew = Answering({}, known=("slow",))
    with pytest.raises(UsageError) as caught:
        check_versions(HostsAsked(answer_s=20.0), crew, hosts)
    slow, gone = caught.value.message.split("; ")
    assert slow == "host slow is slow to answer: nothing within 22 s"  # two seconds more for two hosts
    assert gone == "host gone is not there: its Dask worker is not there any more"
    assert "answer_within" in caught.value.remedy
    assert "start the worker again" in caught.value.remedy
    assert "Python" not in caught.value.remedy


def _python() -> str:
    import platform

    return f"{platform.python_version()}.final.0"


class Answering(Crew):
    """Hosts whose answers are given; `known` are those whose workers the scheduler has."""

    def __init__(
        self, told: dict[str, Any], found: dict[str, dict[str, Any]] | None = None, known: Sequence[str] = ()
    ) -> None:
        self.told, self.found, self.known = told, found or {}, known
        self.transport = DaskTransport(None, "tcp://127.0.0.1:1")  # type: ignore[arg-type]

    def ask(self, order: Order) -> dict[str, CallResult]:
        return {host: CallResult(self.told[host]) for host in order.arguments}

    def versions(self, _within_s: float) -> dict[str, dict[str, Any]]:
        return self.found

    def is_known(self, host: str) -> bool:
        return host in self.known

    def why_gone(self, _host: str) -> str | None:
        return None


EXT4 = TargetFacts("local", "ext4", "ext4 on vda")


def told(**changes: Any) -> dict[str, Any]:
    found = {"leadline": _core.version(), "boot_id": changes.get("hostname", "x"), "network": 1}
    return found | {"free_bytes": 1 << 40, "engines": {}, "targets": {"t": EXT4.as_json()}} | changes


def test_hosts_that_see_other_things() -> None:
    hosts = [StudyHost("a", "1"), StudyHost("b", "2")]
    targets = {"t": Target("t", "/mnt/t")}
    ceph = replace(EXT4, access="kernel", file_system="ceph").as_json()

    def found(second: dict[str, Any], **asked: bool) -> Any:
        crew = Answering({"a": told(hostname="a"), "b": second})
        return look(crew, HostsAsked(**asked), hosts, targets, print)  # type: ignore[arg-type]

    assert len(found(told(hostname="b"))) == 2
    with pytest.raises(TargetError, match=r"target t is .*ceph on host b, .*ext4 on a"):
        found(told(hostname="b", targets={"t": ceph}))
    with pytest.raises(TargetError, match="host b, target t: no such directory"):
        found(told(hostname="b", targets={"t": {"error": "no such directory"}}))
    with pytest.raises(UsageError, match="hosts a and b are one machine"):
        found(told(hostname="a"))
    assert len(found(told(hostname="a"), same_machine=True)) == 2
    with pytest.raises(UsageError, match=r"host b has leadline 0\.0\.1"):
        found(told(hostname="b", leadline="0.0.1"))
    with pytest.raises(UsageError, match="host b has 1 KiB free for its tables"):
        found(told(hostname="b", free_bytes=1024))


def test_space_that_all_hosts_take_together() -> None:
    shared = replace(EXT4, access="cephfs", file_system="cephfs")
    assert needed_by_all({"a": 10, "b": 10}, {"a": EXT4, "b": shared}, 3) == {"a": 10, "b": 30}


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a//b", "", "a/../../b", "a/."])
def test_no_path_of_a_host_leads_elsewhere(path: str) -> None:
    with pytest.raises(ResultError, match="no file of a result"):
        checked_path(path)


def test_a_command_is_neither_written_to_a_manifest_nor_taken_from_one() -> None:
    asked = HostsAsked((HostAsked("a", through=("leadline", "lab", "exec", "a")),))
    plain = json.loads(json.dumps(asked.as_json()))
    assert "through" not in plain["hosts"][0]
    plain["hosts"][0]["through"] = ["rm", "-r", "/"]
    assert HostsAsked.from_json(plain).hosts[0].through == ()
