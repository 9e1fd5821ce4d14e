"""What a trace says of each stage: which processes were its own, and what they did to files on the target.

The stages of a client follow each other, so a process belongs to the stage in whose time it began.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.tracing.tables import TraceTables

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
