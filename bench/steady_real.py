"""Real cells of a fixed length beside cells that end by themselves, in turn, on one directory: recordings.

A fixed cell is one trial, of which the first quarter is left out, as 600 of 2400 s are. The other is a study
of short trials, each ended by SNIA's rule, with blocks added until its interval is narrow. All is twenty
times shorter than the cells of the document whose method it is.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from leadline.store.reader import Result, open_result
from leadline.verdict.findings import build_findings
from real_studies import leadline

BLOCK_BYTES = 4096
FIXED_S, LEFT_OUT_S = 120, 30
UNTIL = 0.03
STUDY = """format: leadline.study/1
limits: {{reserve: 1M}}
defaults: {{size: 512M, time_based: true, {more}}}
works: {{reads: {{rw: randread, bs: 4k}}}}
blocks: {blocks}
"""
FIXED = STUDY.format(more=f"runtime: {FIXED_S}s", blocks=1)
SHORT = STUDY.format(more="runtime: 3s, steady_state: {window: 200ms, windows: 5}", blocks=6)


@dataclass(frozen=True)
class Recording:
    """One cell: its rate in operations per second, how long it took, and what it was made of.

    `seconds` is the time of its trials with what stands around each; `rates` are those of each second of a
    fixed cell, and of each block of the other, whose interval is `low` to `high`. `load` is the host's load
    average before it.
    """

    kind: str
    round: int
    rate: float
    seconds: float
    load: float
    blocks: int = 1
    low: float | None = None
    high: float | None = None
    rates: tuple[float, ...] = ()


def recorded(path: Path) -> list[Recording]:
    """What is in a file of recordings."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Recording(**{**(found := json.loads(line)), "rates": tuple(found["rates"])}) for line in lines]


def record(directory: Path, path: Path, rounds: int) -> None:
    """Add rounds of both to the file, one line a cell; nothing stays below `directory`."""
    begun = max((one.round for one in recorded(path)), default=0)
    for number in range(begun + 1, begun + rounds + 1):
        with tempfile.TemporaryDirectory(prefix="steady-", dir=directory) as place:
            for one in _round(Path(place), number):
                with path.open("a") as file:
                    file.write(json.dumps(asdict(one)) + "\n")


def _round(place: Path, number: int) -> Iterator[Recording]:
    """Both kinds, the other first in every second round."""
    kinds = [("fixed", FIXED), ("until", SHORT)]
    for kind, text in kinds if number % 2 else reversed(kinds):
        study, result = place / f"{kind}.yaml", place / f"r-{kind}"
        study.write_text(text)
        (place / "data").mkdir(exist_ok=True)
        words = [
            "run",
            str(study),
            "--target",
            f"a={place / 'data'}",
            "--no-ceph",
            "--quiet",
            "--seed",
            str(number),
        ]
        words += ["--out", str(result)]
        load = os.getloadavg()[0]
        words += ["--until", f"{100 * UNTIL:g}%", "--budget", f"{FIXED_S}s"] if kind == "until" else []
        leadline(*words, timeout=900)
        yield _recording(kind, number, result, load)


def _recording(kind: str, number: int, path: Path, load: float) -> Recording:
    """Of a fixed cell the mean of what was not left out; of the other the mean of its blocks."""
    result = open_result(path)
    (cell,) = build_findings(result, explained=False).cells
    took_s = _took_s(result)
    iops = cell.metrics["iops"]
    if kind == "fixed":
        (line,) = cell.lines
        rates = tuple(round(value / BLOCK_BYTES, 1) for _, value in line.points)
        return Recording(kind, number, fmean(rates[LEFT_OUT_S:]), took_s, load, rates=rates)
    blocks = tuple(round(float(one.values["iops"] or 0.0), 1) for one in cell.trials)
    return Recording(kind, number, iops.value or 0.0, took_s, load, iops.blocks, iops.low, iops.high, blocks)


def _took_s(result: Result) -> float:
    """From the files being there to the last trial being stored: what both need alike is left out."""
    begun = next(event.t_ns for event in result.events if event.event == "trial_started")
    ended = max(event.t_ns for event in result.events if event.event == "trial_finished")
    return (ended - begun) / 1e9
