"""Real studies of a directory against itself: how often is a difference claimed that is not there?

And, with the same measured blocks, a known slowdown: each other target's figures divided by 1.1. DIRECTORY
names the place (/dev/shm), a mount of a lab among others, MINUTES bounds each section (8).
"""

from __future__ import annotations

import json
import math
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness import command, leadline, scratch, share
from leadline.analysis.cells import CellTable, compare_cells
from leadline.analysis.metrics import Measured
from leadline.analysis.statistics.moderated import block_variation, smallest_difference
from leadline.plan.model import Plan
from leadline.store.reader import open_result
from leadline.verdict.comparisons.comparisons import asked_metrics
from leadline.verdict.inputs import tables_of

STUDIES, SLOWDOWN = 13, 1.1  # so many give 100 comparisons
FEW_BLOCKS_STUDIES = 9  # 216
STUDY = """format: leadline.study/1
blocks: BLOCKS
limits: {reserve: 1M}
defaults: {size: 8M, runtime: 200ms, time_based: true, engine: psync, direct: false}
works:
  randread_4k: {rw: randread, bs: 4k}
  randwrite_4k: {rw: randwrite, bs: 4k}
  read_64k: {rw: read, bs: 64k}
  write_64k: {rw: write, bs: 64k, overwrite: true}
"""
# What `leadline show` says of a study, and the tables of what each work is asked for.
Judged = tuple[dict[str, Any], list[tuple[CellTable, CellTable, str]]]


def real() -> Iterator[str]:
    """A directory as two targets; nothing stays below it."""
    yield "## Real studies of a directory against itself\n"
    found, file_system = _studies("ab", 10, STUDIES)
    yield from _told(found, f"on {file_system}", 10)
    yield from _slowed(found, 10)


def real_few() -> Iterator[str]:
    """A directory as four targets in three blocks: intervals learned from all cells."""
    yield "## Real studies of few blocks, a directory against itself\n"
    found, file_system = _studies("abcd", 3, FEW_BLOCKS_STUDIES)
    yield from _told(found, f"of four targets on {file_system}", 3)


def _studies(names: str, blocks: int, most: int) -> tuple[list[Judged], str]:
    """Studies with other seeds, as many as the time allows, and the type of the file system."""
    end_s, longest_s = time.monotonic() + 60 * float(os.environ.get("MINUTES", "8")), 0.0
    found: list[Judged] = []
    with scratch("coverage", os.environ.get("DIRECTORY", "/dev/shm")) as place:
        (place / "study.yaml").write_text(STUDY.replace("BLOCKS", str(blocks)))
        (place / "data").mkdir()
        for seed in range(1, most + 1):
            begun_s = time.monotonic()
            if begun_s + longest_s > end_s:
                break
            found.append(_judged(place, names, seed))
            longest_s = max(longest_s, time.monotonic() - begun_s)
        return found, command("stat", "--file-system", "--format=%T", place).strip()


def _judged(place: Path, names: str, seed: int) -> Judged:
    """Run one study; every other target against the first."""
    out = place / f"r{seed}"
    words = [word for name in names for word in ("--target", f"{name}={place / 'data'}")]
    more = ("--seed", str(seed), "--out", out, "--no-ceph", "--quiet")
    leadline("run", place / "study.yaml", *words, *more, timeout=600, allowed=range(256))
    result = open_result(out)
    plan = Plan.from_json(result.manifest["plan"])
    tables, first = tables_of(result, plan), plan.targets[0].name
    pairs = [
        (tables[f"{first}.{cell.work}"], tables[cell.id], asked_metrics(cell)[0])
        for cell in plan.cells
        if cell.target != first and cell.id in tables and f"{first}.{cell.work}" in tables
    ]
    return json.loads(leadline("show", out, "--json")), pairs


def _told(studies: Sequence[Judged], where: str, blocks: int) -> Iterator[str]:
    shown = [one for one, _ in studies]
    by_study = [[_is_claim(item) for item in one["comparisons"]] for one in shown]
    comparisons = [item for one in shown for item in one["comparisons"]]
    claims = [item for item in comparisons if _is_claim(item)]
    same, claiming = sum(item["verdict"] == "same" for item in comparisons), sum(map(any, by_study))
    said = sum(any("During the run" in s["text"] for s in one["statements"]) for one in shown)
    codes = [code["code"] for one in shown for cell in one["cells"] for code in cell["validity"]["codes"]]
    yield (
        f"{len(studies)} studies of {blocks} blocks {where}, trials of 200 ms, targets that are one"
        f" directory: of {len(comparisons)} comparisons {len(claims)} claim a difference (in {claiming}"
        f" studies; percent: {share(claiming, len(studies))}), {same} say the same within 5 %,"
        f" {len(comparisons) - len(claims) - same} stay undecided. A change over time is said in {said}"
        " studies: on a shared machine there may be one. A level shift within trials is said of"
        f" {codes.count('level_shift')} cells.\n"
    )
    for one in claims:
        span = f"{one['low']:.3f} to {one['high']:.3f}"
        yield f"- {one['work']} {one['metric']}: {span}, {one['blocks']} blocks\n"


def _is_claim(item: dict[str, Any]) -> bool:
    return item["verdict"] in ("faster", "slower")


def _slowed(studies: Sequence[Judged], count: int) -> Iterator[str]:
    found = within = tries = 0
    variations, level = [], 0.05
    for _, pairs in studies:
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
