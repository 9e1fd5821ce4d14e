"""One real lab on a bridge for all guests here, through the command line as a user starts it.

Outside `make test`: an emulated guest takes its time. `make test-guest` runs it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leadline import lab as leadline_lab
from leadline.lab import requirements
from support import Command, command_line

Guest = Callable[..., subprocess.CompletedProcess[str]]


def run_leadline(
    *words: str, deadline_s: float = 280.0, **variables: str
) -> subprocess.CompletedProcess[str]:
    """`leadline WORDS` in a process of its own, as a shell would start it."""
    return subprocess.run(
        command_line(*words),
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=deadline_s,
        check=False,
    )


def why_no_guest() -> str:
    """Why no guest can be started on this machine; "" where one can."""
    lacking = requirements.missing_packages()
    lacking += [name for name in ("qemu-system-x86_64", "busybox", "ip") if shutil.which(name) is None]
    if lacking:
        return f"missing: {' '.join(lacking)}"
    return "" if os.geteuid() == 0 else "not root"


@pytest.fixture(scope="session", autouse=True)
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Labs of the tests are entered here, not among the user's; the kernel stays in the user's cache."""
    reason = why_no_guest()
    if reason:
        pytest.skip(f"NO GUEST TEST RUNS: {reason}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield
        assert run_leadline("lab", "down", "--all").returncode == 0  # whatever a failing test left


@pytest.fixture(scope="session")
def lab(homes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[leadline_lab.Lab]:
    """The session's lab: three OSDs on a bridge, with the gateways that a guest can mount."""
    directory = tmp_path_factory.mktemp("lab") / "lab"
    started = run_leadline(
        "lab", "up", "--dir", str(directory), "--osds", "3", "--bridge", "--gateways", "nfs,smb"
    )
    try:
        assert started.returncode == 0, started.stderr
        yield leadline_lab.open(directory)
    finally:
        ended = run_leadline("lab", "down", str(directory))
    assert ended.returncode == 0, ended.stderr
    assert not directory.exists()


@pytest.fixture
def guest(lab: leadline_lab.Lab, tmp_path: Path) -> Guest:
    """Runs a command in a guest that may write the test's own directory."""

    def run(*words: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        share = ("--results", str(tmp_path))
        return run_leadline("lab", "guest", str(lab.directory), *share, *options, "--", *words)

    return run


@pytest.fixture
def guest_process(lab: leadline_lab.Lab, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a command in a guest and leaves it running."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        command = command_line(
            "lab", "guest", str(lab.directory), "--results", str(tmp_path), *options, "--", *words
        )
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


@pytest.fixture(scope="session")
def leadline() -> Command:
    """Runs a command line of leadline."""
    return run_leadline
