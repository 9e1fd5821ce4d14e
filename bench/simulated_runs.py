"""Simulation of what decides while a run goes on, and of what is seen inside its trials."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.statistics.drift import find_shift
from leadline.analysis.statistics.intervals import ALPHA_AFTER_LOOKS, holm_levels, mean_of_blocks
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.comparisons.stopping import FIRST_LOOK
from scenarios import SCENARIOS, Array, Scenario, autoregressive, lognormal, normal
from shares import STUDIES, random_of, share, table

WORKS, LONGEST, EXTRA, SPENDERS = 4, 60, 24, 1000


def sequential() -> Iterator[str]:
    """Stopping when the interval is narrow."""
    yield "## Stopping when intervals are narrow (`--until`)\n"
    yield (
        f"Blocks are added until the interval is as narrow as asked, looked at after each block from"
        f" {FIRST_LOOK}"
        f" to 60; {STUDIES:,} comparisons each. Coverage at the end, in percent; false claims in studies"
        f" of equal"
        " targets are what is missing to 100. Such a run decides at a level of 3 % for this: at 5 % the"
        " coverage would fall to 91 where blocks are correlated. The same holds for the mean of a single"
        " target, whose interval is drawn at this level too: it is the same interval, of a logarithm.\n"
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


def budget() -> Iterator[str]:
    """Spending a budget where the widest interval is."""
    yield "## Spending a budget where intervals are widest (`--budget`)\n"
    yield (
        f"{SPENDERS:,} studies of {WORKS} works on two equal targets: {EXTRA} blocks are added one by one,"
        " each to the work whose interval is widest at that moment. Share of studies that claim a difference,"
        " in percent (at most 5 is asked for; decided at 3 %, corrected for the number of works), and the"
        " lowest coverage of a work's interval at the same 3 %. Choosing by width is choosing by scatter, not"
        " by what the blocks say; but scatter is badly known from few blocks, and hangs together with the"
        " mean where blocks are skewed. The program chooses from six blocks on. A first version chose from"
        " the planned three, which is shown beside it; in 2,000 studies with 40 blocks added, 5.5 % of them"
        " (4.5 to 6.5) claimed a difference then where blocks are correlated.\n"
    )
    rows = []
    cases: dict[str, tuple[Scenario, tuple[float, ...]]] = {
        "normal, alike": (normal, (1.0,) * WORKS),
        "normal, scatter 1 to 4": (normal, (1.0, 2.0, 3.0, 4.0)),
        "lognormal, alike": (lognormal, (1.0,) * WORKS),
        "bimodal, alike": (SCENARIOS["bimodal"], (1.0,) * WORKS),
        "autocorrelated 0.5, alike": (autoregressive(0.5), (1.0,) * WORKS),
        "autocorrelated 0.5, scatter 1 to 4": (autoregressive(0.5), (1.0, 2.0, 3.0, 4.0)),
    }
    for key, (name, (scenario, scatter)) in enumerate(cases.items()):
        for start in (3, 6):
            p_values, lengths = _spend(scenario, np.array(scatter), start, key)
            claims = sum(bool((row < np.array(_levels(row))).any()) for row in p_values)
            held = [int((p_values[:, work] >= ALPHA_AFTER_LOOKS).sum()) for work in range(WORKS)]
            spread = " ".join(f"{lengths[:, work].mean():.0f}" for work in range(WORKS))
            rows.append([name, str(start), spread, share(claims, SPENDERS), share(min(held), SPENDERS)])
    headings = ["scenario", "chosen from", "blocks of the works, mean", "studies that claim", "coverage"]
    yield table(headings, rows)


def _levels(p_values: Array) -> tuple[float, ...]:
    return holm_levels(list(p_values), alpha=ALPHA_AFTER_LOOKS)


def _spend(scenario: Scenario, scatter: Array, start: int, key: int) -> tuple[Array, Array]:
    """Each work's p-value of the truth and its number of blocks, study by study."""
    every = scenario(random_of(400 + key, start), SPENDERS * WORKS, LONGEST).reshape(SPENDERS, WORKS, LONGEST)
    every = every * scatter[None, :, None]
    lengths = np.full((SPENDERS, WORKS), start)
    widths = np.zeros((SPENDERS, WORKS))
    studies, works = np.divmod(np.arange(SPENDERS * WORKS), WORKS)
    for _ in range(EXTRA + 1):
        _measure_widths(every, lengths, widths, studies, works)
        studies, works = np.arange(SPENDERS), widths.argmax(axis=1)
        lengths[studies, works] += 1
    lengths[studies, works] -= 1  # the last choice was not run
    p_values = np.empty((SPENDERS, WORKS))
    for count in np.unique(lengths):
        chosen = lengths == count
        found = mean_of_blocks(every[chosen][:, :count])
        p_values[chosen] = found.beyond(np.abs(found.mean))
    return p_values, lengths


def _measure_widths(every: Array, lengths: Array, widths: Array, studies: Array, works: Array) -> None:
    """Widths of the named works anew, at the level while nothing differs; a full work wants no more."""
    now = lengths[studies, works]
    for count in np.unique(now):
        one, other = studies[now == count], works[now == count]
        half = mean_of_blocks(every[one, other, :count]).half_width(ALPHA_AFTER_LOOKS / WORKS)
        widths[one, other] = half if count < LONGEST else 0.0


def level_shift() -> Iterator[str]:
    """A step inside a trial: false alarms and power."""
    limit = catalogue()["level_shift"].thresholds
    tries, counts, trials = 600, (8, 10, 20, 30, 60, 120), 4
    yield "## Level shifts within a trial (`level_shift`)\n"
    yield (
        f"Share of trials in which a step is found at the level of {limit['p_value']:.0%} although there is"
        f" none, in percent of {tries}; in brackets the share of cells of {trials} trials that would say so"
        f" (at least {limit['share_of_trials']:.0%} of their trials). The code also wants a step of"
        f" {limit['size']:.0%} of the rate between the medians of both levels, which is not counted here. A"
        " random walk has no level; what is said of it is no false alarm. Columns: intervals in a trial.\n"
    )
    quiet: dict[str, Scenario] = {
        "independent": normal,
        "autocorrelated 0.3": autoregressive(0.3),
        "autocorrelated 0.5": autoregressive(0.5),
        "autocorrelated 0.8": autoregressive(0.8),
        "autocorrelated 0.9": autoregressive(0.9),
        "lognormal": lognormal,
        "pauses in one of ten": _pausing,
        "random walk": lambda random, series, count: random.standard_normal((series, count)).cumsum(axis=1),
    }
    rows = []
    for key, (name, scenario) in enumerate(quiet.items()):
        cells = []
        for count in counts:
            found = _alarms(scenario(random_of(500 + key, count), tries, count), limit["p_value"])
            cell_says = found.reshape(-1, trials).mean(axis=1) >= limit["share_of_trials"]
            cells.append(f"{share(int(found.sum()), tries)} [{100 * cell_says.mean():.1f}]")
        rows.append([name, *cells])
    yield table(["intervals", *map(str, counts)], rows)
    yield (
        "Share of trials in which a step in the middle is found, in percent of 200, by its size in standard"
        " deviations of an interval.\n"
    )
    rows = []
    for rho in (0.0, 0.5):
        for size in (2, 4, 6):
            cells = []
            for count in counts:
                series = autoregressive(rho)(random_of(520 + size, count), 200, count)
                series = series + size * (np.arange(count) >= count // 2)
                cells.append(share(int(_alarms(series, limit["p_value"]).sum()), 200))
            rows.append([f"step of {size}, correlation {rho:g}", *cells])
    yield table(["intervals", *map(str, counts)], rows)


def _alarms(rows: Array, level: float) -> NDArray[np.bool_]:
    found = [find_shift(100 + row) for row in rows]
    return np.array([shift is not None and shift.p_value <= level for shift in found])


def _pausing(random: np.random.Generator, series: int, count: int) -> Array:
    """Now and then nothing is done for an interval."""
    return np.where(random.random((series, count)) < 0.1, -30.0, random.standard_normal((series, count)))
