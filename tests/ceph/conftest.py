"""One real Ceph for all tests here: four OSDs, EC 2+1, every gateway, through the command line."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from healthy import wait_until_healthy

from forking import Forks
from leadline import lab as leadline_lab
from leadline.errors import LabError
from leadline.lab import mounts, requirements
from leadline.lab.network.topology import LabHost, Link, simple
from support import Command, Start


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts labs of its own and does not use the session's: it may run beside the others."""
    for item in items:
        if item.path.parent == Path(__file__).parent and "lab" not in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.own_lab)


def run_leadline(
    *words: str, deadline_s: float = 200.0, **variables: str
) -> subprocess.CompletedProcess[str]:
    """`leadline WORDS` in a process of its own."""
    return forks().command(words, os.environ | variables, deadline_s)


@functools.cache
def forks() -> Forks:
    """A process that has loaded leadline, for commands to be forked from; it ends with this one."""
    return Forks()


def why_no_lab() -> str:
    """Why no lab can be started on this machine; "" where one can."""
    lacking = requirements.missing_packages()
    if lacking:
        return f"Debian packages are missing: {' '.join(lacking)}"
    try:
        mounts.require_fuse()
    except LabError as error:
        return error.message
    return ""


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Labs of the tests are entered here, not among the user's."""
    reason = why_no_lab()
    if reason:
        pytest.skip(f"NO CEPH TEST RUNS: {reason}")
    home = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(home))
        yield home
        # Whatever a failing test left.
        assert run_leadline("lab", "down", "--all").returncode == 0


@pytest.fixture(scope="session")
def leadline() -> Command:
    """Runs a command line of leadline."""
    return run_leadline


@pytest.fixture(scope="session")
def start() -> Start:
    """Starts a command line, for a test that meets it while it runs."""
    return lambda *arguments: forks().start(arguments)


@pytest.fixture(scope="session")
def lab(state_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[leadline_lab.Lab]:
    """The session's lab: its directories are `lab.status().targets`."""
    directory = tmp_path_factory.mktemp("lab") / "lab"
    started = run_leadline("lab", "up", "--dir", str(directory), "--name", "session", "--gateways", "all")
    try:
        assert started.returncode != 1, started.stderr
        found = leadline_lab.open(directory)
        # 3: a gateway is not there, for its packages lack; what needs it says so.
        lacking = [gateway for gateway in found.status().gateways if not gateway.running]
        assert started.returncode == (3 if lacking else 0), started.stderr
        yield found
    finally:
        ended = run_leadline("lab", "down", str(directory))
    assert ended.returncode == 0, ended.stderr
    assert not directory.exists()


@pytest.fixture(scope="session")
def network_lab(state_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[leadline_lab.Lab]:
    """A lab with hosts for all tests of the network and of faults, who leave it as they found it.

    host1 to host3 with four OSDs on two switches, proxy1 with XRootD, client1 behind 200 Mbit, client2.
    """
    if os.geteuid() != 0:
        pytest.skip("NOT RUN: hosts and switches need root")
    directory = tmp_path_factory.mktemp("network") / "lab"
    found = simple(3, 2, 2, 4, Link(10**9), Link(2 * 10**9))
    slow = replace(found.clients[0], link=Link(2 * 10**8))
    proxy = LabHost("proxy1", "core", Link(10**9), runs=("xrootd",))
    topology = replace(found, hosts=(*found.hosts, proxy), clients=(slow, *found.clients[1:]))
    try:
        yield leadline_lab.start(leadline_lab.LabSpec(directory=directory, name="network", topology=topology))
    finally:
        ended = run_leadline("lab", "down", "--dir", str(directory))
    assert ended.returncode == 0, ended.stderr
    assert not directory.exists()


@pytest.fixture
def stopped_osds(lab: leadline_lab.Lab) -> Callable[[], AbstractContextManager[None]]:
    """A context in which all OSDs of the session's lab stand still: a cluster that does not answer.

    It is left once the cluster is well again: slow operations would stop the next test's study.
    """

    @contextmanager
    def stopped() -> Iterator[None]:
        osds = [daemon.pid for daemon in lab.status().daemons if daemon.name.startswith("osd.")]
        for pid in osds:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in osds:
                os.kill(pid, signal.SIGCONT)
            wait_until_healthy(lab)

    return stopped


@pytest.fixture
def target(lab: leadline_lab.Lab) -> Callable[[str], leadline_lab.LabTarget]:
    """A way to the session's lab by its name; the test is skipped, with the reason, where it is not there."""

    def find(name: str) -> leadline_lab.LabTarget:
        (found,) = (item for item in lab.targets() if item.name == name)
        if found.reason:
            pytest.skip(f"NOT RUN: {name}: {found.reason}")
        return found

    return find
