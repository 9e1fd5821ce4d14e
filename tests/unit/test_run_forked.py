"""Workers are forked by a helper: it sleeps while they measure, nothing of it is theirs, each dies alone."""

from __future__ import annotations

import ctypes
import io
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from leadline.run import child, worker
from leadline.run.child import Answer, Worker
from leadline.run.kinds import CONDUCTED
from leadline.run.prepared import prepared
from leadline.transfer import lone_transfer

# Asks for a worker, forks as a look at a path does, says which processes there are, and sleeps until killed.
COMMAND = """
import os, pathlib, time
from leadline.run.child import Worker
with Worker() as worker:
    lines = pathlib.Path(f"/proc/{worker.pid}/status").read_text().splitlines()
    helper = next(line.split()[1] for line in lines if line.startswith("PPid"))
    fork = os.fork()  # it has what the command has open, the end of the helper's socket too
    if fork:
        print(worker.pid, helper, fork, flush=True)
    time.sleep(60)
"""
STORAGE_LIBRARIES = ("libcephfs", "librados", "libradosstriper", "libnfs", "libsmbclient", "libXrdCl")


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """A helper of the test's own, and none left after it."""
    prepared().close()
    prepared().told()
    yield
    prepared().close()


def status(pid: int, name: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split(":", 1)[1].strip() for line in lines if line.startswith(f"{name}:"))


def helper_of(worker: Worker) -> int:
    return int(status(worker.pid, "PPid"))


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and status(pid, "State")[0] != "Z"


def trial(worker: Worker, tmp_path: Path, runtime_ns: int = 50_000_000, deadline_s: float = 30.0) -> Answer:
    job = lone_transfer("t", engine="null", time_based=True, runtime_ns=runtime_ns)
    return worker.call("trial", deadline_s, job=job, record=str(tmp_path / "record"))


def wakeups(pid: int) -> tuple[str, ...]:
    """How often it was put on a processor, and for how long in ticks."""
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
    return status(pid, "voluntary_ctxt_switches"), status(pid, "nonvoluntary_ctxt_switches"), *times


def test_the_helper_is_not_woken_once_while_a_trial_runs(tmp_path: Path) -> None:
    with Worker() as worker:
        helper = helper_of(worker)
        until(lambda: status(helper, "State")[0] == "S")  # it waits for the next request
        before = wakeups(helper)
        assert trial(worker, tmp_path, 300_000_000).outcome == "done"
        assert wakeups(helper) == before


def test_workers_have_one_helper_and_none_is_left_as_a_zombie(tmp_path: Path) -> None:
    helpers, pids = set(), []
    for _ in range(3):
        with Worker() as worker:
            helpers.add(helper_of(worker))
            pids.append(worker.pid)
            assert trial(worker, tmp_path).outcome == "done"
    assert len(helpers) == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_worker_has_no_descriptor_signal_mask_or_session_of_the_helper() -> None:
    with Worker() as other, Worker() as worker:
        descriptors = Path(f"/proc/{worker.pid}/fd")
        assert sorted(int(one.name) for one in descriptors.iterdir()) == [0, 1, 2]
        assert (descriptors / "0").readlink() != Path(f"/proc/{other.pid}/fd/0").readlink()
        assert os.getsid(worker.pid) == os.getpgid(worker.pid) == worker.pid
        assert int(status(worker.pid, "SigBlk"), 16) == 0
        interrupts = 1 << (signal.SIGINT - 1)
        assert int(status(worker.pid, "SigCgt"), 16) & interrupts


def test_a_helper_that_knows_every_kind_of_work_has_one_thread_and_no_storage_library() -> None:
    with Worker(kinds=CONDUCTED) as worker:
        helper = helper_of(worker)
        assert len(list(Path(f"/proc/{helper}/task").iterdir())) == 1
        mapped = Path(f"/proc/{helper}/maps").read_text()
    assert "_core" in mapped
    assert not [name for name in STORAGE_LIBRARIES if name in mapped]


def test_random_numbers_differ_between_workers_of_one_helper(tmp_path: Path) -> None:
    program = (
        "import random, sys\nfrom leadline.run import fork_helper as helper, worker\n"
        "worker._COMMANDS['space'] = lambda _: {'drawn': random.random()}\nhelper.main(sys.argv[1:])"
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("leadline.run.prepared.module_command", lambda _: [sys.executable, "-c", program])
        drawn = set()
        for _ in range(3):
            with Worker() as worker:
                drawn.add(worker.call("space", 10.0).value["drawn"])
    assert len(drawn) == 3


def test_a_worker_that_is_killed_at_its_limit_leaves_helper_and_next_trial_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "_INTERRUPT_GRACE_S", 0.1)
    with Worker() as worker:
        helper = helper_of(worker)
        os.kill(worker.pid, signal.SIGSTOP)  # hears no interrupt
        answer = trial(worker, tmp_path, deadline_s=0.1)
    assert (answer.outcome, answer.stuck, answer.orphaned) == ("hung", False, False)
    assert "was killed" in answer.message
    with Worker() as worker:
        assert helper_of(worker) == helper
        assert trial(worker, tmp_path).outcome == "done"


def test_a_worker_that_the_kernel_holds_is_left_and_reaped_when_it_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped and deaf to SIGKILL, as seen from the command: what a hung mount's call looks like."""
    monkeypatch.setattr(child, "_INTERRUPT_GRACE_S", 0.1)
    monkeypatch.setattr(child, "_KILL_GRACE_S", 0.1)
    with Worker() as worker:
        held, helper = worker.pid, helper_of(worker)
        os.kill(held, signal.SIGSTOP)
        monkeypatch.setattr(worker._process, "signal", lambda _: None)
        answer = trial(worker, tmp_path, deadline_s=0.1)
    assert (answer.outcome, answer.stuck, worker.stuck) == ("hung", True, True)
    with Worker() as other:
        assert helper_of(other) == helper
        assert trial(other, tmp_path).outcome == "done"
    os.kill(held, signal.SIGKILL)
    until(lambda: status(held, "State")[0] == "Z")
    with Worker():
        until(lambda: not Path(f"/proc/{held}").exists())


def test_a_worker_that_ends_by_itself_is_said_to_have_died_and_how() -> None:
    with Worker() as worker:
        os.kill(worker.pid, signal.SIGTERM)
        answer = worker.call("space", 10.0, directory="/", location=None)
    assert answer.outcome == "died"
    assert answer.message == f"the worker process {worker.pid} ended by signal SIGTERM"
    assert not answer.orphaned


def test_the_end_of_the_helper_is_told_and_the_next_worker_has_another(tmp_path: Path) -> None:
    with Worker() as worker:
        helper, pid = helper_of(worker), worker.pid
        os.kill(helper, signal.SIGKILL)
        answer = trial(worker, tmp_path, 20_000_000_000)
    assert answer.outcome == "died"
    assert answer.orphaned
    words = f"the process {helper} that forks workers ended by signal SIGKILL"
    assert answer.message == f"the worker process {pid} ended: {words}"
    until(lambda: not is_there(pid))
    with Worker() as other:
        assert helper_of(other) != helper
        assert trial(other, tmp_path).outcome == "done"
    assert prepared().told() == [words]
    assert prepared().told() == []


def test_a_command_that_is_killed_leaves_neither_helper_nor_worker_though_a_fork_of_it_lives_on() -> None:
    with subprocess.Popen([sys.executable, "-c", COMMAND], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        worker, helper, fork = map(int, command.stdout.readline().split())
        assert is_there(worker)
        assert is_there(helper)
        command.kill()
        try:
            until(lambda: not is_there(worker) and not is_there(helper))
            assert is_there(fork)
        finally:
            os.kill(fork, signal.SIGKILL)


def test_a_worker_has_the_environment_of_the_moment_and_an_older_one_lives_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Worker() as before:
        monkeypatch.setenv("CEPH_ARGS", "--id changed")
        with Worker() as after:
            assert b"CEPH_ARGS=--id changed" in Path(f"/proc/{after.pid}/environ").read_bytes()
            assert b"CEPH_ARGS=--id changed" not in Path(f"/proc/{before.pid}/environ").read_bytes()
            assert helper_of(after) != (older := helper_of(before))
        assert trial(before, tmp_path).outcome == "done"
    assert not is_there(older)  # it went with its last worker


def test_a_worker_may_use_the_processors_that_the_command_may_use_now() -> None:
    allowed = os.sched_getaffinity(0)
    with Worker():
        pass
    try:
        os.sched_setaffinity(0, {min(allowed)})
        with Worker() as worker:
            assert os.sched_getaffinity(worker.pid) == {min(allowed)}
    finally:
        os.sched_setaffinity(0, allowed)


def test_a_worker_hears_the_interrupt_though_its_command_was_started_deaf_to_it() -> None:
    """As a script starts what it leaves in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Worker() as worker:
            ignored = int(status(worker.pid, "SigIgn"), 16)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not ignored >> (signal.SIGINT - 1) & 1


class Keeper:
    """A kind of work that keeps something between two commands, as a client of a cluster."""

    def __init__(self) -> None:
        self.kept = self  # a cycle, as between a side and its methods: nothing but a collection lets it go

    def commands(self, _say: object) -> dict[str, Callable[..., dict[str, str]]]:
        return {"keeper_keep": self._keep}

    def _keep(self, _command: dict[str, str]) -> dict[str, str]:
        return {"kept": type(self.kept).__name__}


def test_a_worker_that_ends_lets_go_of_what_a_kind_of_work_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept: list[weakref.ref[Keeper]] = []

    def kind(_name: str) -> Keeper:
        keeper = Keeper()
        kept.append(weakref.ref(keeper))
        return keeper

    monkeypatch.setattr(worker, "CONDUCTED", ("keeper",))
    monkeypatch.setattr(worker, "conducted_kind", kind)
    monkeypatch.setattr(worker, "_KINDS_COMMANDS", {})
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"command": "keeper_keep"}\n'))
    # The kernel's word that a process ends with its parent is for a worker, and not for this one.
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: SimpleNamespace(prctl=lambda *_: 0))
    worker.main(os.getppid())
    assert '"kept": "Keeper"' in capsys.readouterr().out
    assert [one() for one in kept] == [None]


def test_how_long_a_worker_was_stopped_is_known_and_is_no_other_workers(tmp_path: Path) -> None:
    with Worker() as worker, Worker() as other:
        begun = time.monotonic_ns()
        os.kill(worker.pid, signal.SIGSTOP)
        until(lambda: status(worker.pid, "State")[0] == "T")
        until(lambda: (worker.stopped_ns(begun, time.monotonic_ns()) or 0) > 0)
        os.kill(worker.pid, signal.SIGCONT)
        assert trial(worker, tmp_path).outcome == "done"
        ended = time.monotonic_ns()
        found = worker.stopped_ns(begun, ended)
        assert found is not None
        assert 0 < found <= ended - begun
        assert worker.stopped_ns(begun, ended) == found  # it does not grow any more
        assert worker.stopped_ns(ended, ended + 10**9) == 0
        assert other.stopped_ns(begun, ended) == 0


def test_of_a_worker_that_has_ended_nobody_knows_whether_it_was_stopped() -> None:
    with Worker() as worker:
        os.kill(worker.pid, signal.SIGKILL)
        until(lambda: not is_there(worker.pid))
    assert worker.stopped_ns(0, time.monotonic_ns()) is None


def test_a_worker_that_a_signal_stopped_is_named_as_the_cause_and_storage_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.run.child._INTERRUPT_GRACE_S", 0.1)
    with Worker() as worker:
        os.kill(worker.pid, signal.SIGSTOP)
        until(lambda: status(worker.pid, "State")[0] == "T")
        answer = worker.call("make", 0.1)
    assert answer.outcome == "hung"
    assert "a signal had stopped it for" in answer.message
    assert "kill -STOP" in answer.remedy
    assert "server" not in answer.remedy
