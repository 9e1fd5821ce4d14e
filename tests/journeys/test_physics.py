"""An analysis facility: how long does our program take there, where does its time go, what would help?"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kit import durations, number, size

from conftest import Step, first_screen

ANALYSE = """
import pathlib, sys
total = 0
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    with path.open("rb", buffering=0) as file:
        while piece := file.read(65536):
            total += sum(piece[::512])
for number in range(20_000):
    print(total, number)
"""
MAPPED = """
import mmap, sys
with open(sys.argv[1], "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
    print(sum(view[place] for place in range(0, len(view), 4096)))
"""
FILE_BYTES, FILES = 3 << 20, 4
_MODULES = 2 << 20  # what an interpreter reads of its own, at most


@pytest.fixture(scope="module")
def work(place: Path) -> Path:
    """The user's directory: data, and the programs."""
    found = place / "physics"
    (found / "data").mkdir(parents=True)
    block = bytes(range(256)) * (FILE_BYTES // 256)
    for each in range(FILES):
        (found / "data" / f"events-{each}").write_bytes(block)
    (found / "analyse.py").write_text(ANALYSE)
    (found / "mapped.py").write_text(MAPPED)
    return found


def moved(screen: str) -> tuple[float, float]:
    """Bytes read and written, as the screen says it."""
    found = re.search(r"([\d.,]+ \S*B) read, ([\d.,]+ \S*B) written", screen)
    assert found, screen
    return size(found[1]), size(found[2])


def test_a_script_that_no_copy_would_find_is_refused_at_once(
    step: Step, work: Path, targets: dict[str, Path]
) -> None:
    words = ("run", "analysis", "--target", f"here={targets['local']}", "--input", str(work / "data"))
    refused = step(
        "physics-relative",
        *words,
        "-o",
        str(work / "x"),
        "--",
        "python3",
        "analyse.py",
        "{input}",
        cwd=work,
        codes=(2,),
    )
    assert "analyse.py" in refused.stderr
    assert not (work / "x").exists()


def test_a_trace_counts_what_wc_and_strace_count(step: Step, work: Path) -> None:
    out = work / "stdout"
    command = (sys.executable, "analyse.py", "data")
    with out.open("w") as file:
        done = subprocess.run(
            (sys.executable, "-m", "leadline", "trace", "-o", str(work / "t"), "--", *command),
            cwd=work, stdout=file, stderr=subprocess.PIPE, text=True, timeout=120, check=True,
        )  # fmt: skip
    printed = int(
        subprocess.run(("wc", "-c", out), capture_output=True, text=True, check=True).stdout.split()[0]
    )
    shown = step("physics-trace", "show", str(work / "t"))
    screen = first_screen(shown)
    read, written = moved(screen)
    assert written == pytest.approx(printed, rel=0.006), (screen, done.stderr)
    data = sum(path.stat().st_size for path in (work / "data").iterdir())
    assert data <= read <= data * 1.02, screen
    log = work / "strace.log"
    strace = ("strace", "-f", "-y", "-T", "-ttt", "-e", "trace=all", "-o", str(log), *command)
    subprocess.run(strace, cwd=work, stdout=subprocess.DEVNULL, timeout=300, check=True)
    by_strace = sum(
        int(found[1])
        for line in log.read_text(errors="replace").splitlines()
        if (found := re.search(r"read\(\d+<[^>]*/data/events-\d>.*\) = (\d+)", line))
    )
    assert by_strace == data


def test_an_imported_log_claims_nothing_beyond_its_run(step: Step, work: Path) -> None:
    screen = first_screen(
        step("physics-strace", "import", "strace", str(work / "strace.log"), "-o", str(work / "s"))
    )
    shown = first_screen(step("physics-strace-show", "show", str(work / "s")))
    run = re.search(r"ran for ([\w. ]+?)(?: under strace|[:;])", shown)
    assert run, (screen, shown)
    run_s = sum(durations(run[1]))
    for part in re.findall(r"up to ([^(%]*?)(?: of the run|,|\()", shown):
        assert sum(durations(part) or [0.0]) <= run_s, shown
    assert "DOUBTFUL" in shown


def test_two_traces_are_compared_in_seconds_and_bytes(step: Step, work: Path) -> None:
    compared = " ".join(step("physics-compare", "compare", str(work / "t"), str(work / "s")).stdout.split())
    assert re.search(r"\d (?:s|ms|seconds|milliseconds|MiB)", compared), compared


def test_mapped_bytes_are_named(step: Step, work: Path) -> None:
    step(
        "physics-mapped",
        "trace",
        "-o",
        str(work / "m"),
        "--",
        sys.executable,
        "mapped.py",
        "data/events-0",
        cwd=work,
    )
    screen = first_screen(step("physics-mapped-show", "show", str(work / "m")))
    assert "DOUBTFUL" in screen
    assert re.search(r"events-0.{0,80}mapped", screen), screen
    assert "computing is the bottleneck" not in screen


def test_a_killed_worker_lives_until_it_was_killed(step: Step, work: Path) -> None:
    script = "sleep 0.2 & sleep 30 & a=$!; sleep 0.5; kill -9 $a; sleep 1.5"
    began = time.monotonic()
    step("physics-killed", "trace", "-o", str(work / "k"), "--", "sh", "-c", script)
    took_s = time.monotonic() - began
    found = json.loads(step("physics-killed-json", "show", str(work / "k"), "--json").stdout)
    killed = [one for one in found["trace"]["processes"] if one["end"] == "signal"]
    assert len(killed) == 1, found["trace"]["processes"]
    assert killed[0]["ended_s"] - killed[0]["started_s"] < 1.2 < took_s


def test_the_study_of_the_program_answers_and_its_bytes_are_those_of_wc(
    step: Step, work: Path, targets: dict[str, Path]
) -> None:
    words = [f"--target={name}={path}" for name, path in targets.items()]
    out = work / "r"
    step(
        *("physics-study", "run", "analysis", *words, "--input", str(work / "data"), "--blocks", "3"),
        *(
            "--set",
            "factors.copies=[1,2]",
            "-o",
            str(out),
            "--",
            sys.executable,
            str(work / "analyse.py"),
            "{input}",
        ),
        codes=(0, 3),  # 3: the machine of the test may be too busy for a figure
    )
    screen = first_screen(step("physics-study-show", "show", str(out), codes=(0, 3)))
    assert "4 copies" not in screen
    found = json.loads(step("physics-study-json", "show", str(out), "--json", codes=(0, 3)).stdout)
    data = sum(path.stat().st_size for path in (work / "data").iterdir())
    for cell in found["cells"]:
        read = cell["metrics"]["bytes_read"]["value"]
        assert read is None or data <= read <= data + _MODULES, cell["id"]
    for one in found["statements"]:
        for times in re.findall(r"takes ([\d.]+)x as long", one["text"]):
            assert 0.5 < float(times) < 4, one["text"]


def test_a_trace_is_replayed_on_the_other_target(step: Step, work: Path, targets: dict[str, Path]) -> None:
    command = (sys.executable, "analyse.py", "data")
    step("physics-segments", "trace", "--segments", "-o", str(work / "g"), "--", *command, cwd=work)
    step("physics-replay-plan", "replay", str(work / "g"), "--dry-run")
    done = step(
        *(
            "physics-replay",
            "replay",
            str(work / "g"),
            "--target",
            f"ceph={targets['ceph']}",
            "--blocks",
            "1",
        ),
        *("-o", str(work / "gr")),
        codes=(0, 3),
    )
    answer = re.search(r"([\d,]+) of ([\d,]+) calls", done.stdout)
    assert answer, done.stdout
    assert number(answer[1]) <= number(answer[2])
    assert not list(targets["ceph"].glob("leadline-*"))
    shutil.rmtree(work / "gr")
