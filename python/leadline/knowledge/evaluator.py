"""Which rules hold for which facts: conditions and expressions in SQL, asked of SQLite all at once.

Null is a fact that was not seen. A condition on it does not hold, as in SQL.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leadline.errors import SpecError
from leadline.in_memory import sqlite_in_memory
from leadline.knowledge.tables import with_numbers

if TYPE_CHECKING:
    import sqlite3

Facts = Mapping[str, float | str | None]
_ASKED_MAX = 200  # conditions in one question: SQLite has 2,000 columns at most


@dataclass(frozen=True)
class RuleCondition:
    """What a rule asks: `holds`, a condition; `share`, an expression where it holds; `against`, conditions.

    `source` and `manual` are for the error where a fact or a threshold is named that there is none of.
    """

    name: str
    holds: str
    share: str
    source: str
    manual: str
    against: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)

    def expressions(self) -> list[str]:
        """In SQL, with numbers for thresholds. Raises SpecError for a threshold that there is none of."""
        holds = f"coalesce(({self.holds}), false)"
        share = f"CASE WHEN {holds} THEN CAST(({self.share or 'NULL'}) AS DOUBLE) END"
        against = [f"coalesce(({one}), false)" for one in self.against]
        return [with_numbers(one, self.thresholds, self.wrong) for one in (holds, share, *against)]

    def wrong(self, words: str) -> SpecError:
        """What is wrong with the rule, as an error that names it."""
        return SpecError(words, f"see {self.manual}", source=self.source, key=self.name)


@dataclass(frozen=True)
class Answered:
    """What the facts of one row say of a rule. `share` is None where it is not known, or nothing holds."""

    holds: bool
    share: float | None
    against: tuple[bool, ...]


def answered(
    rows: Sequence[Facts], texts: Collection[str], conditions: Sequence[RuleCondition]
) -> list[list[Answered]]:
    """The answers to all conditions for each row; `texts` are the facts that are no numbers.

    All rows and conditions at once: a report has hundreds of trials. Raises SpecError for a condition about a
    fact that there is none of.
    """
    if not rows or not conditions:
        return [[] for _ in rows]
    with sqlite_in_memory() as connection:
        columns = ", ".join(f'"{name}" {"TEXT" if name in texts else "REAL"}' for name in rows[0])
        connection.execute(f"CREATE TABLE facts ({columns})")
        places = ", ".join("?" * len(rows[0]))
        connection.executemany(
            f"INSERT INTO facts VALUES ({places})",  # noqa: S608 - question marks
            ([_stored(row[name], name in texts) for name in rows[0]] for row in rows),
        )
        found = _asked(connection, conditions)
    return [_by_condition(values, conditions) for values in found]


def _stored(value: float | str | None, is_text: bool) -> float | str | None:
    return None if value is None else str(value) if is_text else float(value)


def _by_condition(values: Sequence[Any], conditions: Sequence[RuleCondition]) -> list[Answered]:
    rest = iter(values)
    return [
        Answered(bool(next(rest)), next(rest), tuple(bool(next(rest)) for _ in one.against))
        for one in conditions
    ]


def _asked(connection: sqlite3.Connection, conditions: Sequence[RuleCondition]) -> list[list[Any]]:
    found: list[list[Any]] = []
    for first in range(0, len(conditions), _ASKED_MAX):
        some = conditions[first : first + _ASKED_MAX]
        wanted = ", ".join(expression for one in some for expression in one.expressions())
        rows = _rows(connection, wanted, some)
        found = [[*old, *new] for old, new in zip(found, rows, strict=True)] if found else rows
    return found


def _rows(connection: sqlite3.Connection, wanted: str, some: Sequence[RuleCondition]) -> list[list[Any]]:
    import sqlite3

    try:
        rows = connection.execute(f"SELECT {wanted} FROM facts ORDER BY rowid")  # noqa: S608 - our own tables
        return [list(row) for row in rows]
    except sqlite3.Error as error:
        if len(some) == 1:
            raise some[0].wrong(str(error)) from None
        for one in some:  # one of them is wrong, and is named
            _asked(connection, (one,))
        raise
