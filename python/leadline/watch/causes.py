"""Asks the figures of a watch the questions of `causes.yaml`: what goes on, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

from leadline.errors import SpecError
from leadline.lighter import duckdb_in_memory
from leadline.tracing.rules import Shown
from leadline.written.yaml_source import read_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leadline.watch.figures import WatchFacts

_SOURCE = "causes.yaml"


@dataclass(frozen=True)
class CauseRule:
    """One entry of the table; see the head of the file."""

    name: str
    asks: Literal["load", "limit"]
    title: str
    where: str
    evidence: str
    change: str
    share: str = "NULL"
    direct: bool = False
    thresholds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Cause:
    """A rule that holds, with its evidence in words."""

    rule: str
    title: str
    share: float | None
    evidence: str
    change: str
    direct: bool = False

    @property
    def order(self) -> tuple[bool, bool, float]:
        """What a counter says by itself, then what is measured by its share, then what is only seen."""
        return not self.direct, self.share is None, -(self.share or 0.0)


@dataclass(frozen=True)
class Judgement:
    """What goes on (`load`) and what it waits for (`limit`), the likeliest first."""

    load: tuple[Cause, ...]
    limit: tuple[Cause, ...]


@cache
def rules() -> tuple[CauseRule, ...]:
    """Every rule, in the order of the file."""
    return read_rules(resources.files("leadline.watch").joinpath(_SOURCE).read_text(encoding="utf-8"))


def read_rules(text: str) -> tuple[CauseRule, ...]:
    """The rules of a table. Raises SpecError where one lacks a part, or has one too many."""
    found = []
    entries: dict[str, dict[str, Any]] = read_table(text, _SOURCE).value
    for name, entry in entries.items():
        try:
            rule = CauseRule(name=name, **entry)
        except TypeError as error:
            raise SpecError(str(error), "see the head of the file", source=_SOURCE, key=name) from None
        if rule.asks not in ("load", "limit"):
            raise SpecError(f"{rule.asks!a} is no question", "use load or limit", source=_SOURCE, key=name)
        found.append(rule)
    return tuple(found)


def judge(facts: WatchFacts, table: tuple[CauseRule, ...] | None = None) -> Judgement:
    """The rules that hold for what was seen."""
    held = _held(facts.values, rules() if table is None else table)
    ordered = sorted(held, key=lambda pair: pair[1].order)
    return Judgement(
        load=tuple(cause for asks, cause in ordered if asks == "load"),
        limit=tuple(cause for asks, cause in ordered if asks == "limit"),
    )


def _held(values: Mapping[str, Any], table: tuple[CauseRule, ...]) -> list[tuple[str, Cause]]:
    import duckdb

    names = list(values)
    columns = ", ".join(
        f'?::{"VARCHAR" if isinstance(value, str) else "DOUBLE"} AS "{name}"'
        for name, value in values.items()
    )
    found: list[tuple[str, Cause]] = []
    with duckdb_in_memory() as connection:
        connection.execute(f"CREATE TABLE seen AS SELECT {columns}", [values[name] for name in names])
        for rule in table:
            query = f"SELECT ({rule.share})::DOUBLE FROM seen WHERE {rule.where}"  # noqa: S608 - our own table
            used = {name: value for name, value in rule.thresholds.items() if f"${name}" in query}
            try:
                answer = connection.execute(query, used).fetchone()
            except duckdb.Error as error:
                words = str(error).splitlines()[0]
                raise SpecError(
                    words, "see the figures in docs/watch.md", source=_SOURCE, key=rule.name
                ) from None
            if answer is not None:
                evidence = rule.evidence.format(**{name: Shown(value) for name, value in values.items()})
                cause = Cause(rule.name, rule.title, answer[0], evidence, rule.change, rule.direct)
                found.append((rule.asks, cause))
    return found
