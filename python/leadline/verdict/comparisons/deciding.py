"""From ratios to words: faster, slower, the same within a margin, or undecided; and what more blocks would
tell.

Ratios of few blocks have intervals that rest on how much all cells of the study scatter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.analysis.statistics.intervals import ALPHA, discovery_levels, holm_levels, lopsided
from leadline.analysis.statistics.means import Estimate, Ratio
from leadline.analysis.statistics.moderated import smallest_difference
from leadline.units import format_count, format_duration
from leadline.verdict.kinds import metric_kind, metric_part
from leadline.verdict.model import UNUSABLE, Comparison, MoreBlocks, Outcome, State, Statement
from leadline.verdict.sections.numbers import confidence_words

_STEPS = (6, 12, 24)
_WANTED = 0.2  # a difference that most would want to be told
LARGEST = 2.0  # differences beyond a factor of 3 need no more blocks to be seen
MOST_BLOCKS = _STEPS[-1]


def more_blocks(ratio: Ratio, level: float) -> MoreBlocks | None:
    """The fewest more blocks that tell a difference of 20 %, in four of five studies; else the most of them,
    and what these tell. None where blocks do not pair, or scatter too much.
    """
    if len(ratio.series) != 1 or not ratio.logarithms:
        return None
    variation = float(ratio.series[0].scale[0])
    found = None
    for more in _STEPS:
        tells = smallest_difference(ratio.count + more, variation, level)
        if tells is not None and tells <= LARGEST:
            found = MoreBlocks(more, tells)
        if found is not None and found.tells <= _WANTED:
            break
    return found


def more_statements(comparisons: Sequence[Comparison], block_s: float | None) -> Iterator[Statement]:
    """One sentence: what is undecided, and what it would take. `block_s` is how long a block took."""
    undecided = [one for one in comparisons if one.more is not None]
    if not undecided:
        return
    words = []
    for more in _STEPS:
        tells = [one.more.tells for one in undecided if one.more is not None and one.more.blocks == more]
        if tells:
            cost = f" in about {format_duration(60 * math.ceil(more * block_s / 60))}" if block_s else ""
            count = len(tells)
            which = "this 1" if count == 1 else f"these {count}"
            words.append(f"{more} more{cost} would detect {difference_words(max(tells))} in {which}")
    yield Statement(
        "caution",
        f"{len(undecided)} of {format_count(len(comparisons), 'comparison')} inconclusive, too few blocks:"
        f" {'; '.join(words)}.",
        tuple(
            f"{one.work} {one.metric}, {one.other}: {one.more.blocks} more blocks would detect"
            f" {difference_words(one.more.tells)}"
            for one in undecided
            if one.more is not None
        ),
        says="more_blocks_tell",
    )


def difference_words(difference: float) -> str:
    """Rounded up to a figure that is easily remembered: 3 %, 20 %, a factor of 2."""
    if difference > 0.95:
        return f"a factor of {math.ceil(2 * (1 + difference)) / 2:.3g}"
    step = 0.01 if difference < 0.1 else 0.05
    return f"a difference of {100 * math.ceil(difference / step - 1e-9) * step:.0f} %"


# Below this many blocks the interval is only as good as its assumptions: nothing can test them.
FEW_BLOCKS = 6


@dataclass(frozen=True)
class Learned:
    """A ratio with what its interval rests on, in words; `unlike` the others it keeps its own interval."""

    ratio: Ratio | None
    basis: str | None = None
    unlike: bool = False


def learn(pairs: Mapping[int, Pair]) -> dict[int, Learned]:
    """Those that can be learned of, by the keys of `pairs`: paired ratios over the same few blocks.

    Rates and percentiles are learned of apart: a percentile scatters otherwise.
    """
    from leadline.analysis.statistics.moderated import BLOCKS

    groups: dict[tuple[bool, tuple[int, ...]], dict[int, tuple[Pair, Ratio]]] = {}
    for key, pair in pairs.items():
        ratio = pair.ratio
        if ratio is not None and ratio.sides and len(ratio.blocks) in BLOCKS:
            group = groups.setdefault((metric_kind(pair.metric).asked, ratio.blocks), {})
            group[key] = (pair, ratio)
    return {
        key: learned
        for group in groups.values()
        for key, learned in zip(group, _of_group(list(group.values())), strict=True)
    }


def _of_group(pairs: Sequence[tuple[Pair, Ratio]]) -> list[Learned]:
    import numpy as np

    from leadline.analysis.statistics.moderated import moderate

    cells: dict[tuple[str, str, str], tuple[float, ...]] = {}
    ratios = [ratio for _, ratio in pairs]
    for pair, ratio in pairs:
        for name, side in zip((pair.base, pair.other), ratio.sides, strict=True):
            cells[pair.work, pair.metric, name] = side
    targets, bases = [pair.other for pair, _ in pairs], [_trial(pair) for pair, _ in pairs]
    found = moderate(
        np.array([ratio.logarithms for ratio in ratios]), targets, bases, np.array(list(cells.values()))
    )
    count = len({(work, name) for work, _, name in cells})
    return [
        Learned(
            replace(ratio, series=(found.means[at],)),
            _words(ratio.count, count, found.refused, unlike=at in found.unlike),
            at in found.unlike,
        )
        for at, ratio in enumerate(ratios)
    ]


def _trial(pair: Pair) -> str:
    """The trials that a ratio shares with others: operations of a work are measured in the same ones."""
    return f"{pair.base} {pair.work}"


def _words(blocks: int, cells: int, refused: str | None, *, unlike: bool) -> str | None:
    """What the intervals of few blocks rest on; None where that is what they always rest on."""
    few = f"{blocks} blocks: " if blocks < FEW_BLOCKS else ""
    if refused:
        return f"{assumption(blocks)} ({refused})" if few else None
    if unlike:
        return f"{few}varies more or less than the other cells: its CI rests on its own blocks"
    return f"{'few blocks' if few else f'{blocks} blocks'}: variation estimated from all {cells} cells"


def assumption(blocks: int) -> str | None:
    """What the interval of a ratio's own blocks rests on, where that needs saying."""
    if blocks < 2:
        return "one block gives no CI"
    if blocks < FEW_BLOCKS:
        return f"{blocks} blocks: the CI assumes lognormal ratios and nearly uncorrelated blocks"
    return None


@dataclass(frozen=True)
class Pair:
    """Two cells in one metric, before it is known at which confidence they are compared.

    `weight` is the comparison's share of the chance to err; `basis` says what the interval rests on
    apart from the number of blocks; `asked` is the study's own question, which explores nothing.
    """

    work: str
    base: str
    other: str
    metric: str
    ratio: Ratio | None
    state: State
    weight: float = 1.0
    basis: str | None = None
    asked: bool = False


def outcome_of(estimate: Estimate | None, higher_is_better: bool, margin: float) -> Outcome:
    """What the interval of the ratio other/base allows one to say of `other`."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return "undecided"
    if 1 / (1 + margin) <= estimate.low and estimate.high <= 1 + margin:
        return "same"
    if estimate.low > 1:
        return "faster" if higher_is_better else "slower"
    if estimate.high < 1:
        return "slower" if higher_is_better else "faster"
    return "undecided"


def decide(pairs: Sequence[Pair], margin: float, alpha: float = ALPHA) -> tuple[Comparison, ...]:
    """One comparison each, with what its interval rests on.

    Those of the study's own question share the chance `alpha` that any of them errs (Holm); of the
    differences that others find, at most the share `alpha` is false (Benjamini and Hochberg).
    A run that looked at its intervals while it ran, whose `alpha` is smaller, is decided by Holm, each ratio
    by its own blocks alone: that is what was tried for such runs. One study in twenty is called lopsided
    without being so.
    """
    looked = alpha < ALPHA
    usable = {at: pair for at, pair in enumerate(pairs) if _decidable(pair)}
    learned = {} if looked else learn(usable)
    known = {at: learned.get(at) or Learned(pair.ratio) for at, pair in usable.items()}
    levels: dict[int, float] = {}
    corrections: dict[int, str | None] = {}
    for asked in (True, False):
        family = [at for at, pair in usable.items() if (pair.asked or looked) == asked]
        p_values = [ratio.p_value() if (ratio := known[at].ratio) else 1.0 for at in family]
        rule = holm_levels if asked else discovery_levels
        found = rule(p_values, [pairs[at].weight for at in family], alpha)
        levels |= dict(zip(family, found, strict=True))
        corrections |= dict.fromkeys(family, correction_words(found, alpha, explores=not asked))
    uneven = {
        at: lopsided(pair.ratio.logarithms, ALPHA / len(usable)) for at, pair in usable.items() if pair.ratio
    }
    return tuple(
        _comparison(
            replace(pair, ratio=known[at].ratio) if at in known else pair,
            levels.get(at, alpha),
            margin,
            known[at] if at in known else Learned(None),
            corrections.get(at) or next((text for text in corrections.values() if text), None),
            uneven.get(at),
            tells=not looked,  # between the blocks of a run that goes on nobody asks what more would tell
        )
        for at, pair in enumerate(pairs)
    )


def _decidable(pair: Pair) -> bool:
    return pair.state not in UNUSABLE and pair.ratio is not None and bool(pair.ratio.series)


def _comparison(
    pair: Pair,
    level: float,
    margin: float,
    known: Learned,
    correction: str | None,
    skewness: float | None,
    *,
    tells: bool,
) -> Comparison:
    estimate = pair.ratio.estimate(level) if pair.ratio else None
    outcome = outcome_of(estimate, metric_kind(pair.metric).higher_is_better, margin)
    verdict: Outcome = "undecided" if pair.state in UNUSABLE else outcome
    blocks = estimate.count if estimate else 0
    basis = known.basis or assumption(blocks)
    parts = [part for part in (pair.basis, basis, _skew_words(skewness)) if part]
    wanted = tells and pair.ratio is not None and verdict == "undecided" and pair.state not in UNUSABLE
    return Comparison(
        work=pair.work,
        metric=pair.metric,
        base=pair.base,
        other=pair.other,
        ratio=estimate.value if estimate else None,
        low=estimate.low if estimate else None,
        high=estimate.high if estimate else None,
        blocks=blocks,
        verdict=verdict,
        margin=margin,
        assumption="; ".join(parts) or None,
        validity=pair.state,
        confidence=1 - level,
        correction=correction,
        skewness=skewness,
        part=metric_part(pair.metric),
        unlike=known.unlike,
        more=more_blocks(pair.ratio, level) if wanted and pair.ratio else None,
    )


def _skew_words(skewness: float | None) -> str | None:
    return None if skewness is None else "a few blocks are far to one side: their mean may be biased"


def correction_words(levels: Sequence[float], alpha: float, *, explores: bool) -> str | None:
    """The sentence that belongs below a table of several comparisons."""
    if not levels or (len(levels) < 2 and levels[0] == ALPHA):
        return None
    least, most = 1 - max(levels), 1 - min(levels)
    each = confidence_words(least)
    if most - least > 1e-9:
        each = f"{confidence_words(least)[:-2]} to {confidence_words(most)}"
    looked = " that were tested more than once" if alpha < ALPHA else ""
    rule = (
        f"Benjamini and Hochberg: on average at most {100 * alpha:.0f} % of significant differences are false"
        if explores
        else "Holm"
    )
    return (
        f"corrected for {format_count(len(levels), 'comparison')}{looked} ({rule}):"
        f" each CI has the confidence at which its comparison is decided, here {each}"
    )
