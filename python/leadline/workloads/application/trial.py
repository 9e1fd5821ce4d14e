"""A worker's part of an application's trial: its copies' directories are made, and they run.

What the copies need to know they find in their environment, and in the places of the command.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leadline.interpreter import user_environment
from leadline.removal import remove_tree
from leadline.run.storage import make_in_own
from leadline.store.files import make_directory
from leadline.workloads.application.barrier import Start
from leadline.workloads.application.copies import run_copies
from leadline.workloads.application.job import COPY, INPUT, OUTPUT
from leadline.workloads.application.staging import input_place, offer, staged_of
from leadline.workloads.application.traced import follower

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
