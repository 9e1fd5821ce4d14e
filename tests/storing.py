"""A small run of the store by itself, in an interpreter that `programs/damage.c` is loaded into.

`storing.py fail DIRECTORY ERRNO FOREVER STRIDE` makes its calls fail one after the other (each of them where
STRIDE is 1), each in a fork, and prints what came of it, a line of JSON each. `storing.py run DIRECTORY` runs
it once, for its log.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
import struct
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).with_name("unit")))
from builders import trial_row
from trace_tables import file_row, files_table, process, tables

from leadline.errors import LeadlineError
from leadline.store.reader import Result, open_result
from leadline.store.tables import LatencyRow, SeriesRow
from leadline.store.writer import ResultWriter, create_result, reopen_result
from leadline.tracing.store import read_trace, traced_trials, write_tables

TRIALS = ("t0001", "t0002")
TRACED = "t0001"
_STATE = struct.Struct("=5q")


class Damage:
    """What the preloaded library is told."""

    def __init__(self, path: str) -> None:
        with Path(path).open("r+b") as file:
            self._state = mmap.mmap(file.fileno(), _STATE.size)

    def tell(self, fail_at: int = 0, error: int = 0, forever: int = 0) -> None:
        """Fail the call of that number from now on; 0: none."""
        self._state[:] = _STATE.pack(0, fail_at, error, forever, 0)

    @property
    def calls(self) -> int:
        """So many have been made since."""
        return int(_STATE.unpack(self._state[:])[0])


def store_all(place: Path, said: Callable[[str], Any]) -> None:
    """Begin a result or go on with it, to its end. `said` hears of what was said to be stored."""
    clock = iter(range(1, 10**6)).__next__
    if place.exists():
        writer = reopen_result(place, clock)
    else:
        plan = {"cells": [{"job": {"command": ["prog", "--password=hush"]}}]}
        writer = create_result(place, {"kind": "study", "id": "0badcafe", "plan": plan}, clock)
        said("begun")
    try:
        _store(writer, said)
    finally:
        writer.close()


def _store(writer: ResultWriter, said: Callable[[str], Any]) -> None:
    done = writer.finished()
    for order, trial in enumerate(TRIALS, start=1):
        if trial in done:
            continue
        writer.journal("trial_started", trial=trial)
        row = trial_row(trial=trial, order=order)
        latency = LatencyRow(trial, "read", "total", -1, 0, 9, True, 1, 1, 1.0, 1, 1, 1, b"h")
        sample = SeriesRow(trial, 1, "engine", "read", "bandwidth", 1.0, "B/s")
        if trial == TRACED:
            write_tables(writer.path, trial, tables(processes=(process(),), files=files_table([file_row()])))
        writer.write_trial(row, [latency], [sample])
        said(trial)
    writer.journal("study_finished", failed=[], not_run={})
    said("complete")
    writer.bundle(1)  # which may fail in any way without anybody's notice


def check(place: Path, said: list[str]) -> str:
    """What is wrong with what is there, after that was said to be stored; nothing where all is well."""
    if not place.exists():
        return "it is gone" if said else ""
    try:
        result = open_result(place)
        rows = [row.trial for row in result.trials()]
        lost = set(said) - {*rows, "begun", "complete"}
        if lost:
            return f"lost {sorted(lost)}"
        if _all_of(result) != _all_of(replace(result, bundled=False)):
            return "a bundle says something else than the trials' own files"
        if "complete" in said and not result.complete:
            return "it is not complete"
        for trial in set(traced_trials(result)) & set(rows):
            read_trace(result, trial)
        if TRACED in rows and TRACED not in traced_trials(result):
            return "its trace is lost"
    except Exception as error:  # of whatever kind: it is what the test is about
        return f"{type(error).__name__}: {error}"
    return ""


def _all_of(result: Result) -> tuple[Any, ...]:
    samples = [
        [(*key, *map(tuple, line)) for key, line in result.sample_lines(trial).items()]
        for trial in sorted(result.finished)
    ]
    return result.trials(), result.latency(), result.series(), samples


def resume(place: Path) -> str:
    """Go on with it to its end; what is wrong then."""
    said: list[str] = []
    try:
        store_all(place, said.append)
        rows = [row.trial for row in open_result(place).trials()]
    except Exception:  # of whatever kind
        return traceback.format_exc()
    return "" if rows == [*TRIALS] and "complete" in said else f"it has {rows}"


def _attempt(place: Path, damage: Damage, number: int, error: int, forever: int) -> dict[str, Any]:
    """One run in which one call fails, and what is left of it."""
    said: list[str] = []
    found: dict[str, Any] = {"number": number, "said": said, "error": "", "typed": True}
    damage.tell(number, error, forever)
    try:
        store_all(place, said.append)
    except LeadlineError as problem:
        found["error"] = str(problem)
    except BaseException:  # of whatever kind
        found |= {"error": traceback.format_exc(), "typed": False}
    found["reached"] = damage.calls >= number
    damage.tell()
    found["wrong"] = check(place, said)
    found["left"] = sorted(str(one.relative_to(place.parent)) for one in place.parent.rglob(".leadline-*"))
    found["resumed"] = resume(place)
    return found


def fail_each(directory: Path, error: int, forever: int, stride: int) -> None:
    """Every call in turn, until none is left."""
    damage = Damage(os.environ["DAMAGE_STATE"])
    _attempt(directory / "warm" / "r", damage, 0, 0, 0)  # what is imported late is imported
    for number in range(1, 1000, stride):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            found = _attempt(directory / str(number) / "r", damage, number, error, forever)
            os.write(writing, json.dumps(found).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answer:
            found = json.load(answer)
        os.waitpid(pid, 0)
        shutil.rmtree(directory / str(number), ignore_errors=True)
        if not found["reached"]:
            return
        print(json.dumps(found), flush=True)


def run_once(directory: Path) -> None:
    """For the log of its calls, in which what was said to be stored has a line each."""
    log = os.open(os.environ["DAMAGE_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    store_all(directory / "new" / "r", lambda what: os.write(log, f"said\t{what}\t0\t\n".encode()))


if __name__ == "__main__":
    if sys.argv[1] == "fail":
        fail_each(Path(sys.argv[2]), *map(int, sys.argv[3:]))
    else:
        run_once(Path(sys.argv[2]))
