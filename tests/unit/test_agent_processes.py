"""Workers and observers of an agent in the place of processes here, by the stand-in."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import Standing, standing_in
from leadline.hosts.agent.children import AgentChild, Carrier, ChildStreams
from leadline.hosts.workers.study_hosts import watcher_of
from leadline.observe.client import Observer
from leadline.observe.host import host
from leadline.observe.mounts.mountinfo import read_mounts
from leadline.observe.mounts.mounts import inspect
from leadline.run.child import Worker
from leadline.run.rows import read_engine_record
from leadline.study.schemes import storageless
from leadline.transfer import lone_transfer

RUNTIME_NS = 300_000_000


@pytest.fixture
def standing(tmp_path: Path) -> Iterator[Standing]:
    with standing_in(tmp_path) as found:
        yield found


def null_job(runtime_ns: int = RUNTIME_NS) -> dict[str, Any]:
    engine = storageless().name
    return lone_transfer("self", iodepth=1, engine=engine, time_based=True, runtime_ns=runtime_ns)


def test_a_worker_there_does_a_trial_and_its_record_is_here(standing: Standing, tmp_path: Path) -> None:
    record = tmp_path / "records" / "t0001.llrec"
    record.parent.mkdir()
    with Worker() as worker:
        assert worker.pid != os.getpid()
        answer = worker.call("trial", 30.0, job=null_job(), record=str(record))
    assert answer.outcome == "done", answer.message
    assert answer.value["directions"]["read"]["operations"] > 0
    assert read_engine_record(record)["summary"]["state"] == "complete"
    there = Path(standing.connection.greeting["directory"])
    assert list(there.iterdir()) == []


def test_a_worker_there_starts_when_it_is_told(standing: Standing, tmp_path: Path) -> None:
    """The instant is one of this host's clock, which is moved by what that host's is ahead of it."""
    starts: list[int] = []

    def come() -> int:
        starts.append(time.monotonic_ns() + 300_000_000)
        return starts[0]

    with Worker() as worker:
        answer = worker.call(
            "trial", 30.0, come=come, job=null_job(), record=str(tmp_path / "t0001.llrec"), meets=True
        )
    begun_ns = answer.value["started_unix_ns"] - standing.machine.offset_ns()
    assert 0 <= begun_ns - starts[0] < 200_000_000


def test_a_stop_ends_a_worker_there(standing: Standing, tmp_path: Path) -> None:
    del standing
    end = time.monotonic() + 1.0
    with Worker(lambda: time.monotonic() > end) as worker:
        job = null_job(20_000_000_000)
        answer = worker.call("trial", 100.0, job=job, record=str(tmp_path / "t0001.llrec"))
    assert (answer.outcome, answer.value["state"]) == ("done", "interrupted"), answer.message
    assert time.monotonic() < end + 20


def test_a_worker_there_that_is_killed_says_so(standing: Standing, tmp_path: Path) -> None:
    with Worker() as worker:
        standing.connection.call("signal", worker.pid, int(signal.SIGKILL))
        answer = worker.call("trial", 30.0, job=null_job(), record=str(tmp_path / "t0001.llrec"))
    assert (answer.outcome, answer.orphaned) == ("died", False)
    assert "ended by signal SIGKILL" in answer.message


def test_a_worker_whose_agent_is_gone_says_nothing_of_its_target(standing: Standing, tmp_path: Path) -> None:
    with Worker() as worker:
        standing.process.kill()
        answer = worker.call("trial", 30.0, job=null_job(), record=str(tmp_path / "t0001.llrec"))
        assert (answer.outcome, answer.orphaned) == ("died", True)
        assert "its host's agent is gone" in answer.message


def test_an_error_of_a_worker_there_comes_with_its_words(standing: Standing) -> None:
    del standing
    with Worker() as worker:
        answer = worker.call("space", 30.0, directory="/nonexistent", location=None)
    assert (answer.outcome, answer.errno) == ("failed", 2)


def test_observers_there_sample_and_answer_marks(standing: Standing, tmp_path: Path) -> None:
    facts = inspect(str(tmp_path))
    observer = Observer({"here": facts}, interval_s=0.2)
    observer.start()
    try:
        found = observer.mark("t0001:start", "here", None, 10.0)
        assert found.counters.get("host_cpu_busy_ns", 1)
        end = time.monotonic() + 30
        samples: list[Any] = []
        while not samples and time.monotonic() < end:
            samples = observer.drain()
            time.sleep(0.05)
        assert {sample.source for sample in samples} & {"host", "process"}
    finally:
        observer.stop()


def test_facts_are_those_of_the_host_by_copies_of_its_files(standing: Standing, tmp_path: Path) -> None:
    from leadline.observe.machine import work_for

    standing.machine.refresh()
    there = host.facts()
    target, mounts = inspect(str(tmp_path)), read_mounts()
    own_memory = host.memory_bytes(standing.machine.files / "proc", standing.machine.files / "sys")
    identity = standing.machine.identity()
    work_for(None)
    here = host.facts()
    assert {name: there[name] for name in here} == here
    assert there["agent"] == "yes"
    assert own_memory == host.memory_bytes()
    assert mounts == read_mounts()
    own = inspect(str(tmp_path))
    assert (target.words, target.device, target.direct_io) == (own.words, own.device, own.direct_io)
    assert identity["network"] == Path("/proc/self/ns/net").stat().st_ino
    assert identity["cpus"] == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("name", ["../../../../../escaped", "/etc/escaped", "../../../../.."])
def test_no_copy_lies_outside_of_its_directory(standing: Standing, name: str) -> None:
    place = standing.machine._here(f"/sys/class/net/{name}")
    assert place.resolve().is_relative_to(standing.machine.files.resolve())


class Recorder:
    """Calls of an agent, and files of it."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def call(self, *words: Any, within_s: float = 0.0) -> Any:
        del within_s
        self.calls.append(words)
        return b""


def test_paths_of_the_result_are_those_of_the_agent_there(tmp_path: Path) -> None:
    recorder = Recorder()
    carrier = Carrier(recorder, "/run/agent", lambda start_ns: start_ns + 7, {})  # type: ignore[arg-type]
    script = tmp_path / "replay.script"
    script.write_bytes(b"calls")
    job = {"format": "leadline.replay/1", "script": str(script), "directory": "/target"}
    line = json.dumps({"command": "trial", "record": str(tmp_path / "records/t1.llrec"), "job": job})
    told = json.loads(carrier.told(line.encode()))
    assert told["record"] == "/run/agent/records-t1.llrec"
    assert told["job"]["directory"] == "/target"
    assert told["job"]["script"] == f"/run/agent/{tmp_path.name}-replay.script"
    assert recorder.calls == [("write_file", told["job"]["script"], b"calls", False)]
    carrier.told(line.encode())
    assert len(recorder.calls) == 1  # it is there already
    assert json.loads(carrier.told(b'{"start_ns": 5}\n')) == {"start_ns": 12}
    assert json.loads(carrier.told(b'{"start_ns": null}\n')) == {"start_ns": None}


@pytest.mark.parametrize(("agents", "watcher"), [("nn", 0), ("yn", 1), ("yyn", 2), ("yy", 0)])
def test_clusters_are_watched_by_a_host_that_can(agents: str, watcher: int) -> None:
    hosts = [{"agent": "yes"} if one == "y" else {"name": "a"} for one in agents]
    assert watcher_of(hosts) == watcher


class Liar:
    """The connection to an agent whose child says these bytes, and no more."""

    over = False

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = [*pieces, None]

    def call(self, name: str, *_: Any, **_more: Any) -> Any:
        if name == "read":
            return self._pieces.pop(0)
        return {"spawn": {"id": 1, "pid": 1}, "wait": 0}.get(name)


@pytest.mark.parametrize("line", [b'{"a":' * 100_000 + b"\n", b'{"event": NaN}\n', b'{"event": "do\n'])
def test_what_a_child_there_says_that_is_no_message_comes_no_further(line: bytes) -> None:
    output, its_output = os.pipe()
    errors, its_errors = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    child = AgentChild(
        Liar(b'{"event": "ready"}\n', line), "worker", ChildStreams(nothing, its_output, its_errors)
    )
    for descriptor in (nothing, its_output, its_errors):
        os.close(descriptor)
    with os.fdopen(output, "rb") as said, os.fdopen(errors, "rb") as words:
        assert said.read() == b'{"event": "ready"}\n'
        assert b"answers with no message" in words.read()
    assert child.wait(5.0)
