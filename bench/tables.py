"""What results.md is made of: rows with a goal, a verdict, and the reason where the goal is missed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ratios import Spread, interleaved, spread
from sides import Sample, Side

Value = Callable[[Sample], float]


@dataclass(frozen=True)
class Goal:
    """The value of side `of`, over that of side `to` (None: itself), is to be at most `limit`.

    Ratios are made round by round, and their median decides; `why` is said when it misses.
    """

    words: str
    of: int
    to: int | None
    limit: float
    why: str = ""
    difference: bool = False


@dataclass(frozen=True)
class Row:
    """One comparison: what it is, its sides, the value compared, and its goals."""

    what: str
    sides: Sequence[Side]
    value: Value
    goals: Sequence[Goal]
    rounds: int
    clean: Path | None = None


def verdict(goal: Goal, found: Spread) -> str:
    """Met, or missed by how much and why; the median decides, and what its interval leaves open is said."""
    if found.median <= goal.limit:
        return "met" if found.high <= goal.limit else "met by the median; its interval reaches above"
    over = found.median - goal.limit
    reason = f": {goal.why}" if goal.why else ""
    return f"**missed by {over:.3g}**{reason}"


def measured(row: Row, digits: int = 0) -> tuple[list[str], list[tuple[Sample, ...]]]:
    """The rows of a table (what, side, value, compared, goal, verdict), and the rounds they were made of."""
    rounds = interleaved(row.sides, row.rounds, row.clean)
    lines = []
    for index, side in enumerate(row.sides):
        own = spread([row.value(samples[index]) for samples in rounds])
        lines.append(f"| {row.what if index == 0 else ''} | {side.name} | {own.words(digits)} | | | |")
    for goal in row.goals:
        compared = spread([_compare(row, goal, samples) for samples in rounds])
        lines.append(
            f"| | {goal.words} | | {compared.words()} | {goal.limit:g} | {verdict(goal, compared)} |"
        )
    return lines, rounds


def _compare(row: Row, goal: Goal, samples: tuple[Sample, ...]) -> float:
    own = row.value(samples[goal.of])
    if goal.to is None:
        return own
    other = row.value(samples[goal.to])
    return own - other if goal.difference else own / other


def commands(rows: Sequence[Row]) -> list[str]:
    """What was run, once each."""
    return list(dict.fromkeys(side.command for row in rows for side in row.sides))
