"""How often a proof of several settings is right: simulated proofs, judged by the code that judges real ones.

    python bench/proofs.py                          # all of it, in two processes
    python bench/proofs.py --only one,nothing       # these sections
    PROOFS=200 python bench/proofs.py               # fewer of each

Writes `bench/proofs.md` (or --output FILE), section by section; what is not made anew stays.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from harness import HERE, Document, table
from leadline.analysis.cells import CellTable
from leadline.analysis.metrics import Measured
from leadline.tuning.proving.proof import DesignKind
from leadline.tuning.proving.request import design_of
from leadline.verdict.comparisons.comparisons import compare_targets
from leadline.verdict.proofs.detection import several
from leadline.verdict.proofs.effects import Effects, StatesDesign, find_effects

PROOFS = int(os.environ.get("PROOFS", "2000"))
INTRODUCTION = """# How often is a proof of several settings right?

Made by `bench/proofs.py`; the seed is fixed, and `leadline tune prove`'s own code plans the states and judges
the figures. Each proof is of one work and one rate. A trial scatters by the standard deviation that is given
(of the logarithm), and each block by 10 % more that all its trials share; neighbouring blocks resemble each
other (0.3). Shares are of all proofs of a row, with the half width of their 95 % interval.
"""
BLOCKS = (4, 6, 8)
DESIGNS: tuple[tuple[DesignKind, str], ...] = (("factorial", "factorial"), ("one_by_one", "one by one"))
CORRELATION, BLOCK_SCATTER, MARGIN, ALPHA = 0.3, 0.1, 0.05, 0.05


@dataclass(frozen=True)
class Truth:
    """What settings multiply a rate by, two of them together, and how much a trial scatters."""

    does: tuple[float, ...]
    noise: float
    kind: DesignKind = "factorial"
    together: float = 1.0

    @property
    def names(self) -> tuple[str, ...]:
        """The settings."""
        return tuple(f"s{at}" for at in range(1, len(self.does) + 1))


NOTHING = Truth((1.0, 1.0, 1.0, 1.0), 0.1)
KNOWN = Truth((1.3, 1.1, 1.0, 0.9), 0.05)


def rates(truth: Truth, design: StatesDesign, blocks: int, chance: np.random.Generator) -> Any:
    """One proof's cells and tables."""
    shared = np.zeros(blocks)
    shared[0] = chance.normal(0, BLOCK_SCATTER)
    for at in range(1, blocks):
        new = chance.normal(0, BLOCK_SCATTER * math.sqrt(1 - CORRELATION**2))
        shared[at] = CORRELATION * shared[at - 1] + new
    effects = dict(zip(truth.names, truth.does, strict=True))
    cells, tables = [], {}
    for state, on in design.levels.items():
        level = math.log(1e4 * math.prod(effects[name] for name in on))
        level += math.log(truth.together) if {"s1", "s2"} <= on else 0.0
        figures = np.exp(level + shared + chance.normal(0, truth.noise, blocks))
        cell = SimpleNamespace(id=f"{state}.work", target=state, work="work")
        cells.append(cell)
        found = {at: Measured({"iops": float(rate)}, {}) for at, rate in enumerate(figures, start=1)}
        tables[cell.id] = CellTable(cell.id, (), found)
    return cells, tables


@cache
def planned(kind: DesignKind, names: tuple[str, ...]) -> StatesDesign:
    """The states, as a result has them."""
    stored = design_of(kind, names)
    return StatesDesign(stored.kind, {state: frozenset(on) for state, on in stored.states.items()}, names)


def judged(truth: Truth, blocks: int, seed: int) -> tuple[dict[str, str], Effects]:
    """The verdict of each setting, and the effects behind them."""
    design = planned(truth.kind, truth.names)
    cells, tables = rates(truth, design, blocks, np.random.default_rng([seed, blocks]))
    states: Any = dict.fromkeys(tables, "VALID")
    if design.fraction:
        effects = find_effects(design, cells, tables, states, ("iops",), MARGIN, ALPHA)
    else:
        compared = compare_targets(cells, tables, states, "without", ("iops",), MARGIN, ALPHA, {"work"})
        named = truth.names if design.kind == "one_by_one" else truth.names[:1]
        by_state = {one.other: one for one in compared}
        found = {
            name: (by_state[design.state_of(name) if design.kind == "one_by_one" else "with"],)
            for name in named
        }
        effects = Effects(found, ())
    rows = [{"setting": name, "value": "1"} for name in effects.of]
    each = several(replace(design, kind="factorial"), rows, effects, ()).each
    return {str(one.settings[0]["setting"]): one.outcome for one in each}, effects


@dataclass(frozen=True)
class Counted:
    """Of many proofs: verdicts by setting, proofs with a false claim, intervals that held, pairs found."""

    verdicts: Mapping[str, Counter[str]]
    false: int
    held: int
    intervals: int
    found: int
    false_pairs: int

    @property
    def shown_held(self) -> str:
        """The share of intervals that hold."""
        return share(self.held, self.intervals)


def count(truth: Truth, blocks: int, proofs: range) -> Counted:
    """Judge them one after the other."""
    verdicts: dict[str, Counter[str]] = {}
    false = held = intervals = found = false_pairs = 0
    real = dict(zip(truth.names, truth.does, strict=True))
    mean = math.sqrt(truth.together)  # over the states of the other one
    for seed in proofs:
        said, effects = judged(truth, blocks, seed)
        wrong = False
        for name, verdict in said.items():
            verdicts.setdefault(name, Counter())[verdict] += 1
            does = real[name] * (mean if name in ("s1", "s2") else 1.0)
            right = "helps" if does > 1.0001 else "harms" if does < 0.9999 else ""
            wrong |= verdict in ("helps", "harms") and verdict != right
            one = effects.of[name][0]
            if one.low is not None and one.high is not None:
                intervals += 1
                held += one.low <= does <= one.high
        false += wrong
        acting = [one for one in effects.interactions if one.best]
        found += any(("s1", "s2") in one.group for one in acting)
        false_pairs += any(truth.together == 1.0 or ("s1", "s2") not in one.group for one in acting)
    return Counted(verdicts, false, held, intervals, found, false_pairs)


def counted(truth: Truth, blocks: int) -> Counted:
    """The same in two processes."""
    halves = [range(0, PROOFS, 2), range(1, PROOFS, 2)]
    with ProcessPoolExecutor(2) as pool:
        first, second = pool.map(partial(count, truth, blocks), halves)
    names = ("false", "held", "intervals", "found", "false_pairs")
    sums = {name: getattr(first, name) + getattr(second, name) for name in names}
    return Counted({name: first.verdicts[name] + second.verdicts[name] for name in first.verdicts}, **sums)


def share(part: int, whole: int) -> str:
    """In percent, with the half width of its interval."""
    p = part / whole
    return f"{100 * p:.1f} ± {100 * 1.96 * math.sqrt(max(p * (1 - p), 1 / whole / 4) / whole):.1f} %"


def nothing() -> Iterator[str]:
    """Four settings that do nothing, by each kind of design."""
    yield from ["## Settings that do nothing", ""]
    yield (
        f"Four settings of which none does anything, trials that scatter by 10 %; {PROOFS:,} proofs a row. At"
        " most 5 % of proofs may say of any setting that it helps or harms; of any pair, that the two act on"
        " each other."
    )
    rows = []
    for kind, words in DESIGNS:
        states = len(design_of(kind, NOTHING.names).states)
        for blocks in BLOCKS:
            found = counted(replace(NOTHING, kind=kind), blocks)
            pairs = share(found.false_pairs, PROOFS) if kind == "factorial" else "-"
            rows.append((words, states, blocks, share(found.false, PROOFS), pairs, found.shown_held))
    headings = "design | states | blocks | a setting falsely helps or harms | a pair falsely acts"
    yield from ["", *table(f"{headings} | intervals that hold", rows)]


def one() -> Iterator[str]:
    """A single setting in two states."""
    yield from ["## One setting", ""]
    yield f"One setting, measured with and without it; trials scatter by 5 %; {PROOFS:,} proofs a row."
    rows = []
    for does in (1.0, 1.1, 1.3):
        words = f"{100 * (does - 1):+.0f} %" if does != 1 else "nothing"
        for blocks in BLOCKS:
            found = counted(Truth((does,), 0.05, "together"), blocks)
            said = found.verdicts["s1"]
            shares = (share(said[name], PROOFS) for name in ("helps", "harms", "nothing", "undecided"))
            rows.append((words, blocks, *shares, found.shown_held))
    headings = "it does | blocks | helps | harms | does nothing here | undecided | intervals that hold"
    yield from ["", *table(headings, rows)]


def known() -> Iterator[str]:
    """Four settings of which three do something."""
    yield from ["## Settings whose effects are known", ""]
    yield (
        f"Four settings, +30 %, +10 %, nothing and -10 %; {PROOFS:,} proofs a row. Right is helps, helps,"
        " does nothing here, harms. One by one takes 5 states a block, the factorial 8."
    )
    right, rows = (("s1", "helps"), ("s2", "helps"), ("s3", "nothing"), ("s4", "harms")), []
    for kind, words in DESIGNS:
        for noise in (0.05, 0.15) if kind == "factorial" else (0.05,):
            for blocks in BLOCKS:
                found = counted(replace(KNOWN, kind=kind, noise=noise), blocks)
                shares = (share(found.verdicts[name][verdict], PROOFS) for name, verdict in right)
                false = share(found.false, PROOFS)
                rows.append((words, f"{100 * noise:.0f} %", blocks, *shares, false, found.shown_held))
    headings = "design | scatter | blocks | +30 % helps | +10 % helps | nothing: does nothing here"
    yield from ["", *table(f"{headings} | -10 % harms | a false claim | intervals that hold", rows)]


def pairs() -> Iterator[str]:
    """Two settings that act on each other."""
    yield from ["## Two that act on each other", ""]
    yield (
        "Four settings that do nothing by themselves; the first two together make 30 % more. Trials scatter"
        f" by 5 %; {PROOFS:,} proofs a row."
    )
    rows = []
    for blocks in BLOCKS:
        found = counted(replace(NOTHING, noise=0.05, together=1.3), blocks)
        shares = (share(count, PROOFS) for count in (found.found, found.false_pairs))
        rows.append((blocks, *shares, found.shown_held))
    headings = "blocks | the pair is found | another pair is | intervals of single effects that hold"
    yield from ["", *table(headings, rows)]


if __name__ == "__main__":
    Document.command(
        HERE / "proofs.md", INTRODUCTION, {f.__name__: f for f in (one, nothing, known, pairs)}, __doc__
    )
