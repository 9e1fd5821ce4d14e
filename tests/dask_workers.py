"""Real Dask schedulers and workers for tests: processes of their own on loopback, without dashboards.

Each worker has a state directory of its own, as hosts have, below the directory that a test gives.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
_START_S = 60.0
# What an idle worker does with Dask's defaults takes 4 % of a core, with these 0.3 % (docs/many-hosts.md).
QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
}


class DaskWorkers:
    """One scheduler and some workers. Use as a context manager: whatever still runs is ended."""

    def __init__(self, directory: Path, names: Sequence[str] = (), *, nanny: bool = False) -> None:
        self._directory, self._nanny = directory, nanny
        self._processes: list[subprocess.Popen[bytes]] = []
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.address = ""
        self._names = names

    def __enter__(self) -> DaskWorkers:
        self.start_scheduler()
        self.start(*self._names)
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in reversed(self._processes):
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            # What stands before a worker, as faketime, may be gone while the worker itself is not.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
            for name in (f"faketime_shm_{process.pid}", f"sem.faketime_sem_{process.pid}"):
                (SHARED_MEMORY / name).unlink(missing_ok=True)  # faketime leaves them where a signal ends it

    def start_scheduler(self) -> None:
        """A scheduler on a port of its own; workers that are there already do not know it."""
        file = self._directory / f"scheduler-{len(self._processes)}.json"
        words = ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.scheduler = self._popen([*words, "--no-show", "--scheduler-file", str(file)], "scheduler", {})
        _wait_for(file, self.scheduler)
        self.address = json.loads(file.read_text())["address"]

    def start(
        self,
        *names: str,
        environment: dict[str, str] | None = None,
        before: Sequence[str] = (),
        extra: Sequence[str] = (),
    ) -> None:
        """Workers of these names; `before` stands before the command, as `faketime` does."""
        for name in names:
            words = ["distributed.cli.dask_worker", self.address, "--host", "127.0.0.1", "--no-dashboard"]
            words += ["--name", name] if not name.startswith("?") else []
            words += ["--nthreads", "2", "--memory-limit", "0", "--death-timeout", "20"]
            words += ["--nanny" if self._nanny else "--no-nanny", *extra]
            words += ["--local-directory", str(self._directory / f"dask-{name}")]
            state = {"XDG_STATE_HOME": str(self.state(name)), **QUIET, **(environment or {})}
            self.workers[name] = self._popen(words, name, state, before)
        for name in names:
            self._wait_until_it_is_known(name)

    def _wait_until_it_is_known(self, name: str) -> None:
        """Whoever asks the scheduler a moment too early would find no such host."""
        end = time.monotonic() + _START_S
        while "Registered to:" not in self.log(name):
            assert self.workers[name].poll() is None, f"worker {name} ended: {self.log(name)}"
            assert time.monotonic() < end, f"worker {name} is not known within {_START_S} s: {self.log(name)}"
            time.sleep(0.02)

    def state(self, name: str) -> Path:
        """Where a worker keeps its state."""
        return self._directory / f"state-{name}"

    def log(self, name: str) -> str:
        """What it printed."""
        return (self._directory / f"{name}.log").read_text()

    def kill(self, name: str) -> None:
        """End a worker's process at once, and nothing but it."""
        self.workers[name].kill()
        self.workers[name].wait(10)

    def kill_under_nanny(self, name: str) -> None:
        """End the worker's process that its nanny watches, which starts another."""
        import psutil

        for child in psutil.Process(self.workers[name].pid).children(recursive=True):
            with suppress(psutil.Error):  # it ended meanwhile
                if "spawn_main" in " ".join(child.cmdline()):
                    child.kill()

    def _popen(
        self, words: Sequence[str], name: str, environment: dict[str, str], before: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        with (self._directory / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*before, sys.executable, "-m", *words],
                stdout=log,
                stderr=log,
                env={**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s", **environment},
                start_new_session=True,
                cwd=self._directory,
            )
        self._processes.append(process)
        return process


def _wait_for(file: Path, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_S
    while not file.exists() or not file.read_text().strip().endswith("}"):
        assert process.poll() is None, "the scheduler ended"
        assert time.monotonic() < end, f"no scheduler within {_START_S} s"
        time.sleep(0.02)
