"""From one trial's end to the next one's start inside a study, and what of it each step takes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from cost import Places
from ratios import spread
from sides import LIMIT_S
from tables import judge

STUDY = """format: leadline.study/1
limits: {reserve: 1M}
defaults: {size: 4M, runtime: 200ms, time_based: true, rw: randread}
works:
  psync: {engine: psync, direct: false}
  ring: {engine: io_uring, direct: true, iodepth: 32}
blocks: BLOCKS
"""
LIMIT_MS = 80.0
Steps = list[tuple[float, float, float, float]]


def turnover(places: Places) -> list[str]:
    """The time between two trials' measured intervals; their files are laid out before the first."""
    steps = _steps(places)
    whole, *parts = (spread(list(column)) for column in zip(*steps, strict=True))
    names = (
        "to `trial_finished`: the mark after it, the worker's end, three tables, synced",
        "from there to `trial_started`: the next worker, the mark before it",
        "from there to the start: the job is opened, the clock calibrated",
    )
    return [
        "## From one trial's end to the next one's start",
        "",
        "psync and io_uring in turns, 200 ms each, files laid out before the first; from the end of one",
        f"measured interval to the start of the next, {len(steps)} times.",
        "",
        "| | ms | at most | goal |",
        "|---|---|---|---|",
        f"| end to start | {whole.words(1)} | {LIMIT_MS:g} | {judge(whole, LIMIT_MS)} |",
        *(f"| {name} | {part.words(1)} | | |" for name, part in zip(names, parts, strict=True)),
        "",
        "Command:",
        "",
        "    leadline run study.yaml --target disk=DIRECTORY",
        "",
    ]


def _steps(places: Places) -> Steps:
    from leadline.store.reader import open_result

    with tempfile.TemporaryDirectory() as scratch:
        study, out = Path(scratch) / "study.yaml", Path(scratch) / "result"
        study.write_text(STUDY.replace("BLOCKS", "5" if places.quick else "20"))
        words = ("run", str(study), "--target", f"disk={places.disk}", "--out", str(out), "--quiet")
        subprocess.run(
            [sys.executable, "-m", "leadline", *words],
            timeout=LIMIT_S,
            check=False,  # 3 says that a cell is doubtful, which is no matter here
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # As installed programs have it: modules are compiled once, not at each start.
            env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        )
        result = open_result(out)
        trials = result.trials()
        at = {
            (event.event, event.details["trial"]): event.t_ns
            for event in result.events
            if event.event in ("trial_started", "trial_finished")
        }
        shutil.rmtree(out)
    steps = []
    for before, after in pairwise(trials):
        end_ns = before.started_unix_ns + before.ramp_ns + before.measured_ns
        finished, asked = at["trial_finished", before.trial], at["trial_started", after.trial]
        moments = (end_ns, finished, asked, after.started_unix_ns)
        parts = [(late - early) / 1e6 for early, late in pairwise(moments)]
        steps.append((sum(parts), parts[0], parts[1], parts[2]))
    return steps
