"""How long the processes of a trace lived: to their own end, also where a signal lets them say nothing."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from leadline.tracing.sources import bpf
from support import Command, command_line, show

# Others may have the processors for a while: what is compared is far from this apart (a second of two).
SLACK_S = 0.4
# A worker writes a little, then waits until it is ended, a second after it began; its parent then writes for
# another second. It notes the kernel's word, by a pidfd: before the signal, and when the worker was gone.
POOL = """
import json, os, select, signal, sys, time
number, reaps, noted = int(sys.argv[1]), sys.argv[2] == "reaped", sys.argv[3]

def work(path, seconds):
    end = time.monotonic() + seconds
    with open(path, "wb", 0) as file:
        while time.monotonic() < end:
            file.write(bytes(4096))
            time.sleep(0.02)

worker = os.fork()
if not worker:
    work("of-worker", 0.1)
    time.sleep(60)
    os._exit(0)
watched = os.pidfd_open(worker)
work("before", 1)
# Its own beginning is the kernel's word, too: until it runs, others may have the processors.
ticks = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19])
age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
times = {"worker": worker, "began": time.time() - age, "signalled": time.time()}
os.kill(worker, number)
select.select([watched], [], [])
times["gone"] = time.time()
if reaps:
    os.waitpid(worker, 0)
work("after", 1)
times["ended"] = time.time()
json.dump(times, open(noted, "w"))
"""


@pytest.fixture(params=["preload", "bpf"])
def via(request: pytest.FixtureRequest) -> str:
    if request.param == "bpf" and (why_not := bpf.unavailable()):
        pytest.skip(why_not)
    return str(request.param)


def pool(place: Path, number: int, reaped: str) -> tuple[list[str], Path]:
    """The command, and the file in which it notes its times."""
    script, noted = place.with_name("pool.py"), place.with_name("noted")
    script.write_text(POOL)
    return [sys.executable, "-I", "-S", str(script), str(number), reaped, str(noted)], noted


def check_worker(found: dict[str, Any], noted: Path, number: int) -> None:
    """The worker's row against what its parent noted of its end, counted back from the parent's."""
    times = json.loads(noted.read_text())
    parent, worker = (
        next(row for row in found["trace"]["processes"] if (row["pid"] == times["worker"]) is is_worker)
        for is_worker in (False, True)
    )
    assert (worker["end"], worker["status"]) == ("signal", number)
    before_end_s = parent["ended_s"] - worker["ended_s"]
    assert times["ended"] - times["gone"] - SLACK_S <= before_end_s
    assert before_end_s <= times["ended"] - times["signalled"] + SLACK_S
    # Shares are of what both lived, where the parent counts while it has no living child: of all its life
    # here, which tells too much where a worker is thought to have lived on, and too little where it is not.
    lived_s = times["ended"] - times["began"]
    assert found["trace"]["shares"]["base_s"] == pytest.approx(lived_s, abs=SLACK_S)


@pytest.mark.parametrize(("number", "reaped"), [(signal.SIGKILL, "left"), (signal.SIGTERM, "reaped")])
def test_a_worker_that_is_killed_lived_until_then(
    leadline: Command, via: str, number: int, reaped: str, place: Path, tmp_path: Path
) -> None:
    command, noted = pool(place, number, reaped)
    done = leadline("trace", "--via", via, "-o", str(tmp_path / "r"), "--", *command, cwd=place)
    assert done.returncode == 0, done.stderr
    check_worker(show(leadline, tmp_path / "r"), noted, number)


def test_a_writer_whose_pipe_was_closed_ended_then(leadline: Command, via: str, place: Path) -> None:
    """Its parent reaps it late: one that is gone within milliseconds can have ended before it is seen."""
    out = place.with_name("r")
    script = (
        "import os, subprocess, time\n"
        "writer = subprocess.Popen(['yes'], stdout=subprocess.PIPE)\n"
        "print(writer.stdout.readline())\n"
        "writer.stdout.close()\n"
        "os.waitid(os.P_PID, writer.pid, os.WEXITED | os.WNOWAIT)\n"
        "time.sleep(1)\n"
        "writer.wait()"
    )
    words = ("trace", "--via", via, "-o", str(out), "--", sys.executable, "-I", "-S", "-c", script)
    done = leadline(*words, cwd=place)
    assert done.stdout == "b'y\\n'\n"
    rows = show(leadline, out)["trace"]["processes"]
    (writer,) = [row for row in rows if row["executable"].endswith("/yes")]
    assert (writer["end"], writer["status"]) == ("signal", signal.SIGPIPE)
    assert max(row["ended_s"] for row in rows) - writer["ended_s"] > 1 - SLACK_S


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
def test_an_strace_log_says_when_a_worker_was_killed(leadline: Command, place: Path, tmp_path: Path) -> None:
    command, noted = pool(place, signal.SIGKILL, "left")
    log = tmp_path / "log"
    subprocess.run(["strace", "-f", "-ttt", "-T", "-y", "-o", log, *command], cwd=place, check=True)
    assert leadline("import", "strace", str(log), "-o", str(tmp_path / "r")).returncode == 0
    check_worker(show(leadline, tmp_path / "r"), noted, signal.SIGKILL)


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
def test_where_no_end_was_recorded_it_is_said_where_the_process_was_last_seen(
    leadline: Command, place: Path, tmp_path: Path
) -> None:
    command, noted = pool(place, signal.SIGKILL, "left")
    log = tmp_path / "log"
    subprocess.run(["strace", "-f", "-ttt", "-T", "-y", "-o", log, *command], cwd=place, check=True)
    lines = [line for line in log.read_text().splitlines(keepends=True) if "+++ killed" not in line]
    log.write_text("".join(lines))
    leadline("import", "strace", str(log), "-o", str(tmp_path / "r"))
    found = show(leadline, tmp_path / "r")
    times = json.loads(noted.read_text())
    (worker,) = [row for row in found["trace"]["processes"] if row["pid"] == times["worker"]]
    (parent,) = [row for row in found["trace"]["processes"] if row["pid"] != times["worker"]]
    assert (worker["end"], worker["status"]) == ("last seen", None)
    assert parent["ended_s"] - worker["ended_s"] > times["ended"] - times["gone"] - SLACK_S
    screen = " ".join(leadline("show", str(tmp_path / "r")).stdout.split())
    assert "The end of 1 process is not known" in screen


def test_a_process_that_outlives_the_command_is_running(leadline: Command, via: str, place: Path) -> None:
    """Nobody ended it: it has no end, and is no process of which nothing is known."""
    out, gate = place.with_name("r"), place.with_name("gate")
    script = f"(exec 3<>{gate}; while [ ! -e {gate}.done ]; do sleep 0.05; done) >/dev/null 2>&1 & sleep 0.2"
    words = command_line("trace", "--via", via, "--wait", "0s", "-o", str(out), "--", "sh", "-c", script)
    try:
        subprocess.run(words, cwd=place, check=True, capture_output=True, timeout=60)
        rows = show(leadline, out)["trace"]["processes"]
    finally:
        gate.with_name("gate.done").touch()
    assert [row["ended_s"] for row in rows if row["end"] == "running"]
    assert not any(row["ended_s"] for row in rows if row["end"] == "running")
