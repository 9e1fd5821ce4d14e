"""Real studies of a directory against itself: how often does leadline claim a difference that is not there?

And, with the same measured blocks, a known slowdown: each other target's figures divided by 1.1.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.analysis.cells import CellTable, compare_cells
from leadline.analysis.metrics import Measured
from leadline.analysis.statistics.moderated import block_variation, smallest_difference
from leadline.plan.model import Plan
from leadline.store.reader import open_result
from leadline.verdict.comparisons.comparisons import asked_metrics
from leadline.verdict.inputs import tables_of
from shares import share

STUDIES, LAB_STUDIES, SLOWDOWN = 13, 13, 1.1  # so many give 100 comparisons
FEW_BLOCKS_STUDIES = 9  # 216
STUDY = """format: leadline.study/1
blocks: 10
limits: {reserve: 1M}
defaults: {size: 8M, runtime: 200ms, time_based: true, engine: psync, direct: false}
works:
  randread_4k: {rw: randread, bs: 4k}
  randwrite_4k: {rw: randwrite, bs: 4k}
  read_64k: {rw: read, bs: 64k}
  write_64k: {rw: write, bs: 64k, overwrite: true}
"""
# Trials so short have too few operations there for a p99; the median takes its place.
LAB_STUDY = """format: leadline.study/1
blocks: 6
limits: {reserve: 100M}
defaults: {size: 4M, runtime: 200ms, time_based: true, direct: true, iodepth: 4}
compare: {metrics: [iops, latency_p50]}
works:
  randread_4k: {rw: randread, bs: 4k}
  randwrite_4k: {rw: randwrite, bs: 4k}
  read_64k: {rw: read, bs: 64k}
  write_64k: {rw: write, bs: 64k, overwrite: true}
"""
Pairs = list[tuple[CellTable, CellTable, str]]


@dataclass(frozen=True)
class Judged:
    """One study: what `leadline show` says, and the tables of what each work is asked for."""

    shown: dict[str, Any]
    pairs: Pairs


def leadline(*words: str, timeout: float = 600) -> str:
    """What a command of leadline prints; its errors go where ours go."""
    done = subprocess.run(
        [sys.executable, "-m", "leadline", *words],
        stdout=subprocess.PIPE,
        text=True,
        timeout=timeout,
        check=False,
    )
    return done.stdout


def on_directory(directory: Path, minutes: float) -> Iterator[str]:
    """The section on a directory; nothing stays below it."""
    found, file_system = _against_itself(directory, "ab", STUDY, STUDIES, minutes)
    yield "## Real studies of a directory against itself\n"
    yield from _told(found, f"on {file_system}", 10)
    yield from _slowed([study.pairs for study in found], 10)


def of_few_blocks(directory: Path, minutes: float) -> Iterator[str]:
    """The section on a directory as four targets in three blocks: intervals learned from all cells."""
    study = STUDY.replace("blocks: 10", "blocks: 3")
    found, file_system = _against_itself(directory, "abcd", study, FEW_BLOCKS_STUDIES, minutes)
    yield "## Real studies of few blocks, a directory against itself\n"
    yield from _told(found, f"of four targets on {file_system}", 3)


def _against_itself(
    directory: Path, names: str, study: str, most: int, minutes: float
) -> tuple[list[Judged], str]:
    """Studies of one new directory under several names, and the type of its file system."""
    with tempfile.TemporaryDirectory(prefix="coverage-", dir=directory) as place:
        targets = dict.fromkeys(names, Path(place) / "data")
        found = list(_studies(Path(place), targets, study, most, minutes))
        return found, leadline_words(Path(place))


def leadline_words(directory: Path) -> str:
    """The type of a directory's file system."""
    done = subprocess.run(
        ["stat", "--file-system", "--format=%T", directory], stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.strip()


def on_lab(minutes: float) -> Iterator[str]:
    """The section on a disposable Ceph, started for it and removed."""
    with tempfile.TemporaryDirectory(prefix="coverage-") as place, _lab(Path(place)) as target:
        begun = time.monotonic()
        targets = dict.fromkeys("abc", target)
        found = list(_studies(Path(place), targets, LAB_STUDY, LAB_STUDIES, minutes - 1))
        took_s = time.monotonic() - begun
    yield "## Real studies of a lab's CephFS directory against itself\n"
    yield from _told(found, f"on a lab's replicated directory through ceph-fuse ({took_s:.0f} s)", 6)
    yield from _slowed([study.pairs for study in found], 6)


@contextmanager
def _lab(place: Path) -> Iterator[Path]:
    """A lab of its own account of labs; its replicated directory."""
    os.environ["XDG_STATE_HOME"] = str(place / "state")
    directory = place / "lab"
    leadline("lab", "up", "--dir", str(directory), "--name", "coverage")
    try:
        targets = json.loads(leadline("lab", "status", "--dir", str(directory), "--json"))["targets"]
        yield Path(targets["replicated"])
    finally:
        leadline("lab", "down", "--dir", str(directory))


def _studies(
    place: Path, targets: dict[str, Path], study: str, most: int, minutes: float
) -> Iterator[Judged]:
    """Studies with other seeds, as many as the time allows."""
    end_s, longest_s = time.monotonic() + 60 * minutes, 0.0
    (place / "study.yaml").write_text(study)
    for target in targets.values():
        target.mkdir(exist_ok=True)
    for seed in range(1, most + 1):
        begun_s = time.monotonic()
        if begun_s + longest_s > end_s:
            return
        yield judged(place / f"r{seed}", place / "study.yaml", seed, targets)
        longest_s = max(longest_s, time.monotonic() - begun_s)


def judged(out: Path, study: Path, seed: int, targets: dict[str, Path]) -> Judged:
    """Run one study; every other target against the first."""
    words = [word for name, path in targets.items() for word in ("--target", f"{name}={path}")]
    leadline("run", str(study), *words, "--seed", str(seed), "--out", str(out), "--no-ceph", "--quiet")
    shown = json.loads(leadline("show", str(out), "--json"))
    result = open_result(out)
    plan = Plan.from_json(result.manifest["plan"])
    tables = tables_of(result, plan)
    first = plan.targets[0].name
    pairs = [
        (tables[f"{first}.{cell.work}"], tables[cell.id], asked_metrics(cell)[0])
        for cell in plan.cells
        if cell.target != first and cell.id in tables and f"{first}.{cell.work}" in tables
    ]
    return Judged(shown, pairs)


def _told(studies: Sequence[Judged], where: str, blocks: int) -> Iterator[str]:
    comparisons = [item for study in studies for item in study.shown["comparisons"]]
    claims = [item for item in comparisons if item["verdict"] in ("faster", "slower")]
    same = sum(item["verdict"] == "same" for item in comparisons)
    claiming = sum(
        any(item["verdict"] in ("faster", "slower") for item in study.shown["comparisons"])
        for study in studies
    )
    said = sum(any("During the run" in s["text"] for s in study.shown["statements"]) for study in studies)
    codes = [
        code["code"]
        for study in studies
        for cell in study.shown["cells"]
        for code in cell["validity"]["codes"]
    ]
    yield (
        f"{len(studies)} studies of {blocks} blocks {where}, trials of 200 ms, targets that are one"
        f" directory: of {len(comparisons)} comparisons {len(claims)} claim a difference (in {claiming}"
        f" studies; percent: {share(claiming, len(studies))}), {same} say the same within 5 %,"
        f" {len(comparisons) - len(claims) - same} stay undecided. A change over time is said in {said}"
        " studies: on a shared machine there may be one. A level shift within trials is said of"
        f" {codes.count('level_shift')} cells.\n"
    )
    for item in claims:
        yield (
            f"- {item['work']} {item['metric']}: {item['low']:.3f} to {item['high']:.3f},"
            f" {item['blocks']} blocks\n"
        )


def _slowed(studies: Sequence[Pairs], count: int) -> Iterator[str]:
    found = within = tries = 0
    variations = []
    level = 0.05
    for pairs in studies:
        level = 0.05 * 4 / (5 * max(len(pairs), 1))  # with a percentile each, when nothing else differs
        for base, other, metric in pairs:
            blocks = {
                block: Measured({metric: one.values[metric] / SLOWDOWN}, {})
                for block, one in other.by_block.items()
                if metric in one.values
            }
            ratio = compare_cells(base, CellTable(other.cell, (), blocks), metric)
            if ratio is None:
                continue
            estimate = ratio.estimate()
            variations.append(block_variation(ratio.logarithms) or 0.0)
            tries += 1
            found += ratio.p_value() < level and ratio.value < 1
            within += (estimate.low or 0) <= 1 / SLOWDOWN <= (estimate.high or 0)
    if not tries:
        return
    usual = statistics.median(variations)
    least = smallest_difference(count, usual, level) or math.inf
    yield (
        f"The same blocks with the other targets' figures divided by {SLOWDOWN}, a slowdown of known size:"
        f" found in {found} of {tries} comparisons of {count} blocks (at the level of one among all"
        f" comparisons of its study); its size lies within the 95 % interval in {within}. The ratios varied"
        f" by {usual:.0%} from block to block (median); with that, {least:.0%} is the smallest difference"
        " that four of five such studies find.\n"
    )
