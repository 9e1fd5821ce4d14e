"""Unchanged programs as works of a study: N copies at once on real directories, and all that can go wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leadline.store.reader import open_result
from leadline.store.tables import TrialRow
from leadline.workloads.application.copies import KEPT_BYTES_MAX
from measured import assert_measured
from support import Command, Start, command_line, show

UNTRACED = ("--set", "works.run.trace=off")
ONE = ("--blocks", "1", "--set", "factors.copies=[1]")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """An input with a directory in it."""
    path = tmp_path / "data"
    (path / "more").mkdir(parents=True)
    (path / "numbers.txt").write_text("1\n2\n3\n" * 1000)
    (path / "more" / "words.txt").write_text("a b c\n")
    return path


def words(target: Path, out: Path, *more: str, traced: bool = False) -> list[str]:
    """The words of a run of the built-in study, up to the command."""
    return [
        "run",
        "analysis",
        "--target",
        f"a={target}",
        "--out",
        str(out),
        *more,
        *(() if traced else UNTRACED),
    ]


def trials(out: Path) -> list[TrialRow]:
    return open_result(out).trials()


def copies(trial: TrialRow) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(trial.summary)["copies"]
    return found


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s")


def is_running(pid: int) -> bool:
    """Neither gone nor a zombie that nobody has waited for yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_copies_run_with_their_input_in_directories_of_their_own(
    leadline: Command, target: Path, data: Path, tmp_path: Path
) -> None:
    script = (
        'cat numbers.txt more/words.txt "$1/numbers.txt" | wc -l; pwd; echo "$LEADLINE_COPY $2"; cp more/* .'
    )
    done = leadline(
        *words(
            target, tmp_path / "r", "--input", str(data), "--set", "factors.copies=[1,3]", "--blocks", "2"
        ),
        *("--", "sh", "-c", script, "sh", "{input}", "{copy}"),
    )
    assert_measured(done, tmp_path / "r")
    assert list(target.iterdir()) == []
    rows = trials(tmp_path / "r")
    assert {row.state for row in rows} == {"complete"}
    assert {len(copies(row)) for row in rows} == {1, 3}
    three = next(row for row in rows if len(copies(row)) == 3)
    printed = [
        (tmp_path / "r" / "output" / three.trial / f"copy-{n}.out").read_text().split() for n in (1, 2, 3)
    ]
    assert [lines[0] for lines in printed] == ["6001"] * 3
    assert len({lines[1] for lines in printed}) == 3
    assert [lines[2:] for lines in printed] == [["1", "1"], ["2", "2"], ["3", "3"]]
    events = [e for e in open_result(tmp_path / "r").events if e.event == "layout_finished"]
    assert [(e.details["files"], e.details["bytes"]) for e in events] == [(2, 6006)]


def test_the_programs_environment_is_the_users_own(leadline: Command, target: Path, tmp_path: Path) -> None:
    for given in ({"PYTHONPATH": "/mine"}, {}):
        out = tmp_path / f"r{len(given)}"
        done = leadline(*words(target, out, *ONE), "--", "env", env=given)
        assert_measured(done, out)
        printed = (out / "output" / "t0001" / "copy-1.out").read_text().splitlines()
        assert [line for line in printed if line.startswith("PYTHONPATH")] == [
            f"{name}={value}" for name, value in given.items()
        ]


def test_what_copies_used_is_counted_with_what_they_started(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    """The truth is what dd was asked for; the shells' own reading of libraries and pipes is small."""
    script = "dd if=/dev/zero of=x bs=64k count=100 2>/dev/null; dd if=x of=/dev/null bs=64k 2>/dev/null"
    done = leadline(*words(target, tmp_path / "r", *ONE), "--", "sh", "-c", f"({script})")
    assert_measured(done, tmp_path / "r")
    (copy,) = copies(trials(tmp_path / "r")[0])
    moved = 100 * 65536
    assert 2 * moved <= copy["read_bytes"] < 2 * moved + 500_000
    assert 2 * moved <= copy["write_bytes"] < 2 * moved + 500_000


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo this is why >&2; exit 7", "copy 1 of 1: exit code 7: this is why"),
        ("kill -SEGV $$", "ended by SIGSEGV"),
        ("exec /nowhere/at/all", "copy 1 of 1: exit code 127"),
    ],
)
def test_a_program_that_fails_makes_its_cell_invalid_with_the_reason(
    leadline: Command, target: Path, tmp_path: Path, script: str, expected: str
) -> None:
    done = leadline(*words(target, tmp_path / "r", *ONE), "--", "sh", "-c", script)
    assert done.returncode == 3, done.stderr
    (row,) = trials(tmp_path / "r")
    assert row.state == "error"
    assert expected in (row.error or "")
    cell = show(leadline, tmp_path / "r")["cells"][0]
    assert cell["validity"]["state"] == "INVALID"
    assert list(target.iterdir()) == []


def test_a_program_that_fails_alike_three_times_is_left_alone_and_tried_once_more_on_resume(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    """A program that works stays in: the study goes on with the other cells."""
    study, out, mended = tmp_path / "study.yaml", tmp_path / "r", tmp_path / "mended"
    study.write_text(
        "format: leadline.study/1\nworks:\n"
        f"  bad: {{command: [sh, -c, '[ -e {mended} ] || exit 7'], trace: 'off'}}\n"
        "  good: {command: ['true'], trace: 'off'}\nblocks: 5\n"
    )
    done = leadline("run", str(study), "--target", f"a={target}", "--out", str(out))
    assert done.returncode == 3, done.stderr
    count = Counter((row.cell, row.state) for row in trials(out))
    assert count == {("a.bad", "error"): 3, ("a.good", "complete"): 5}
    assert "3 trials in a row failed alike" in done.stdout + done.stderr
    (bad,) = (cell for cell in show(leadline, out)["cells"] if cell["id"] == "a.bad")
    assert bad["validity"]["state"] == "INVALID"
    assert any("exit code 7" in code["evidence"] for code in bad["validity"]["codes"])
    again = leadline("run", "--resume", str(out))
    assert again.returncode == 3, again.stderr
    assert Counter(row.cell for row in trials(out)) == {"a.bad": 4, "a.good": 5}
    mended.touch()
    leadline("run", "--resume", str(out))
    assert Counter((row.cell, row.state) for row in trials(out))["a.bad", "complete"] == 1
    assert list(target.iterdir()) == []


def test_one_copy_that_fails_ends_the_others(leadline: Command, target: Path, tmp_path: Path) -> None:
    script = 'if [ "$LEADLINE_COPY" = 2 ]; then exit 1; fi; exec sleep 600'
    begun = time.monotonic()
    done = leadline(
        *words(target, tmp_path / "r", "--blocks", "1", "--set", "factors.copies=[3]"),
        *("--", "sh", "-c", script),
    )
    assert done.returncode == 3, done.stderr
    assert time.monotonic() - begun < 60
    (row,) = trials(tmp_path / "r")
    assert "copy 2 of 3: exit code 1" in (row.error or "")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("no-such-program-anywhere",), "no program no-such-program-anywhere on PATH"),
        (("/etc/passwd",), "may not be executed"),
        (("/etc",), "is a directory"),
        ((), "names no program"),
    ],
)
def test_a_program_that_cannot_be_started_is_refused_before_anything_runs(
    leadline: Command, target: Path, tmp_path: Path, command: tuple[str, ...], expected: str
) -> None:
    done = leadline(*words(target, tmp_path / "r"), "--", *command)
    assert done.returncode == 2
    assert expected in done.stderr
    assert not (tmp_path / "r").exists()


def test_words_that_no_study_wants_are_refused(leadline: Command, target: Path, tmp_path: Path) -> None:
    for more in (("--", "true"), ("--input", str(tmp_path))):
        done = leadline("run", "quick", "--target", f"a={target}", *more)
        assert done.returncode == 2
        assert "no workload of this study runs a command" in done.stderr


@pytest.mark.parametrize("kind", ["missing", "empty", "special"])
def test_an_input_that_cannot_be_staged_is_refused(
    leadline: Command, target: Path, tmp_path: Path, kind: str
) -> None:
    place = tmp_path / "in"
    if kind != "missing":
        place.mkdir()
    if kind == "special":
        os.mkfifo(place / "pipe")
    done = leadline(*words(target, tmp_path / "r", "--input", str(place)), "--", "true")
    assert done.returncode == 2
    assert str(place) in done.stderr


def test_a_program_past_its_limit_is_ended_with_all_that_it_started(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    """It ignores the polite signal, and its child sits in a session of its own."""
    pids = tmp_path / "pids"
    script = (
        f"trap '' TERM; setsid sleep 600 & echo $! >> {pids}; echo $$ >> {pids}; while :; do sleep 1; done"
    )
    done = leadline(
        *words(target, tmp_path / "r", *ONE, "--set", "works.run.runtime=1s"), "--", "sh", "-c", script
    )
    assert done.returncode == 3, done.stderr
    (row,) = trials(tmp_path / "r")
    assert row.state == "error"
    assert "did not end within runtime" in (row.error or "")
    assert not [pid for pid in pids.read_text().split() if is_running(int(pid))]
    assert list(target.iterdir()) == []


def test_what_a_program_leaves_running_is_ended_and_said(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    script = f"setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $! > {pids}"
    done = leadline(*words(target, tmp_path / "r", *ONE), "--", "sh", "-c", script)
    assert_measured(done, tmp_path / "r")
    assert "outlived the copies" in leadline("show", "--all", str(tmp_path / "r")).stdout
    assert not is_running(int(pids.read_text()))


def test_ctrl_c_ends_the_copies_and_resume_goes_on(
    leadline: Command, start: Start, target: Path, tmp_path: Path
) -> None:
    pids, go_on, out = tmp_path / "pids", tmp_path / "go", tmp_path / "r"
    script = f"echo $$ >> {pids}; [ -e {go_on} ] || exec sleep 600"
    more = ("--blocks", "1", "--set", "factors.copies=[2]", "--quiet")
    process = start(*words(target, out, *more), "--", "sh", "-c", script)
    wait_for(lambda: pids.exists() and len(pids.read_text().split()) >= 2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert not [pid for pid in pids.read_text().split() if is_running(int(pid))]
    assert list(target.iterdir()) == []
    assert trials(out) == []
    go_on.touch()
    assert_measured(leadline("run", "--resume", str(out)), out)
    assert [row.state for row in trials(out)] == ["complete"]


def test_a_killed_run_leaves_no_program_and_undo_removes_its_files(
    start: Start, leadline: Command, target: Path, tmp_path: Path
) -> None:
    """Even what a copy started in the background ends with the run."""
    pids, out = tmp_path / "pids", tmp_path / "r"
    script = f"sleep 600 & echo $! >> {pids}; echo $$ >> {pids}; wait"
    process = start(*words(target, out, *ONE, "--quiet"), "--", "sh", "-c", script)
    wait_for(lambda: pids.exists() and len(pids.read_text().split()) >= 2)
    process.kill()
    process.communicate()
    wait_for(lambda: not [pid for pid in pids.read_text().split() if is_running(int(pid))])
    assert list(target.iterdir()) != []
    assert leadline("undo", str(out)).returncode == 0
    assert list(target.iterdir()) == []


def test_warm_caches_cost_a_run_that_is_not_measured(
    leadline: Command, target: Path, data: Path, tmp_path: Path
) -> None:
    count = tmp_path / "count"
    done = leadline(
        *words(target, tmp_path / "r", "--input", str(data), "--set", "factors.copies=[2]", "--blocks", "1"),
        *("--set", "works.run.cache=warm", "--", "sh", "-c", f"echo $LEADLINE_COPY >> {count}"),
    )
    assert_measured(done, tmp_path / "r")
    assert sorted(count.read_text().split()) == ["0", "1", "2"]
    assert len(copies(trials(tmp_path / "r")[0])) == 2


def test_what_a_program_prints_is_kept_up_to_a_bound(leadline: Command, target: Path, tmp_path: Path) -> None:
    done = leadline(
        *words(target, tmp_path / "r", *ONE), "--", "sh", "-c", "yes | head -c 5000000; echo end >&2"
    )
    assert_measured(done, tmp_path / "r")
    kept = tmp_path / "r" / "output" / "t0001"
    assert (kept / "copy-1.out").stat().st_size == KEPT_BYTES_MAX
    assert (kept / "copy-1.err").read_text() == "end\n"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs root to mount a small file system")
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "leadline-test", str(place)],
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"cannot mount: {done.stderr.decode()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_target_is_said_by_whom_it_stops(
    leadline: Command, small: Path, data: Path, tmp_path: Path
) -> None:
    (data / "large").write_bytes(bytes(20 << 20))
    done = leadline(*words(small, tmp_path / "r", "--input", str(data)), "--", "true")
    assert done.returncode == 2
    assert "free" in done.stderr
    done = leadline(
        *words(small, tmp_path / "r", *ONE), "--", "dd", "if=/dev/zero", "of=x", "bs=1M", "count=30"
    )
    assert done.returncode == 3, done.stderr
    (row,) = trials(tmp_path / "r")
    assert "No space left on device" in (row.error or "")
    assert list(small.iterdir()) == []


def test_the_real_analysis_gives_every_table(leadline: Command, target: Path, tmp_path: Path) -> None:
    """Columnar event files through uproot and awkward: selection, histogram and skim, on two directories."""
    pytest.importorskip("uproot")
    python = command_line()[0]
    module = (python, "-m", "leadline.demo.events")
    made = subprocess.run(
        [*module, "make", str(tmp_path / "events"), "--size", "2M", "--files", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    other = tmp_path / "other"
    other.mkdir()
    done = leadline(
        *words(
            *(target, tmp_path / "r", "--target", f"b={other}", "--input", str(tmp_path / "events")),
            traced=True,
        ),
        *("--set", "factors.copies=[1,2]", "--blocks", "2"),
        *("--", *module, "analyse", "{input}", "{output}/found"),
        timeout=300,
    )
    assert_measured(done, tmp_path / "r")
    assert {row.state for row in trials(tmp_path / "r")} == {"complete"}
    events = int(made.stdout.split()[0])
    printed = (tmp_path / "r" / "output" / "t0001" / "copy-1.out").read_text()
    assert printed.startswith(f"{events} events read")
    shown = show(leadline, tmp_path / "r")["application"]
    names = [table["name"] for table in shown["tables"]]
    assert names == ["run_times", "speeds", "reading_and_writing", "shares", "by_copies"]
    assert {(point["target"], point["copies"]) for point in shown["points"]} == {
        (name, n) for name in "ab" for n in (1, 2)
    }
    assert leadline("report", str(tmp_path / "r"), "-o", str(tmp_path / "r.html")).returncode == 0
    assert "Run time by number of runs" in (tmp_path / "r.html").read_text()


def test_a_traced_copy_has_the_bytes_that_dd_was_asked_for_and_shares_of_its_whole_time(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    script = "dd if=/dev/zero of=x bs=64k count=200 2>/dev/null; dd if=x of=/dev/null bs=64k 2>/dev/null"
    done = leadline(
        *words(target, tmp_path / "r", "--blocks", "1", "--set", "factors.copies=[2]", traced=True),
        *("--", "sh", "-c", script),
    )
    assert_measured(done, tmp_path / "r")
    metrics = show(leadline, tmp_path / "r")["cells"][0]["metrics"]
    moved = 200 * 65536
    assert moved <= metrics["bytes_written"]["value"] < moved + 100_000
    assert moved <= metrics["bytes_read"]["value"] < moved + 1_000_000
    shares = [
        metrics[f"{kind}_share"]["value"] for kind in ("read", "write", "sync", "meta", "compute", "wait")
    ]
    assert sum(shares) == pytest.approx(1, abs=1e-6)
    assert metrics["read_write_time"]["value"] < metrics["run_time"]["value"]
    assert not (tmp_path / "r" / "records").exists()
