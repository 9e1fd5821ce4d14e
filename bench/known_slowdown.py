"""A target that is slower by a known 10 %: is it found, and does the interval hold the size?

The delay is added to a pause or a wait that both sides have, so that what a sleep takes longer than asked is
in both: a period of `m` becomes `m + delay`, and the true ratio of the rates is `m / (m + delay)`, with `m`
measured over all tries. On null:// and on DIR by the engine's `thinktime` (two works of one study), and on
two FUSE mounts over DIR that answer each read after a wait (two targets, as a user would compare them).
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import slow_fuse
from leadline.analysis.cells import CellTable, compare_cells
from leadline.analysis.statistics.moderated import block_variation
from leadline.plan.model import Plan
from leadline.store.reader import open_result
from leadline.verdict.comparisons.deciding import Pair, decide
from leadline.verdict.inputs import tables_of
from leadline.verdict.model import Comparison
from real_studies import leadline
from shares import share, table

TRIES, BLOCKS, SHARE = 10, 12, 0.1
CALIBRATION_BLOCKS = 6
OPERATIONS = 128  # between two pauses
PAUSE_US = 400
WAIT_MS = 1.0
STUDY = """format: leadline.study/1
blocks: {blocks}
limits: {{reserve: 1M}}
compare: {{metrics: [iops]}}
defaults: {{size: 4M, runtime: 150ms, time_based: true, direct: false}}
works: {{{works}}}
"""
PAUSED = "{name}: {{rw: randread, bs: 4k, thinktime: {pause}us, thinktime_blocks: {operations}}}"
PLAIN = "reads: {rw: randread, bs: 4k, engine: psync}"


@dataclass(frozen=True)
class Try:
    """What one study says, and the mean period of its base in seconds (of OPERATIONS, or of a read)."""

    comparison: Comparison
    period_s: float
    variation: float


@dataclass
class Place:
    """A place with its delay in seconds, chosen from a short study, and how one try is made."""

    name: str
    delay_s: float
    attempt: Callable[[int], Try]
    tries: list[Try]


def measured(directory: Path, minutes: float) -> Iterator[str]:
    """The section; nothing stays below `directory`."""
    end_s = time.monotonic() + 60 * minutes
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slowdown-", dir=directory)))
        (place / "data").mkdir()
        places = [_paused(place, "null", "null://"), _paused(place, "tmpfs", str(place / "data"))]
        if slow_fuse.missing() is None:
            places.append(_waiting(place, stack))
        longest_s = 0.0
        for number in range(1, TRIES + 1):
            begun_s = time.monotonic()
            if begun_s + longest_s > end_s:
                break
            for one in places:
                one.tries.append(one.attempt(number))
            longest_s = max(longest_s, time.monotonic() - begun_s)
    yield "## A slowdown by a known 10 %\n"
    yield (
        f"Real studies of {BLOCKS} blocks, trials of 150 ms, whose second side is delayed by a tenth of the"
        f" first one's period: by a longer pause after {OPERATIONS} operations (null, tmpfs: two works of a"
        " study, decided as two targets are), or by a longer wait of each read (two FUSE mounts over tmpfs,"
        " two targets of a study). Found at the level of a single comparison; at least 9 of 10 are asked for,"
        " with the size inside the interval.\n"
    )
    rows = [_row(one) for one in places]
    headings = [
        "target",
        "delay",
        "true ratio",
        "tries",
        "found slower",
        "size in interval",
        "ratios measured",
        "variation",
    ]
    yield table(headings, rows)
    if slow_fuse.missing() is not None:
        yield f"The FUSE mounts were left out: {slow_fuse.missing()}.\n"


def _row(place: Place) -> list[str]:
    period_s = math.exp(math.fsum(math.log(one.period_s) for one in place.tries) / len(place.tries))
    truth = period_s / (period_s + place.delay_s)
    found = [one.comparison for one in place.tries]
    ratios = sorted(one.ratio or 0.0 for one in found)
    held = sum((one.low or 0) <= truth <= (one.high or 0) for one in found)
    slower = sum(one.verdict == "slower" for one in found)
    return [
        place.name,
        f"{place.delay_s * 1e6:.0f} µs of {period_s * 1e6:.0f}",
        f"{truth:.3f}",
        str(len(found)),
        f"{slower}: {share(slower, len(found))}",
        f"{held}",
        f"{ratios[0]:.3f} to {ratios[-1]:.3f}",
        f"{max(one.variation for one in place.tries):.1%} at most",
    ]


def _run(place: Path, name: str, works: str, blocks: int, targets: Sequence[str], seed: int) -> Path:
    study, out = place / f"{name}.yaml", place / f"{name}-{seed}"
    study.write_text(STUDY.format(blocks=blocks, works=works))
    words = [word for target in targets for word in ("--target", target)]
    options = ("--seed", str(seed), "--out", str(out), "--no-ceph", "--quiet")
    leadline("run", str(study), *words, *options)
    return out


def _tables(out: Path) -> dict[str, CellTable]:
    result = open_result(out)
    return tables_of(result, Plan.from_json(result.manifest["plan"]))


def _rate(found: CellTable) -> float:
    """The geometric mean over its blocks, operations per second."""
    rates = [measured.values["iops"] for measured in found.by_block.values()]
    return math.exp(math.fsum(map(math.log, rates)) / len(rates))


def _usual_period_s(found: CellTable, operations: int) -> float:
    """The median block's: what disturbs a few blocks must not set the delay."""
    return operations / statistics.median(measured.values["iops"] for measured in found.by_block.values())


def _try(base: CellTable, other: CellTable, operations: int) -> Try:
    """Decided as two targets of a study are."""
    ratio = compare_cells(base, other, "iops")
    (comparison,) = decide([Pair("reads", "base", "delayed", "iops", ratio, "VALID", 4.0)], 0.05)
    variation = block_variation(ratio.logarithms) if ratio is not None else None
    return Try(comparison, operations / _rate(base), variation or 0.0)


def _paused(place: Path, name: str, target: str) -> Place:
    base = PAUSED.format(name="base", pause=PAUSE_US, operations=OPERATIONS)
    first = _tables(_run(place, f"{name}-first", base, CALIBRATION_BLOCKS, [f"t={target}"], 1))
    delay_us = round(1e6 * SHARE * _usual_period_s(first["t.base"], OPERATIONS))
    delayed = PAUSED.format(name="delayed", pause=PAUSE_US + delay_us, operations=OPERATIONS)

    def attempt(seed: int) -> Try:
        found = _tables(_run(place, name, f"{base}, {delayed}", BLOCKS, [f"t={target}"], seed))
        return _try(found["t.base"], found["t.delayed"], OPERATIONS)

    return Place(name, delay_us / 1e6, attempt, [])


def _waiting(place: Path, stack: ExitStack) -> Place:
    program = slow_fuse.build(place)
    mounts = []
    for name in ("base", "delayed"):
        (place / name).mkdir()
        mounts.append(stack.enter_context(slow_fuse.mounted(program, place / name)))
        mounts[-1].rules(read_ms=WAIT_MS)
    targets = [f"{name}={mount.path}" for name, mount in zip(("base", "delayed"), mounts, strict=True)]
    first = _tables(_run(place, "fuse-first", PLAIN, CALIBRATION_BLOCKS, targets[:1], 1))
    delay_us = round(1e6 * SHARE * _usual_period_s(first["base.reads"], 1))
    mounts[1].rules(read_ms=WAIT_MS + delay_us / 1000)

    def attempt(seed: int) -> Try:
        found = _tables(_run(place, "fuse", PLAIN, BLOCKS, targets, seed))
        return _try(found["base.reads"], found["delayed.reads"], 1)

    return Place("FUSE over tmpfs", delay_us / 1e6, attempt, [])
