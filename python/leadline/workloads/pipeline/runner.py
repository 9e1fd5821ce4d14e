"""The runner of a pipeline: its source is staged or served, its clients run in a worker, stages are stored.

Clients are processes of `client`; what they did is stored even where one of them failed. The stages of a
client follow each other, so a traced process belongs to the stage in whose time it began.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.durable import new_file
from leadline.foreign import parse_json
from leadline.interpreter import module_command, module_environment
from leadline.observe.reading import offset_ns
from leadline.run.storage import make_in_own
from leadline.store.files import make_directory
from leadline.store.own import StageRow, write_stages
from leadline.tracing.tables import TraceTables
from leadline.workloads.application.copies import Start, run_copies
from leadline.workloads.application.runner import (
    ApplicationConducted,
    follower,
    input_place,
    staged_path,
)
from leadline.workloads.pipeline.client import PRELOAD
from leadline.workloads.pipeline.job import enlarges
from leadline.workloads.pipeline.server import source_server
from leadline.workloads.pipeline.steps import URL

if TYPE_CHECKING:
    pass


_LAYERS = ("POSIX", "STDIO")
_COLUMNS = ("BYTES_READ", "BYTES_WRITTEN", "F_READ_TIME", "F_WRITE_TIME", "F_META_TIME")


@dataclass(frozen=True)
class StageTrace:
    """Bytes and seconds of files on the target; `inputs_read_bytes` of those that were the stage's inputs."""

    read_bytes: int
    written_bytes: int
    inputs_read_bytes: int
    read_s: float
    write_s: float
    meta_s: float


def stage_traces(
    tables: TraceTables, stages: Sequence[Mapping[str, Any]], started_unix_ns: int, directory: str
) -> dict[tuple[int, int], StageTrace]:
    """By client and place. `directory` is the study's on the target; one without a process is left out."""
    owner: dict[tuple[int, int], tuple[int, int]] = {}  # copy and process -> client and place
    for row in tables.processes:
        for one in stages:
            begins = one["from_unix_ns"] - started_unix_ns
            if (
                one["client"] == row.copy
                and begins <= row.started_ns <= one["ended_unix_ns"] - started_unix_ns
            ):
                owner[row.copy, row.process] = (one["client"], one["place"])
    inputs = {(one["client"], one["place"]): tuple(str(path) for path in one["inputs"]) for one in stages}
    sums = {key: [0.0] * (len(_COLUMNS) + 1) for key in owner.values()}
    for file in _files_below(tables, directory):
        key = owner.get((file["copy"], file["process"]))
        if key is None:
            continue
        for place, name in enumerate(_COLUMNS):
            sums[key][place] += file[name] or 0
        if any(file["path"] == path or file["path"].startswith(f"{path}/") for path in inputs[key]):
            sums[key][-1] += file["BYTES_READ"] or 0
    return {
        key: StageTrace(int(found[0]), int(found[1]), int(found[5]), found[2], found[3], found[4])
        for key, found in sums.items()
    }


def _files_below(tables: TraceTables, directory: str) -> list[dict[str, Any]]:
    """The rows of files below a directory; our tracers' two layers never describe the same call."""
    import pyarrow.compute as pc

    files = tables.files.select(["copy", "process", "module", "path", *_COLUMNS])
    below = pc.starts_with(files["path"], f"{directory}/")
    return [row for row in files.filter(below).to_pylist() if row["module"] in _LAYERS]


def run_trial(job: Mapping[str, Any]) -> dict[str, Any]:
    """All clients at once, to their end; their stages are stored even where one failed."""
    output = Path(job["output"])
    make_directory(output.parent)
    make_directory(output)
    logs = Path(job["logs"])
    logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    heard: list[TraceTables] = []
    with _server(job) as (url, spare), follower(job["trace"], logs / "trace") as tracer:
        starts = [
            _start(job, client, url, tracer.environment(client)) for client in range(1, job["copies"] + 1)
        ]
        summary = run_copies(starts, job["runtime_ns"] / 1e9, tracer.follow, spare)
        found = [row for start in starts for row in _progress(_progress_path(logs, start.copy))]
        summary = _without_starting(summary, found)
        summary |= tracer.store(Path(job["result"]), job["trial"], summary, heard.append)
    traces = stage_traces(heard[0], found, summary["started_unix_ns"], job["directory"]) if heard else {}
    rows = [_row(job, one, summary["started_unix_ns"], traces) for one in found]
    write_stages(Path(job["result"]), job["trial"], rows)
    stages = [
        {"client": row.client, "stage": row.stage, "seconds": row.seconds, "cold_bytes": row.cold_bytes}
        for row in rows
    ]
    return {**summary, "stages": stages}


@contextlib.contextmanager
def _server(job: Mapping[str, Any]) -> Iterator[tuple[str | None, frozenset[int]]]:
    if not job["served"]:
        yield None, frozenset()
        return
    with source_server(job["source"]) as (url, pid):
        yield url, frozenset([pid])


def _start(job: Mapping[str, Any], client: int, url: str | None, traced: Mapping[str, str]) -> Start:
    """A client's directory, and the process that goes through the pipeline in it."""
    workspace = Path(job["directory"]) / f"{job['own_prefix']}.{client}"
    make_in_own(workspace)
    logs = Path(job["logs"])
    source = job["source"]
    if job["input"] is not None:
        source = str(input_place(staged_path(Path(job["directory"]), job["prefix"]), Path(job["input"])))
    config = {
        **{name: job[name] for name in ("pipeline", "source_bytes", "cache", "output", "widest")},
        "client": client,
        "workspace": str(workspace),
        "target": str(Path(job["directory"]).parent),
        "source": source,
        "wall_ns": offset_ns(),
        "progress": str(_progress_path(logs, client)),
        "limit_s": job["runtime_ns"] / 1e9,
    }
    file = logs / f"client-{client}.json"
    with new_file(file) as stream:
        stream.write(json.dumps(config).encode())
    # A command line is for all to see, and the logs are kept: the address of the source is in neither.
    secret = {} if url is None else {URL: url}
    environment = {**traced, **secret, "PYTHONPATH": module_environment()["PYTHONPATH"]}
    preload = environment.pop("LD_PRELOAD", None)
    if preload:
        environment[PRELOAD] = preload
    command = tuple(module_command("leadline.workloads.pipeline.client", str(file)))
    return Start(client, command, logs, environment, Path(job["output"]) / f"client-{client}")


def _progress_path(logs: Path, client: int) -> Path:
    return logs / f"client-{client}.jsonl"


def _progress(path: Path) -> list[dict[str, Any]]:
    """The stages that a client has written down; a line that was cut short is none."""
    found: list[dict[str, Any]] = []
    with contextlib.suppress(FileNotFoundError):
        for line in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):
                found.append(parse_json(line))
    return found


def _without_starting(summary: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A trial lasts from its first stage to its last: starting our own processes is no part of it."""
    if not found:
        return dict(summary)
    started = min(one["started_unix_ns"] for one in found)
    ended = max(one["ended_unix_ns"] for one in found)
    copies = []
    for copy in summary["copies"]:
        own = [one for one in found if one["client"] == copy["copy"]]
        if own:
            first = min(one["started_unix_ns"] for one in own)
            last = max(one["ended_unix_ns"] for one in own)
            copy = {**copy, "wall_ns": last - first, "started_ns": first - started}  # noqa: PLW2901
        copies.append(copy)
    return {
        **summary,
        "copies": copies,
        "started_unix_ns": started,
        "measured_ns": ended - started,
        "last_done_ns": ended - started,
    }


def _row(
    job: Mapping[str, Any],
    one: Mapping[str, Any],
    started_unix_ns: int,
    traces: Mapping[tuple[int, int], StageTrace],
) -> StageRow:
    stage = job["pipeline"][one["place"] - 1]
    trace = traces.get((one["client"], one["place"]))
    received = any(action["step"] == "download" for action in stage["actions"])
    passes, passes_by = (None, None) if received else _passes(one, trace)
    return StageRow(
        trial=job["trial"],
        **{name: one[name] for name in ("client", "place", "stage", "state", "error", "started_unix_ns")},
        started_ns=one["started_unix_ns"] - started_unix_ns,
        ended_ns=one["ended_unix_ns"] - started_unix_ns,
        **{name: one[name] for name in ("settle_ns", "input_bytes", "output_bytes")},
        **{name: one[name] for name in ("read_bytes", "write_bytes", "cpu_user_ns", "cpu_system_ns")},
        memory_max_bytes=one["memory_max_bytes"],
        target_read_bytes=trace.read_bytes if trace else None,
        target_written_bytes=trace.written_bytes if trace else None,
        read_s=trace.read_s if trace else None,
        write_s=trace.write_s if trace else None,
        meta_s=trace.meta_s if trace else None,
        passes=passes,
        passes_by=passes_by,
        enlarges=enlarges(stage["widths"], job["source_width"], job["widest"]),
        interfaces=json.dumps(one["interfaces"]),
        details=json.dumps(one["details"]),
        **{name: one[name] for name in ("host_busy_share", "observed_ns")},
    )


def _passes(one: Mapping[str, Any], trace: StageTrace | None) -> tuple[float | None, str | None]:
    """How often a stage read its inputs."""
    size = one["input_bytes"]
    if not size or not one["inputs"]:
        return None, None
    if trace is not None:
        return trace.inputs_read_bytes / size, "trace"
    moved = one["read_bytes"]
    return (None, None) if moved is None else (moved / size, "calls")


class PipelineConducted(ApplicationConducted):
    """Clients that go through all stages at once."""

    kind = "pipeline"

    def run_programs(self, job: dict[str, Any]) -> dict[str, Any]:
        """All clients through all stages."""
        return run_trial(job)
