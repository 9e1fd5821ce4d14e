"""The first screen of a trace as a stranger reads it, held against strace and the kernel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import Command, assert_one_screen, show

SIZE = 300_000
# Misses on the search path, an exec behind a fork, one file under two names, and bytes in two files.
SCRIPT = (
    "no-such-tool 2>/dev/null; mkdir sub; "
    f"{sys.executable} -S -c \"open('sub/../data','rb').read(); open('data','rb').read(10)\"; "
    "(exec cat data) > copy; exec wc -c copy"
)


@pytest.fixture
def subject(place: Path) -> Path:
    (place / "data").write_bytes(os.urandom(SIZE))
    return place


def environment() -> dict[str, str]:
    return {"PATH": f"/no/such/place:/nor/this:{os.environ['PATH']}"}


def test_a_trace_says_what_happened_on_one_screen(leadline: Command, subject: Path, tmp_path: Path) -> None:
    done = leadline(
        "trace", "-o", str(tmp_path / "r"), "--", "sh", "-c", SCRIPT, cwd=subject, env=environment()
    )
    assert done.returncode == 0, done.stderr
    printed = leadline("show", str(tmp_path / "r")).stdout
    assert_one_screen(printed)
    text = " ".join(printed.split())
    said = re.search(r"- (\S+ \S+) read, (\S+ \S+) written in (\d+) files by (\d+) processes", text)
    assert said is not None, printed
    document = show(leadline, tmp_path / "r")["trace"]
    own = {row["path"]: row for row in document["files"] if row["belongs"] == "user"}
    assert set(own) == {f"{subject}/data", f"{subject}/copy"}
    assert own[f"{subject}/data"]["opens"] == 3
    assert own[f"{subject}/copy"]["bytes_written"] == SIZE
    assert int(said[3]) == document["totals"]["files"] == 2
    assert "not found" in text
    assert "/no/such/place" not in text
    whole = leadline("show", str(tmp_path / "r"), "--all").stdout
    assert len(whole.splitlines()) > len(printed.splitlines())


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace (Debian: strace)")
def test_processes_are_as_many_as_strace_has_pids(leadline: Command, subject: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = ["strace", "-f", "-ttt", "-T", "-y", "-o", str(log), "sh", "-c", SCRIPT]
    subprocess.run(
        command, cwd=subject, env={**os.environ, **environment()}, check=True, stdout=subprocess.DEVNULL
    )
    pids = {line.split()[0] for line in log.read_text(errors="replace").splitlines()}
    done = leadline("import", "strace", str(log), "-o", str(tmp_path / "r"))
    assert f"{len(pids)} processes" in done.stdout
    printed = leadline("show", str(tmp_path / "r")).stdout
    assert_one_screen(printed)
    text = " ".join(printed.split())
    assert f" by {len(pids)} processes" in text
    document = show(leadline, tmp_path / "r")
    own = {Path(row["path"]).name for row in document["trace"]["files"] if row["belongs"] == "user"}
    assert {"data", "copy"} <= own
    assert document["trace"]["totals"]["files"] == len(own)
    assert "under strace" in text
    assert document["state"] == "DOUBTFUL"
    for item in document["trace"]["findings"]:
        assert item["saves_s"] is None or item["saves_s"] <= document["trace"]["speeds"]["wall_s"]
    shutil.rmtree(subject / "sub")
    again = leadline(
        "trace", "-o", str(tmp_path / "t"), "--", "sh", "-c", SCRIPT, cwd=subject, env=environment()
    )
    assert again.returncode == 0, again.stderr
    assert show(leadline, tmp_path / "t")["trace"]["totals"]["processes"] == len(pids)


def test_two_traces_of_different_programs_of_one_name_are_told_apart(
    leadline: Command, subject: Path, tmp_path: Path
) -> None:
    program = subject / "tool.py"
    for name, text in (("a", "open('data').fileno()"), ("b", "open('data', 'rb').read()"), ("c", None)):
        if text is not None:
            program.write_text(text)
        done = leadline("trace", "-o", str(tmp_path / name), "--", sys.executable, "tool.py", cwd=subject)
        assert done.returncode == 0, done.stderr
    differ = leadline("compare", str(tmp_path / "a"), str(tmp_path / "b")).stdout
    assert "NOTE: the programs differ: A ran" in differ
    assert "tool.py" in differ
    assert "NOTE" not in leadline("compare", str(tmp_path / "b"), str(tmp_path / "c")).stdout
    line = next(line for line in differ.splitlines() if "Run time " in line)
    assert re.search(r"\d (ms|s) +\d[\d.]* (ms|s) +inconclusive +[\d.]+", line), line
    read = next(line for line in differ.splitlines() if "Bytes read" in line)
    assert "iB" in read
