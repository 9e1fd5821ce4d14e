"""A site's own regression check: cell by cell, did a result lose more than is allowed against a baseline?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leadline.store.reader import Result
from leadline.verdict.compared.two_results import compare_results, missing_cells
from leadline.verdict.model import Comparison, State
from leadline.workloads.judged import metric_kind

Passed = Literal["holds", "lost", "undecided", "invalid", "missing"]


@dataclass(frozen=True)
class Check:
    """One cell and metric: the ratio new over baseline with its interval, None where unknown.

    `name` is `target.work`; `state` the worse validity of both cells.
    """

    name: str
    metric: str
    passed: Passed
    words: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    blocks: int = 0
    state: State = "VALID"


@dataclass(frozen=True)
class Regression:
    """All checks of a result against a baseline; `allow` is the loss allowed, as a share."""

    baseline: str
    new: str
    allow: float
    checks: tuple[Check, ...]

    def count(self, *kinds: Passed) -> int:
        """How many checks ended so."""
        return sum(1 for check in self.checks if check.passed in kinds)


def check_regression(baseline: Result, new: Result, metrics: Sequence[str], allow: float) -> Regression:
    """Every cell of the baseline. Raises ResultError where the two have no cell in common."""
    comparisons = compare_results(baseline, new, metrics, allow)
    checks = [check_of(comparison, allow) for comparison in comparisons]
    gone = [
        Check(name, "-", "missing", "the baseline has this cell, the new result has not")
        for name in missing_cells(baseline, new)
    ]
    return Regression(str(baseline.path), str(new.path), allow, (*checks, *gone))


def check_of(comparison: Comparison, allow: float) -> Check:
    """Judge one comparison of new against baseline by its interval."""
    passed, words = _judge(comparison, allow)
    target = comparison.other.removeprefix("B:")
    return Check(
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
