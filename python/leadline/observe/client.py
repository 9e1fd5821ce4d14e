"""The run's side of the observers: starts the agent, asks for marks, collects samples.

Nothing here blocks past its deadline.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import IO, Any

from leadline.errors import ObserverError
from leadline.interpreter import module_command, module_environment
from leadline.observe import machine
from leadline.observe.host.host import patient_s
from leadline.observe.reading import ClusterState, Delta, Mark, Sample, delta, steady_unix_ns
from leadline.study.target import TargetFacts

__all__ = ["ClusterState", "Delta", "Mark", "Observer", "Sample", "delta"]

_SAMPLES_MAX = 500_000  # about a minute of a very large host: the run drains far more often
_STDERR_BYTES_MAX = 16_384


class Observer:
    """One agent process for a whole study.

        observer = Observer(facts_by_target)
        observer.start(deadline_s=10)
        before = observer.mark("t0001:start", "a", pid=None, deadline_s=3)
        ...
        change = delta(before, observer.mark("t0001:end", "a", pid=4711, deadline_s=3))
        rows = observer.drain()
        observer.stop()

    A dead agent never raises after `start`: its marks have no counters and say why.
    """

    def __init__(
        self,
        targets: Mapping[str, TargetFacts],
        *,
        interval_s: float = 1.0,
        ceph: bool = True,
        labs: Sequence[str] = (),
        clusters: bool = True,
    ) -> None:
        """Without `ceph` nothing of Ceph is asked, without `clusters` this host's own clients alone."""
        self._config = {
            "interval_s": interval_s,
            "targets": {name: facts.as_json() for name, facts in targets.items()},
            "ceph": ceph,
            "labs": list(labs),
            "clusters": clusters,
        }
        self._process: machine.ObserverProcess | None = None
        self._marks: queue.Queue[dict[str, Any]] = queue.Queue()
        self._samples: deque[Sample] = deque(maxlen=_SAMPLES_MAX)
        self._ready = threading.Event()  # it samples, or has closed its output
        self._sampling = False
        self._errors = bytearray()
        self._cpu_ns: int | None = None
        self._dropped = 0

    @property
    def pid(self) -> int | None:
        """The agent's process, None before `start`."""
        return None if self._process is None else self._process.pid

    @property
    def cpu_ns(self) -> int | None:
        """The agent's CPU time when it last spoke."""
        return self._cpu_ns

    @property
    def dropped(self) -> int:
        """Samples lost because nobody drained them."""
        return self._dropped

    def start(self, deadline_s: float = 60.0) -> None:
        """Start the agent and wait until it samples. Raises ObserverError where it does not in time.

        One that ended is known at once; one that is slow shares its processors with many others that start.
        """
        there = machine.other()
        self._process = _started_here() if there is None else there.observer()
        assert self._process.stdout is not None  # noqa: S101 - for the type checker: PIPE was asked for
        assert self._process.stderr is not None  # noqa: S101
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()
        threading.Thread(target=self._read_errors, args=(self._process.stderr,), daemon=True).start()
        self._send(self._config)
        self._ready.wait(patient_s(deadline_s))
        if not self._sampling or self._process.poll() is not None:
            self.stop(deadline_s=0.5)
            last = self._last_error() or f"no sign of life within {deadline_s:g} s"
            raise ObserverError(f"the observers did not start: {last}", "Run `leadline doctor`.")

    def mark(self, id: str, target: str, pid: int | None, deadline_s: float = 3.0) -> Mark:
        """All counters now, for the trial that `id` names; without an answer in time none, and why."""
        now = time.monotonic()
        self._send({"mark": id, "target": target, "pid": pid, "deadline_s": deadline_s * 0.8})
        while (left := deadline_s - (time.monotonic() - now)) > 0 and self._alive():
            try:
                found = self._marks.get(timeout=min(left, 0.2))
            except queue.Empty:
                continue
            if found["id"] == id:  # an older mark that came too late has told its story already
                return _mark(found)
        why = f"the observers did not answer within {deadline_s:g} s" if self._alive() else self._death()
        return Mark(
            id=id, t_ns=steady_unix_ns(), counters={}, reasons={"*": why, "state": why}, cpu_ns=self._cpu_ns
        )

    def drain(self) -> list[Sample]:
        """The samples since the last call, in the order of their arrival."""
        found = []
        with contextlib.suppress(IndexError):
            while True:
                found.append(self._samples.popleft())
        return found

    def stop(self, deadline_s: float = 3.0) -> None:
        """End the agent; kill it where it does not end in time. May be called twice."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError, ValueError):
            assert process.stdin is not None  # noqa: S101
            process.stdin.write(b'{"stop":true}\n')
            process.stdin.close()
        try:
            process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.5)

    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _death(self) -> str:
        return f"the observers ended: {self._last_error() or 'no message'}"

    def _last_error(self) -> str:
        lines = bytes(self._errors).decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    def _send(self, command: Mapping[str, Any]) -> None:
        if self._process is None or self._process.stdin is None:
            return
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()

    def _read(self, stream: IO[bytes]) -> None:
        for line in stream:
            try:
                found = json.loads(line)
            except ValueError:
                continue
            self._cpu_ns = found.get("cpu_ns", self._cpu_ns)
            if found["kind"] == "ready":
                self._sampling = True
                self._ready.set()
            elif found["kind"] == "mark":
                lost = found["counters"].get("samples_missed")
                if lost is not None:
                    found["counters"]["samples_missed"] = lost + self._dropped
                self._marks.put(found)
            elif found["kind"] == "sample":
                self._keep(found)
        self._ready.set()

    def _keep(self, found: dict[str, Any]) -> None:
        self._dropped += max(0, len(self._samples) + len(found["rows"]) - _SAMPLES_MAX)
        self._samples.extend(Sample(found["t_ns"], *row) for row in found["rows"])

    def _read_errors(self, stream: IO[bytes]) -> None:
        for line in stream:
            self._errors.extend(line)
            del self._errors[:-_STDERR_BYTES_MAX]


def _started_here() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        module_command("leadline.observe.agent"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=module_environment(),
        start_new_session=True,
    )


def _mark(found: Mapping[str, Any]) -> Mark:
    state = found.get("state")
    return Mark(
        id=found["id"],
        t_ns=found["t_ns"],
        counters=found["counters"],
        reasons=found["reasons"],
        sources=found["sources"],
        state=None if state is None else ClusterState.from_json(state),
        cpu_ns=found["cpu_ns"],
    )
