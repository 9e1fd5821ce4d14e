"""What results.md is made of: rows with a goal, a verdict, and what was measured where it is not met."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ratios import Spread, interleaved, spread
from sides import Sample, Side, calls_each

Value = Callable[[Sample], float]


@dataclass(frozen=True)
class Goal:
    """The value of side `of`, over that of side `to` (None: itself), is to be at most `limit`.

    Ratios are made round by round. Why it is missed is measured in the same run: see `reason`.
    """

    words: str
    of: int
    to: int | None
    limit: float
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


def judge(found: Spread, limit: float) -> str:
    """Met or missed only where the whole interval says so."""
    if found.high <= limit:
        return "met"
    return f"**missed** by {found.median - limit:.3g}" if found.low > limit else "undecided"


def measured(row: Row, digits: int = 0) -> tuple[list[str], list[tuple[Sample, ...]]]:
    """The rows of a table (what, side, value, compared, goal, verdict), and the rounds they were made of."""
    rounds = interleaved(row.sides, row.rounds, row.clean)
    lines = []
    for index, side in enumerate(row.sides):
        own = spread([row.value(samples[index]) for samples in rounds])
        lines.append(f"| {row.what if index == 0 else ''} | {side.name} | {own.words(digits)} | | | |")
    for goal in row.goals:
        compared = spread([_compare(row, goal, samples) for samples in rounds])
        said = judge(compared, goal.limit)
        if goal.to is not None and said != "met":
            said += f": {reason(row, goal, rounds)}"
        lines.append(f"| | {goal.words} | | {compared.words()} | {goal.limit:g} | {said} |")
    return lines, rounds


def shares(rounds: Sequence[tuple[Sample, ...]], of: int, to: int) -> str:
    """What own code, libraries included, and the kernel took of an operation; of two sides, medians."""
    words = []
    for name, what in (
        ("its own code", lambda one: one.cpu_ns - one.kernel_ns),
        ("the kernel", lambda one: one.kernel_ns),
    ):
        own, other = (median(what(one[side]) / one[side].operations for one in rounds) for side in (of, to))
        words.append(f"{name} {own:.0f} ns against {other:.0f}")
    return ", ".join(words)


def reason(row: Row, goal: Goal, rounds: Sequence[tuple[Sample, ...]]) -> str:
    """Where the difference of two sides lies: per operation, by medians; calls are of one run more."""
    assert goal.to is not None
    words = [shares(rounds, goal.of, goal.to)]
    switched = [
        median([1000 * one[side].switches / one[side].operations for one in rounds])
        for side in (goal.of, goal.to)
    ]
    words.append(f"context switches for 1,000 {switched[0]:.0f} against {switched[1]:.0f}")
    calls = [calls_each(row.sides[side]) for side in (goal.of, goal.to)]
    if None not in calls:
        words.append(f"system calls {calls[0]:.2f} against {calls[1]:.2f}")
    return ", ".join(words)


def _compare(row: Row, goal: Goal, samples: tuple[Sample, ...]) -> float:
    own = row.value(samples[goal.of])
    if goal.to is None:
        return own
    other = row.value(samples[goal.to])
    return own - other if goal.difference else own / other


def commands(rows: Sequence[Row]) -> list[str]:
    """What was run, once each."""
    return list(dict.fromkeys(side.command for row in rows for side in row.sides))
