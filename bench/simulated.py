"""Simulation of what is said after a run: intervals, many comparisons, percentiles, changes, power."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fresh_scenarios import FRESH
from leadline.analysis.statistics.drift import find_changes
from leadline.analysis.statistics.intervals import ALPHA, holm_levels, lopsided, mean_of_blocks
from leadline.analysis.statistics.moderated import smallest_difference
from leadline.verdict.comparisons.deciding import FEW_BLOCKS
from scenarios import BEYOND, SCENARIOS, Array, Scenario, autoregressive, lognormal, normal
from shares import BLOCKS, SERIES, STUDIES, bounds, random_of, share, table

WORKS, PRIMARY_WEIGHT = 7, 4.0
_SKEWED = ("gamma 0.5", "lognormal 1.0", "rare outliers", "skewed and correlated")


def covered(scenario: Scenario, blocks: int, key: int) -> int:
    """How many of SERIES intervals hold their true mean, which is 0."""
    found = mean_of_blocks(scenario(random_of(key, blocks), SERIES, blocks))
    return int((found.beyond(np.abs(found.mean)) >= ALPHA).sum())


def students_coverage(scenario: Scenario, blocks: int, key: int) -> int:
    """The same for Student's t, to show what the method changes."""
    from scipy.special import stdtr

    rows = scenario(random_of(key, blocks), SERIES, blocks)
    t = np.abs(rows.mean(axis=1)) / (rows.std(axis=1, ddof=1) / math.sqrt(blocks))
    return int((2 * stdtr(blocks - 1, -t) >= ALPHA).sum())


def coverage() -> Iterator[str]:
    """coverage of the 95 % interval of one comparison."""
    yield "## Coverage of the interval\n"
    yield (
        f"Share of 95 % intervals that hold the true ratio, in percent, over {SERIES:,} comparisons"
        f" each, with"
        " Clopper-Pearson bounds. 93 is asked for. More than 95 is over-coverage: the price of holding"
        " where blocks depend on each other; nobody can see from so few blocks that they do not.\n"
    )
    groups = {"Scenarios that it is made for": SCENARIOS, "Beyond them": BEYOND}
    for group, (title, scenarios) in enumerate(groups.items()):
        yield f"### {title}\n"
        rows, lowest = [], 1.0
        for key, (name, scenario) in enumerate(scenarios.items()):
            hits = [covered(scenario, blocks, 10 * group + key) for blocks in BLOCKS]
            lowest = min(lowest, *(bounds(hit, SERIES)[0] for hit in hits))
            rows.append([name, *(share(hit, SERIES) for hit in hits)])
        yield table(["blocks", *map(str, BLOCKS)], rows)
        yield f"The lowest lower bound is {100 * lowest:.1f}.\n"
    rows = [
        [name, *(f"{100 * students_coverage(s, b, 30) / SERIES:.1f}" for b in BLOCKS)]
        for name, s in {**SCENARIOS, **BEYOND}.items()
    ]
    yield "### Student's t on the same scenarios, for comparison\n"
    yield table(["blocks", *map(str, BLOCKS)], rows)


def fresh() -> Iterator[str]:
    """Coverage on scenarios that nothing was tuned on."""
    yield "## Coverage on scenarios unseen before\n"
    yield (
        "The interval was chosen on the scenarios above. These (`bench/fresh_scenarios.py`) were written down"
        " after that, and tried once; nothing of the interval was changed afterwards. What was changed: the"
        " warning of lopsided blocks (next section) was added, because heavily skewed scenarios came out"
        f" below 93 without a word from six blocks on. Percent of {SERIES:,} comparisons each.\n"
    )
    rows, failing = [], []
    for key, (name, scenario) in enumerate(FRESH.items()):
        hits = [covered(scenario, blocks, 200 + key) for blocks in BLOCKS]
        rows.append([name, *(share(hit, SERIES) for hit in hits)])
        if min(bounds(hit, SERIES)[0] for hit in hits) < 0.93:
            failing.append(name)
    yield table(["blocks", *map(str, BLOCKS)], rows)
    yield f"Not at 93 with their whole bounds at every number of blocks: {', '.join(failing) or 'none'}.\n"


def warned(rows: Array) -> NDArray[np.bool_]:
    """Which comparisons the program says something about, each a study of its own."""
    return np.array([bool(find_changes([row])) or lopsided(list(row), ALPHA) is not None for row in rows])


def warnings() -> Iterator[str]:
    """What the program says where the interval does not hold."""
    tries, blocks = 400, (3, 5, 6, 8, 12, 20, 30)
    yield "## What is said where it fails\n"
    yield (
        "Below six blocks every comparison is labelled: it rests on assumptions. From five blocks on a"
        ' permutation test looks for changes and dependence ("neighbouring blocks resembled each other … the'
        ' interval may be too narrow"), from six on another test for lopsided blocks ("a few blocks far to'
        ' one side of the others"). Share of comparisons that carry a warning, in percent of'
        f" {tries}; the first row is the rate of false warnings of both tests together, each of which errs in"
        " one of twenty studies. In brackets: how many of those without a warning hold.\n"
    )
    rows = []
    chosen = {name: FRESH[name] for name in _SKEWED}
    for name, scenario in {"normal": normal, **BEYOND, **chosen}.items():
        cells = []
        for count in blocks:
            if count < FEW_BLOCKS:
                cells.append("100: label")
                continue
            series = scenario(random_of(40, count), tries, count)
            found = mean_of_blocks(series)
            held, said = found.beyond(np.abs(found.mean)) >= ALPHA, warned(series)
            silent = f"{100 * held[~said].mean():.0f}" if not said.all() else "-"
            cells.append(f"{100 * said.mean():.0f} ({silent})")
        rows.append([name, *cells])
    yield table(["blocks", *map(str, blocks)], rows)
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
    pairs = ((3, 3), (4, 4), (6, 6), (6, 20), (12, 12), (30, 30))
    cases: dict[str, tuple[Scenario, float]] = {
        "normal": (normal, 1.0),
        "normal, one scatters four times as much": (normal, 4.0),
        "lognormal": (lognormal, 1.0),
        "lognormal, one scatters four times as much": (lognormal, 4.0),
        "autocorrelated 0.5": (autoregressive(0.5), 1.0),
    }
    rows = []
    for key, (name, (scenario, ratio)) in enumerate(cases.items()):
        cells = []
        for first, second in pairs:
            base = mean_of_blocks(scenario(random_of(300 + key, first), SERIES, first))
            other = mean_of_blocks(ratio * scenario(random_of(320 + key, second), SERIES, second))
            margin = np.hypot(base.half_width(ALPHA), other.half_width(ALPHA))
            cells.append(share(int((np.abs(other.mean - base.mean) <= margin).sum()), SERIES))
        rows.append([name, *cells])
    yield table(["blocks", *(f"{first} and {second}" for first, second in pairs)], rows)


def study_p_values(blocks: int, key: int, effects: Array) -> Array:
    """P-values of STUDIES studies: WORKS primary comparisons, then their p99 (correlated by -0.7)."""
    random = random_of(50 + key, blocks)
    primary = random.standard_normal((STUDIES, WORKS, blocks))
    own = random.standard_normal((STUDIES, WORKS, blocks))
    both = np.concatenate([primary, -0.7 * primary + math.sqrt(1 - 0.49) * own], axis=1)
    both = both + effects[None, :, None]
    found = mean_of_blocks(both.reshape(-1, blocks))
    return found.beyond(np.abs(found.mean)).reshape(STUDIES, 2 * WORKS)


def multiplicity() -> Iterator[str]:
    """studies of a directory against itself, and studies where some works differ."""
    yield "## Many comparisons in one study\n"
    yield (
        f"{STUDIES:,} studies of {WORKS} works on two targets, two metrics each: {2 * WORKS}"
        f" comparisons. Share of"
        " studies that claim any difference that is not there, in percent; at most 5 is asked for."
        " Last row: four of the works differ by three standard deviations; differences found among them.\n"
    )
    weights = [PRIMARY_WEIGHT] * WORKS + [1.0] * WORKS
    effects = np.zeros(2 * WORKS)
    some = effects.copy()
    some[:4] = 3.0
    some[WORKS : WORKS + 4] = -3.0
    rows: dict[str, list[str]] = {
        name: []
        for name in ("against itself", "against itself, uncorrected", "some differ: false claims", "power")
    }
    blocks = (3, 4, 6, 8, 12, 20, 30)
    for count in blocks:
        null, mixed = study_p_values(count, 1, effects), study_p_values(count, 2, some)
        claims = [_claims(row, weights) for row in null]
        rows["against itself"].append(share(int(sum(c.any() for c in claims)), STUDIES))
        rows["against itself, uncorrected"].append(share(int((null < ALPHA).any(axis=1).sum()), STUDIES))
        claims = [_claims(row, weights) for row in mixed]
        rows["some differ: false claims"].append(share(int(sum(c[some == 0].any() for c in claims)), STUDIES))
        rows["power"].append(f"{100 * np.mean([c[:4].mean() for c in claims]):.0f}")
    yield table(["blocks", *map(str, blocks)], [[name, *cells] for name, cells in rows.items()])


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
    """the p99 of two targets, by block."""
    yield "## Percentiles\n"
    yield (
        "Two targets with the same latencies (lognormal, shape 1; blocks vary by 10 %), the second with"
        " half as"
        " many operations, since a closed loop on a slower target has fewer. Coverage of the ratio of"
        " the p99s,"
        f" {SERIES:,} comparisons each. The fewest operations are those from which a p99 is reported."
        f" The last row"
        " is at the edge between hits and misses of a cache, where a p99 is no stable figure: there it"
        " may fail,"
        " and does where the numbers of operations differ and are small.\n"
    )
    rows = []
    for operations, edge in ((2_000, False), (20_000, False), (20_000, True), (2_000, True)):
        cells = []
        for blocks in BLOCKS:
            random = random_of(60, blocks, operations)
            base = _block_percentiles(random, operations, (SERIES, blocks), edge)
            other = _block_percentiles(random, operations // 2, (SERIES, blocks), edge)
            found = mean_of_blocks(other - base)
            cells.append(share(int((found.beyond(np.abs(found.mean)) >= ALPHA).sum()), SERIES))
        rows.append([f"{operations:,} operations{', at an edge' if edge else ''}", *cells])
    yield table(["blocks", *map(str, BLOCKS)], rows)


def over_time() -> Iterator[str]:
    """drift, level, dependence."""
    tries, blocks, series = 1000, (5, 6, 8, 12, 20, 30), 6
    yield "## Changes over time\n"
    yield (
        f"Studies of {series} series. First row: share in which something is said although nothing"
        f" changes, in"
        f" percent of {tries:,} studies; then share of 100 studies that find what changes in one of the"
        f" series: a"
        " drift by four standard deviations, a step by three in the middle, a first block off by eight, a"
        " correlation of 0.8.\n"
    )
    rows = [
        [
            "nothing changes",
            *(
                share(sum(bool(find_changes(_plain(series, n, k))) for k in range(tries)), tries)
                for n in blocks
            ),
        ]
    ]
    effects = {
        "drift": lambda n: 4 * np.linspace(-0.5, 0.5, n),
        "level": lambda n: 3.0 * (np.arange(n) >= n // 2),
        "warm-up": lambda n: 8.0 * (np.arange(n) == 0),
    }
    for name, effect in effects.items():
        cells = []
        for n in blocks:
            hits = 0
            for k in range(100):
                values = _plain(series, n, k)
                values[0] += effect(n)
                hits += any(change.series == 0 for change in find_changes(values))
            cells.append(share(hits, 100))
        rows.append([name, *cells])
    cells = []
    for n in blocks:
        hits = 0
        for k in range(100):
            values = _plain(series, n, k)
            values[0] = autoregressive(0.8)(random_of(71, n, k), 1, n)[0]
            hits += any(change.series == 0 for change in find_changes(values))
        cells.append(share(hits, 100))
    rows.append(["correlation", *cells])
    yield table(["blocks", *map(str, blocks)], rows)


def _plain(series: int, blocks: int, key: int) -> Array:
    return random_of(70, blocks, key).standard_normal((series, blocks))


def power() -> Iterator[str]:
    """the known slowdown by 10 %, equivalence, and the smallest difference."""
    yield "## Power\n"
    effect, variations = -math.log(1.1), (0.02, 0.03, 0.05, 0.1, 0.15)
    levels = (("1 comparison", ALPHA), ("2 comparisons", 0.04), ("14, first step", ALPHA * 4 / 35))
    yield (
        "Share of studies of 12 blocks that find a slowdown by 10 %, by the variation of the ratio from"
        " block to"
        f" block, and (last row) whose interval holds its size; {SERIES:,} studies each.\n"
    )
    rows, held = [], []
    for name, level in levels:
        cells = []
        for variation in variations:
            rows_found = effect + variation * random_of(80).standard_normal((SERIES, 12))
            found = mean_of_blocks(rows_found)
            cells.append(share(int((found.beyond(np.abs(found.mean)) < level).sum()), SERIES))
            if name == "1 comparison":
                held.append(share(int((found.beyond(np.abs(found.mean - effect)) >= ALPHA).sum()), SERIES))
        rows.append([name, *cells])
    yield table(["variation", *(f"{v:.0%}" for v in variations)], [*rows, ["size in interval", *held]])
    yield from _equivalence()
    blocks = (3, 4, 6, 8, 12, 20, 30)
    yield "Smallest difference found in four of five studies (what `leadline plan` prints), one comparison:\n"
    yield table(
        ["variation", *(f"{n} blocks" for n in blocks)],
        [
            [f"{v:.0%}", *(f"{100 * (smallest_difference(n, v, ALPHA) or 0):.1f} %" for n in blocks)]
            for v in (0.02, 0.1, 0.25)
        ],
    )


def _equivalence() -> Iterator[str]:
    blocks, variation, margin = (4, 6, 8, 12, 20, 30), 0.03, math.log1p(0.05)
    yield (
        '"The same within 5 %" is said when the whole interval lies within the margin: stricter than two'
        " one-sided"
        f" tests, which ask it of a 90 % interval. Share of studies that say it, variation {variation:.0%}.\n"
    )
    rows = []
    for truth in (0.0, 0.02, 0.05, 0.1):
        cells = []
        for n in blocks:
            series = math.log1p(truth) + variation * random_of(90, n).standard_normal((SERIES, n))
            found = mean_of_blocks(series)
            half = found.half_width(ALPHA)
            cells.append(share(int(((np.abs(found.mean) + half) <= margin).sum()), SERIES))
        rows.append([f"true difference {truth:.0%}", *cells])
    yield table(["blocks", *map(str, blocks)], rows)
