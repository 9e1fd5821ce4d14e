"""What copies of a program left running is ended, and nothing that was given the pid of one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

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


MISSED = """
import os, sys
from pathlib import Path
from leadline.workloads.application import copies

see, end, unseen = copies._descendants, os.killpg, [0]

def late(spare):
    unseen[0] -= 1
    return see(spare)[:1] if unseen[0] >= 0 else see(spare)

def killpg(pid, number):
    unseen[0] = 2
    end(pid, number)

copies._descendants, os.killpg = late, killpg
place = Path(sys.argv[1])
script = f"trap '' TERM; setsid sleep 600 & echo $! > {place}/pid; while :; do sleep 1; done"
start = copies.Start(0, ["sh", "-c", script], place, dict(os.environ), place / "output")
copies.run_copies([start], limit_s=1)
"""


def test_a_process_that_two_looks_miss_is_ended_all_the_same(tmp_path: Path) -> None:
    """Its parent ends while the lists of children are read: it was in none of them."""
    subprocess.run([sys.executable, "-c", MISSED, tmp_path], check=True, timeout=60)
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()
