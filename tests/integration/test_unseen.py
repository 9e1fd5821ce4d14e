"""The kernel's own count of each process beside a trace: what went past it is said, and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from leadline.store.reader import open_result
from leadline.tracing.sources import bpf, preload
from leadline.tracing.store import read_trace
from leadline.tracing.tables import ProcessRow
from support import Command
from trace_truth import compiled_c

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

MEBIBYTE = 1 << 20
ORDINARY = {
    "python3": [
        sys.executable,
        "-c",
        "import json, csv, sqlite3, ssl; open('out', 'w').write('x' * 100_000)",
    ],
    "threads": [
        sys.executable,
        "-c",
        "import threading as t\n"
        "many = [t.Thread(target=lambda: open('/etc/passwd').read()) for _ in range(100)]\n"
        "[one.start() for one in many]; [one.join() for one in many]",
    ],
    "sh": [
        "sh",
        "-c",
        "cp /bin/sh a; cat a a | tee b | wc -c > c; seq 1000 | sort -r > d; tar cf e a b; gzip e",
    ],
    "git": [
        "sh",
        "-c",
        "git init -q . && seq 10000 > n && git add . && git -c user.name=n -c user.email=e commit -qm one"
        " && git clone -q . copy",
    ],
    "ffmpeg": [
        "sh",
        "-c",
        "ffmpeg -loglevel error -f lavfi -i testsrc=duration=1:size=96x96:rate=9 out.mkv",
    ],
    "sqlite3": [
        "sqlite3",
        "base.db",
        "create table t(a); insert into t select value from generate_series(1, 20000);",
    ],
    "gcc": ["sh", "-c", "echo 'int main(void) { return 0; }' > p.c; gcc -O2 -o p p.c"],
    "perl": ["perl", "-e", "open F, '>', 'x'; print F 'y' x 1000000; close F; print `cat x` x 2"],
}


def traced(
    leadline: Command, command: list[str], place: Path, via: str
) -> tuple[list[ProcessRow], list[dict[str, str]]]:
    """The processes of a command's trace, and its validity codes."""
    if via == "preload":
        assert preload.LIBRARY.is_file(), "the build makes it: where it is missing nothing is traced"
    elif (reason := bpf.unavailable()) is not None:
        pytest.skip(reason)
    out = place.with_name(f"{place.name}.{via}")
    done = leadline("trace", "--via", via, "-o", str(out), "--", *command, cwd=place, timeout=120)
    assert done.returncode == 0, done.stderr
    shown = json.loads(leadline("show", "--json", str(out)).stdout)
    codes = [code for cell in shown["cells"] for code in cell["validity"]["codes"]]
    return list(read_trace(open_result(out)).processes), codes


@pytest.mark.parametrize(("via", "program"), [*(("preload", name) for name in ORDINARY), ("bpf", "sh")])
def test_nothing_is_said_of_ordinary_programs_and_every_process_was_asked(
    leadline: Command, via: str, program: str, place: Path
) -> None:
    command = ORDINARY[program]
    if shutil.which(command[0]) is None or (program == "git" and shutil.which("git") is None):
        pytest.skip(f"no {program}")
    processes, codes = traced(leadline, command, place, via)
    assert "bytes_unseen" not in [code["code"] for code in codes]
    assert None not in [row.unseen_written for row in processes]
    assert {row.unseen_written for row in processes} == {0}


@pytest.mark.provokes("bytes_unseen")
@pytest.mark.parametrize("way", ["write", "read", "thread", "child"])
def test_what_went_past_the_library_is_said_with_its_size_and_process(
    leadline: Command, way: str, place: Path
) -> None:
    (place / "moved").write_bytes(bytes(MEBIBYTE))
    processes, codes = traced(leadline, [str(compiled_c(subject="unseen")), way], place, "preload")
    (guilty,) = (row for row in processes if row.unseen_read or row.unseen_written)
    assert (guilty.unseen_read, guilty.unseen_written) == ((MEBIBYTE, 0) if way == "read" else (0, MEBIBYTE))
    assert (guilty.parent is not None) == (way == "child")
    (said,) = (code for code in codes if code["code"] == "bytes_unseen")
    assert said["state"] == "DOUBTFUL"
    assert "1 MiB more" in said["evidence"]
    assert f"pid {guilty.pid}" in said["evidence"]
    shown = leadline("show", str(place.with_name(f"{place.name}.preload"))).stdout
    assert "The kernel counted other bytes than were recorded" in shown


def test_what_went_past_the_tracer_in_the_kernel_is_said_too(leadline: Command, place: Path) -> None:
    subject = str(compiled_c("-no-pie", subject="unseen"))
    if subprocess.run([subject, "old"], cwd=place, check=False).returncode != 0:
        pytest.skip("this kernel runs no calls of 32-bit programs")
    processes, codes = traced(leadline, [subject, "old"], place, "bpf")
    assert [row.unseen_written for row in processes] == [MEBIBYTE]
    assert "bytes_unseen" in [code["code"] for code in codes]
    again = place / "again"
    again.mkdir()
    _, codes = traced(leadline, [subject, "write"], again, "bpf")
    assert "bytes_unseen" not in [code["code"] for code in codes]


def test_a_program_whose_bytes_no_count_has_is_doubtful_all_the_same(leadline: Command, place: Path) -> None:
    """A static child has no log, and requests of io_uring are in no count of the kernel: notes say both."""
    static = compiled_c("-static", subject="unseen")
    _, codes = traced(leadline, ["sh", "-c", f"{static} write; true"], place, "preload")
    assert "linked statically" in " ".join(code["evidence"] for code in codes)
    place = place / "ring"
    place.mkdir()
    done = subprocess.run([str(compiled_c()), "ring"], cwd=place, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("no io_uring here")
    _, codes = traced(leadline, [str(compiled_c()), "ring"], place, "preload")
    assert "io_uring" in " ".join(code["evidence"] for code in codes)
