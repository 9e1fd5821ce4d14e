"""Sections of coverage.md that simulate whole studies: few blocks, runs that go on, trials, many hosts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from harness import share, table
from leadline.analysis.statistics.drift import find_shift
from leadline.analysis.statistics.intervals import (
    ALPHA,
    ALPHA_AFTER_LOOKS,
    discovery_levels,
    holm_levels,
    mean_of_blocks,
)
from leadline.analysis.statistics.moderated import moderate
from leadline.analysis.stragglers import hosts_away
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.comparisons.stopping import FIRST_LOOK
from leadline.verdict.hosts import is_straggler
from scenarios import (
    SCENARIOS,
    Array,
    Scenario,
    Shape,
    autoregressive,
    lognormal,
    normal,
    one_cell,
    one_rarely_slow,
    one_target,
    usual,
)
from scenarios import STUDIES as STUDY_SCENARIOS

STUDIES = 2000
SEED = 20260131
Column = TypeVar("Column")


def random_of(*key: int) -> np.random.Generator:
    """The same numbers at each run, others for each table cell."""
    return np.random.default_rng([SEED, *key])


def grid(
    corner: str, columns: Iterable[Column], rows: Iterable[str], cell: Callable[[str, Column], str]
) -> Iterator[str]:
    """A table of what each row has in each column, and an empty line."""
    columns = list(columns)
    headings = " | ".join([corner, *(f">{column}" for column in columns)])
    yield from table(headings, ([name, *(cell(name, column) for column in columns)] for name in rows))
    yield ""


# -- few blocks: intervals that learn from all cells ---------------------------------------------------

WIDE, NARROW = (10, 8), (2, 6)  # targets x works, as `reach` and as `quick` on two targets
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
        made.append(judge(STUDY_SCENARIOS[name](random, shape), effects))
    return made


def _mean(values: list[float]) -> str:
    """A mean over studies, in percent, with its 95 % bounds: comparisons of one study are not independent."""
    half = 1.96 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return f"{100 * float(np.mean(values)):.1f} ± {100 * half:.1f}"


def few_blocks(title: str, size: tuple[int, int], tries: int, blocks: int) -> Iterator[str]:
    """Coverage and false claims of studies of this many targets, works and blocks."""
    targets, works = size
    yield f"## Few blocks: {title}\n"
    yield (
        f"Studies of {targets} targets and {works} works, {(targets - 1) * works} comparisons with the first"
        " target. Scenarios are `STUDIES` of `bench/scenarios.py`, drawn anew for each of"
        f" {tries} studies in which nothing differs and as many in which half of the comparisons do, by four"
        " deviations. Percent, with 95 % bounds over studies. Asked for: coverage of 93 in 11 of the 12; of"
        " what is found at most 5 false; intervals shown of what is found miss in at most 5. In brackets:"
        " each ratio by its own blocks alone, decided by Holm, as before.\n"
    )
    rows, short = [], []
    for key, name in enumerate(STUDY_SCENARIOS):
        same = studies(name, (*size, blocks), tries, differ=False, key=key)
        some = studies(name, (*size, blocks), tries, differ=True, key=100 + key)
        both = [*same, *some]
        held = [float(one.holds.mean()) for one in both]
        if np.mean(held) < 0.93:
            short.append(name)
        own = 100 * np.mean([one.own_holds.mean() for one in both])
        found, before = (
            100 * np.mean([what(one)[one.differs].mean() for one in some if one.differs.any()])
            for what in (lambda one: one.claimed, lambda one: one.claimed_before)
        )
        missed = [float((one.shown_misses & one.claimed).sum() / max(one.claimed.sum(), 1)) for one in some]
        rows.append(
            [
                name,
                f"{_mean(held)} ({own:.1f})",
                _mean([one.false_share for one in some]),
                _mean(missed),
                _mean([float(one.claimed.any()) for one in same]),
                f"{found:.0f} ({before:.0f})",
                f"{100 * np.mean([one.refused for one in both]):.0f}",
            ]
        )
    headings = "scenario | >coverage | >false of found | >shown and missed"
    headings += " | >studies that claim where nothing differs | >found | >not learned"
    yield from [*table(headings, rows), "", f"Coverage below 93: {', '.join(short) or 'none'}.\n"]


def odd_ones() -> Iterator[str]:
    """Coverage of the comparisons that are unlike the others, alone."""
    tries = 120
    yield "## Few blocks: the odd ones alone\n"
    yield (
        "Of the same scenarios only the comparisons of what is odd, which is not the base here:"
        f" {tries} studies of {WIDE[0]} x {WIDE[1]} cells, nothing differs. Coverage in percent; in brackets"
        " by its own blocks.\n"
    )
    every = {
        "one target rarely slow": (one_rarely_slow, WIDE[1]),
        "a target ten times noisier": (one_target, WIDE[1]),
        "a cell unlike all others": (one_cell, 1),
    }

    def cell(name: str, column: str) -> str:
        (scenario, count), blocks = every[name], int(column.split(maxsplit=1)[0])
        made = [
            judge(scenario(random_of(960, blocks, number), (*WIDE, blocks), WIDE[0] - 1), np.zeros(WIDE))
            for number in range(tries)
        ]
        odd = slice(-WIDE[1], None if count > 1 else 1 - WIDE[1])
        own = 100 * np.mean([one.own_holds[odd].mean() for one in made])
        return f"{_mean([float(one.holds[odd].mean()) for one in made])} ({own:.1f})"

    yield from grid("scenario", ("3 blocks", "6 blocks"), every, cell)


def few_blocks_power() -> Iterator[str]:
    """What three and six blocks find."""
    tries = {WIDE: 30, NARROW: 80}
    yield "## Power of few blocks\n"
    yield (
        "Differences found, in percent, where half of the comparisons differ by a factor. Cells vary by"
        f" {_VARIATION:.0%} from block to block, their deviations by a third from each other; {tries[WIDE]}"
        f" studies of {WIDE[0]} x {WIDE[1]} cells, in brackets {tries[NARROW]} of {NARROW[0]} x {NARROW[1]};"
        " then each ratio by its own blocks alone, decided by Holm, as before.\n"
    )
    found = {
        (blocks, factor, size): np.mean(list(_powers((*size, blocks), tries[size], factor)), axis=0)
        for blocks in (3, 6)
        for factor in (1.1, 1.3, 2.0, 3.0, 10.0)
        for size in (WIDE, NARROW)
    }

    def cell(name: str, factor: float) -> str:
        blocks, before = int(name.split(maxsplit=1)[0]), name.endswith("before")
        wide, narrow = (100 * found[blocks, factor, size][before] for size in (WIDE, NARROW))
        return f"{wide:.0f} ({narrow:.0f})"

    names = [f"{blocks} blocks{more}" for blocks in (3, 6) for more in ("", ", as before")]
    yield from grid("factor", dict.fromkeys(factor for _, factor, _ in found), names, cell)


def _powers(shape: Shape, tries: int, factor: float) -> Iterator[tuple[float, float]]:
    for number in range(tries):
        random = random_of(980, *shape, round(10 * factor), number)
        effects = np.zeros(shape[:2])
        effects[1:] = math.log(factor) * random.choice([-1.0, 0.0, 0.0, 1.0], (shape[0] - 1, shape[1]))
        one = judge(_VARIATION * usual(random, shape), effects)
        if one.differs.any():
            yield float(one.claimed[one.differs].mean()), float(one.claimed_before[one.differs].mean())


# -- what decides while a run goes on ------------------------------------------------------------------

WORKS, LONGEST, EXTRA, SPENDERS = 4, 60, 24, 1000


def sequential() -> Iterator[str]:
    """Stopping when the interval is narrow."""
    yield "## Stopping when intervals are narrow (`--until`)\n"
    yield (
        f"Blocks are added until the interval is as narrow as asked, looked at after each block from"
        f" {FIRST_LOOK} to 60; {STUDIES:,} comparisons each. Coverage at the end, in percent; false claims in"
        " studies of equal targets are what is missing to 100. Such a run decides at a level of 3 % for this:"
        " at 5 % the coverage would fall to 91 where blocks are correlated. The same holds for the mean of a"
        " single target, whose interval is drawn at this level too: it is the same interval, of a"
        " logarithm.\n"
    )
    rows = []
    for key, name in enumerate(("normal", "lognormal", "bimodal", "drifting", "autocorrelated 0.5")):
        for wanted in (1.0, 0.6, 0.4):
            hits, lengths = _run_until(SCENARIOS[name], wanted, key)
            rows.append([name, f"{wanted:g}", f"{np.mean(lengths):.0f}", share(hits, STUDIES)])
    yield from table("scenario | >half-width (standard deviations) | >blocks, mean | >coverage", rows)


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
    yield from table(
        "scenario | >chosen from | >blocks of the works, mean | >studies that claim | >coverage", rows
    )


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

    def alarms(name: str, count: int) -> str:
        random = random_of(500 + [*quiet].index(name), count)
        found = _alarms(quiet[name](random, tries, count), limit["p_value"])
        cell_says = found.reshape(-1, trials).mean(axis=1) >= limit["share_of_trials"]
        return f"{share(int(found.sum()), tries)} [{100 * cell_says.mean():.1f}]"

    yield from grid("intervals", counts, quiet, alarms)
    yield (
        "Share of trials in which a step in the middle is found, in percent of 200, by its size in standard"
        " deviations of an interval.\n"
    )
    steps = {f"step of {size}, correlation {rho:g}": (rho, size) for rho in (0.0, 0.5) for size in (2, 4, 6)}

    def steps_found(name: str, count: int) -> str:
        rho, size = steps[name]
        rows = autoregressive(rho)(random_of(520 + size, count), 200, count)
        rows = rows + size * (np.arange(count) >= count // 2)
        return share(int(_alarms(rows, limit["p_value"]).sum()), 200)

    yield from grid("intervals", counts, steps, steps_found)


def _alarms(rows: Array, level: float) -> NDArray[np.bool_]:
    found = [find_shift(100 + row) for row in rows]
    return np.array([shift is not None and shift.p_value <= level for shift in found])


def _pausing(random: np.random.Generator, series: int, count: int) -> Array:
    """Now and then nothing is done for an interval."""
    return np.where(random.random((series, count)) < 0.1, -30.0, random.standard_normal((series, count)))


# -- hosts that are called slow ------------------------------------------------------------------------

Noise = Callable[[np.random.Generator, int, int], Array]
HOSTS = (2, 3, 4, 16, 64)
TRIES = {2: 200, 3: 200, 4: 200, 16: 100, 64: 60}
SLOW = 0.8
_LATE = 0.5  # correlation of neighbouring blocks


def _plain(deviation: float) -> Noise:
    return lambda random, hosts, blocks: random.normal(0, deviation, (hosts, blocks))


def _together(random: np.random.Generator, hosts: int, blocks: int) -> Array:
    """What happens to all of them is large beside what happens to each."""
    return np.asarray(random.normal(0, 0.3, (1, blocks)) + random.normal(0, 0.03, (hosts, blocks)))


def _one_noisy(random: np.random.Generator, hosts: int, blocks: int) -> Array:
    deviation = np.where(np.arange(hosts) == 0, 0.15, 0.03)[:, None]
    return np.asarray(random.normal(0, 1, (hosts, blocks)) * deviation)


def _heavy(random: np.random.Generator, hosts: int, blocks: int) -> Array:
    """Now and then a block of a host is slow: Student's t of three degrees."""
    return np.asarray(0.03 * random.standard_t(3, (hosts, blocks)))


def _correlated(random: np.random.Generator, hosts: int, blocks: int) -> Array:
    rows = random.normal(0, 0.05, (hosts, blocks))
    for block in range(1, blocks):
        rows[:, block] = _LATE * rows[:, block - 1] + np.sqrt(1 - _LATE**2) * rows[:, block]
    return np.asarray(rows)


_HOSTS_NOISE: dict[str, Noise] = {
    "3 % from block to block": _plain(0.03),
    "10 %": _plain(0.1),
    "30 % that all hosts share, 3 % of each": _together,
    "one host five times as noisy": _one_noisy,
    "a slow block now and then (t, 3 degrees)": _heavy,
    "5 %, blocks correlated (0.5)": _correlated,
}


def equal_hosts() -> Iterator[str]:
    """The share of studies that call any host slow, of hosts that are equal."""
    yield from ["## Stragglers: false alarms on equal hosts", ""]
    yield "In % of studies of one cell that name any host, with its 95 % interval. At most 5 was meant."
    yield from ["", *_of_hosts(_tried(slow=1.0, key=1), any)]


def slow_host() -> Iterator[str]:
    """How often one host that is slower by a fifth is found, and how often another one is named."""
    found = _tried(slow=SLOW, key=2)
    yield from ["## Stragglers: one host 20 % slower than the others", ""]
    yield from ["In % of studies of one cell that name it.", "", *_of_hosts(found, lambda named: named[0])]
    yield from ["In % of these that name another host, with it or without.", ""]
    yield from _of_hosts(found, lambda named: any(named[1:]))


# (scenario, hosts) -> of each study, which hosts it names
_Found = Mapping[tuple[str, int], list[list[bool]]]


def _tried(*, slow: float, key: int) -> _Found:
    return {
        (f"{name}, {blocks} blocks", hosts): [
            _named(random_of(950 + key, place, blocks, hosts, at), noise, hosts, blocks, slow)
            for at in range(TRIES[hosts])
        ]
        for place, (name, noise) in enumerate(_HOSTS_NOISE.items())
        for blocks in (3, 6)
        for hosts in HOSTS
    }


def _of_hosts(found: _Found, hit: Callable[[list[bool]], bool]) -> Iterator[str]:
    columns = {f"{hosts} hosts": hosts for hosts in HOSTS}

    def cell(name: str, column: str) -> str:
        hosts = columns[column]
        return share(sum(map(hit, found[name, hosts])), TRIES[hosts])

    return grid("scenario", columns, dict.fromkeys(name for name, _ in found), cell)


def _named(random: np.random.Generator, noise: Noise, hosts: int, blocks: int, slow: float) -> list[bool]:
    """Which hosts are called slow; the first one is."""
    speeds = np.exp(noise(random, hosts, blocks))
    speeds[0] *= slow
    names = [f"{host:03}" for host in range(hosts)]
    by_block = {block: dict(zip(names, speeds[:, block], strict=True)) for block in range(blocks)}
    return [is_straggler(one) for one in hosts_away({"cell": by_block})]


SECTIONS: Mapping[str, Callable[[], Iterator[str]]] = {
    "few_blocks_three": partial(few_blocks, "three, many cells", WIDE, 20, 3),
    "few_blocks_six": partial(few_blocks, "six, many cells", WIDE, 60, 6),
    "few_blocks_two_targets_three": partial(few_blocks, "three, two targets", NARROW, 60, 3),
    "few_blocks_two_targets_six": partial(few_blocks, "six, two targets", NARROW, 160, 6),
    "few_blocks_odd_ones": odd_ones,
    "few_blocks_power": few_blocks_power,
    "sequential": sequential,
    "budget": budget,
    "level_shift": level_shift,
    "stragglers_equal": equal_hosts,
    "stragglers_power": slow_host,
}
