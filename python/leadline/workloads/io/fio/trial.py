"""One trial made by fio: started in the worker, ended with it, whatever ends it."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.durable import new_file
from leadline.errors import EngineError
from leadline.foreign import read_plain, reading
from leadline.imported.fio import BYTES_MAX, FioReport, read_fio
from leadline.workloads.io.fio.jobfile import job_file
from leadline.workloads.io.fio.output import summary_of
from leadline.workloads.io.job import FIO

if TYPE_CHECKING:
    from leadline import _core

_PR_SET_PDEATHSIG = 1
_END_S = 3.0  # to finish what is in flight, asked to end
_SAID_MAX = 1 << 16
_libc = ctypes.CDLL(None)


def run_fio(job: dict[str, Any], record: str, meeting: _core.Meeting | None) -> dict[str, Any]:
    """Do the job to its end; its summary in the engine's shape. Raises EngineError where fio cannot do it."""
    executable = shutil.which(FIO)
    if executable is None:
        raise EngineError("fio is not installed on this host", "install fio, or write generator: leadline")
    place = Path(record).with_name(f"{job['trial']}-logs")  # removed with the record
    place.mkdir(parents=True, exist_ok=True)
    with new_file(place / "job.fio") as file:
        file.write(job_file(job).encode())
    output, said = place / "output.json", place / "said.txt"
    words = ["--output-format=json+", f"--output={output.resolve()}", "--eta=never"]
    command = [executable, *words, str((place / "job.fio").resolve())]
    if meeting is not None:
        meeting.come()
    started_unix_ns = time.time_ns()
    moved, code = _done(command, job["directory"], said)
    report = _report(output, said, code)
    return {**summary_of(report, started_unix_ns), **moved}


def _done(command: list[str], directory: str, said: Path) -> tuple[dict[str, int], int]:
    """Start it and wait for its end; what its process moved to and from storage, and its exit code."""
    with new_file(said) as errors:
        process = subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - one call of the system
        )
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return _storage_bytes(process.pid), process.wait()
    except BaseException:
        _end(process)
        raise


def _die_with_parent() -> None:
    """With threads for jobs it is one process: nothing of it is left when the worker is killed."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask, then tell; one that the kernel holds is left, and ends when its I/O does."""
    for number in (signal.SIGINT, signal.SIGKILL):
        process.send_signal(number)
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            continue
        return


def _storage_bytes(pid: int) -> dict[str, int]:
    """Of a process that has ended and was not waited for; nothing where that may not be read (proc(5))."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return {}
    found = {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}
    return {"process_read_bytes": found["read_bytes"], "process_written_bytes": found["write_bytes"]}


def _report(output: Path, said: Path, code: int) -> FioReport:
    """Its output, or an error with what it printed instead."""
    try:
        with reading("fio's output", "see what fio printed", EngineError):
            return read_fio(read_plain(output, BYTES_MAX).decode("utf-8", "replace"))
    except EngineError as error:
        with said.open("rb") as file:
            printed = file.read(_SAID_MAX).decode("utf-8", "replace").split("\n")
        lines = [line.strip() for line in printed if line.strip()]
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        words = "; ".join(lines[-3:]) or error.message
        raise EngineError(f"fio ended by {how}: {words}", "mend that, or write generator: leadline") from None
