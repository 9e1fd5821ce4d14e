"""What every section of `coverage.md` is written with: shares with bounds, tables, repeatable chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import betaincinv

BLOCKS = (3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30)
SERIES = 4000
STUDIES = 2000
SEED = 20260131


def bounds(hits: int, tries: int) -> tuple[float, float]:
    """The 95 % interval of a share by Clopper and Pearson, Biometrika 26 (1934)."""
    low = float(betaincinv(hits, tries - hits + 1, 0.025)) if hits else 0.0
    high = float(betaincinv(hits + 1, tries - hits, 0.975)) if hits < tries else 1.0
    return low, high


def share(hits: int, tries: int) -> str:
    """A share in percent with its bounds."""
    low, high = bounds(hits, tries)
    return f"{100 * hits / tries:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, figures to the right."""
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def random_of(*key: int) -> np.random.Generator:
    """The same numbers at each run, others for each table cell."""
    return np.random.default_rng([SEED, *key])
