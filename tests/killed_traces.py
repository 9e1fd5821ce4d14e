"""Traces whose leadline is killed at some moment, for `make kills`: what then must hold.

The command is undisturbed, unless it was killed too. What it wrote is in the result, to the byte, also what
it wrote after the kill; of a killed command all but the calls that were under way. Nothing is left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from leadline.store.making import leftovers, recoverable
from leadline.store.reader import open_result
from leadline.tracing.store import read_trace
from support import command_line

PAIRS, CALLS, CALL_BYTES = 6, 50, 4096
TOTAL_BYTES = 2 * PAIRS * CALLS * CALL_BYTES
DEADLINE_S = 60.0
WRITES = f"dd if=/dev/zero bs={CALL_BYTES} count={CALLS} status=none"
SCRIPT = (
    f'mkdir "$0"; for i in {" ".join(map(str, range(PAIRS)))};'
    f' do {WRITES} of="$0/f$i" & {WRITES} of="$0/g$i"; wait; done; : > "$0/done"'
)


def words(out: Path, files: Path) -> list[str]:
    """The traced command, which makes the directory `files`."""
    return command_line("trace", "--via", "preload", "--segments", "-o", str(out), "--", "sh", "-c", SCRIPT,
                        str(files))  # fmt: skip


def traced(place: Path) -> Path:
    """A whole trace of the command."""
    place.mkdir()
    subprocess.run(words(place / "r", place / "files"), check=True, capture_output=True, timeout=DEADLINE_S)
    return place / "r"


def undisturbed_s(place: Path) -> float:
    """Seconds that the trace takes."""
    began = time.monotonic()
    out = traced(place)
    took_s = time.monotonic() - began
    assert written_bytes(out) == TOTAL_BYTES
    return took_s


def one(place: Path, after_s: float, *, group: bool) -> bool:
    """A trace below `place`, killed so much later; whether it ran until then."""
    own = place / "killed"
    own.mkdir()
    out, files = own / "r", own / "files"
    process = subprocess.Popen(
        words(out, files), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after_s)
    killed = process.poll() is None
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if group else os.kill)(process.pid, signal.SIGKILL)
    process.wait()
    until_gone(process.pid)
    if not group and files.exists():
        assert (files / "done").exists(), "the command was disturbed"
    if recoverable(out) and not out.exists():
        done = leadline("trace", "--recover", str(out))
        empty = "the command had not begun" in done.stderr
        assert done.returncode == 0 or (empty and not size(files)), done.stderr
    if out.exists():
        check(out, files, group=group)
    if left := recoverable(out):  # nothing was recorded, or it was killed once the result was stored
        done = leadline("undo", str(left.path))
        assert done.returncode == 0, done.stderr
    leadline("trace", "-o", str(own / "next"), "--", "true")  # which removes what has no records
    uncertain = {one.path.name for one in leftovers(own) if not one.certain}
    found = {path.name for path in own.iterdir()} - {"r", "next", "files"}
    # Killed in the one line between a directory and its mark: it stays, and `list` names it.
    assert found <= uncertain, f"left: {found}"
    return killed


def check(out: Path, files: Path, *, group: bool) -> None:
    """The result has all that was written."""
    written = size(files)
    missing = written - written_bytes(out)
    assert 0 <= missing <= (2 * CALL_BYTES if group else 0), f"{missing} of {written} bytes are missing"
    shown = leadline("show", str(out))
    assert shown.returncode == 0, shown.stderr


def size(files: Path) -> int:
    """Bytes that the command wrote."""
    return sum(path.stat().st_size for path in files.iterdir()) if files.exists() else 0


def written_bytes(out: Path) -> int:
    """Bytes that a trace says its processes wrote."""
    return sum(row.bytes_written for row in read_trace(open_result(out)).processes)


def until_gone(session: int) -> None:
    """Wait for the end of all processes of a session."""
    end = time.monotonic() + DEADLINE_S
    while any(session_of(path) == session for path in Path("/proc").glob("[0-9]*")):
        assert time.monotonic() < end, f"processes of session {session} still run"
        time.sleep(0.02)


def session_of(process: Path) -> int:
    """The session that a process is in; -1 for none that runs."""
    with contextlib.suppress(OSError, IndexError):
        state, _, _, session = (process / "stat").read_text().rpartition(")")[2].split()[:4]
        return int(session) if state != "Z" else -1
    return -1


def leadline(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of leadline, to its end."""
    return subprocess.run(
        command_line(*arguments), capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
