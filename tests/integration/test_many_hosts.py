"""Studies on many hosts, by real Dask schedulers and workers: whole, killed, refused, gone on with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dask_workers import DaskWorkers
from host_workers import children
from leadline import _core
from leadline.store.reader import open_result
from support import Process, command_line, wait_for_event

LONG_S = 240  # of waits that take seconds where the machine is not busy
FAKETIME = "/usr/bin/faketime"


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskWorkers]:
    """Two workers that no test ends."""
    with DaskWorkers(tmp_path_factory.mktemp("crew"), ("alpha", "beta")) as found:
        yield found


@pytest.fixture
def own(tmp_path: Path) -> Iterator[DaskWorkers]:
    """Two workers of one test's own."""
    (tmp_path / "own").mkdir()
    with DaskWorkers(tmp_path / "own", ("alpha", "beta")) as found:
        yield found


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """One work: two trials of half a second."""
    path = tmp_path / "tiny.yaml"
    path.write_text(
        "format: leadline.study/1\n"
        "blocks: 2\n"
        "limits: {reserve: 1M}\n"
        "defaults: {size: 4M, runtime: 500ms, time_based: true, engine: psync, direct: false}\n"
        "works:\n"
        "  seqwrite_64k: {rw: write, bs: 64k}\n"
    )
    return path


def run(*arguments: object, timeout: float = LONG_S) -> subprocess.CompletedProcess[str]:
    """A command of its own: Dask's threads are no process's to be forked from."""
    words = command_line("run", *map(str, arguments))
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False)


def on(crew: DaskWorkers, *more: object) -> list[str]:
    return ["--scheduler", crew.address, "--plain-tcp", "--workers", "2", "--same-machine", *map(str, more)]


def begin(tiny: Path, target: Path, out: Path, *more: object) -> Process:
    words = command_line("run", str(tiny), "--target", f"here={target}", "-o", str(out), *map(str, more))
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def events(out: Path, name: str) -> list[dict[str, Any]]:
    lines = (out / "events.jsonl").read_text().splitlines()
    return [one for one in map(json.loads, lines) if one["event"] == name]


def assert_nothing_left(target: Path, crew: DaskWorkers, *names: str) -> None:
    """Neither below the target nor, of these hosts, where they keep their state."""
    end = time.monotonic() + LONG_S
    while list(target.iterdir()) and time.monotonic() < end:  # a host that is left alone cleans up by itself
        time.sleep(0.05)
    assert list(target.iterdir()) == []
    for name in names:
        assert [path for path in crew.state(name).rglob("*") if path.is_file()] == []


def test_a_study_on_two_hosts(crew: DaskWorkers, tiny: Path, target: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(tiny, "--target", f"here={target}", "-o", out, *on(crew))
    assert done.returncode == 0, done.stderr
    assert "2 of 2 hosts are ready: alpha, beta" in done.stderr
    rows = list(open_result(out).trials())
    assert [row.hosts for row in rows] == [2, 2]
    assert all(row.state == "complete" and row.attempt and row.clock_error_ns is not None for row in rows)
    assert rows[0].start_skew_ns is not None
    for row in rows:
        assert (out / "by_host" / "trials" / f"{row.trial}.parquet").is_file()
    assert [one["name"] for one in open_result(out).manifest["hosts"]] == ["alpha", "beta"]
    assert {one["host"] for one in events(out, "clock_compared")} == {"alpha", "beta"}
    assert {one["when"] for one in events(out, "clock_compared")} == {"before the study", "after the study"}
    assert len({one["attempt"] for one in events(out, "attempt_begun")}) == 2
    assert_nothing_left(target, crew, "alpha", "beta")


def test_a_stop_ends_all_hosts(crew: DaskWorkers, tiny: Path, target: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = begin(tiny, target, out, *on(crew), "--set", "defaults.runtime=20s")
    wait_for_event(out, "trial_started", LONG_S)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == 130, errors
    assert "go on with: leadline run --resume" in errors
    assert not events(out, "trial_finished")
    assert_nothing_left(target, crew)
    undone = subprocess.run(
        command_line("undo", str(out)), capture_output=True, text=True, timeout=LONG_S, check=False
    )
    assert undone.returncode == 0, undone.stderr
    assert_nothing_left(target, crew, "alpha", "beta")


def measures(state: Path) -> bool:
    """Whether the host that keeps its tables there has begun its first trial: an interval of it is over."""
    return any(_core.read_record(path)["intervals"] for path in state.rglob("t0001.llrec"))


def test_a_killed_parent_is_gone_on_with(crew: DaskWorkers, tiny: Path, target: Path, tmp_path: Path) -> None:
    """What the hosts finished without their parent is taken in; nothing is executed twice."""
    out = tmp_path / "out"
    process = begin(tiny, target, out, *on(crew), "--set", "defaults.runtime=3s")
    end = time.monotonic() + LONG_S
    while not all(map(measures, map(crew.state, ("alpha", "beta")))):
        assert time.monotonic() < end
        time.sleep(0.02)
    process.kill()
    process.communicate(timeout=LONG_S)
    attempt = events(out, "attempt_begun")[0]["attempt"]
    kept = [next(crew.state(name).rglob("events.jsonl")) for name in ("alpha", "beta")]
    end = time.monotonic() + LONG_S
    while not all('"attempt_ended"' in path.read_text() for path in kept):
        assert time.monotonic() < end
        time.sleep(0.05)
    resumed = run("--resume", out)
    assert resumed.returncode == 0, resumed.stderr
    assert "t0001: finished on the hosts before, taken in now" in resumed.stderr
    rows = {row.trial: row for row in open_result(out).trials()}
    assert rows["t0001"].attempt == attempt
    assert sorted(rows) == ["t0001", "t0002"]
    assert len(events(out, "attempt_begun")) == 2
    assert_nothing_left(target, crew, "alpha", "beta")


@pytest.mark.parametrize("policy", ["stop", "continue"])
def test_a_killed_worker(own: DaskWorkers, tiny: Path, target: Path, tmp_path: Path, policy: str) -> None:
    out = tmp_path / "out"
    process = begin(tiny, target, out, *on(own), "--set", "defaults.runtime=3s", "--lost", policy)
    wait_for_event(out, "trial_started", LONG_S)
    own.kill("beta")
    _, errors = process.communicate(timeout=LONG_S)
    lost = events(out, "host_lost")
    assert [one["host"] for one in lost] == ["beta"], errors
    rows = list(open_result(out).trials())
    if policy == "stop":
        assert process.returncode == 1, errors
        assert [row.state for row in rows] == ["error"]
        assert "host beta is lost: its Dask worker ended" in str(rows[0].error)
        assert "stopped: host beta is lost" in errors
    else:
        assert [(row.state, row.hosts) for row in rows] == [("complete", 1), ("complete", 1)], errors
        assert rows[0].attempt != lost[0]["attempt"]
    assert_nothing_left(target, own)


def test_a_worker_that_comes_back(tmp_path: Path, tiny: Path, target: Path) -> None:
    """Its nanny starts it again, under another address; the trial is tried once more on both hosts."""
    (tmp_path / "own").mkdir()
    out = tmp_path / "out"
    with DaskWorkers(tmp_path / "own", ("alpha", "beta"), nanny=True) as own:
        process = begin(tiny, target, out, *on(own), "--set", "defaults.runtime=2s", "--lost", "retry")
        wait_for_event(out, "trial_started", LONG_S)
        own.kill_under_nanny("beta")
        _, errors = process.communicate(timeout=LONG_S)
        assert process.returncode == 0, errors
        rows = list(open_result(out).trials())
        assert [(row.state, row.hosts) for row in rows] == [("complete", 2), ("complete", 2)]
        assert len(events(out, "attempt_begun")) == 3
        assert_nothing_left(target, own)


def test_a_killed_scheduler(own: DaskWorkers, tiny: Path, target: Path, tmp_path: Path) -> None:
    """The trial counts for nothing, and the study goes on with another scheduler."""
    out = tmp_path / "out"
    process = begin(tiny, target, out, *on(own), "--set", "defaults.runtime=2s")
    wait_for_event(out, "trial_finished", LONG_S)
    assert own.scheduler is not None
    own.scheduler.kill()
    _, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == 1, errors
    assert f"the Dask scheduler at {own.address} is gone" in errors
    assert len(events(out, "trial_finished")) == 1
    assert_nothing_left(target, own)
    own.start_scheduler()
    own.start("alpha", "beta")
    resumed = run("--resume", out, "--scheduler", own.address, "--plain-tcp", "--same-machine")
    assert resumed.returncode == 0, resumed.stderr
    assert [row.state for row in open_result(out).trials()] == ["complete", "complete"]
    assert_nothing_left(target, own, "alpha", "beta")


def sessions(worker: int) -> Iterator[int]:
    """Of a worker; it begins other processes too, which end at once."""
    for pid in children(worker):
        with suppress(OSError):
            if b"leadline.hosts.session" in Path(f"/proc/{pid}/cmdline").read_bytes():
                yield pid


def ended(run: Process) -> tuple[str, str]:
    """What a run has said that waits for something: for the message of a test that fails."""
    run.kill()
    return run.communicate(timeout=LONG_S)


def kill_while_it_opens(own: DaskWorkers, name: str, run: Process) -> None:
    """Kill a host's session between the making of its directory and its first attempt, step by step."""
    end = time.monotonic() + LONG_S
    while (pid := next(sessions(own.workers[name].pid), None)) is None:
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < end, (ended(run), own.log(name))
        time.sleep(0.001)
    while not list(own.state(name).rglob("manifest.json")):
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.01)
        os.kill(pid, signal.SIGSTOP)
        assert time.monotonic() < end, (ended(run), own.log(name))
    os.kill(pid, signal.SIGKILL)


def test_a_session_killed_while_it_opens(own: DaskWorkers, tiny: Path, target: Path, tmp_path: Path) -> None:
    """There is no result then to undo by: what the hosts had begun to keep goes with it."""
    out = tmp_path / "out"
    process = begin(tiny, target, out, *on(own))
    kill_while_it_opens(own, "beta", process)
    _, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == 2, errors
    assert "host beta: the session, process" in errors
    assert not out.exists()
    assert_nothing_left(target, own, "alpha", "beta")
    again = run(tiny, "--target", f"here={target}", "-o", out, *on(own))
    assert again.returncode == 0, again.stderr
    assert_nothing_left(target, own, "alpha", "beta")


def test_a_worker_that_stands_still_is_slow_and_not_absent(
    own: DaskWorkers, tiny: Path, target: Path, tmp_path: Path
) -> None:
    """The scheduler still has it: neither a new worker nor another Python would help."""
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text(
        f"scheduler: {own.address}\nplain_tcp: true\nsame_machine: true\nanswer_within: 1s\n"
        "hosts: {alpha: , beta: }\n"
    )
    os.kill(own.workers["beta"].pid, signal.SIGSTOP)
    try:
        done = run(tiny, "--target", f"here={target}", "-o", tmp_path / "out", "--hosts", hosts)
    finally:
        os.kill(own.workers["beta"].pid, signal.SIGCONT)
    assert done.returncode == 2, done.stderr
    assert "host beta is slow to answer: nothing within 3 s" in done.stderr
    assert "answer_within" in done.stderr
    assert "host alpha" not in done.stderr


def refused(crew: DaskWorkers, tiny: Path, target: Path, tmp_path: Path, *more: str) -> str:
    """What a run says that is refused before anything starts."""
    out = tmp_path / "out"
    words = ["--scheduler", crew.address, "--plain-tcp", *more]
    done = run(tiny, "--target", f"here={target}", "-o", out, *words)
    assert done.returncode == 2, done.stderr
    assert not out.exists()
    assert list(target.iterdir()) == []
    return done.stderr


def test_two_workers_at_one_place(crew: DaskWorkers, tiny: Path, target: Path, tmp_path: Path) -> None:
    assert "hosts alpha and beta are one machine" in refused(crew, tiny, target, tmp_path)


def test_hosts_that_will_not_do(tmp_path: Path, tiny: Path, target: Path) -> None:
    """Another version, and a clock that is 5 s off: each named, at once and in words."""
    (tmp_path / "own").mkdir()
    older = tmp_path / "older.py"
    older.write_text("from leadline import _core\n_core.version = lambda: '0.0.1'\n")
    with DaskWorkers(tmp_path / "own", ("alpha",)) as own:
        own.start("late", before=(FAKETIME, "-f", "-5.5s"))
        said = refused(own, tiny, target, tmp_path, "--same-machine", "--workers", "2")
        assert "the clock of host late is 5.5 s behind this one" in said
        own.start("a-older", extra=("--preload", str(older)))
        said = refused(own, tiny, target, tmp_path, "--same-machine", "--workers", "3")
        assert "host a-older has leadline 0.0.1, and" in said


def test_a_target_that_is_not_there(crew: DaskWorkers, tiny: Path, target: Path, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text(
        f"scheduler: {crew.address}\nplain_tcp: true\nsame_machine: true\n"
        "hosts:\n  alpha:\n  beta: {targets: {here: /nonexistent}}\n"
    )
    out = tmp_path / "out"
    done = run(tiny, "--target", f"here={target}", "-o", out, "--hosts", hosts)
    assert done.returncode == 2
    assert "host beta, target here: /nonexistent" in done.stderr


def test_dask_is_not_imported_without_being_asked_for(tiny: Path, target: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from leadline.cli.main import run_command_line as run\n"
        f"run(['run', {str(tiny)!r}, '--target', 'here={target}', '-o', {str(tmp_path / 'out')!r},"
        " '--set', 'defaults.runtime=100ms', '--blocks', '1', '--quiet'])\n"
        "assert not {'dask', 'distributed', 'tornado'} & set(sys.modules), 'imported'\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
