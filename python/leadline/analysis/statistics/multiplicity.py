"""Many comparisons in one study: at which confidence each is decided, so that together they rarely err.

Source: Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statistics 6 (1979), with
his weights. Whatever depends on what, the chance of any false difference in a study is at most ALPHA.
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
