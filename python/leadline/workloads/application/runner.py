"""The runner of an application: its input is staged, and its copies run in a worker, which a tracer follows.

What runs in a worker process may hang with the file system under it. A trace that fails costs its figures and
says why; the run times of the trial stand without it.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline import units
from leadline.errors import LeadlineError, TargetError
from leadline.interpreter import user_environment
from leadline.removal import remove_tree
from leadline.run.interface import Assignment, Conducted, Say
from leadline.run.storage import make_in_own
from leadline.store import files
from leadline.store.files import make_directory
from leadline.tracing.sources.launch import known_here
from leadline.tracing.sources.sources import Bounds, BpfSource, PreloadSource, Source
from leadline.tracing.store import write_tables
from leadline.tracing.tables import TraceTables
from leadline.workloads.application.copies import Start, run_copies
from leadline.workloads.application.job import COPY, INPUT, OUTPUT

if TYPE_CHECKING:
    from leadline import _core
    from leadline.workloads.application.job import ApplicationJob


_BLOCK_BYTES = 1 << 20
_SAY_EVERY_NS = 250_000_000
STAGED = ".staged"  # how the name of a staged input ends; its prefix comes before it

Progress = Callable[[int, int], None]  # bytes copied, ns since the start


def staged_path(directory: Path, prefix: str) -> Path:
    """Where the input of a prefix lies below a study's directory."""
    return directory / f"{prefix}{STAGED}"


def staged_of(job: Mapping[str, Any]) -> Path:
    """The same for the job that a worker was handed."""
    return staged_path(Path(job["directory"]), job["prefix"])


def stage_input_of(job: Mapping[str, Any], say: Callable[..., None]) -> dict[str, Any]:
    """Copy a job's input to the target and check it; `say` hears now and then how much of it is done."""
    whole, said = max(int(job["input_bytes"]), 1), 0

    def now_and_then(size: int, elapsed_ns: int) -> None:
        nonlocal said
        if elapsed_ns - said > _SAY_EVERY_NS:
            said = elapsed_ns
            share = min(size / whole, 1.0)
            done = {"bytes": size, "operations": 0, "elapsed_ns": elapsed_ns, "share": share}
            say(event="progress", phase="staging", **done)

    return stage_input(Path(job["input"]), staged_of(job), now_and_then)


def forget_input(job: Mapping[str, Any]) -> None:
    """Drop what this host's page cache holds of a job's input, where the trial is to begin cold."""
    if job["input"] is not None and job["cache"] == "cold":
        forget(staged_of(job))


def stage_input(source: Path, staged: Path, say: Progress = lambda *_: None) -> dict[str, Any]:
    """Copy a file, or a directory with all below it, and compare checksums from a second reading.

    Returns bytes, files, a checksum over names and contents, and the time of copying and of checking apart.
    Links to files are followed. A directory that is there already is of a run that died: it is made anew.
    """
    if staged.exists():
        remove_tree(staged)
    make_in_own(staged)
    begun = time.monotonic_ns()
    digests: dict[str, str] = {}
    size = 0
    for name, path in _files(source):
        place = staged / name
        place.parent.mkdir(parents=True, exist_ok=True)
        digests[name], count = _copy(path, place)
        size += count
        say(size, time.monotonic_ns() - begun)
    copied = time.monotonic_ns()
    forget(staged)
    for name, digest in digests.items():
        if _digest(staged / name) != digest:
            raise TargetError(
                f"{staged / name} is not what was copied there: its checksum differs",
                "do not trust this storage before the cause is known; keep its logs",
            )
    whole = hashlib.sha256("".join(f"{n}\0{d}\n" for n, d in sorted(digests.items())).encode()).hexdigest()
    return {
        "bytes": size,
        "files": len(digests),
        "sha256": whole,
        "copied_ns": copied - begun,
        "checked_ns": time.monotonic_ns() - copied,
    }


def offer(staged: Path, directory: Path) -> None:
    """Link each entry of the staged input into a copy's directory, so that relative names find it."""
    for entry in sorted(os.listdir(staged)):  # noqa: PTH208 - names are all that is needed
        (directory / entry).symlink_to(staged / entry)


def input_place(staged: Path, source: Path) -> Path:
    """What stands for the input in a command: the directory, or the file itself."""
    return staged if not _was_file(staged, source) else staged / source.name


def forget(staged: Path) -> None:
    """Ask the kernel to drop the clean pages of a staged input: ours alone, not the host's."""
    for _, path in _files(staged):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _was_file(staged: Path, source: Path) -> bool:
    """True where a single file was staged; told from the copy, as the source may be gone by now."""
    entries = os.listdir(staged)  # noqa: PTH208
    return entries == [source.name] and (staged / source.name).is_file()


def _files(source: Path) -> Iterator[tuple[str, Path]]:
    """Every file with its name below `source`, in a settled order."""
    if source.is_file():
        yield source.name, source
        return
    for top, directories, names in os.walk(source, onerror=_raise):
        directories.sort()
        for name in sorted(names):
            path = Path(top) / name
            yield str(path.relative_to(source)), path


def _raise(error: OSError) -> None:
    raise error


def _copy(source: Path, place: Path) -> tuple[str, int]:
    """Copy one file; its checksum as it was read, and its bytes. Only the right to write is taken away."""
    digest, size = hashlib.sha256(), 0
    with source.open("rb", buffering=0) as reading, place.open("xb", buffering=0) as writing:
        while block := reading.read(_BLOCK_BYTES):
            digest.update(block)
            left = memoryview(block)
            while left:
                left = left[writing.write(left) :]
            size += len(block)
        os.fsync(writing.fileno())
        found = os.fstat(reading.fileno())
        os.utime(writing.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
        os.fchmod(writing.fileno(), found.st_mode & 0o555)
    return digest.hexdigest(), size


def _digest(path: Path) -> str:
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Counters of about a million files in each process; calls are counted, not recorded one by one.
_BOUNDS = Bounds(segments_bytes=None, memory_bytes=256 * units.MIB)


class Follower:
    """One tracer for one trial, or none."""

    def __init__(self, source: Source | None) -> None:
        self._source = source

    def environment(self, copy: int) -> dict[str, str]:
        """What a copy starts with: the user's own environment, and what the tracer needs."""
        inherited = user_environment()
        return self._source.environment(copy, inherited) if self._source else inherited

    def follow(self, pid: int, copy: int) -> None:
        """A process waits to become a copy's command."""
        if self._source:
            self._source.follow(pid, copy)

    def store(
        self,
        result: Path,
        trial: str,
        summary: Mapping[str, Any],
        hear: Callable[[TraceTables], None] = lambda _: None,
    ) -> dict[str, Any]:
        """Store the tables of a complete trial, which `hear` is given; what is to be said in its summary."""
        if self._source is None or summary["state"] != "complete":
            return {}
        try:
            tables = known_here(self._source.finish(summary["started_unix_ns"]))
            write_tables(result, trial, replace(tables, extra={**tables.extra, **_known(summary)}))
            hear(tables)
        except (LeadlineError, OSError) as error:
            return {"trace_error": str(error).splitlines()[0]}
        return {"trace_lost": _lost(tables), "trace_warnings": list(tables.warnings)}


@contextmanager
def follower(mode: str, directory: Path) -> Iterator[Follower]:
    """The tracer of that mode; `directory` takes its logs while the trial runs."""
    if mode == "preload":
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with PreloadSource(directory, _BOUNDS) as source:
            yield Follower(source)
    elif mode == "bpf":
        with BpfSource(_BOUNDS) as kernel_source:
            yield Follower(kernel_source)
    else:
        yield Follower(None)


def _known(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What the tables say of a trial beyond rows, as `tracing.tables` has them."""
    return {
        "wall_s": summary["measured_ns"] / 1e9,
        "copies": [
            {
                "copy": copy["copy"],
                "wall_s": copy["wall_ns"] / 1e9,
                "end": "exit",
                "status": copy["exit"],
                "cpu_user_ns": copy["cpu_user_ns"],
                "cpu_system_ns": copy["cpu_system_ns"],
                "memory_bytes_max": copy["memory_max_bytes"],
            }
            for copy in summary["copies"]
        ],
    }


def _lost(tables: TraceTables) -> int:
    """Records that the tracer had no room for, of all processes."""
    lost = [json.loads(row.lost or "{}") for row in tables.processes]
    return sum(int(count) for kinds in lost for count in kinds.values())


_WARM = 0  # the number of the copy that warms caches: it is not measured


def run_trial(job: Mapping[str, Any]) -> dict[str, Any]:
    """All copies at once, to their end; before them one that is not measured, where caches are to be warm."""
    limit_s = job["runtime_ns"] / 1e9
    output = Path(job["output"])
    make_directory(output.parent)
    make_directory(output)
    if job["cache"] == "warm":
        first = _start(job, _WARM, user_environment())
        summary = run_copies([first], limit_s)
        remove_tree(first.directory)
        if summary["state"] != "complete":
            error = summary["error"] or {}
            return summary | {"error": {**error, "operation": "the run that warms caches"}}
    with follower(job["trace"], Path(job["logs"])) as tracer:
        starts = [_start(job, copy, tracer.environment(copy)) for copy in range(1, job["copies"] + 1)]
        summary = run_copies(starts, limit_s, tracer.follow)
        return summary | tracer.store(Path(job["result"]), job["trial"], summary)


def _start(job: Mapping[str, Any], copy: int, environment: Mapping[str, str]) -> Start:
    """A copy's directory, with the input offered in it, and its command with the places filled in."""
    directory = Path(job["directory"]) / f"{job['own_prefix']}.{copy}"
    make_in_own(directory)
    places = {COPY: str(copy), OUTPUT: str(directory)}
    told = {"LEADLINE_COPY": str(copy), "LEADLINE_OUTPUT": str(directory)}
    if job["input"] is not None:
        staged = staged_of(job)
        offer(staged, directory)
        places[INPUT] = told["LEADLINE_INPUT"] = str(input_place(staged, Path(job["input"])))
    command = tuple(_filled(word, places) for word in job["command"])
    told["PWD"] = os.fspath(directory)
    return Start(copy, command, directory, {**environment, **told}, Path(job["output"]) / f"copy-{copy}")


def _filled(word: str, places: Mapping[str, str]) -> str:
    for place, text in places.items():
        word = word.replace(place, text)
    return word


class ApplicationConducted(Conducted["ApplicationJob"]):
    """Copies of a command at once."""

    kind = "application"
    own_beside_layout = True

    def deadline_s(self, job: ApplicationJob) -> float:
        """The worker ends it at its limit, the parent somewhat later."""
        return job.runtime_ns / 1e9 * job.runs

    def cause(self, job: ApplicationJob) -> str:
        """The same program, in whatever number of copies."""
        return job.model_dump_json(exclude={"copies"})

    def as_worker_job(self, job: ApplicationJob, given: Assignment) -> dict[str, Any]:
        """The JSON of a trial of programs, or of staging their input."""
        result = given.result.resolve()
        return {
            "format": job.engine_format,
            "trial": given.name,
            "cell": given.cell.id,
            "directory": given.place.directory,
            "prefix": given.prefix,
            "own_prefix": given.own_prefix,
            "result": str(result),
            "output": str(result / files.OUTPUT / given.name),
            "logs": str(given.logs.resolve()),
            **job.as_json(),
        }

    def lay_out(self, job: dict[str, Any], say: Say) -> dict[str, Any]:
        """Stage the input."""
        return stage_input_of(job, say)

    def forget(self, job: dict[str, Any]) -> None:
        """See the base."""
        forget_input(job)

    def run(self, job: dict[str, Any], record: str, meeting: _core.Meeting | None) -> dict[str, Any]:
        """Programs write no record of the engine's."""
        del record
        if meeting is not None:
            meeting.come()
        return self.run_programs(job)

    def run_programs(self, job: dict[str, Any]) -> dict[str, Any]:
        """All copies, to their end; the trial's summary."""
        return run_trial(job)
