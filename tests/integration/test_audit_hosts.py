"""`leadline tune audit --hosts`: real Dask workers, and hosts that are network namespaces, reached by SSH."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dask_workers import DaskWorkers
from ssh_server import SSHD, ssh_server
from support import Command, command_line

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="values of a host's own need root (mount, ip netns)"
)
AUDIT = ("tune", "audit", "--no-ceph")
OWN = """\
own.swappiness:
  layer: sysctl
  title: Swapping, with a danger on purpose
  roles: [client, osd]
  access: {kind: sysctl, key: vm.swappiness}
  means: As vm.swappiness.
  unit: percent
  default: "60"
  needs: live
  persist: sysctl
  danger: [{one_of: ["77"], words: for this test}]
  sources: ["ours"]
"""


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskWorkers]:
    """Three workers; gamma sees a value of its own where the others see the kernel's."""
    directory = tmp_path_factory.mktemp("crew")
    value = directory / "swappiness"
    value.write_text("77\n")
    own = f'mount --bind {value} /proc/sys/vm/swappiness && exec "$@"'
    with DaskWorkers(directory, ("alpha", "beta")) as found:
        found.start("gamma", before=("unshare", "--mount", "sh", "-c", own, "--"))
        yield found


def hosts_file(directory: Path, crew: DaskWorkers, hosts: str) -> Path:
    path = directory / "hosts.yaml"
    path.write_text(
        f"scheduler: {crew.address}\nplain_tcp: true\nsame_machine: true\nwait: 2s\nhosts:\n{hosts}"
    )
    return path


def audited(leadline: Command, *words: object, code: int = 0) -> dict[str, Any]:
    done = leadline(*AUDIT, "--json", *map(str, words), timeout=200)
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def row_of(found: dict[str, Any], kind: str, setting: str) -> dict[str, Any] | None:
    return next((one for one in found["rows"] if (one["kind"], one["setting"]) == (kind, setting)), None)


def hosts_at(row: dict[str, Any]) -> set[str]:
    return {place["host"] for place in row["places"]}


def test_the_host_that_differs_is_named_and_what_all_share_stands_once(
    leadline: Command, crew: DaskWorkers, tmp_path: Path
) -> None:
    hosts = hosts_file(tmp_path, crew, "  alpha:\n  beta:\n  gamma:\n")
    found = audited(leadline, "--hosts", hosts)
    row = row_of(found, "differs", "vm.swappiness")
    assert row is not None
    kernel = Path("/proc/sys/vm/swappiness").read_text().strip()
    assert row["why"] == f"gamma has 77; the other 2 have {kernel}"
    assert hosts_at(row) == {"gamma"}
    assert row["values"][1] == {"value": "77", "hosts": ["gamma"]}
    every = [one for one in found["rows"] if one["kind"] == "recommended"]
    assert len({one["setting"] for one in every}) == len(every)
    assert all(hosts_at(one) == {"alpha", "beta", "gamma"} for one in every)
    assert found["versions"] == {"kernel": platform.release()}
    assert [(one["name"], one["problem"]) for one in found["hosts"]] == [
        ("alpha", None),
        ("beta", None),
        ("gamma", None),
    ]


def test_a_danger_on_one_host_by_a_setting_of_ones_own_ends_with_three(
    leadline: Command, crew: DaskWorkers, tmp_path: Path
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(OWN)
    hosts = hosts_file(tmp_path, crew, "  alpha:\n  beta:\n  gamma: {roles: osd}\n")
    found = audited(leadline, "--hosts", hosts, "--settings", own, code=3)
    assert (found["rows"][0]["kind"], found["rows"][0]["setting"]) == ("dangerous", "own.swappiness")
    assert hosts_at(found["rows"][0]) == {"gamma"}
    # Where the file says that gamma is a monitor, the setting is none of its, and --role is of the others.
    hosts = hosts_file(tmp_path, crew, "  alpha:\n  beta:\n  gamma: {roles: [mon]}\n")
    found = audited(leadline, "--hosts", hosts, "--settings", own, "--role", "osd")
    assert row_of(found, "dangerous", "own.swappiness") is None
    assert [one["roles"] for one in found["hosts"]] == [["osd"], ["osd"], ["mon"]]


def test_a_host_that_does_not_come_is_a_gap_and_not_the_end(
    leadline: Command, crew: DaskWorkers, tmp_path: Path
) -> None:
    hosts = hosts_file(tmp_path, crew, "  alpha:\n  gone:\n  beta:\n")
    done = leadline(*AUDIT, "--hosts", str(hosts), timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 of 3 hosts: ")
    assert "NOT AUDITED  gone did not come within 2 s" in done.stdout


def test_where_no_host_answers_there_is_no_answer(
    leadline: Command, crew: DaskWorkers, tmp_path: Path
) -> None:
    done = leadline(*AUDIT, "--hosts", str(hosts_file(tmp_path, crew, "  gone:\n  lost:\n")), timeout=200)
    assert done.returncode == 2
    assert "gone, lost did not come" in done.stderr


def test_a_host_that_hangs_is_a_gap(leadline: Command, tmp_path: Path) -> None:
    with DaskWorkers(tmp_path, ("alpha", "beta")) as crew:
        crew.workers["beta"].send_signal(signal.SIGSTOP)
        try:
            found = audited(leadline, "--scheduler", crew.address, "--plain-tcp")
        finally:
            crew.workers["beta"].send_signal(signal.SIGCONT)
    problems = {one["name"]: one["problem"] for one in found["hosts"]}
    assert problems["alpha"] is None
    assert problems["beta"].startswith("is slow to answer: nothing within ")


def test_another_leadline_is_a_gap(leadline: Command, tmp_path: Path) -> None:
    older = tmp_path / "sitecustomize.py"  # also for what the worker starts
    older.write_text("from leadline import _core\n_core.version = lambda: '0.0.1'\n")
    with DaskWorkers(tmp_path, ("alpha",)) as crew:
        crew.start("beta", environment={"PYTHONPATH": str(tmp_path)})
        found = audited(leadline, "--scheduler", crew.address, "--plain-tcp")
    (alpha, beta) = found["hosts"]
    assert alpha["problem"] is None
    assert "it has leadline 0.0.1, and" in beta["problem"]


@pytest.fixture
def namespaces() -> Iterator[dict[str, str]]:
    """By host: the name of its network namespace; head, a and b are at 10.231.78.1, .2 and .3."""
    if not shutil.which("ip") or not Path(SSHD).exists():
        pytest.skip("NOT RUN: namespaces need ip, and hosts OpenSSH's server")
    own = f"la{os.getpid() % 100_000}"
    made = {host: f"{own}{host}" for host in ("head", "a", "b")}
    with ExitStack() as stack:
        for name in (own, *made.values()):
            ip("netns", "add", name)
            stack.callback(ip, "netns", "delete", name)
        ip("-n", own, "link", "add", "bridge", "type", "bridge")
        ip("-n", own, "link", "set", "bridge", "up")
        for number, (host, name) in enumerate(made.items(), 1):
            ip("-n", own, "link", "add", f"to-{host}", "type", "veth", "peer", "name", "up0", "netns", name)
            ip("-n", own, "link", "set", f"to-{host}", "master", "bridge", "up")
            ip("-n", name, "address", "add", f"10.231.78.{number}/24", "dev", "up0")
            ip("-n", name, "link", "set", "up0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield made


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def test_hosts_by_ssh_of_which_some_cannot_be_asked(namespaces: dict[str, str], tmp_path: Path) -> None:
    entered = {host: ["ip", "netns", "exec", name] for host, name in namespaces.items()}
    put = [*entered["b"], "sysctl", "-q", "-w", "net.ipv4.tcp_sack=0"]
    subprocess.run(put, check=True)
    with ExitStack() as stack:
        at = {"a": "10.231.78.2", "b": "10.231.78.3"}
        ports = {
            host: stack.enter_context(ssh_server(tmp_path, place, entered[host]))
            for host, place in at.items()
        }
        ssh = f"{{username: root, client_keys: [{tmp_path}/id], known_hosts: {tmp_path}/known}}"
        hosts = tmp_path / "hosts.yaml"
        hosts.write_text(
            f"same_machine: true\nanswer_within: 20s\nwait: 20s\nssh: {ssh}\npython: {sys.executable}\n"
            "hosts:\n"
            "  nowhere: {address: no-such-host.invalid}\n"
            "  gone: {address: 10.231.78.9}\n"
            f"  a: {{address: {at['a']}, ssh: {{port: {ports['a']}}}}}\n"
            f"  b: {{address: {at['b']}, ssh: {{port: {ports['b']}}}}}\n"
            f"  bare: {{address: {at['b']}, ssh: {{port: {ports['b']}}}, python: /usr/bin/python3}}\n"
            f"  closed: {{address: {at['b']}, ssh: {{port: 1}}}}\n"
        )
        words = [*entered["head"], *command_line(*AUDIT, "--json", "--hosts", str(hosts))]
        done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode in (0, 3), done.stderr
    found = json.loads(done.stdout)
    row = row_of(found, "differs", "net.ipv4.tcp_sack")
    assert row is not None
    assert row["why"] == "a has 1, b has 0"
    problems = {one["name"]: one["problem"] for one in found["hosts"]}
    assert (problems["a"], problems["b"]) == (None, None)
    assert problems["nowhere"].startswith("cannot be reached by SSH: ")
    assert "Unknown error" not in problems["nowhere"]
    assert problems["gone"].startswith("cannot be reached by SSH: ")
    assert "No module named" in problems["bare"]
    assert problems["closed"].startswith("cannot be reached by SSH: ")
    assert problems["closed"].endswith("Connection refused")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hosts", "lab"), "leadline tune audit --lab"),
        (("--hosts", "x.yaml", "--lab"), "--lab and --hosts are two questions"),
        (("--plain-tcp",), "are for many hosts"),
        (("--scheduler", "tcp://10.0.0.1:8786"), "not encrypted"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_asked_together_is_refused(
    leadline: Command, words: tuple[str, ...], said: str
) -> None:
    done = leadline("tune", "audit", *words)
    assert done.returncode == 2
    assert said in done.stderr
