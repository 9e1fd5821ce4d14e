"""Which rules hold for which facts: conditions and expressions in SQL, asked all at once.

Null is a fact that was not seen. A condition on it does not hold, as in SQL.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leadline.errors import SpecError
from leadline.in_memory import arrow_column, duckdb_in_memory
from leadline.knowledge.tables import with_numbers

if TYPE_CHECKING:
    import duckdb

Facts = Mapping[str, float | str | None]
_NUMBER = "number of the row"  # no fact is called so


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
        share = f"CASE WHEN {holds} THEN ({self.share or 'NULL'})::DOUBLE END"
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
    import pyarrow as pa

    if not rows or not conditions:
        return [[] for _ in rows]
    columns = {
        name: arrow_column([None if row[name] is None else str(row[name]) for row in rows], pa.string())
        if name in texts
        else arrow_column([row[name] for row in rows], pa.float64())
        for name in rows[0]
    }
    # A few hundred rows: to share them among threads takes longer than to look at them.
    with duckdb_in_memory(threads=1) as connection:
        connection.register(
            "given", pa.table({**columns, _NUMBER: arrow_column(range(len(rows)), pa.int64())})
        )
        connection.execute("CREATE TABLE facts AS SELECT * FROM given")
        found = _asked(connection, conditions)
    return [_by_condition(values, conditions) for values in found]


def _by_condition(values: Sequence[Any], conditions: Sequence[RuleCondition]) -> list[Answered]:
    rest = iter(values)
    return [
        Answered(bool(next(rest)), next(rest), tuple(bool(next(rest)) for _ in one.against))
        for one in conditions
    ]


def _asked(
    connection: duckdb.DuckDBPyConnection, conditions: Sequence[RuleCondition]
) -> list[tuple[Any, ...]]:
    import duckdb

    wanted = ", ".join(expression for one in conditions for expression in one.expressions())
    try:
        return connection.execute(f'SELECT {wanted} FROM facts ORDER BY "{_NUMBER}"').fetchall()  # noqa: S608 - our own tables
    except duckdb.Error as error:
        if len(conditions) == 1:
            raise conditions[0].wrong(str(error).splitlines()[0]) from None
        for one in conditions:  # one of them is wrong, and is named
            _asked(connection, (one,))
        raise
