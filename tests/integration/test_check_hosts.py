"""`leadline check` on hosts that are reached as studies reach them: real Dask workers of this machine."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dask_workers import DaskWorkers
from support import Command


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskWorkers]:
    """Two workers that no test ends."""
    with DaskWorkers(tmp_path_factory.mktemp("crew"), ("alpha", "beta")) as found:
        yield found


def checked(leadline: Command, crew: DaskWorkers, *words: str) -> dict[str, Any]:
    there = ("--scheduler", crew.address, "--plain-tcp", "--same-machine")
    done = leadline("check", *there, "--no-ceph", "--json", *words, timeout=200)
    assert done.returncode in (0, 3), done.stderr  # 3: this machine's clock may be nobody's
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_each_host_is_asked_and_each_way_measured(
    leadline: Command, crew: DaskWorkers, tmp_path: Path
) -> None:
    facts = {(one["subject"], one["name"]): one for one in checked(leadline, crew)["facts"]}
    for host in ("alpha", "beta"):
        assert facts[host, "kernel"]["value"] == platform.release()
        assert facts[host, "processors"]["value"] == os.cpu_count()
    for way in ("alpha > beta", "beta > alpha"):
        assert facts[way, "stream_bit_s"]["value"] > 1e6, facts[way, "stream_bit_s"]["missing"]
        assert facts[way, "round_trip_us"]["value"] is not None or facts[way, "round_trip_us"]["missing"]


def test_a_host_that_is_gone_is_never_fine(leadline: Command, tmp_path: Path) -> None:
    with DaskWorkers(tmp_path, ("alpha", "beta")) as crew:
        crew.workers["beta"].kill()
        crew.workers["beta"].wait()
        facts = checked(leadline, crew, "--no-streams")["facts"]
    # Its scheduler may or may not know yet; what is not there is missing, and never fine.
    of_beta = [one for one in facts if one["subject"].startswith("beta")]
    assert all(one["value"] is None for one in of_beta)
    assert {one["subject"] for one in facts if one["kind"] == "host"} == {"alpha"}


def test_a_host_that_cannot_be_reached_is_a_gap_and_roles_are_those_of_the_file(
    leadline: Command, crew: DaskWorkers, tmp_path: Path
) -> None:
    hosts, first = (
        tmp_path / "hosts.yaml",
        f"scheduler: {crew.address}\nplain_tcp: true\nsame_machine: true\nwait: 1s\nhosts:\n",
    )
    hosts.write_text(first + "  alpha: {roles: [mon]}\n  beta: {roles: [osd]}\n  gone:\n")
    words = ("check", "--hosts", str(hosts), "--no-ceph", "--no-streams", "--json")
    done = leadline(*words, timeout=200)
    assert done.returncode in (0, 3), done.stderr
    found = json.loads(done.stdout)
    missing = [one for one in found["facts"] if one["subject"].startswith("gone/")]
    assert [one["value"] for one in missing] == [None]
    assert "did not come within 1 s" in missing[0]["missing"]
    assert found["roles_of"] == {"alpha": ["mon"], "beta": ["osd"]}
    assert {one["subject"] for one in found["checked"] if one["name"] == "open-files"} == {"beta"}
    hosts.write_text(first + "  gone:\n")
    nobody = leadline(*words, timeout=200)
    assert nobody.returncode == 2
    assert "gone did not come" in nobody.stderr


def test_places_are_measured_on_each_host(leadline: Command, crew: DaskWorkers, tmp_path: Path) -> None:
    facts = checked(leadline, crew, "--no-streams", "--on", str(tmp_path))["facts"]
    measured = {one["subject"]: one["value"] for one in facts if one["name"] == "randread_4k_iops"}
    assert set(measured) == {f"{host}:{tmp_path}" for host in ("alpha", "beta")}
    assert all(value > 0 for value in measured.values())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hosts", "lab"), "--lab"),
        (("--as", "x", "--scheduler", "tcp://127.0.0.1:1"), "--as and hosts are two questions"),
        (("--destroy", "/dev/null", "--scheduler", "tcp://127.0.0.1:1"), "two questions"),
        (("--scheduler", "tcp://10.0.0.1:8786"), "not encrypted"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_asked_together_is_refused(
    leadline: Command, words: tuple[str, ...], said: str
) -> None:
    done = leadline("check", *words)
    assert done.returncode == 2
    assert said in done.stderr
