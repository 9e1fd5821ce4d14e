"""What is compared: two cells in one metric."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.analysis.statistics.means import Ratio
from leadline.verdict.model import State


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
