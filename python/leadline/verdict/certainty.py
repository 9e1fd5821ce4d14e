"""How sure a sentence is: what an interval leaves of a difference at least, and what the cells behind it are
worth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from leadline.units import format_number
from leadline.verdict.model import UNUSABLE, Cell, Comparison, Outcome, State, Statement
from leadline.verdict.sections import numbers


def weighed(statements: Iterable[Statement], cells: Sequence[Cell]) -> tuple[Statement, ...]:
    """The statements with the doubts of their cells; what rests on a cell that cannot be used is left out."""
    states = {cell.id: cell.validity.state for cell in cells}
    found = (_weighed(one, states) for one in statements)
    return tuple(one for one in found if one is not None)


def _weighed(statement: Statement, states: Mapping[str, State]) -> Statement | None:
    own = [states[cell] for cell in statement.cells if cell in states]
    if any(state in UNUSABLE for state in own):
        return None
    doubtful = own.count("DOUBTFUL")
    if not doubtful:
        return statement
    return replace(statement, text=f"{statement.text} {_doubt(doubtful, len(own))}")


def _doubt(doubtful: int, count: int) -> str:
    if count == 1:
        return "(DOUBTFUL.)"
    if doubtful == count:
        every = "both" if count == 2 else f"all {count}"
        return f"(DOUBTFUL, as {every} of its cells are.)"
    return f"({doubtful} of its {count} cells {'is' if doubtful == 1 else 'are'} DOUBTFUL.)"


_NAMED = 2  # works by name in one clause
_CLAUSES = 4  # of one sentence


def usable(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Those of figures that may be held against each other."""
    return [one for one in comparisons if one.validity not in UNUSABLE and one.ratio is not None]


def times(comparison: Comparison) -> str:
    """`5.1x (CI 4.2 to 6.0)`: the estimate, and what its interval leaves."""
    ends = numbers.bounds(comparison)
    return f"{numbers.outcome(comparison).partition(' ')[0]}{f' (CI {ends})' if ends else ''}"


def factor_words(factor: float) -> str:
    """What is certain of a factor: `8.1x`, or `4.1 %` where that is easier to read; never rounded up."""
    if factor < 1.1:
        return f"{math.floor(1000 * (factor - 1)) / 10:g} %"
    power = 10.0 ** (math.floor(math.log10(factor)) - 1)  # two digits, rounded down
    return f"{format_number(math.floor(factor / power + 1e-9) * power, 2)}x"


def split(comparisons: Sequence[Comparison]) -> dict[Outcome, list[Comparison]]:
    """By verdict, the largest certain difference first."""
    ranked = sorted(comparisons, key=lambda one: -one.least_factor)
    outcomes: tuple[Outcome, ...] = ("faster", "slower", "same", "undecided")
    return {outcome: [one for one in ranked if one.verdict == outcome] for outcome in outcomes}


def clauses(said: Sequence[tuple[float, str]]) -> str:
    """The clauses with the largest certain differences, in their order, and how many more there are."""
    if len(said) <= _CLAUSES:
        return "; ".join(text for _, text in said)
    places = sorted(range(len(said)), key=lambda place: -said[place][0])[:_CLAUSES]
    first = "; ".join(said[place][1] for place in sorted(places))
    return f"{first}; and {len(said) - _CLAUSES} more in the table"


def named(names: Sequence[str], most: int = _NAMED) -> str:
    """The first few names, and how many more."""
    rest = len(names) - most
    if rest > 1:
        return f"{', '.join(names[:most])} and {rest} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
