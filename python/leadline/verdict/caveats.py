"""No sentence is surer than the cells it rests on: what they are worth stands in it, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from leadline.verdict.model import UNUSABLE, Cell, State, Statement


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
