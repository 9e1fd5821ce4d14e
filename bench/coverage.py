"""Do the intervals and verdicts hold? Simulation of every statistic, and real studies of a directory
against itself. Prints Markdown:

    python bench/coverage.py > bench/coverage.md                   # some minutes
    python bench/coverage.py --real /dev/shm >> bench/coverage.md  # on tmpfs, some minutes more
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import betaincinv, ndtri

from leadline.analysis.drift import find_changes
from leadline.analysis.intervals import mean_of_blocks
from leadline.analysis.multiplicity import ALPHA, ALPHA_AFTER_LOOKS, holm_levels
from leadline.analysis.power import smallest_difference
from leadline.verdict.stopping import FIRST_LOOK
from scenarios import BEYOND, SCENARIOS, Array, Scenario, autoregressive, normal

BLOCKS = (3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30)
SERIES = 4000
STUDIES = 2000
SEED = 20260131
WORKS, PRIMARY_WEIGHT = 7, 4.0


def bounds(hits: int, tries: int) -> tuple[float, float]:
    """The 95 % interval of a share by Clopper and Pearson, Biometrika 26 (1934)."""
    low = float(betaincinv(hits, tries - hits + 1, 0.025)) if hits else 0.0
    high = float(betaincinv(hits + 1, tries - hits, 0.975)) if hits < tries else 1.0
    return low, high


def share(hits: int, tries: int) -> str:
    """A share in percent with its bounds."""
    low, high = bounds(hits, tries)
    return f"{100 * hits / tries:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, figures to the right."""
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def random_of(*key: int) -> np.random.Generator:
    """The same numbers at each run, others for each table cell."""
    return np.random.default_rng([SEED, *key])


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
    """Section 1: coverage of the 95 % interval of one comparison."""
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


def warnings() -> Iterator[str]:
    """Section 2: what the program says where the interval does not hold."""
    tries, blocks = 300, (3, 5, 6, 8, 12, 20, 30)
    yield "### What is said where it fails\n"
    yield (
        "Below six blocks every comparison is labelled: it rests on assumptions. From five blocks on a"
        ' permutation test looks for dependence: "neighbouring blocks resembled each other … the'
        " interval may be too"
        f' narrow". Share of {tries} comparisons that carry a warning, in percent; the first row is the rate'
        " of false warnings. A slow mode that did not occur in any block leaves no trace: only the label"
        " and more blocks help.\n"
    )
    rows = []
    for name, scenario in {"normal": normal, **BEYOND}.items():
        cells = []
        for count in blocks:
            if count < FIRST_LOOK:
                cells.append("100 (label)")
                continue
            series = scenario(random_of(40, count), tries, count)
            cells.append(share(sum(bool(find_changes([row])) for row in series), tries))
        rows.append([name, *cells])
    yield table(["blocks", *map(str, blocks)], rows)


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
    """Section 3: studies of a directory against itself, and studies where some works differ."""
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
    """Section 4: the p99 of two targets, by block."""
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
    """Section 5: drift, level, dependence."""
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
    """Section 6: the known slowdown by 10 %, equivalence, and the smallest difference."""
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


def sequential() -> Iterator[str]:
    """Section 7: stopping when the interval is narrow."""
    yield "## Stopping when intervals are narrow (`--until`)\n"
    yield (
        f"Blocks are added until the interval is as narrow as asked, looked at after each block from"
        f" {FIRST_LOOK}"
        f" to 60; {STUDIES:,} comparisons each. Coverage at the end, in percent; false claims in studies"
        f" of equal"
        " targets are what is missing to 100. Such a run decides at a level of 3 % for this: at 5 % the"
        " coverage would fall to 91 where blocks are correlated.\n"
    )
    rows = []
    for key, name in enumerate(("normal", "lognormal", "bimodal", "drifting", "autocorrelated 0.5")):
        for wanted in (1.0, 0.6, 0.4):
            hits, lengths = _run_until(SCENARIOS[name], wanted, key)
            rows.append([name, f"{wanted:g}", f"{np.mean(lengths):.0f}", share(hits, STUDIES)])
    yield table(["scenario", "half-width (standard deviations)", "blocks, mean", "coverage"], rows)


def _run_until(scenario: Scenario, wanted: float, key: int) -> tuple[int, Array]:
    longest = 60
    rows = scenario(random_of(100, key), STUDIES, longest)
    length = np.full(STUDIES, longest)
    held = np.zeros(STUDIES, dtype=bool)
    alive = np.arange(STUDIES)
    for blocks in range(FIRST_LOOK, longest + 1):
        found = mean_of_blocks(rows[alive, :blocks])
        done = found.beyond(np.full(alive.size, wanted)) <= ALPHA_AFTER_LOOKS
        done |= blocks == longest
        # A drift that goes on has no mean of its own: the mean of the blocks that were run is asked for.
        truth = 2 * np.linspace(-1, 1, longest)[:blocks].mean() if scenario is SCENARIOS["drifting"] else 0.0
        held[alive[done]] = (found.beyond(np.abs(found.mean - truth)) >= ALPHA_AFTER_LOOKS)[done]
        length[alive[done]] = blocks
        alive = alive[~done]
    return int(held.sum()), length


INTRODUCTION = """# Do the intervals and verdicts hold?

Made by `bench/coverage.py` with a fixed seed. Scenarios are described in `bench/scenarios.py`, in units of
the standard deviation of a log ratio from block to block; the code under test is that which judges results.

How the method came about: nine weightings of the correlations were tried on these scenarios, with other
random numbers, and the narrowest was kept whose lower bounds clear 93 % up to a correlation of 0.5. Which
scenarios count as "beyond" was settled after seeing what could be held. The level of 3 % for `--until` is one
of eight variants of the rule that were tried; five did not hold. So these tables confirm a choice: they are
no test on scenarios unseen.
"""


def main() -> int:
    """Print the simulated part, or with --real DIR the measured one."""
    if sys.argv[1:2] == ["--real"]:
        from real_studies import measured

        sections = [measured(sys.argv[2])]
    else:
        if len(sys.argv) == 1:
            print(INTRODUCTION)
        parts = (coverage, warnings, multiplicity, percentiles, over_time, power, sequential)
        chosen = sys.argv[1:]
        sections = [part() for part in parts if not chosen or part.__name__ in chosen]
    for section in sections:
        for text in section:
            print(text, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
