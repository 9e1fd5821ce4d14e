"""Effects of factors at two levels, from states in which several are changed at once.

In each block every state is measured once. A factor's effect is the mean logarithm over the states that have
it less that over the states that have not (Box, Hunter and Hunter, "Statistics for Experimenters", 2005); so
each block gives one value of each effect, and these are ratios paired by block, as of two cells. Two factors
act on each other where the product of their levels has an effect of its own. In a fraction of all states some
products are the same column: these cannot be told from each other.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from leadline.analysis.statistics.means import Ratio, paired_ratio

Levels = Mapping[str, frozenset[str]]  # by state, the factors that are changed in it
FactorPair = tuple[str, str]


def contrast(values: Mapping[str, Mapping[int, float]], plus: Collection[str]) -> Ratio | None:
    """The mean over the states in `plus` over that of the others, by blocks in which every state has a value.

    `values` are by state and block. None where a value is not positive, or no block is whole.
    """
    minus = [state for state in values if state not in plus]
    blocks = sorted(set.intersection(*(set(found) for found in values.values()))) if values else []
    if not blocks or not plus or not minus:
        return None
    if min(values[state][block] for state in values for block in blocks) <= 0:
        return None
    sides = [[_mean(values, states, block) for block in blocks] for states in (minus, sorted(plus))]
    return paired_ratio(sides[0], sides[1], blocks)


def _mean(values: Mapping[str, Mapping[int, float]], states: Sequence[str], block: int) -> float:
    return math.exp(math.fsum(math.log(values[state][block]) for state in states) / len(states))


def with_factor(levels: Levels, factor: str) -> frozenset[str]:
    """The states that have it."""
    return frozenset(state for state, changed in levels.items() if factor in changed)


def with_both_or_none(levels: Levels, pair: FactorPair) -> frozenset[str]:
    """The states that have both factors, or neither: the product of their levels is positive there."""
    first, second = pair
    return frozenset(state for state, changed in levels.items() if (first in changed) == (second in changed))


def pairs_told(levels: Levels, factors: Sequence[str]) -> tuple[tuple[FactorPair, ...], ...]:
    """All pairs of factors; those in one group cannot be told from each other."""
    groups: dict[frozenset[str], list[FactorPair]] = {}
    for pair in combinations(factors, 2):
        same = with_both_or_none(levels, pair)
        # With the opposite sign it is the same column, too.
        opposite = frozenset(levels) - same
        groups.setdefault(opposite if opposite in groups else same, []).append(pair)
    return tuple(tuple(group) for group in groups.values())


def is_clear(levels: Levels, factors: Sequence[str]) -> bool:
    """Whether every effect is clear of all others, and of every two factors together (resolution IV)."""
    every = frozenset(levels)
    own = [with_factor(levels, factor) for factor in factors]
    pairs = [with_both_or_none(levels, pair) for pair in combinations(factors, 2)]
    halves = all(2 * len(one) == len(every) for one in (*own, *pairs))
    told = {one for column in own for one in (column, every - column)}
    return halves and len(told) == 2 * len(own) and not told.intersection(pairs)
