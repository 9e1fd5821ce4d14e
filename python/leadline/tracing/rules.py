"""Asks the views of a trace the questions of `rules.yaml`, which anybody can extend."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from string import Formatter
from typing import TYPE_CHECKING, Any, Literal, get_args

from leadline.errors import SpecError
from leadline.knowledge.findings import Finding
from leadline.knowledge.formats import ShownFigures
from leadline.knowledge.tables import entries, text_of, with_numbers
from leadline.tracing.model import RuleUnasked, TraceFinding

if TYPE_CHECKING:
    import sqlite3

EXAMPLES_MAX = 3
_AS_MUCH = 0.5  # of a finding's cost: a rule of its `unless` that explains so much is said instead
_WORD = re.compile(r"(?<!\$)\b[A-Za-z_]+\b")  # a column, and no threshold
View = Literal["files", "processes", "copies", "trial"]
VIEWS = get_args(View)
_SOURCE = "rules.yaml"
_NAMES = {"files": "path", "processes": "command"}  # what an example is called


@dataclass(frozen=True)
class Rule:
    """One entry of the table; see the head of the file."""

    name: str
    of: View
    title: str
    seen: str
    cost: str
    at_most: str
    how: str
    evidence: str
    remedy: str
    time: Literal["process", "run"] = "process"
    unless: tuple[str, ...] = ()
    thresholds: dict[str, int | float] = field(default_factory=dict)
    limit: bool = False
    setting: str = ""
    shared: tuple[str, ...] = ()

    def filled(self, expression: str) -> str:
        """An expression of the rule with numbers for its thresholds."""
        return with_numbers(expression, self.thresholds, self.wrong)

    def wrong(self, words: str) -> SpecError:
        """What is wrong with the rule, as an error that names it."""
        return SpecError(words, "see the columns in docs/trace.md", source=_SOURCE, key=self.name)


@cache
def limits() -> frozenset[str]:
    """The rules whose cost is the most that other storage could save: that it is small is what they say."""
    return frozenset(rule.name for rule in rules() if rule.limit)


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule, in the order of the file."""
    return read_rules(text_of("leadline.tracing", _SOURCE))


def read_rules(text: str) -> tuple[Rule, ...]:
    """The rules of a table. Raises SpecError where one lacks a part or has one too many."""
    return entries(text, _SOURCE, Rule)


def _most_exact(found: Sequence[TraceFinding], table: Sequence[Rule]) -> list[TraceFinding]:
    """Without the findings that another one says more exactly."""
    costs = {item.rule: item.cost_s or 0.0 for item in found}
    exacter = {rule.name: max((costs.get(name, 0.0) for name in rule.unless), default=0.0) for rule in table}
    return [
        item
        for item in found
        if not exacter[item.rule] or exacter[item.rule] < _AS_MUCH * (item.cost_s or 0.0)
    ]


@dataclass(frozen=True)
class _Run:
    """What no finding exceeds: the run time, and the time of all processes; None where it is not known."""

    run_s: float | None
    base_s: float | None
    slowest_s: float | None  # of the process that was in I/O for longest

    def bounded(self, rule: Rule, cost_s: float | None) -> tuple[float | None, float | None]:
        """(cost in the rule's own time, the most that the run would be shorter by)."""
        if cost_s is None:
            return None, None
        if rule.time == "run":
            cost_s = cost_s if self.run_s is None else min(cost_s, self.run_s)
            return cost_s, None if self.run_s is None else cost_s
        cost_s = cost_s if self.base_s is None else min(cost_s, self.base_s)
        if self.run_s is None:
            return cost_s, None
        # Processes that run side by side save time side by side, but the run waits for the slowest of them.
        beside = max(1.0, (self.base_s or 0.0) / self.run_s) if self.run_s > 0 else 1.0
        return cost_s, min(max(cost_s / beside, min(cost_s, self.slowest_s or 0.0)), self.run_s)


def apply(connection: sqlite3.Connection, table: tuple[Rule, ...]) -> tuple[TraceFinding, ...]:
    """The rules that hold, the most costly first. No cost exceeds the run: this is the one place for it."""
    run = _run(connection)
    found = [finding for rule in table if (finding := _apply(connection, rule, run))]
    return tuple(sorted(_most_exact(found, table), key=lambda item: -(item.saves_s or item.cost_s or 0.0)))


def unasked(
    connection: sqlite3.Connection, table: tuple[Rule, ...], held: Collection[str]
) -> tuple[RuleUnasked, ...]:
    """The rules that did not hold, but whose condition is null for some row: they are not ruled out."""
    found: list[RuleUnasked] = []
    for view in VIEWS:
        asked = [rule for rule in table if rule.of == view and rule.name not in held]
        if not asked:
            continue
        nulls = ", ".join(f"count(*) FILTER (WHERE ({rule.filled(rule.seen)}) IS NULL)" for rule in asked)
        counts = connection.execute(f"SELECT {nulls} FROM {view}").fetchall()[0]  # noqa: S608
        found += [_unasked(connection, rule) for rule, count in zip(asked, counts, strict=True) if count]
    return tuple(found)


def _unasked(connection: sqlite3.Connection, rule: Rule) -> RuleUnasked:
    columns = {row[1] for row in connection.execute(f"PRAGMA table_info({rule.of})")}
    names = sorted(columns & set(_WORD.findall(rule.seen)))
    lacking = ", ".join(f"max({name} IS NULL)" for name in names)
    query = f"SELECT {lacking} FROM {rule.of} WHERE ({rule.filled(rule.seen)}) IS NULL"  # noqa: S608
    lacks = connection.execute(query).fetchall()[0]
    return RuleUnasked(
        rule.name, rule.title, tuple(name for name, lack in zip(names, lacks, strict=True) if lack)
    )


def _run(connection: sqlite3.Connection) -> _Run:
    names = "run_s, run_most_s, base_s, processes, slowest_process_io_s"
    rows = connection.execute(f"SELECT {names} FROM trial").fetchall()  # noqa: S608 - our own names
    run_s, most_s, base_s, processes, slowest_s = rows[0]
    if not base_s:  # the shares have none: at most every process all the time
        base_s = None if most_s is None else most_s * max(processes, 1)
    return _Run(run_s, base_s, slowest_s)


def _apply(connection: sqlite3.Connection, rule: Rule, run: _Run) -> TraceFinding | None:
    """A cost that cannot be reckoned stays unknown; a known one never exceeds the time measured."""
    import sqlite3

    costed = rule.filled(
        f"SELECT *, "  # noqa: S608 - the package's own table
        f"CASE WHEN cost_given IS NULL OR cost_limit IS NULL THEN NULL"
        f" ELSE max(0, min(cost_given, cost_limit)) END AS cost_s"
        f" FROM (SELECT *, ({rule.cost}) AS cost_given, ({rule.at_most}) AS cost_limit"
        f" FROM {rule.of} WHERE {rule.seen})"
    )
    # Sums apart from examples, and of these what is said of them: all columns of every row that holds are
    # most of what a rule costs.
    sums = f"SELECT count(*), sum(cost_s) FROM ({costed})"  # noqa: S608
    names = _said_of(rule)
    columns = ", ".join(f'"{name}"' for name in names) or "cost_s"
    query = f"SELECT {columns} FROM ({costed}) ORDER BY cost_s DESC NULLS LAST LIMIT {EXAMPLES_MAX}"  # noqa: S608
    try:
        count, cost_s = connection.execute(sums).fetchall()[0]
        if not count:
            return None
        records = connection.execute(query).fetchall()
    except sqlite3.Error as error:
        raise rule.wrong(str(error).splitlines()[0]) from None
    rows = [dict(zip(names, record, strict=False)) for record in records]
    cost_s, saves_s = run.bounded(rule, cost_s)
    return TraceFinding(
        rule=rule.name,
        title=rule.title,
        count=int(count),
        cost_s=cost_s,
        saves_s=saves_s,
        time=rule.time,
        how=rule.how,
        change=rule.remedy,
        examples=tuple(_example(rule, row) for row in rows),
        subjects=tuple(str(row[_NAMES[rule.of]]) for row in rows) if rule.of in _NAMES else (),
    )


def finding_of(found: TraceFinding) -> Finding:
    """What holds, as every table's findings are."""
    rule = next(one for one in rules() if one.name == found.rule)
    return Finding(
        rule.name,
        found.title,
        "; ".join(found.examples),
        found.change,
        means=found.how,
        setting=rule.setting,
        shared=rule.shared,
    )


def _said_of(rule: Rule) -> list[str]:
    """The columns that an example names."""
    told = [name for _, name, _, _ in Formatter().parse(rule.evidence) if name]
    return list(dict.fromkeys([*told, *([_NAMES[rule.of]] if rule.of in _NAMES else [])]))


def _example(rule: Rule, row: dict[str, Any]) -> str:
    words = rule.evidence.format_map(ShownFigures(row))
    subject = row.get(_NAMES.get(rule.of, ""))
    return f"{subject}: {words}" if subject else words
