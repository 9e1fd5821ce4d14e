"""A process is the lab's own only beyond doubt, and every one of them is found and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from leadline.errors import LabError
from leadline.faults import DIRECTORY
from leadline.lab.cluster import process
from leadline.lab.cluster.process import Clock, ProcessIdentity, poll

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]
DEAF = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('deaf', flush=True); time.sleep(60)",
]


# It takes a while to give back its many small pages, and has lost its environment by then.
LARGE = [
    sys.executable,
    "-c",
    "import mmap, time; data = mmap.mmap(-1, 400 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
    "data.madvise(mmap.MADV_NOHUGEPAGE)\n"
    "for at in range(0, len(data), mmap.PAGESIZE): data[at] = 1\n"
    "print('large', flush=True); time.sleep(60)",
]


@pytest.fixture
def token(tmp_path: Path) -> Iterator[str]:
    """A lab's mark of its own; whatever carries it is ended."""
    value = f"test-{os.getpid()}-{tmp_path.name}"
    yield value
    process.end(process.find_marked(value), grace_s=0.0)


def start(token: str, tmp_path: Path, command: list[str]) -> ProcessIdentity:
    return process.start(
        "osd.0", command, process.environment(token, tmp_path, os.environ), tmp_path / "osd.0.log"
    )


def test_stat_is_parsed_although_the_command_holds_spaces_and_parentheses() -> None:
    line = "42 (a ) R (b) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1000 2 3"
    assert process.parse_stat(line) == ("S", 987654)


def test_started_process_has_a_session_and_directory_of_its_own(token: str, tmp_path: Path) -> None:
    found = start(token, tmp_path, SLEEPER)
    assert process.is_running(found)
    assert poll(lambda: Path(f"/proc/{found.pid}/cwd").readlink() == Path("/"), 5.0)
    assert os.getsid(found.pid) == found.pid


def test_another_process_with_the_same_pid_is_not_the_labs(token: str, tmp_path: Path) -> None:
    found = start(token, tmp_path, SLEEPER)
    impostors = [
        replace(found, start_ticks=found.start_ticks - 1),
        replace(found, boot_id="another boot"),
    ]
    for impostor in impostors:
        assert not process.is_running(impostor)
        process.send(impostor, signal.SIGKILL)
        assert process.end([impostor], grace_s=0.0) == []
    assert process.is_running(found)


def test_process_that_was_never_recorded_is_found_by_its_mark(token: str, tmp_path: Path) -> None:
    found = start(token, tmp_path, SLEEPER)
    # Between fork and exec the process still has its parent's environment.
    assert poll(lambda: [item.pid for item in process.find_marked(token)] == [found.pid], 10.0)
    assert process.find_marked(token + "x") == []


def test_process_that_ignores_sigterm_is_killed(token: str, tmp_path: Path) -> None:
    found = start(token, tmp_path, DEAF)
    assert poll(lambda: "deaf" in (tmp_path / "osd.0.log").read_text(), 10.0)
    assert process.end([found], grace_s=0.2) == []
    assert not process.is_running(found)


def test_what_is_ended_has_given_back_all_that_it_held(token: str, tmp_path: Path) -> None:
    found = start(token, tmp_path, LARGE)
    assert poll(lambda: "large" in (tmp_path / "osd.0.log").read_text(), 10.0)
    assert process.end([found], grace_s=10.0) == []
    assert not process.is_running(found)


def test_what_this_command_runs_under_is_never_ended(token: str, tmp_path: Path) -> None:
    """A shell may carry the mark; the sleeper is no ancestor, and stays when one is beside it."""
    found = start(token, tmp_path, SLEEPER)
    parent = process.identify("shell", os.getppid())
    assert parent is not None
    with pytest.raises(LabError, match="runs under it"):
        process.end([found, parent], grace_s=0.0)
    assert process.is_running(found)
    assert {1, os.getpid(), os.getppid()} <= process.ancestors()


def test_program_that_does_not_exist_is_named(token: str, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no-such-program"):
        start(token, tmp_path, ["no-such-program"])


def test_another_clusters_settings_are_not_inherited() -> None:
    assert process.environment(
        "f", Path("/d"), {"CEPH_ARGS": "--id x", "CEPH_CONF": "/y", "PATH": "/bin"}
    ) == {
        "PATH": "/bin",
        process.MARK: "f",
        DIRECTORY: "/d",
    }


def test_tool_that_fails_is_quoted_and_one_that_hangs_is_ended() -> None:
    with pytest.raises(LabError, match=r"exit code 3.*out of luck"):
        process.run_tool(["sh", "-c", "echo out of luck >&2; exit 3"], os.environ, deadline_s=10.0)
    with pytest.raises(LabError, match="no answer within 0 s"):
        process.run_tool(["sleep", "30"], os.environ, deadline_s=0.2)


def test_poll_ends_at_its_deadline_without_real_time() -> None:
    now_s = [0.0]
    clock = Clock(now_s=lambda: now_s[0], pause=lambda s: now_s.__setitem__(0, now_s[0] + s))
    assert not poll(lambda: False, 5.0, interval_s=1.0, clock=clock)
    assert now_s[0] == 5.0


def test_last_lines_are_few_and_short(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("one\n\ntwo\n" + "y" * 5000 + "\n\n")
    lines = process.last_log_lines(log, 2)
    assert lines[0] == "two"
    assert len(lines[1]) == 300
    assert process.last_log_lines(tmp_path / "absent.log") == []


def test_log_above_its_bound_keeps_its_end_and_its_writer(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    with subprocess.Popen(["sh", "-c", f"cat >> {log}"], stdin=subprocess.PIPE) as writer:
        assert writer.stdin is not None
        writer.stdin.write(b"a" * (process.LOG_BYTES_MAX + 10))
        writer.stdin.flush()
        assert poll(lambda: log.exists() and log.stat().st_size == process.LOG_BYTES_MAX + 10, 10.0)
        process.trim_logs(tmp_path)
        writer.stdin.write(b"end")
    assert log.stat().st_size == (1 << 20) + 3
    assert log.read_bytes().endswith(b"aend")
