"""A process that calls `leadline.hosts.procedures` for a test, as a worker of Dask does; it can be killed."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from leadline.interpreter import module_environment
from leadline.observe.mounts.mounts import inspect
from leadline.plan.make import Host, make_plan
from leadline.plan.model import Plan
from leadline.run.model import RunOptions
from leadline.study.library import load_study
from leadline.study.target import Target

STUDY_ID = "0badcafe"
_PROGRAM = """
import base64, json, os, sys, threading
from leadline.hosts import procedures
out, lock = os.fdopen(os.dup(1), "w"), threading.Lock()
def one(message):
    try:
        found = getattr(procedures, message["call"])(*message["with"], **message["also"])
    except Exception as error:
        found = {"raised": f"{type(error).__name__}: {error}"}
    if isinstance(found, bytes):
        found = {"bytes": base64.b64encode(found).decode()}
    with lock:
        print(json.dumps({"id": message["id"], "found": found}), file=out, flush=True)
for line in sys.stdin:
    threading.Thread(target=one, args=(json.loads(line),), daemon=True).start()
"""


class HostWorker:
    """One such process; `call` waits for the answer, `start` does not."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=module_environment(),
        )
        self._asking = threading.Lock()
        self._answers: dict[int, Future[Any]] = {}
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found = json.loads(line)
            self._answers[found["id"]].set_result(found["found"])

    def start(self, function: str, *values: Any, **named: Any) -> Future[Any]:
        assert self.process.stdin is not None
        with self._asking:
            number = len(self._answers)
            self._answers[number] = Future()
            message = {"id": number, "call": function, "with": values, "also": named}
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        return self._answers[number]

    def call(self, function: str, *values: Any, **named: Any) -> Any:
        return self.start(function, *values, **named).result(60)

    def fetch(self, attempt: str, path: str) -> bytes:
        whole = b""
        while piece := base64.b64decode(self.call("fetch", attempt, path, len(whole))["bytes"]):
            whole += piece
        return whole


@contextmanager
def host_worker() -> Iterator[HostWorker]:
    """A worker; its session has ended too when the block is left."""
    worker = HostWorker()
    try:
        yield worker
    finally:
        sessions = children(worker.process.pid)
        worker.process.kill()
        worker.process.wait()
        for stream in (worker.process.stdin, worker.process.stdout):
            assert stream is not None
            stream.close()
        wait_gone(*sessions)


def children(pid: int) -> list[int]:
    """The processes that a process has begun."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # a thread of it ended meanwhile
            found += [int(word) for word in task.read_text().split()]
    return found


def wait_gone(*pids: int, seconds: float = 30.0) -> None:
    """Until processes have ended, which this one may not reap."""
    until = time.monotonic() + seconds
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < until, pids
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def study_manifest(study: Path, targets: Mapping[str, Path], *sets: str, **options: Any) -> dict[str, Any]:
    """What a parent hands its hosts: a plan of this study on these directories."""
    named = {name: Target(name, str(path)) for name, path in targets.items()}
    facts = {name: inspect(target.url) for name, target in named.items()}
    plan = make_plan(load_study(str(study), {}, sets), named, facts, Host(1 << 30), 1)
    return {
        "kind": "study",
        "id": STUDY_ID,
        "plan": plan.as_json(),
        "targets": {name: found.as_json() for name, found in facts.items()},
        "options": {**vars(RunOptions(ceph=False, interval_s=0.2)), **options},
    }


def slots(manifest: Mapping[str, Any]) -> list[list[str]]:
    """The trials of each slot of its plan."""
    return [[trial.id for trial in slot] for slot in Plan.from_json(manifest["plan"]).slots()]
