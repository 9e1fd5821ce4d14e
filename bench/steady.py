"""What a cell costs that ends when its figure is known, beside one of a fixed length, at equal error.

    python bench/steady.py                          # simulations, and the tables of what is recorded
    python bench/steady.py --only real              # one of the sections: simulated, real
    python bench/steady.py --record DIR --rounds 5  # real cells first, four minutes a round: a quiet machine

Writes `bench/steady.md`; recordings are kept in `bench/steady.jsonl`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from scipy.signal import lfilter

from document import Document
from leadline.analysis.statistics.intervals import ALPHA_AFTER_LOOKS, mean_of_blocks
from leadline.plan.model import TRIAL_OVERHEAD_S
from leadline.study.work import SteadyState, find_steady
from leadline.verdict.comparisons.stopping import FIRST_LOOK, MOST_BLOCKS
from scenarios import Array
from shares import random_of, table
from steady_real import FIXED_S, LEFT_OUT_S, UNTIL, Recording, record, recorded

HERE = Path(__file__).parent
RAMP_S, MEASURED_S = 600, 1800
GOAL = 0.1
STUDIES = 200
UNTILS = (0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.4)
LONGEST = 60  # windows of one trial: its `runtime`
CELLS = (1, 20)  # of the study: what stands between two blocks of one cell
INTRODUCTION = f"""# Steady state instead of half an hour

Made by `bench/steady.py`. The document that `render` follows measures each cell once: {RAMP_S} s are left
out, the next {MEASURED_S} s count. leadline measures each in short trials in random order, ends a trial when
its rate is steady by slope and range (SNIA's Performance Test Specification: five windows within 20 %, their
line of best fit within 10 %), and adds blocks until the interval of what is asked for is narrow
(`--until 3%`). How much time does that save at equal error? The goal is a tenth.
"""


@dataclass(frozen=True)
class Slow:
    """A part of the logarithm of the rate that changes slowly: its spread, and in how many seconds."""

    spread: float
    seconds: float


@dataclass(frozen=True)
class Model:
    """How a rate varies: from second to second by `fast`, slowly by `slow`, and at the start of a trial, of
    which it is above its mean by `above`, which passes in `passes_s`."""

    fast: float
    slow: tuple[Slow, ...]
    above: float = 0.0
    passes_s: float = 1.0

    @property
    def truth(self) -> float:
        """The mean rate in the long run."""
        return math.exp((self.fast**2 + sum(one.spread**2 for one in self.slow)) / 2)


@dataclass(frozen=True)
class Cost:
    """Seconds of a cell, mean of the studies, and the root of the mean square of its error."""

    seconds: float
    error: float
    bias: float
    blocks: float = 1.0


SNIA = SteadyState()


@dataclass(frozen=True)
class Rule:
    """When a trial is over: after `ramp_s`, once it is steady."""

    asked: SteadyState
    ramp_s: int = 0


LOOSE = SteadyState.model_validate({"windows": 10, "range": "60%"})
RULES = {
    "SNIA's: 5 windows of 1 s, range 20 %, slope 10 %": Rule(SNIA),
    "10 windows of 1 s, range 60 %, slope 10 %": Rule(LOOSE),
    "The same after a `ramp_time` of 25 s": Rule(LOOSE, 25),
}
MODELS = {
    "quiet: 2 % a second, 1 % over a minute": Model(0.02, (Slow(0.01, 60),)),
    "busy: 10 %, 5 % over a minute": Model(0.1, (Slow(0.05, 60),)),
    "busy: 10 %, 5 % over five minutes": Model(0.1, (Slow(0.05, 300),)),
    "busy: 10 %, 5 % over a minute, 5 % over half an hour": Model(0.1, (Slow(0.05, 60), Slow(0.05, 1800))),
    "twice as fast at first, for 5 s": Model(0.05, (Slow(0.03, 60),), 1.0, 5),
    "twice as fast at first, for 150 s": Model(0.05, (Slow(0.03, 60),), 1.0, 150),
}


def _paths(
    random: np.random.Generator, model: Model, states: list[Array], seconds: int
) -> tuple[Array, list[Array]]:
    """Rates of each second (a row a study) and the slow parts by second, going on from `states`."""
    rows = states[0].size
    total = model.fast * random.standard_normal((rows, seconds))
    kept = []
    for part, state in zip(model.slow, states, strict=True):
        keeps = math.exp(-1 / part.seconds)
        noise = part.spread * math.sqrt(1 - keeps**2) * random.standard_normal((rows, seconds))
        path, _ = lfilter([1.0], [1.0, -keeps], noise, axis=1, zi=keeps * state[:, None])
        total += path
        kept.append(path)
    start = 1 + model.above * np.exp(-(np.arange(seconds) + 0.5) / model.passes_s)
    return np.exp(total) * start, kept


def _begin(random: np.random.Generator, model: Model, rows: int) -> list[Array]:
    return [part.spread * random.standard_normal(rows) for part in model.slow]


def _later(random: np.random.Generator, model: Model, states: list[Array], seconds: Array) -> list[Array]:
    """The slow parts so many seconds later, in which nothing was looked at."""
    found = []
    for part, state in zip(model.slow, states, strict=True):
        keeps = np.exp(-seconds / part.seconds)
        fresh = part.spread * np.sqrt(1 - keeps**2) * random.standard_normal(state.size)
        found.append(keeps * state + fresh)
    return found


def _fixed(model: Model, key: int) -> Cost:
    random = random_of(900, key)
    rates, _ = _paths(random, model, _begin(random, model, STUDIES), RAMP_S + MEASURED_S)
    return _cost(
        rates[:, RAMP_S:].mean(axis=1), np.full(STUDIES, RAMP_S + MEASURED_S + TRIAL_OVERHEAD_S), model
    )


def _cost(estimates: Array, seconds: Array, model: Model, blocks: float = 1.0) -> Cost:
    errors = np.log(estimates / model.truth)
    return Cost(float(seconds.mean()), float(np.sqrt((errors**2).mean())), float(errors.mean()), blocks)


def _blocks(model: Model, rule: Rule, cells: int, key: int) -> tuple[Array, Array]:
    """The rate of each block (a row a study), and how long its trial took."""
    asked, ramp = rule.asked, rule.ramp_s
    random, step = random_of(901, key, cells, asked.windows), asked.window // 10**9
    states = _begin(random, model, STUDIES)
    rates, took = np.empty((STUDIES, MOST_BLOCKS)), np.empty((STUDIES, MOST_BLOCKS))
    for block in range(MOST_BLOCKS):
        longest = max(LONGEST, 2 * asked.windows)
        seconds, slow = _paths(random, model, states, ramp + longest * step)
        windows = seconds[:, ramp:].reshape(STUDIES, longest, step).mean(axis=2)
        found = [find_steady(row.tolist(), asked) for row in windows]
        ends = np.array([one.end if one is not None else longest for one in found])
        rates[:, block] = [
            row[end - asked.windows : end].mean() for row, end in zip(windows, ends, strict=True)
        ]
        took[:, block] = ramp + ends * step + TRIAL_OVERHEAD_S
        states = [path[np.arange(STUDIES), ramp + ends * step - 1] for path in slow]
        away = TRIAL_OVERHEAD_S + (cells - 1) * took[:, block].mean()
        states = _later(random, model, states, np.full(STUDIES, away))
    return rates, took


def _until(model: Model, rates: Array, took: Array, wanted: float) -> Cost:
    """Blocks from the first look on until the interval is as narrow as wanted, as `--until` does it."""
    logs = np.log(rates)
    length = np.full(STUDIES, MOST_BLOCKS)
    alive = np.arange(STUDIES)
    for blocks in range(FIRST_LOOK, MOST_BLOCKS):
        done = mean_of_blocks(logs[alive, :blocks]).half_width(ALPHA_AFTER_LOOKS) <= wanted
        length[alive[done]] = blocks
        alive = alive[~done]
        if not alive.size:
            break
    used = np.arange(MOST_BLOCKS) < length[:, None]
    estimates = np.exp((logs * used).sum(axis=1) / length)
    return _cost(estimates, (took * used).sum(axis=1), model, float(length.mean()))


def _at_error(costs: Sequence[Cost], error: float) -> float | None:
    """The least time at which the error is as small, between the widths tried; None where none is."""
    enough = [place for place, one in enumerate(costs) if one.error <= error]
    if not enough:
        return None
    place = max(enough)  # widths rise: the widest that is exact enough
    if place + 1 == len(costs):
        return costs[place].seconds
    near, far = costs[place], costs[place + 1]
    share = math.log(error / near.error) / math.log(far.error / near.error)
    return math.exp((1 - share) * math.log(near.seconds) + share * math.log(far.seconds))


@dataclass(frozen=True)
class Compared:
    """A model measured both ways; `ratio` is the time at equal error over the fixed, None where none is so
    exact."""

    name: str
    model: Model
    cells: int
    fixed: Cost
    usual: Cost
    ratio: float | None

    @property
    def met(self) -> bool:
        """Whether it takes a tenth of the time."""
        return self.ratio is not None and self.ratio <= GOAL

    @property
    def row(self) -> list[str]:
        """For the table."""
        verdict = "met" if self.met else "missed"
        return [
            self.name,
            str(self.cells),
            f"{100 * self.fixed.error:.2f}",
            f"{self.usual.blocks:.0f}",
            f"{self.usual.seconds:.0f}",
            f"{self.usual.seconds / self.fixed.seconds:.3f}",
            f"{100 * self.usual.error:.2f} ({100 * self.usual.bias:+.2f})",
            "not reached" if self.ratio is None else f"{self.ratio:.3g} ({verdict})",
        ]


def _compare(name: str, model: Model, rule: Rule, cells: int, key: int) -> Compared:
    fixed = _fixed(model, key)
    rates, took = _blocks(model, rule, cells, key)
    costs = [_until(model, rates, took, wanted) for wanted in UNTILS]
    equal = _at_error(costs, fixed.error)
    ratio = None if equal is None else equal / fixed.seconds
    return Compared(name, model, cells, fixed, costs[UNTILS.index(UNTIL)], ratio)


_HEADINGS = [
    "how the rate varies",
    "cells of the study",
    "fixed: error, %",
    "`--until 3%`: blocks",
    "seconds",
    "of the fixed time",
    "error (bias), %",
    "time at equal error, of the fixed",
]


def simulated() -> Iterator[str]:
    """Models of a rate, and both ways to measure it."""
    yield "## Simulated\n"
    yield (
        f"{STUDIES} studies each. The logarithm of the rate has a part that is new each second, and slow"
        " parts (first-order autoregressive). A trial has 60 windows at most, and"
        f" {TRIAL_OVERHEAD_S:g} s around it; steadiness, intervals and stopping are those of the program."
        " The error is the root of the mean square of the estimate's distance from the mean in the long run."
        " Equal error: the time at which a width of 0.3 to 40 % (100 blocks at most) has the error of the"
        " fixed cell. In a study of 20 cells the other 19 run between two blocks of one; only its own time"
        " counts.\n"
    )
    for place, (words, rule) in enumerate(RULES.items()):
        models = [
            (key, one) for key, one in enumerate(MODELS.items()) if one[1].above or not rule.ramp_s
        ]  # a ramp is for what begins faster
        found = [
            _compare(name, model, rule, cells, 10 * place + key)
            for key, (name, model) in models
            for cells in CELLS
        ]
        yield f"### {words}\n"
        yield table(_HEADINGS, [one.row for one in found])
        yield from _summed_up(found)


def _summed_up(found: Sequence[Compared]) -> Iterator[str]:
    """Where the goal is met, by what the rows have in common."""
    for steady_start in (True, False):
        for cells in CELLS:
            own = [one for one in found if one.cells == cells and (one.model.above == 0) == steady_start]
            if not own:
                continue
            ratios = [one.ratio for one in own if one.ratio is not None]
            spread = f", at {min(ratios):.2g} to {max(ratios):.2g} of the time" if ratios else ""
            shares = [one.usual.seconds / one.fixed.seconds for one in own]
            errors = [100 * one.usual.error for one in own]
            start = "Trials that begin steady" if steady_start else "Trials that begin faster"
            count = "one cell" if cells == 1 else f"{cells} cells"
            yield (
                f"- {start}, a study of {count}: the goal is met in {sum(one.met for one in own)} of"
                f" {len(own)} models; equal error is reached in {len(ratios)}{spread}. `--until 3%` takes"
                f" {min(shares):.2g} to {max(shares):.2g} of the time, with an error of {min(errors):.1f} to"
                f" {max(errors):.1f} %."
            )
    yield ""


def real(found: Sequence[Recording]) -> Iterator[str]:
    """Recorded cells of both kinds, and a model of how these vary."""
    fixed = [one for one in found if one.kind == "fixed"]
    other = [one for one in found if one.kind == "until"]
    yield "## Recorded on this machine, twenty times shorter\n"
    mean = math.exp(fmean(math.log(one.rate) for one in found))
    yield (
        f"{len(fixed)} rounds of 4 KiB random reads on a directory, one in flight: a trial of {FIXED_S} s"
        f" of which {LEFT_OUT_S} s are left out, and trials that end once five windows of 200 ms are steady,"
        f" with blocks until 3 % or {FIXED_S} s. Nobody knows the truth: the error is the distance from the"
        f" mean of all, {mean:,.0f} operations per second. Load average before the rounds"
        f" {min(one.load for one in found):.1f} to {max(one.load for one in found):.1f}.\n"
    )
    rows = []
    for one in found:
        interval = "" if one.low is None else f"{one.low:,.0f} to {one.high:,.0f}"
        error = f"{100 * math.log(one.rate / mean):+.1f}"
        rows.append(
            [
                str(one.round),
                one.kind,
                str(one.blocks),
                f"{one.seconds:.0f}",
                f"{one.rate:,.0f}",
                interval,
                error,
            ]
        )
    yield table(["round", "cell", "blocks", "seconds", "per second", "interval", "error, %"], rows)
    yield from _compared(fixed, other, mean)
    yield from _as_recorded(fixed)


def _compared(fixed: Sequence[Recording], other: Sequence[Recording], mean: float) -> Iterator[str]:
    errors, times = [], []
    for kind in (fixed, other):
        errors.append(math.sqrt(fmean(math.log(one.rate / mean) ** 2 for one in kind)))
        times.append(fmean(one.seconds for one in kind))
    ratio = times[1] / times[0]
    apart = [
        f"{100 * math.log(mine.rate / theirs.rate):+.0f}"
        for theirs in fixed
        for mine in other
        if mine.round == theirs.round
    ]
    verdict = "met" if ratio <= GOAL and errors[1] <= errors[0] else "**not met**"
    yield (
        f"Error of the fixed cells {100 * errors[0]:.1f} %, of the others {100 * errors[1]:.1f} %, in"
        f" {ratio:.2f} of the time: the goal of a tenth is {verdict} here. Round by"
        f" round the others are {', '.join(apart)} % away from the fixed ones; their mean is geometric over"
        " blocks, which lies below that of seconds the more these scatter. Who else uses the machine decides"
        " here: no length of a cell makes its level one.\n"
    )


def _as_recorded(fixed: Sequence[Recording]) -> Iterator[str]:
    """A fast and a slow part, spread and correlated as the recorded seconds are, simulated at full length."""
    rows = np.log([one.rates[LEFT_OUT_S : FIXED_S - 2] for one in fixed])
    own = rows - rows.mean(axis=1, keepdims=True)
    lags = (1, 5, 20)
    covered = [float((own[:, lag:] * own[:, :-lag]).mean()) for lag in lags]
    variance = float((own**2).mean())
    slow = min(max(covered[0], 0.0), variance)
    falls = min(max(covered[1] / slow, 0.05), 0.99) if slow > 0 else 0.05
    seconds = (lags[1] - lags[0]) / -math.log(falls)
    fast, between = math.sqrt(variance - slow), float(rows.mean(axis=1).std(ddof=1))
    seen = ", ".join(
        f"{value / variance:.2f} after {lag} s" for lag, value in zip(lags, covered, strict=True)
    )
    yield (
        f"From second to second the recorded rates vary by {100 * math.sqrt(variance):.1f} %, with"
        f" correlations of {seen}; the means of the cells, minutes apart, by {100 * between:.1f} %. As a"
        f" model: {100 * fast:.1f} % new each second, {100 * math.sqrt(slow):.1f} % over {seconds:.0f} s,"
        f" {100 * between:.1f} % over ten minutes. Simulated at full length, by SNIA's rule:\n"
    )
    model = Model(fast, (Slow(math.sqrt(slow), seconds), Slow(between, 600.0)))
    yield table(_HEADINGS, [_compare("as recorded", model, Rule(SNIA), cells, 70).row for cells in CELLS])


def main() -> None:
    """Record where asked to, then write both sections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--record", metavar="DIR", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("simulated", "real"))
    parser.add_argument("--output", metavar="FILE", type=Path, default=HERE / "steady.md")
    asked = parser.parse_args()
    if asked.record:
        record(asked.record, HERE / "steady.jsonl", asked.rounds)
    document = Document(asked.output, INTRODUCTION, ("simulated", "real"))
    if asked.only != "real":
        document.make("simulated", simulated)
    if asked.only != "simulated" and (found := recorded(HERE / "steady.jsonl")):
        document.make("real", lambda: real(found))


if __name__ == "__main__":
    main()
