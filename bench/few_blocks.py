"""Simulation of whole studies of few blocks: intervals that learn from all cells, and what they claim."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from few_blocks_scenarios import STUDIES, Array, Shape, one_cell, one_rarely_slow, one_target, usual
from leadline.analysis.statistics.intervals import ALPHA, discovery_levels, holm_levels, mean_of_blocks
from leadline.analysis.statistics.moderated import moderate
from shares import random_of, table

WIDE, NARROW = (10, 8), (2, 6)  # targets x works, as `reach` and as `quick` on two targets
BLOCKS = (3, 6)
_EFFECT = 4.0  # standard deviations of a cell's blocks, where a comparison differs
_VARIATION = 0.15  # of a cell from block to block: ratios vary by about 21 %


@dataclass(frozen=True)
class Judged:
    """One simulated study. By comparison whether its 95 % interval holds, also that of its own blocks alone;
    whether a difference is claimed, by false discovery rate and, as before, by Holm; whether there is one;
    whether the interval that is shown misses."""

    holds: NDArray[np.bool_]
    own_holds: NDArray[np.bool_]
    claimed: NDArray[np.bool_]
    claimed_before: NDArray[np.bool_]
    differs: NDArray[np.bool_]
    shown_misses: NDArray[np.bool_]
    refused: bool

    @property
    def false_share(self) -> float:
        """Of what is claimed, how much is not there; 0 where nothing is."""
        return float((self.claimed & ~self.differs).sum() / max(self.claimed.sum(), 1))


def judge(rows: Array, effects: Array) -> Judged:
    """Judge a study as `leadline show` does: rows are targets x works x blocks, effects targets x works."""
    targets, works, blocks = rows.shape
    cells = rows + effects[:, :, None]
    ratios = (cells[1:] - cells[:1]).reshape(-1, blocks)
    truth = (effects[1:] - effects[:1]).reshape(-1)
    names = [str(target) for target in range(1, targets) for _ in range(works)]
    bases = [str(work) for _ in range(1, targets) for work in range(works)]
    found = moderate(ratios, names, bases, cells.reshape(-1, blocks))
    mean, own = ratios.mean(axis=1), mean_of_blocks(ratios)
    beyond = np.array([_beyond(one, value) for one, value in zip(found.means, np.abs(mean), strict=True)])
    missing = [_beyond(one, value) for one, value in zip(found.means, np.abs(mean - truth), strict=True)]
    levels = np.array(discovery_levels(list(beyond)))
    before = own.beyond(np.abs(mean))
    return Judged(
        np.array(missing) >= ALPHA,
        own.beyond(np.abs(mean - truth)) >= ALPHA,
        beyond < levels,
        before < np.array(holm_levels(list(before))),
        truth != 0,
        np.array(missing) < levels,
        found.refused is not None,
    )


def _beyond(one: object, distance: float) -> float:
    return float(one.beyond(np.array([distance]))[0])  # type: ignore[attr-defined]


def studies(name: str, shape: Shape, tries: int, *, differ: bool, key: int) -> list[Judged]:
    """Studies of one scenario; where they differ, half of the comparisons do, either way."""
    made = []
    for number in range(tries):
        random = random_of(900 + key, *shape, number)
        effects = np.zeros(shape[:2])
        if differ:
            signs = random.choice([-1.0, 0.0, 0.0, 1.0], (shape[0] - 1, shape[1]))
            effects[1:] = _EFFECT * signs
        made.append(judge(STUDIES[name](random, shape), effects))
    return made


def _mean(values: list[float]) -> str:
    """A mean over studies, in percent, with its 95 % bounds: comparisons of one study are not independent."""
    half = 1.96 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return f"{100 * float(np.mean(values)):.1f} ± {100 * half:.1f}"


def coverage_of_three() -> Iterator[str]:
    """Coverage and false claims of a study as large as `reach`, of three blocks."""
    yield "## Few blocks: three, many cells\n"
    yield from _coverage(WIDE, 20, 3)


def coverage_of_six() -> Iterator[str]:
    """The same of six blocks."""
    yield "## Few blocks: six, many cells\n"
    yield from _coverage(WIDE, 60, 6)


def two_targets_of_three() -> Iterator[str]:
    """Three blocks of two targets."""
    yield "## Few blocks: three, two targets\n"
    yield from _coverage(NARROW, 60, 3)


def two_targets_of_six() -> Iterator[str]:
    """Six blocks of two targets."""
    yield "## Few blocks: six, two targets\n"
    yield from _coverage(NARROW, 160, 6)


def _coverage(size: tuple[int, int], tries: int, blocks: int) -> Iterator[str]:
    targets, works = size
    yield (
        f"Studies of {targets} targets and {works} works, {(targets - 1) * works} comparisons with the first"
        " target. Scenarios are in `bench/few_blocks_scenarios.py`, drawn anew for each of"
        f" {tries} studies in which nothing differs and as many in which half of the comparisons do, by four"
        " deviations. Percent, with 95 % bounds over studies. Asked for: coverage of 93 in 11 of the 12; of"
        " what is found at most 5 false; intervals shown of what is found miss in at most 5. In brackets:"
        " each ratio by its own blocks alone, decided by Holm, as before.\n"
    )
    rows, short = [], []
    for key, name in enumerate(STUDIES):
        same = studies(name, (*size, blocks), tries, differ=False, key=key)
        some = studies(name, (*size, blocks), tries, differ=True, key=100 + key)
        both = [*same, *some]
        held = [float(one.holds.mean()) for one in both]
        if np.mean(held) < 0.93:
            short.append(name)
        own = 100 * np.mean([one.own_holds.mean() for one in both])
        found = [one.claimed[one.differs].mean() for one in some if one.differs.any()]
        before = [one.claimed_before[one.differs].mean() for one in some if one.differs.any()]
        missed = [float((one.shown_misses & one.claimed).sum() / max(one.claimed.sum(), 1)) for one in some]
        rows.append(
            [
                name,
                f"{_mean(held)} ({own:.1f})",
                _mean([one.false_share for one in some]),
                _mean(missed),
                _mean([float(one.claimed.any()) for one in same]),
                f"{100 * np.mean(found):.0f} ({100 * np.mean(before):.0f})",
                f"{100 * np.mean([one.refused for one in both]):.0f}",
            ]
        )
    yield table(
        [
            "scenario",
            "coverage",
            "false of found",
            "shown and missed",
            "studies that claim where nothing differs",
            "found",
            "not learned",
        ],
        rows,
    )
    yield f"Coverage below 93: {', '.join(short) or 'none'}.\n"


def odd_ones() -> Iterator[str]:
    """Coverage of the comparisons that are unlike the others, alone."""
    tries = 120
    yield "## Few blocks: the odd ones alone\n"
    yield (
        "Of the same scenarios only the comparisons of what is odd, which is not the base here:"
        f" {tries} studies of {WIDE[0]} x {WIDE[1]} cells, nothing differs. Coverage in percent; in brackets"
        " by its own blocks.\n"
    )
    rows = []
    for name, scenario, count in (
        ("one target rarely slow", one_rarely_slow, WIDE[1]),
        ("a target ten times noisier", one_target, WIDE[1]),
        ("a cell unlike all others", one_cell, 1),
    ):
        cells = []
        for blocks in BLOCKS:
            made = [
                judge(scenario(random_of(960, blocks, number), (*WIDE, blocks), WIDE[0] - 1), np.zeros(WIDE))
                for number in range(tries)
            ]
            odd = slice(-WIDE[1], None if count > 1 else 1 - WIDE[1])
            own = 100 * np.mean([one.own_holds[odd].mean() for one in made])
            cells.append(f"{_mean([float(one.holds[odd].mean()) for one in made])} ({own:.1f})")
        rows.append([name, *cells])
    yield table(["scenario", *(f"{blocks} blocks" for blocks in BLOCKS)], rows)


def power() -> Iterator[str]:
    """What three and six blocks find."""
    tries, factors = {WIDE: 30, NARROW: 80}, (1.1, 1.3, 2.0, 3.0, 10.0)
    yield "## Power of few blocks\n"
    yield (
        "Differences found, in percent, where half of the comparisons differ by a factor. Cells vary by"
        f" {_VARIATION:.0%} from block to block, their deviations by a third from each other; {tries[WIDE]}"
        f" studies of {WIDE[0]} x {WIDE[1]} cells, in brackets {tries[NARROW]} of {NARROW[0]} x {NARROW[1]};"
        " then each ratio by its own blocks alone, decided by Holm, as before.\n"
    )
    rows = []
    for blocks in BLOCKS:
        now, before = [], []
        for factor in factors:
            shares: dict[tuple[int, int], tuple[float, float]] = {}
            for size in (WIDE, NARROW):
                found = list(_powers((*size, blocks), tries[size], factor))
                shares[size] = tuple(np.mean(found, axis=0))
            for column, cells in enumerate((now, before)):
                cells.append(f"{100 * shares[WIDE][column]:.0f} ({100 * shares[NARROW][column]:.0f})")
        rows += [[f"{blocks} blocks", *now], [f"{blocks} blocks, as before", *before]]
    yield table(["factor", *map(str, factors)], rows)


def _powers(shape: Shape, tries: int, factor: float) -> Iterator[tuple[float, float]]:
    for number in range(tries):
        random = random_of(980, *shape, round(10 * factor), number)
        effects = np.zeros(shape[:2])
        effects[1:] = math.log(factor) * random.choice([-1.0, 0.0, 0.0, 1.0], (shape[0] - 1, shape[1]))
        one = judge(_VARIATION * usual(random, shape), effects)
        if one.differs.any():
            yield float(one.claimed[one.differs].mean()), float(one.claimed_before[one.differs].mean())
