"""From ratios to words: faster, slower, the same within a margin, or undecided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from leadline.analysis.statistics.lopsided import lopsided
from leadline.analysis.statistics.means import Estimate
from leadline.analysis.statistics.multiplicity import ALPHA, discovery_levels, holm_levels
from leadline.verdict.answers.certain import confidence_words
from leadline.verdict.comparisons.learned import Learned, assumption, learn
from leadline.verdict.comparisons.more_blocks import more_blocks
from leadline.verdict.comparisons.pair import Pair
from leadline.verdict.kinds import metric_kind, metric_part
from leadline.verdict.model import UNUSABLE, Comparison, Outcome


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
    return None if skewness is None else "a few blocks lie far to one side: a mean of so few may be off"


def correction_words(levels: Sequence[float], alpha: float, *, explores: bool) -> str | None:
    """The sentence that belongs below a table of several comparisons."""
    if not levels or (len(levels) < 2 and levels[0] == ALPHA):
        return None
    least, most = 1 - max(levels), 1 - min(levels)
    each = confidence_words(least)
    if most - least > 1e-9:
        each = f"{confidence_words(least)[:-2]} to {confidence_words(most)}"
    looked = " that were looked at more than once" if alpha < ALPHA else ""
    rule = (
        f"Benjamini and Hochberg: of the differences found at most {100 * alpha:.0f} % are false, on average"
        if explores
        else "Holm"
    )
    return (
        f"corrected for {len(levels)} comparison{'s' if len(levels) > 1 else ''}{looked} ({rule}):"
        f" each interval has the confidence at which its comparison is decided, here {each}"
    )
