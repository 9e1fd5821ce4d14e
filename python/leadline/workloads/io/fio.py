"""One trial made by fio: its job file, its process, ended with the worker, and its output in our shape.

fio keeps nothing of what it moves in `ramp_time`, and bytes are held against those of host and cluster. So
the ramp is a job of its own before the measured one. A histogram travels as text with the worker's answer,
and is taken out of it where the rows are made.
"""

from __future__ import annotations

import base64
import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline import _core
from leadline.durable import new_file
from leadline.errors import EngineError
from leadline.foreign import read_plain, reading
from leadline.imported.fio import BYTES_MAX, FioLatency, FioReport, FioRow, read_fio
from leadline.run.interface import plain_summary
from leadline.workloads.io.job import FIO

if TYPE_CHECKING:
    from leadline import _core


HISTOGRAMS = "histograms"
_CLOCKS = ("submission", "completion", "total")


def summary_of(report: FioReport, started_unix_ns: int) -> dict[str, Any]:
    """The summary of a trial. The ramp is in `total` alone."""
    ramp = [row for row in report.rows if row.name == RAMP]
    rows = [row for row in report.rows if row.name == MEASURED]
    ramp_ns = max((row.runtime_ns for row in ramp), default=0)
    measured_ns = max((row.runtime_ns for row in rows), default=0)
    failed = next((row for row in (*ramp, *rows) if row.error), None)
    return plain_summary(
        started_unix_ns,
        measured_ns,
        state="error" if failed or not rows else "complete",
        error=None if failed is None else _error(failed),
        directions=_sums(rows),
        total=_sums([*ramp, *rows]),
        threads=[{"busy_share": row.user_share + row.system_share} for row in rows],
        ramp_ns=ramp_ns,
        first_done_ns=ramp_ns + min((row.runtime_ns for row in rows), default=0),
        last_done_ns=ramp_ns + measured_ns,
        cpu_user_ns=round(sum(row.user_share * row.threads_ns for row in (*ramp, *rows))),
        cpu_system_ns=round(sum(row.system_share * row.threads_ns for row in (*ramp, *rows))),
        generator={"program": "fio", "version": report.version, "notes": _notes(report, rows)},
        **{HISTOGRAMS: _histograms(rows)},
    )


def _error(row: FioRow) -> dict[str, str]:
    return {"operation": f"fio's job {row.name}", "message": f"it ended with error {row.error}", "kind": "io"}


def _sums(rows: Sequence[FioRow]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for one in (one for row in rows for one in row.directions):
        sums = found.setdefault(one.name, {"bytes": 0, "operations": 0, "short": 0})
        sums["bytes"] += one.bytes
        sums["operations"] += one.operations
    syncs = sum(row.syncs for row in rows)
    return found | ({"sync": {"bytes": 0, "operations": syncs, "short": 0}} if syncs else {})


def _notes(report: FioReport, rows: Sequence[FioRow]) -> list[str]:
    return list(dict.fromkeys([*report.notes, *(note for row in rows for note in row.notes)]))


def _histograms(rows: Sequence[FioRow]) -> dict[str, dict[str, str]]:
    """By direction and clock, where every job has bins of it."""
    found: dict[str, dict[str, str]] = {}
    for name in dict.fromkeys(one.name for row in rows for one in row.directions if one.operations):
        moved = [one for row in rows for one in row.directions if one.name == name and one.operations]
        for clock in _CLOCKS:
            kept = [one.latencies[clock] for one in moved if clock in one.latencies]
            if len(kept) == len(moved):
                found.setdefault(name, {}).update(_histogram(clock, kept))
    syncs = [row.sync_latency for row in rows if row.sync_latency is not None]
    if syncs and (own := _histogram("total", syncs)):
        found["sync"] = own
    return found


def _histogram(clock: str, kept: Sequence[FioLatency]) -> dict[str, str]:
    if not all(one.bins for one in kept):
        return {}
    blob = _core.histogram_of_counts([pair for one in kept for pair in one.bins])
    return {clock: base64.b64encode(blob).decode()}


def record_of(summary: dict[str, Any]) -> dict[str, Any]:
    """The record that our engine would have written: one interval for each direction, after the ramp.

    Takes the histograms out of `summary`.
    """
    start_ns = summary["ramp_ns"]
    end_ns = start_ns + summary["measured_ns"]
    intervals = [
        {
            "index": 0,
            "direction": name,
            "start_ns": start_ns,
            "end_ns": end_ns,
            "measured": True,
            "bytes": summary["directions"].get(name, {}).get("bytes", 0),
            "operations": summary["directions"].get(name, {}).get("operations", 0),
            "in_flight_mean": None,
            "late_ns_max": None,
            "histograms": {clock: base64.b64decode(blob) for clock, blob in clocks.items()},
        }
        for name, clocks in summary.pop(HISTOGRAMS, {}).items()
    ]
    return {"header": None, "intervals": intervals, "summary": None, "truncated": False}


RAMP, MEASURED = "ramp", "measured"
_NS_PER_MS = 1_000_000


def job_file(job: Mapping[str, Any]) -> str:
    """The text of it, of the JSON that a worker is handed; fio is started in the job's directory."""
    lines = ["[global]", *_common(job)]
    if job["ramp_time_ns"]:
        lines += [f"[{RAMP}]", "time_based=1", f"runtime={job['ramp_time_ns'] // _NS_PER_MS}ms"]
    lines += [f"[{MEASURED}]", *_measured(job)]
    return "\n".join(lines) + "\n"


def _measured(job: Mapping[str, Any]) -> Iterator[str]:
    if job["ramp_time_ns"]:
        yield "stonewall"
        if job["rw"].startswith("rand"):
            yield "invalidate=0"  # what the ramp warmed is warm
    if job["time_based"]:
        yield "time_based=1"
    if job["runtime_ns"]:
        yield f"runtime={job['runtime_ns'] // _NS_PER_MS}ms"
    if job["io_size"]:
        yield f"io_size={job['io_size']}"
    if job["end_fsync"]:
        yield "end_fsync=1"


def _common(job: Mapping[str, Any]) -> Iterator[str]:
    yield from ("thread=1", "fallocate=none", "lat_percentiles=1", "clat_percentiles=1", "slat_percentiles=1")
    yield f"ioengine={job['engine']}"
    yield from (f"{name}={job[name]}" for name in ("rw", "rwmixread", "numjobs", "iodepth", "nrfiles"))
    yield from (f"direct={int(job['direct'])}", f"overwrite={int(job['overwrite'])}")
    yield from ("randrepeat=1", f"randseed={job['seed']}")
    yield from _blocks(job)
    yield from _files(job)
    yield from (f"{name}={job[name]}" for name in ("fsync", "fdatasync") if job[name])
    if job["thinktime_ns"]:
        yield f"thinktime={job['thinktime_ns'] // 1000}us"
        yield f"thinktime_blocks={job['thinktime_blocks']}"
    batch = job["iodepth_batch"]
    if batch > 1:  # fio takes back one at a time unless told, and then waits until a batch is full again
        yield from (f"iodepth_batch={batch}", f"iodepth_batch_complete_max={job['iodepth']}")
    if job["sqthread_poll"]:
        yield "sqthread_poll=1"
    if job["rw"].startswith("rand"):
        yield from _random(job)
    yield from _content(job)


def _blocks(job: Mapping[str, Any]) -> Iterator[str]:
    split = job["bssplit"]
    if split is None:
        yield f"bs={job['bs']}"
    else:
        yield f"bssplit={_split(split['read'])},{_split(split['write'])}"
        yield "bs_unaligned=0"


def _split(sizes: Sequence[Sequence[Any]]) -> str:
    return ":".join(f"{size}/{percent:g}" for size, percent in sizes)


def _files(job: Mapping[str, Any]) -> Iterator[str]:
    """The names that the engine gives them, `PREFIX.NUMJOB.FILE`."""
    if job["shared"] == "none":
        yield f"filename_format={job['prefix']}.$jobnum.$filenum"
    else:  # of one that a format names for several jobs fio 3.33 gives all but the first nothing to do
        yield f"filename={job['prefix']}.0.0"
    if job["shared"] == "segmented":
        yield from (f"filesize={job['size'] * job['numjobs']}", f"size={job['size']}")
        yield f"offset_increment={job['size']}"
        return
    yield f"size={job['size']}"
    if job["offset"] or job["offset_increment"]:
        yield f"filesize={job['size']}"  # without it fio makes files longer by their offset
    yield from (f"{name}={job[name]}" for name in ("offset", "offset_increment") if job[name])


def _random(job: Mapping[str, Any]) -> Iterator[str]:
    kind = job["random_distribution"]
    if kind == "random":
        yield "norandommap=1"
    elif kind != "map":
        yield f"random_distribution={kind}"
    if job["percentage_random"] != 100:
        yield f"percentage_random={job['percentage_random']}"


def _content(job: Mapping[str, Any]) -> Iterator[str]:
    shares = ("buffer_compress_percentage", "dedupe_percentage")
    asked = [f"{name}={job[name]}" for name in shares if job[name]]
    yield from asked or (["refill_buffers=1"] if job["incompressible"] else ["zero_buffers=1"])


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
