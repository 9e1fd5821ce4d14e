"""Many comparisons in one study: at which confidence each is decided, so that together they rarely err.

Two rules. A study's own question is decided by Holm, "A simple sequentially rejective multiple test
procedure", Scand. J. Statistics 6 (1979), with his weights: whatever depends on what, the chance of any false
difference is at most ALPHA. A table that explores is decided by Benjamini and Hochberg, "Controlling the
false discovery rate", J. Royal Statistical Society B 57 (1995), with the weights of Genovese, Roeder and
Wasserman, Biometrika 93 (2006): of the differences that are found at most the share ALPHA is false, on
average, where comparisons are independent or depend positively on each other. Its intervals are those of
Benjamini and Yekutieli, "False discovery rate-adjusted multiple confidence intervals for selected
parameters", JASA 100 (2005).
"""

from __future__ import annotations

from collections.abc import Sequence

ALPHA = 0.05
# Where a run looked at its intervals to decide whether to go on, they were narrow by luck now and then;
# decided at this level they hold as often as ever (by simulation, in `bench/coverage.md`).
ALPHA_AFTER_LOOKS = 0.03


def holm_levels(
    p_values: Sequence[float], weights: Sequence[float] | None = None, alpha: float = ALPHA
) -> tuple[float, ...]:
    """The level at which each comparison is decided; its interval has the confidence 1 - level.

    Comparisons whose difference is found leave their share to the others, so a study whose targets
    clearly differ pays little. An interval at its level leaves out 1 exactly where Holm finds a
    difference: what is shown and what is said agree. No level is above `alpha`.
    """
    shares = list(weights) if weights is not None else [1.0] * len(p_values)
    left = sum(shares)
    last = left
    found: set[int] = set()
    for index in sorted(range(len(p_values)), key=lambda i: p_values[i] / shares[i]):
        if p_values[index] > shares[index] * alpha / left:
            break
        found.add(index)
        last = left
        left = sum(share for i, share in enumerate(shares) if i not in found)
    return tuple(min(alpha, share * alpha / (last if i in found else left)) for i, share in enumerate(shares))


def discovery_levels(
    p_values: Sequence[float], weights: Sequence[float] | None = None, alpha: float = ALPHA
) -> tuple[float, ...]:
    """The level at which each comparison of a table that explores is decided; its interval has 1 - level.

    Where R of m differences are found, it is R alpha / m, by its weight: of the intervals of what was found
    at most the share alpha misses, on average. An interval leaves out 1 exactly where a difference is found.
    No level is above `alpha`.
    """
    shares = list(weights) if weights is not None else [1.0] * len(p_values)
    whole = sum(shares)
    paired = zip(p_values, shares, strict=True)
    ranked = sorted(p_value / share for p_value, share in paired if p_value <= alpha)
    found = [rank for rank, value in enumerate(ranked, start=1) if value <= rank * alpha / whole]
    count = max(found, default=1)
    return tuple(min(alpha, share * count * alpha / whole) for share in shares)
