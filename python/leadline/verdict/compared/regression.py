"""A site's own regression check: cell by cell, did a result lose more than is allowed against a baseline?"""

from __future__ import annotations

from collections.abc import Sequence

from leadline.store.reader import Result
from leadline.verdict.compared.two_results import compare_results, missing_cells
from leadline.verdict.model import Comparison, Passed, Regression, RegressionCheck
from leadline.workloads.judged import metric_kind


def check_regression(baseline: Result, new: Result, metrics: Sequence[str], allow: float) -> Regression:
    """Every cell of the baseline. Raises ResultError where the two have no cell in common."""
    comparisons = compare_results(baseline, new, metrics, allow, asked=True)
    checks = [check_of(comparison, allow) for comparison in comparisons]
    gone = [
        RegressionCheck(name, "-", "missing", "the baseline has this cell, the new result has not")
        for name in missing_cells(baseline, new)
    ]
    return Regression(str(baseline.path), str(new.path), allow, (*checks, *gone))


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
    higher = metric_kind(comparison.metric).higher_is_better
    change = _change(comparison.ratio, higher)
    if comparison.low is None or comparison.high is None:
        return "undecided", f"{change}: one block has no interval"
    lost = [1 - end if higher else end - 1 for end in (comparison.low, comparison.high)]
    range_words = (
        f"{change}, interval {_change(comparison.low, higher)} to {_change(comparison.high, higher)}"
    )
    if min(lost) > allow:
        return "lost", f"{range_words}: all of it beyond the {allow:.1%} allowed"
    if max(lost) <= allow:
        return "holds", range_words
    return "undecided", f"{range_words}: on both sides of the {allow:.1%} allowed; more blocks decide it"


def _change(ratio: float, higher_is_better: bool) -> str:
    """A ratio as a gain or a loss in percent of the baseline."""
    percent = 100 * (ratio - 1)
    better = (percent >= 0) == higher_is_better
    sign = "gain" if better else "loss"
    return f"{sign} of {abs(percent):.1f} %"
