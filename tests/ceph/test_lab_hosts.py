"""Dask's workers on the clients of a lab: each behind its own link, and gone with whoever wanted them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leadline import lab as leadline_lab
from leadline.cli.measure.labs import lab_hosts
from leadline.hosts.workers.request import HostsAsked
from leadline.lab.cluster.process import find_marked, poll
from leadline.lab.paths import CREW_PREFIX
from leadline.store.reader import open_result
from support import Command

pytestmark = pytest.mark.ceph

# Says which processes there are, and waits: for a signal, or for its parent.
_HOLDER = """
import sys, time
from leadline.cli.measure.labs import lab_hosts
with lab_hosts(sys.argv[1]) as hosts:
    print(hosts.scheduler, flush=True)
    time.sleep(600)
"""


def of_dask(lab: leadline_lab.Lab) -> list[str]:
    """What runs of it, by command lines."""
    lines = []
    for item in find_marked(lab.record.fsid):
        try:
            line = Path(f"/proc/{item.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        lines += [line] if "python" in line.partition(" ")[0] else []
    return lines


def left(lab: leadline_lab.Lab) -> list[str]:
    """Processes, and directories in the lab's."""
    return of_dask(lab) + [path.name for path in lab.directory.iterdir() if path.name.startswith(CREW_PREFIX)]


def where(_none: None = None) -> dict[str, Any]:
    """Asked on a worker: in which network it is, and as whom."""
    network = os.stat("/proc/self/ns/net")  # noqa: PTH116 - it runs where only the standard library need be
    return {"network": [network.st_dev, network.st_ino], "user": os.environ["CEPH_ARGS"]}


def asked(hosts: HostsAsked) -> dict[str, dict[str, Any]]:
    """What each worker says, by its name; in a process of its own, as Dask's client starts threads."""
    script = (
        "import json, sys; from distributed import Client; from distributed.security import Security\n"
        "import test_lab_hosts as there\n"
        "ca, cert, key = sys.argv[2:]\n"
        "tls = Security(tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, require_encryption=True)\n"
        "with Client(sys.argv[1], security=tls) as client:\n"
        "    client.wait_for_workers(2, timeout=60)\n"
        "    names = {w: v['name'] for w, v in client.scheduler_info(n_workers=-1)['workers'].items()}\n"
        "    import cloudpickle; cloudpickle.register_pickle_by_value(there)\n"
        "    print(json.dumps({names[w]: v for w, v in client.run(there.where).items()}))\n"
    )
    tls = hosts.tls
    assert tls is not None
    done = subprocess.run(
        [sys.executable, "-c", script, str(hosts.scheduler), tls.ca, tls.cert, str(tls.key)],
        capture_output=True, text=True, timeout=120, check=False, cwd=Path(__file__).parent,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_worker_is_in_each_clients_network_and_gone_afterwards(network_lab: leadline_lab.Lab) -> None:
    with lab_hosts(str(network_lab.directory)) as hosts:
        assert [host.name for host in hosts.hosts] == ["client1", "client2"]
        assert hosts.hosts[1].targets["rados"].endswith("client2.conf&user=client2")
        assert hosts.tls is not None
        assert Path(str(hosts.tls.key)).parent.stat().st_mode & 0o077 == 0
        found = asked(hosts)
    for name in ("client1", "client2"):
        there = network_lab.record.paths.namespace(name).stat()
        assert found[name] == {"network": [there.st_dev, there.st_ino], "user": f"--id {name}"}
    assert left(network_lab) == []


@pytest.fixture
def holder(network_lab: leadline_lab.Lab) -> Iterator[subprocess.Popen[str]]:
    """A process that has workers on the clients."""
    words = [sys.executable, "-c", _HOLDER, str(network_lab.directory)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        assert started.stdout.readline().startswith("tls://")
        yield started
        started.kill()
    assert poll(lambda: left(network_lab) == [], 30.0), left(network_lab)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_who_wanted_the_workers(
    network_lab: leadline_lab.Lab, holder: subprocess.Popen[str], number: signal.Signals
) -> None:
    assert len(of_dask(network_lab)) >= 3
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
