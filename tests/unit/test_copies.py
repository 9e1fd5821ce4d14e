"""What copies of a program left running is ended, and nothing that was given the pid of one of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from leadline.workloads.application import copies


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_a_process_that_was_given_the_pid_of_a_copys_own_is_not_signalled(
    sleeper: subprocess.Popen[bytes],
) -> None:
    """It was listed as one of ours, and is none any more once it is held."""
    copies._send_to([sleeper.pid], 9, lambda: [])
    assert sleeper.poll() is None
    assert copies._descendants(frozenset()).count(sleeper.pid) == 1
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208
    copies._send_to([sleeper.pid], 15, lambda: copies._descendants(frozenset()))
    assert sleeper.wait(10) == -15
    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
