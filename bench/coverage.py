"""Do the intervals and verdicts hold? Simulation of every statistic by the code that judges results.

    python bench/coverage.py                        # everything: some minutes
    python bench/coverage.py --only fresh,budget    # these sections

Writes `bench/coverage.md` (or --output FILE). A section that is not made anew stays as it is; each says when
it was made, and how busy the machine was. Real studies of a directory against itself are made where they are
named (`real`, `real_few`; bench/coverage_real.py). `lab` and `slowdown` stay as they were made: their
program is in commit ecefe48a (bench/real_studies.py, bench/known_slowdown.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

import coverage_real
import coverage_studies as studies
import sweep
from coverage_studies import grid, random_of
from harness import HERE, Document, bounds, share
from leadline.analysis.statistics.drift import find_changes
from leadline.analysis.statistics.intervals import ALPHA, holm_levels, lopsided, mean_of_blocks
from leadline.analysis.statistics.moderated import smallest_difference
from leadline.verdict.comparisons.deciding import FEW_BLOCKS
from scenarios import BEYOND, FRESH, SCENARIOS, Array, Scenario, autoregressive, lognormal, normal

BLOCKS = (3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30)
FEWER = (3, 4, 6, 8, 12, 20, 30)
SERIES = 4000
WORKS, PRIMARY_WEIGHT = 7, 4.0
_SKEWED = ("gamma 0.5", "lognormal 1.0", "rare outliers", "skewed and correlated")
INTRODUCTION = """# Do the intervals and verdicts hold?

Made by `bench/coverage.py`; simulations have a fixed seed. Scenarios are described in `bench/scenarios.py`,
in units of the standard deviation of a log ratio from block to block; the code under test is that which
judges results.

How the method came about: nine weightings of the correlations were tried on the first set of scenarios, with
other random numbers, and the narrowest was kept whose lower bounds clear 93 % up to a correlation of 0.5.
Which scenarios count as "beyond" was settled after seeing what could be held. The level of 3 % for `--until`
is one of eight variants of the rule that were tried; five did not hold. So the tables of the first set
confirm a choice. The second set is the test on scenarios unseen.

Intervals of few blocks (`few_blocks_*`) came about on sixteen scenarios that are not kept, and were then
tried on `STUDIES` of `bench/scenarios.py`, drawn anew for each study. One thing was changed after
that, on other random numbers of three of them: a cell tells no more of correlation than three blocks do,
since targets that drift came out at 92 with six blocks.

The sections `lab` and `slowdown` are as they were made on the days that they name; their program is in commit
`ecefe48a`.
"""


def _within(rows: Array, truth: float = 0.0) -> NDArray[np.bool_]:
    """Which 95 % intervals hold the true mean."""
    found = mean_of_blocks(rows)
    return found.beyond(np.abs(found.mean - truth)) >= ALPHA


def covered(scenario: Scenario, blocks: int, key: int) -> int:
    """How many of SERIES intervals hold their true mean, which is 0."""
    return int(_within(scenario(random_of(key, blocks), SERIES, blocks)).sum())


def students_coverage(scenario: Scenario, blocks: int) -> int:
    """The same for Student's t, to show what the method changes."""
    rows = scenario(random_of(30, blocks), SERIES, blocks)
    t = np.abs(rows.mean(axis=1)) / (rows.std(axis=1, ddof=1) / math.sqrt(blocks))
    return int((2 * stdtr(blocks - 1, -t) >= ALPHA).sum())


def coverage() -> Iterator[str]:
    """Coverage of the 95 % interval of one comparison."""
    yield "## Coverage of the interval\n"
    yield (
        f"Share of 95 % intervals that hold the true ratio, in percent, over {SERIES:,} comparisons each,"
        " with Clopper-Pearson bounds. 93 is asked for. More than 95 is over-coverage: the price of holding"
        " where blocks depend on each other; nobody can see from so few blocks that they do not.\n"
    )
    groups = {"Scenarios that it is made for": SCENARIOS, "Beyond them": BEYOND}
    for group, (title, scenarios) in enumerate(groups.items()):
        hits = {
            name: {blocks: covered(scenario, blocks, 10 * group + key) for blocks in BLOCKS}
            for key, (name, scenario) in enumerate(scenarios.items())
        }
        yield f"### {title}\n"
        yield from grid(
            "blocks", BLOCKS, hits, lambda name, blocks, hits=hits: share(hits[name][blocks], SERIES)
        )
        lowest = min(bounds(hit, SERIES)[0] for own in hits.values() for hit in own.values())
        yield f"The lowest lower bound is {100 * lowest:.1f}.\n"
    every = {**SCENARIOS, **BEYOND}
    yield "### Student's t on the same scenarios, for comparison\n"
    yield from grid(
        "blocks", BLOCKS, every, lambda name, n: f"{100 * students_coverage(every[name], n) / SERIES:.1f}"
    )


def fresh() -> Iterator[str]:
    """Coverage on scenarios that nothing was tuned on."""
    yield "## Coverage on scenarios unseen before\n"
    yield (
        "The interval was chosen on the scenarios above. These (`FRESH` of `bench/scenarios.py`) were"
        " written down after that, and tried once; nothing of the interval was changed afterwards. What was"
        " changed: the warning of lopsided blocks (next section) was added, because heavily skewed"
        f" scenarios came out below 93 without a word from six blocks on. Percent of {SERIES:,} comparisons"
        " each.\n"
    )
    hits = {
        name: {blocks: covered(scenario, blocks, 200 + key) for blocks in BLOCKS}
        for key, (name, scenario) in enumerate(FRESH.items())
    }
    yield from grid("blocks", BLOCKS, hits, lambda name, blocks: share(hits[name][blocks], SERIES))
    failing = [
        name for name, own in hits.items() if min(bounds(hit, SERIES)[0] for hit in own.values()) < 0.93
    ]
    yield f"Not at 93 with their whole bounds at every number of blocks: {', '.join(failing) or 'none'}.\n"


def warnings() -> Iterator[str]:
    """What the program says where the interval does not hold, each comparison a study of its own."""
    tries = 400
    yield "## What is said where it fails\n"
    yield (
        "Below six blocks every comparison is labelled: it rests on assumptions. From five blocks on a"
        ' permutation test looks for changes and dependence ("neighbouring blocks resembled each other … the'
        ' interval may be too narrow"), from six on another test for lopsided blocks ("a few blocks far to'
        ' one side of the others"). Share of comparisons that carry a warning, in percent of'
        f" {tries}; the first row is the rate of false warnings of both tests together, each of which errs in"
        " one of twenty studies. In brackets: how many of those without a warning hold.\n"
    )
    chosen = {"normal": normal, **BEYOND, **{name: FRESH[name] for name in _SKEWED}}

    def cell(name: str, count: int) -> str:
        if count < FEW_BLOCKS:
            return "100: label"
        rows = chosen[name](random_of(40, count), tries, count)
        said = np.array([bool(find_changes([row])) or lopsided(list(row), ALPHA) is not None for row in rows])
        silent = f"{100 * _within(rows)[~said].mean():.0f}" if not said.all() else "-"
        return f"{100 * said.mean():.0f} ({silent})"

    yield from grid("blocks", (3, 5, 6, 8, 12, 20, 30), chosen, cell)
    yield (
        "A slow mode, or a long tail, that did not occur in any block leaves no trace: no test of the blocks"
        " can say it, and more blocks are the only help. The warning is not a remedy: silent comparisons of"
        " skewed scenarios still hold less often than 95 of 100 times.\n"
    )


def apart() -> Iterator[str]:
    """Two results that were measured apart: blocks do not pair."""
    yield "## Two results measured apart (`leadline compare`, `leadline gate`)\n"
    yield (
        "Both margins added in squares. Coverage in percent of"
        f" {SERIES:,} comparisons; blocks of the first and of the second result.\n"
    )
    pairs = {f"{n} and {m}": (n, m) for n, m in ((3, 3), (4, 4), (6, 6), (6, 20), (12, 12), (30, 30))}
    cases: dict[str, tuple[Scenario, float]] = {
        "normal": (normal, 1.0),
        "normal, one scatters four times as much": (normal, 4.0),
        "lognormal": (lognormal, 1.0),
        "lognormal, one scatters four times as much": (lognormal, 4.0),
        "autocorrelated 0.5": (autoregressive(0.5), 1.0),
    }

    def cell(name: str, pair: str) -> str:
        (scenario, ratio), key = cases[name], [*cases].index(name)
        first, second = pairs[pair]
        base = mean_of_blocks(scenario(random_of(300 + key, first), SERIES, first))
        other = mean_of_blocks(ratio * scenario(random_of(320 + key, second), SERIES, second))
        margin = np.hypot(base.half_width(ALPHA), other.half_width(ALPHA))
        return share(int((np.abs(other.mean - base.mean) <= margin).sum()), SERIES)

    yield from grid("blocks", pairs, cases, cell)


def study_p_values(blocks: int, key: int, effects: Array) -> Array:
    """P-values of studies: WORKS primary comparisons, then their p99 (correlated by -0.7)."""
    random, shape = random_of(50 + key, blocks), (studies.STUDIES, WORKS, blocks)
    primary, own = random.standard_normal(shape), random.standard_normal(shape)
    both = np.concatenate([primary, -0.7 * primary + math.sqrt(1 - 0.49) * own], axis=1)
    found = mean_of_blocks((both + effects[None, :, None]).reshape(-1, blocks))
    return found.beyond(np.abs(found.mean)).reshape(studies.STUDIES, 2 * WORKS)


def multiplicity() -> Iterator[str]:
    """Studies of a directory against itself, and studies where some works differ."""
    tries = studies.STUDIES
    yield "## Many comparisons in one study\n"
    yield (
        f"{tries:,} studies of {WORKS} works on two targets, two metrics each: {2 * WORKS} comparisons."
        " Share of studies that claim any difference that is not there, in percent; at most 5 is asked for."
        " Last row: four of the works differ by three standard deviations; differences found among them.\n"
    )
    weights = [PRIMARY_WEIGHT] * WORKS + [1.0] * WORKS
    some = np.zeros(2 * WORKS)
    some[:4], some[WORKS : WORKS + 4] = 3.0, -3.0
    columns: dict[int, dict[str, str]] = {}
    for count in FEWER:
        null, mixed = study_p_values(count, 1, np.zeros(2 * WORKS)), study_p_values(count, 2, some)
        alike, differing = ([_claims(row, weights) for row in rows] for rows in (null, mixed))
        columns[count] = {
            "against itself": share(int(sum(c.any() for c in alike)), tries),
            "against itself, uncorrected": share(int((null < ALPHA).any(axis=1).sum()), tries),
            "some differ: false claims": share(int(sum(c[some == 0].any() for c in differing)), tries),
            "power": f"{100 * np.mean([c[:4].mean() for c in differing]):.0f}",
        }
    yield from grid("blocks", FEWER, columns[FEWER[0]], lambda name, count: columns[count][name])


def _claims(p_values: Array, weights: Sequence[float]) -> Array:
    return np.asarray(p_values) < np.asarray(holm_levels(list(p_values), weights))


def _block_percentiles(
    random: np.random.Generator, operations: int, shape: tuple[int, int], edge: bool
) -> Array:
    """Logarithms of each block's p99, drawn as an order statistic: no operation is simulated one by one."""
    rank = math.ceil(0.99 * operations)
    place = random.beta(rank, operations - rank + 1, shape)
    if edge:  # 1.2 % of the operations miss a cache and take fifty times as long
        return np.where(place > 0.988, math.log(50), 0.0) + 0.1 * random.standard_normal(shape)
    return ndtri(place) + 0.1 * random.standard_normal(shape)


def percentiles() -> Iterator[str]:
    """The p99 of two targets, by block."""
    yield "## Percentiles\n"
    yield (
        "Two targets with the same latencies (lognormal, shape 1; blocks vary by 10 %), the second with"
        " half as many operations, since a closed loop on a slower target has fewer. Coverage of the ratio"
        f" of the p99s, {SERIES:,} comparisons each. The fewest operations are those from which a p99 is"
        " reported. The last row is at the edge between hits and misses of a cache, where a p99 is no"
        " stable figure: there it may fail, and does where the numbers of operations differ and are small.\n"
    )
    cases = {
        f"{operations:,} operations{', at an edge' if edge else ''}": (operations, edge)
        for operations, edge in ((2_000, False), (20_000, False), (20_000, True), (2_000, True))
    }

    def cell(name: str, blocks: int) -> str:
        operations, edge = cases[name]
        random, shape = random_of(60, blocks, operations), (SERIES, blocks)
        base = _block_percentiles(random, operations, shape, edge)
        other = _block_percentiles(random, operations // 2, shape, edge)
        return share(int(_within(other - base).sum()), SERIES)

    yield from grid("blocks", BLOCKS, cases, cell)


def over_time() -> Iterator[str]:
    """Drift, level, dependence."""
    tries, blocks, series = 1000, (5, 6, 8, 12, 20, 30), 6
    yield "## Changes over time\n"
    yield (
        f"Studies of {series} series. First row: share in which something is said although nothing changes,"
        f" in percent of {tries:,} studies; then share of 100 studies that find what changes in one of the"
        " series: a drift by four standard deviations, a step by three in the middle, a first block off by"
        " eight, a correlation of 0.8.\n"
    )
    effects: dict[str, Callable[[Array, int, int], Array]] = {
        "drift": lambda row, n, _: row + 4 * np.linspace(-0.5, 0.5, n),
        "level": lambda row, n, _: row + 3.0 * (np.arange(n) >= n // 2),
        "warm-up": lambda row, n, _: row + 8.0 * (np.arange(n) == 0),
        "correlation": lambda _, n, k: autoregressive(0.8)(random_of(71, n, k), 1, n)[0],
    }

    def plain(n: int, k: int) -> Array:
        return random_of(70, n, k).standard_normal((series, n))

    def cell(name: str, n: int) -> str:
        if name not in effects:
            return share(sum(bool(find_changes(plain(n, k))) for k in range(tries)), tries)
        hits = 0
        for k in range(100):
            values = plain(n, k)
            values[0] = effects[name](values[0], n, k)
            hits += any(change.series == 0 for change in find_changes(values))
        return share(hits, 100)

    yield from grid("blocks", blocks, ["nothing changes", *effects], cell)


def power() -> Iterator[str]:
    """The known slowdown by 10 %, equivalence, and the smallest difference."""
    effect, variations = -math.log(1.1), {f"{v:.0%}": v for v in (0.02, 0.03, 0.05, 0.1, 0.15)}
    levels = {"1 comparison": ALPHA, "2 comparisons": 0.04, "14, first step": ALPHA * 4 / 35}
    yield "## Power\n"
    yield (
        "Share of studies of 12 blocks that find a slowdown by 10 %, by the variation of the ratio from"
        f" block to block, and (last row) whose interval holds its size; {SERIES:,} studies each.\n"
    )

    def cell(name: str, variation: str) -> str:
        rows = effect + variations[variation] * random_of(80).standard_normal((SERIES, 12))
        if name not in levels:
            return share(int(_within(rows, effect).sum()), SERIES)
        found = mean_of_blocks(rows)
        return share(int((found.beyond(np.abs(found.mean)) < levels[name]).sum()), SERIES)

    yield from grid("variation", variations, [*levels, "size in interval"], cell)
    yield from _equivalence()
    blocks = {f"{n} blocks": n for n in FEWER}
    shown = {f"{v:.0%}": v for v in (0.02, 0.1, 0.25)}
    yield "Smallest difference found in four of five studies (what `leadline plan` prints), one comparison:\n"
    yield from grid(
        "variation",
        blocks,
        shown,
        lambda v, n: f"{100 * (smallest_difference(blocks[n], shown[v], ALPHA) or 0):.1f} %",
    )


def _equivalence() -> Iterator[str]:
    variation, margin = 0.03, math.log1p(0.05)
    yield (
        '"The same within 5 %" is said when the whole interval lies within the margin: stricter than two'
        " one-sided tests, which ask it of a 90 % interval. Share of studies that say it, variation"
        f" {variation:.0%}.\n"
    )
    truths = {f"true difference {truth:.0%}": truth for truth in (0.0, 0.02, 0.05, 0.1)}

    def cell(name: str, n: int) -> str:
        rows = math.log1p(truths[name]) + variation * random_of(90, n).standard_normal((SERIES, n))
        found = mean_of_blocks(rows)
        half = found.half_width(ALPHA)
        return share(int(((np.abs(found.mean) + half) <= margin).sum()), SERIES)

    yield from grid("blocks", (4, 6, 8, 12, 20, 30), truths, cell)


SECTIONS: Mapping[str, Callable[[], Iterator[str]]] = {
    **{
        one.__name__: one
        for one in (coverage, fresh, warnings, apart, multiplicity, percentiles, over_time, power)
    },
    **studies.SECTIONS,
    "sweep_knees": sweep.knees,
    "sweep_grids": sweep.grids,
}
NAMED = {"real": coverage_real.real, "real_few": coverage_real.real_few}

if __name__ == "__main__":
    Document.command(HERE / "coverage.md", INTRODUCTION, SECTIONS, __doc__, NAMED, ("lab", "slowdown"))
