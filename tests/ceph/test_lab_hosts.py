"""The processes on the clients of a lab: each behind its own link, and gone with whoever wanted them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline import lab as leadline_lab
from leadline.cli.measure.labs import lab_hosts
from leadline.hosts.worker_rpc import remote
from leadline.hosts.workers.calls import Order
from leadline.hosts.workers.connect import connected
from leadline.lab.cluster.process import find_marked, poll, words_of
from leadline.store.reader import open_result
from support import Command

pytestmark = pytest.mark.ceph

# Says that processes are there, and waits: for a signal, or for its parent.
_HOLDER = """
import sys, time
from leadline.cli.measure.labs import lab_hosts
from leadline.hosts.workers.connect import connected
with connected(lab_hosts(sys.argv[1]), lambda _: None, lambda: False) as crew:
    print(len(crew.workers()), flush=True)
    time.sleep(600)
"""


def left(lab: leadline_lab.Lab) -> list[str]:
    """The processes, by command lines."""
    lines = (" ".join(words_of(item)) for item in find_marked(lab.record.fsid))
    return [line for line in lines if "leadline.hosts" in line]


def test_a_process_is_in_each_clients_network_and_gone_afterwards(network_lab: leadline_lab.Lab) -> None:
    asked = lab_hosts(str(network_lab.directory))
    assert [host.name for host in asked.hosts] == ["client1", "client2"]
    assert asked.hosts[1].targets["rados"].endswith("client2.conf&user=client2")
    assert "through" not in asked.as_json()["hosts"][0]
    with connected(asked, lambda _: None, lambda: False) as crew:
        crew.assign({one.name: one.address for one in crew.workers()})
        asking = {name: ({"targets": {}, "directory": None},) for name in crew.hosts}
        found = crew.ask(Order(remote().probe, asking, 60.0))
        users = {
            Path(f"/proc/{item.pid}/environ").read_bytes().split(b"CEPH_ARGS=")[1].split(b"\0")[0]
            for item in find_marked(network_lab.record.fsid)
            if "leadline.hosts.stdio" in words_of(item)
        }
    for name in ("client1", "client2"):
        assert found[name].value["network"] == network_lab.record.paths.namespace(name).stat().st_ino
    assert users == {b"--id client1", b"--id client2"}
    assert left(network_lab) == []


@pytest.fixture
def holder(network_lab: leadline_lab.Lab) -> Iterator[subprocess.Popen[str]]:
    """A process that has processes on the clients."""
    words = [sys.executable, "-c", _HOLDER, str(network_lab.directory)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "2\n"
        yield started
        started.kill()
    assert poll(lambda: left(network_lab) == [], 30.0), left(network_lab)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_who_wanted_the_processes(
    network_lab: leadline_lab.Lab, holder: subprocess.Popen[str], number: signal.Signals
) -> None:
    assert len(left(network_lab)) == 2
    holder.send_signal(number)
    assert holder.wait(60) != 0
    assert poll(lambda: left(network_lab) == [], 30.0), left(network_lab)


def test_a_study_runs_on_all_clients_and_has_the_labs_ports(
    network_lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    study, out = tmp_path / "s.yaml", tmp_path / "r"
    study.write_text(
        "format: leadline.study/1\nwhere_possible: true\nblocks: 1\nlimits: {reserve: 1M}\n"
        "works: {w: {rw: write, bs: 1M, size: 4M, time_based: true, runtime: 3s, ramp_time: 0}}\n"
    )
    done = leadline("run", str(study), "--lab", "network", "--out", str(out))
    assert done.returncode in (0, 3), done.stderr
    assert "on all clients of the lab, as with --hosts lab: client1, client2" in done.stderr
    result = open_result(out)
    assert result.complete
    assert {trial.hosts for trial in result.trials()} == {2}
    ports = {row.subject for row in result.series(["wire"])}
    assert {"switch1", "host1", "client1", "client2"} <= ports
    assert left(network_lab) == []
