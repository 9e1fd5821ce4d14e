"""Real studies of a directory against itself: how often does leadline claim a difference that is not there?

And, with the same measured blocks, a known slowdown: the second target's figures divided by 1.1.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leadline.analysis.cells import CellTable, compare_cells, tabulate
from leadline.analysis.metrics import Measured, primary_metric
from leadline.analysis.power import block_variation, smallest_difference
from leadline.plan import Plan
from leadline.store.reader import open_result
from leadline.verdict.findings import rows_by_trial

STUDIES, BLOCKS, SLOWDOWN = 13, 10, 1.1
LEVEL_IN_STUDY = 0.05 * 4 / 20  # of what a work is asked for, when nothing else differs
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


def measured(directory: str) -> Iterator[str]:
    """The Markdown section; nothing stays below `directory`."""
    with tempfile.TemporaryDirectory(prefix="coverage-", dir=directory) as place:
        shown = [_run(Path(place), seed) for seed in range(1, STUDIES + 1)]
    comparisons = [item for study, _ in shown for item in study["comparisons"]]
    claims = [item for item in comparisons if item["verdict"] in ("faster", "slower")]
    same = sum(item["verdict"] == "same" for item in comparisons)
    claiming = sum(
        any(item["verdict"] in ("faster", "slower") for item in study["comparisons"]) for study, _ in shown
    )
    said = sum(any("During the run" in s["text"] for s in study["statements"]) for study, _ in shown)
    yield "## Real studies of a directory against itself\n"
    yield (
        f"{STUDIES} studies of {BLOCKS} blocks on tmpfs, trials of 200 ms, two targets in one directory: of"
        f" {len(comparisons)} comparisons {len(claims)} claim a difference (in {claiming} studies),"
        f" {same} say the"
        f" same within 5 %, {len(comparisons) - len(claims) - same} stay undecided. A change over time"
        f" is said in"
        f" {said} studies: on a shared machine there may be one.\n"
    )
    for item in claims:
        yield (
            f"- {item['work']} {item['metric']}: {item['low']:.3f} to {item['high']:.3f},"
            f" {item['blocks']} blocks\n"
        )
    yield from _slowed([found for _, found in shown])


def _run(place: Path, seed: int) -> tuple[dict[str, Any], list[tuple[CellTable, CellTable, str]]]:
    study, out = place / "study.yaml", place / f"r{seed}"
    study.write_text(STUDY)
    target = place / "data"
    target.mkdir(exist_ok=True)
    leadline = [sys.executable, "-m", "leadline"]
    targets = ["--target", f"a={target}", "--target", f"b={target}"]
    command = ["run", str(study), *targets, "--seed", str(seed), "--out", str(out), "--no-ceph", "--quiet"]
    subprocess.run([*leadline, *command], stdout=subprocess.DEVNULL, timeout=600, check=False)
    made = subprocess.run(
        [*leadline, "show", str(out), "--json"], stdout=subprocess.PIPE, timeout=60, check=False
    )
    result = open_result(out)
    plan = Plan.from_json(result.manifest["plan"])
    tables = tabulate(result.trials(), rows_by_trial(result.latency()), frozenset())
    by_work = {cell.work: primary_metric(cell.job.as_json()) for cell in plan.cells}
    pairs = [(tables[f"a.{work}"], tables[f"b.{work}"], metric) for work, metric in by_work.items()]
    return json.loads(made.stdout), pairs


def _slowed(studies: list[list[tuple[CellTable, CellTable, str]]]) -> Iterator[str]:
    found = within = tries = 0
    variations = []
    for pairs in studies:
        for base, other, metric in pairs:
            blocks = {
                block: Measured({metric: one.values[metric] / SLOWDOWN}, {})
                for block, one in other.by_block.items()
            }
            ratio = compare_cells(base, CellTable(other.cell, (), blocks), metric)
            if ratio is None:
                continue
            estimate = ratio.estimate()
            variations.append(block_variation(ratio.logarithms) or 0.0)
            tries += 1
            found += ratio.p_value() < LEVEL_IN_STUDY and ratio.value < 1
            within += (estimate.low or 0) <= 1 / SLOWDOWN <= (estimate.high or 0)
    usual = statistics.median(variations)
    least = smallest_difference(BLOCKS, usual, LEVEL_IN_STUDY) or math.inf
    yield (
        f"The same blocks with the second target's figures divided by {SLOWDOWN}, a slowdown of known size:"
        f" found in {found} of {tries} comparisons of {BLOCKS} blocks (at the level of a comparison among"
        f" eight); its size lies within the 95 % interval in {within}. The ratios varied by {usual:.0%} from"
        f" block to block (median); with that, {least:.0%} is the smallest difference that four of five such"
        " studies find.\n"
    )
