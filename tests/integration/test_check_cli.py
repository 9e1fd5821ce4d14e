"""`leadline check` on this machine: its facts against the usual commands, exit codes, files for later."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import Command, command_line


def _facts(leadline: Command, *words: str) -> dict[tuple[str, str, str], Any]:
    done = leadline("check", "--no-ceph", "--json", *words)
    assert done.returncode in (0, 3), done.stderr  # 3: something of this machine may be out of line
    found = json.loads(done.stdout)
    assert found["format"] == "leadline.check/1"
    return {(fact["kind"], fact["subject"], fact["name"]): fact["value"] for fact in found["facts"]}


def _said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=20).stdout


def _said_by(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=20).stdout


def test_facts_are_those_of_the_usual_commands(leadline: Command) -> None:
    facts = _facts(leadline)
    host = next(subject for kind, subject, _ in facts if kind == "host")
    assert facts[("host", host, "kernel")] == _said("uname", "-r").strip()
    for name, option in {"pid_max": "kernel.pid_max", "rmem_max": "net.core.rmem_max",
                         "tcp_sack": "net.ipv4.tcp_sack"}.items():  # fmt: skip
        assert facts[("host", host, name)] == int(_said("sysctl", "-n", option))
    shown = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in
                                                              _said("lscpu").splitlines())}  # fmt: skip
    assert facts[("host", host, "cpu_model")] == shown["Model name"]
    assert facts[("host", host, "threads_per_core")] == int(shown["Thread(s) per core"])
    assert facts[("host", host, "processors")] == int(shown["CPU(s)"])
    if "NUMA node(s)" in shown:
        assert facts[("host", host, "numa_nodes")] == int(shown["NUMA node(s)"])
    worked = {key.removeprefix("Vulnerability ").replace(" ", "_").lower() for key, value in shown.items()
              if key.startswith("Vulnerability") and value.startswith("Mitigation")}  # fmt: skip
    assert set(str(facts[("host", host, "mitigations")]).split(", ")) - {""} == worked
    assert facts[("host", host, "memory_bytes")] == int(_said("free", "-b").splitlines()[1].split()[1])
    for line in _said("lsblk", "-bdnro", "NAME,SIZE,ROTA,SCHED,TYPE").splitlines():
        name, size, rotational, scheduler, kind = line.split(" ")
        if kind == "disk" and not name.startswith(("nbd", "zram", "ram", "fd")):
            of_device = ("device", f"{host}/{name}")
            assert facts[(*of_device, "size_bytes")] == int(size)
            assert facts[(*of_device, "rotational")] == (rotational == "1")
            assert facts[(*of_device, "scheduler")] == scheduler
    for link in json.loads(_said("ip", "-json", "link", "show", "up")):
        flags = link.get("flags", ())  # `up` leaves empty places for the others
        if "LOOPBACK" in flags or "LOWER_UP" not in flags:
            continue
        own = [key for key in facts if key[0] == "interface" and key[2] == "mtu"
               and key[1].partition("@")[0] == f"{host}/{link['ifname']}"]  # fmt: skip
        assert [facts[key] for key in own] == [link["mtu"]]


def test_facts_of_an_interface_are_those_of_ethtool(leadline: Command) -> None:
    if shutil.which("ethtool") is None:
        pytest.skip("NOT RUN: ethtool is not installed")
    facts = _facts(leadline)
    seen = 0
    for _, subject, _ in [key for key in facts if key[0] == "interface" and key[2] == "mtu"]:
        name = subject.partition("/")[2].partition("@")[0]
        switches = dict(
            (one.strip(), value.split()[0]) for one, _, value in
            (line.partition(":") for line in _said("ethtool", "-k", name).splitlines()[1:])
        )  # fmt: skip
        for fact, switch in {"receive_checksums": "rx-checksumming", "send_checksums": "tx-checksumming",
                             "segmentation_offload": "tcp-segmentation-offload",
                             "receive_offload": "generic-receive-offload"}.items():  # fmt: skip
            assert facts[("interface", subject, fact)] == (switches[switch] == "on"), (name, switch)
            seen += 1
        rings = _said_by("ethtool", "-g", name).split("Current hardware settings")
        if len(rings) == 2 and ("interface", subject, "rx_ring_share") in facts:
            most, now = (int(re.search(r"RX:\s+(\d+)", part)[1]) for part in rings)  # type: ignore[index]
            assert facts[("interface", subject, "rx_ring_share")] == pytest.approx(now / most)
    assert seen or not [key for key in facts if key[0] == "interface"]


def test_who_has_no_rights_gets_gaps_and_no_traceback(leadline: Command, tmp_path: Path) -> None:
    """As a stranger on the host: no raw socket, no device, no firmware's table; each is named."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("NOT RUN: only root can drop its rights")
    fallen = ["setpriv", "--reuid", "0", "--bounding-set", "-all", "--inh-caps", "-all", "--"]
    program = [sys.executable, "-m", "leadline", "check", "--no-ceph", "--json", "--peer", "127.0.0.1"]
    done = subprocess.run([*fallen, *program], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode in (0, 3), done.stderr
    facts = json.loads(done.stdout)["facts"]
    assert all(fact["missing"] for fact in facts if fact["value"] is None)
    loss = next(fact for fact in facts if fact["name"] == "echo_loss")
    assert (loss["value"], loss["missing"]) == (None, os.strerror(errno.EPERM))


def test_the_first_screen_says_how_many_and_what_to_do(leadline: Command) -> None:
    done = leadline("check", "--no-ceph", "--role", "client")
    first, *rest = done.stdout.splitlines()
    assert first == "Is every part as expected?"
    assert "things that were looked at" in " ".join(rest)
    if done.returncode == 3:
        assert "Do: " in done.stdout
        assert "See: " in done.stdout


def test_hosts_are_compared_and_a_host_is_given_once(leadline: Command, tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    assert leadline("check", "--no-ceph", "-o", str(own)).returncode in (0, 3)
    document = json.loads(own.read_text())
    name = next(fact["subject"] for fact in document["facts"] if fact["kind"] == "host")
    for other, kernel in (("one", None), ("two", "5.10.0-odd")):
        changed = json.loads(own.read_text().replace(f'"{name}', f'"{other}'))
        for fact in changed["facts"]:
            if fact["name"] == "kernel" and kernel:
                fact["value"] = kernel
        (tmp_path / f"{other}.json").write_text(json.dumps(changed))
    both = [word for other in ("one", "two") for word in ("--with", str(tmp_path / f"{other}.json"))]
    shown = leadline("check", "--no-ceph", *both).stdout
    assert "two 5.10.0-odd" in " ".join(shown.split())
    refused = leadline("check", "--no-ceph", "--with", str(own))
    assert refused.returncode == 2
    assert "is there already" in refused.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="a host of its own needs root")
def test_what_changed_since_is_said(leadline: Command, tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    # Without the mounts and interfaces that others make meanwhile: those are otherwise than before.
    looks = (("-o", str(before)), ("--baseline", str(before)))
    script = "\n".join(shlex.join(command_line("check", "--no-ceph", *words)) for words in looks)
    apart = ["unshare", "--mount", "--net", "sh", "-c", script]
    done = subprocess.run(
        apart, check=False, capture_output=True, text=True
    )  # its code: this host has findings
    assert "Nothing is otherwise than before." in done.stdout
    text = before.read_text()
    document = json.loads(text)
    fact = next(fact for fact in document["facts"] if fact["name"] == "kernel")
    fact["value"] = "1.0"
    before.write_text(json.dumps(document))
    assert "kernel: 1.0 -> " in leadline("check", "--no-ceph", "--baseline", str(before)).stdout


def test_an_unreachable_cluster_and_peer_are_named_gaps(leadline: Command, tmp_path: Path) -> None:
    conf = tmp_path / "ceph.conf"
    conf.write_text("[global]\nmon_host = 127.0.0.1:1\nauth_client_required = none\n")
    done = leadline("check", "--conf", str(conf), "--peer", "no-such-host.invalid")
    said = " ".join(done.stdout.split())
    assert "Could not be read" in said
    assert "Health of cluster: " in said
    assert "no-such-host.invalid" in said


@pytest.mark.parametrize("words", [("--role", "king"), ("--with", "nowhere.json"), ("--lab", "no-such-lab")])
def test_bad_input_is_refused(leadline: Command, words: tuple[str, ...]) -> None:
    done = leadline("check", "--no-ceph", *words)
    assert done.returncode == 2
    assert words[1] in done.stderr
