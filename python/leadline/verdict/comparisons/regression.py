"""A site's own regression check: cell by cell, did a result lose more than is allowed against a baseline?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from leadline.errors import UsageError
from leadline.store.reader import Result, refuse_search
from leadline.units import unbounded
from leadline.verdict.comparisons.copies import in_common
from leadline.verdict.comparisons.two_results import apart_from_figures, compare_results, missing_cells
from leadline.verdict.kinds import metric_kind
from leadline.verdict.model import Comparison, Passed, Regression, RegressionCheck

# Beyond these a figure would have digits that nothing stands behind.
_PERCENT_MAX, _PERCENT_ALL = 10_000.0, 99.9


def check_regression(
    baseline: Result, new: Result, metrics: Sequence[str], allow: float, *, across_jobs: bool = False
) -> Regression:
    """Every cell of the baseline. Raises ResultError where the two have no cell in common, UsageError where
    they have trials in common: a result that is held against itself loses nothing; or where cells of one name
    ran different jobs, unless that is asked for (`across_jobs`).
    """
    for one in (baseline, new):
        refuse_search(one.path, one.manifest)
    shared = in_common(baseline, new)
    if shared:
        raise UsageError(f"nothing is checked: {shared}", "name two results that were measured apart")
    comparisons = compare_results(baseline, new, metrics, allow, asked=True, across_jobs=across_jobs)
    checks = [check_of(comparison, allow) for comparison in comparisons]
    gone = [
        RegressionCheck(name, "-", "missing", "the baseline has this cell, the new result has not")
        for name in missing_cells(baseline, new)
    ]
    notes = apart_from_figures(baseline, new)
    return Regression(str(baseline.path), str(new.path), allow, (*checks, *gone), notes)


def check_of(comparison: Comparison, allow: float) -> RegressionCheck:
    """Judge one comparison of new against baseline by its interval."""
    passed, words = _judge(comparison, allow)
    target = comparison.other.removeprefix("B:")
    return RegressionCheck(
        name=f"{target}.{comparison.work}",
        metric=comparison.metric,
        passed=passed,
        words=words,
        ratio=comparison.ratio,
        low=comparison.low,
        high=comparison.high,
        blocks=comparison.blocks,
        state=comparison.validity,
    )


def _judge(comparison: Comparison, allow: float) -> tuple[Passed, str]:
    if comparison.validity in ("INVALID", "NOT_RUN"):
        return "invalid", f"{comparison.validity.replace('_', ' ')}: its figures must not be compared"
    if comparison.ratio is None:
        return "undecided", "not measured in both"
    if not (math.isfinite(comparison.ratio) and comparison.ratio > 0):
        return "undecided", "cannot be told: one of the two is too near zero for a ratio"
    higher = metric_kind(comparison.metric).higher_is_better
    change = _change(comparison.ratio, higher)
    if comparison.low is None or comparison.high is None:
        return "undecided", f"{change}: one block has no interval"
    lost = [1 - end if higher else end - 1 for end in (comparison.low, comparison.high)]
    range_words = f"{change}, interval {_span(comparison.low, comparison.high, higher)}"
    if min(lost) > allow:
        return "lost", f"{range_words}: all of it beyond the {allow:.1%} allowed"
    if max(lost) <= allow:
        return "holds", range_words
    if unbounded(comparison.low, comparison.high):
        blocks = f"{comparison.blocks} blocks"
        return "undecided", f"{change}; how much of it is chance cannot be told from {blocks}: more decide it"
    return "undecided", f"{range_words}: on both sides of the {allow:.1%} allowed; more blocks decide it"


def _change(ratio: float, higher_is_better: bool) -> str:
    """A ratio as a gain or a loss in percent of the baseline."""
    return f"{_direction(ratio, higher_is_better)} of {_percent(ratio)}"


def _span(low: float, high: float, higher_is_better: bool) -> str:
    """`a loss of 2.0 % to 7.0 %`, `a loss of 2.0 % to a gain of 1.0 %`."""
    ends = [_direction(end, higher_is_better) for end in (low, high)]
    second = f"a {ends[1]} of " if ends[0] != ends[1] else ""
    return f"a {ends[0]} of {_percent(low)} to {second}{_percent(high)}"


def _direction(ratio: float, higher_is_better: bool) -> str:
    return "gain" if (ratio >= 1) == higher_is_better else "loss"


def _percent(ratio: float) -> str:
    percent = 100 * (ratio - 1)
    if percent > _PERCENT_MAX or percent < -_PERCENT_ALL:
        most = f"{_PERCENT_MAX:,.0f}" if percent > 0 else f"{_PERCENT_ALL:.1f}"
        return f"more than {most} %"
    return f"{abs(percent):.1f} %"
