"""Facts against what is expected of them: out of line, fine, or unknown with its reason; never guessed.

Which ways between hosts carry less than the others: of few hosts a slow link holds back most, not few.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import median_low
from typing import Literal

from leadline.check.rows import Fact, Row, words_of
from leadline.knowledge.findings import SEVERITIES, meets
from leadline.knowledge.tables import Value

_REFERENCE = 0.75  # of three hosts a slow link leaves two of six ways as they were


@dataclass(frozen=True)
class SlowWays:
    """What the faster ways carry, how many are near it, and those (`a > b`) that carry less."""

    usual: float
    near: int
    slow: frozenset[str]


def slow_ways(rates: Mapping[str, float], within: float) -> SlowWays | None:
    """None where rates differ in no way that a link would explain.

    What is usual is the upper quartile, as a slow link holds back all ways of its host: 4 of 6 among three.
    Slow ways count where most others are near that, or each of them is one of a host all of whose ways out,
    or all of whose ways in, are slow.
    """
    usual = sorted(rates.values())[ceil(_REFERENCE * len(rates)) - 1]
    slow = frozenset(way for way, rate in rates.items() if rate < (1 - within) * usual)
    near = sum(abs(rate - usual) <= within * usual for rate in rates.values())
    if near + len(slow) < len(rates):
        return None  # some carry far more: there is no usual rate
    if 2 * near > len(rates) or all(_explained(way, rates, slow) for way in slow):
        return SlowWays(usual, near, slow)
    return None


def _explained(way: str, rates: Mapping[str, float], slow: frozenset[str]) -> bool:
    source, _, sink = way.partition(" > ")
    out = {one for one in rates if one.partition(" > ")[0] == source}
    into = {one for one in rates if one.partition(" > ")[2] == sink}
    return out <= slow or into <= slow


Known = Mapping[tuple[str, str, str], Fact]
State = Literal["out_of_line", "fine", "unknown"]


@dataclass(frozen=True)
class Checked:
    """One row for one part: what was seen, what was expected, and what of it."""

    row: Row
    subject: str
    seen: Value
    state: State
    expected: str
    reason: str = ""


def judge(
    facts: Sequence[Fact],
    rows: Sequence[Row],
    roles: Collection[str],
    roles_of: Mapping[str, Collection[str]] | None = None,
) -> tuple[Checked, ...]:
    """Every row for every part that has its fact; those out of line first, the serious ones before others.

    `roles_of` are those of single hosts, in place of `roles`.
    """
    by_host = {} if roles_of is None else roles_of
    known = {(fact.kind, fact.subject, fact.name): fact for fact in facts}
    found: list[Checked] = []
    for row in rows:
        own = [
            fact
            for fact in facts
            if (fact.kind, fact.name) == (row.kind, row.fact)
            and set(by_host.get(host_of(fact.subject), roles)) & set(row.roles)
        ]
        asked = [fact for fact in own if not _holds(row.unless, fact, known)]
        judged = _same(row, asked, known) if row.same else (_against(row, fact) for fact in asked)
        doubtful = {fact.subject for fact in asked if _holds(row.undecided, fact, known)}
        found += (_undecided(one) if one.subject in doubtful else one for one in judged)
    order = {"out_of_line": 0, "unknown": 1, "fine": 2}
    return tuple(sorted(found, key=lambda one: (order[one.state], SEVERITIES.index(one.row.severity))))


def host_of(subject: str) -> str:
    """The host of a part: `host`, `host/device`, `host/interface@network`, `host:place`, `host > other`."""
    return re.split(r"[/:]| > ", subject, maxsplit=1)[0]


def _holds(values: Mapping[str, Value], fact: Fact, known: Known) -> bool:
    """Whether any other fact of the same part has the value that a row names."""
    others = ((known.get((fact.kind, fact.subject, name)), value) for name, value in values.items())
    return any(other is not None and other.value == value for other, value in others)


def _undecided(one: Checked) -> Checked:
    """What is out of line for a reason that is not the part's own says nothing of the part."""
    return replace(one, state="unknown", reason=one.row.undecided_why) if one.state == "out_of_line" else one


def _against(row: Row, fact: Fact) -> Checked:
    if fact.value is None:
        return Checked(row, fact.subject, None, "unknown", row.expected, fact.missing)
    good = meets(fact.value, row.one_of, row.at_least, row.at_most)
    if good is None:
        return Checked(row, fact.subject, fact.value, "unknown", row.expected, "it is no number")
    return Checked(row, fact.subject, fact.value, "fine" if good else "out_of_line", row.expected)


def _same(row: Row, facts: Sequence[Fact], known: Known) -> Iterator[Checked]:
    """Against the value that most of the parts have; where none has a majority, all of them are out of line.

    Of figures that are compared within a share none is out of line then, but of two, which differ.

    Interfaces are held against those of their own network (`subject` is `host/interface@network`), and with
    `among` only parts that have the same value of that fact.
    """
    groups: dict[tuple[str, Value], list[Fact]] = {}
    for fact in facts:
        beside = known.get((fact.kind, fact.subject, row.among))
        alike = fact.subject.partition("@")[2], beside.value if beside is not None else None
        groups.setdefault(alike, []).append(fact)
    for group in groups.values():
        read = [fact for fact in group if fact.value is not None]
        for fact in group:
            if fact.value is None:
                yield Checked(row, fact.subject, None, "unknown", row.expected, fact.missing)
        if len(read) < 2:
            continue  # nobody to compare with: no fact of one part alone
        if row.ways:
            yield from _ways(row, read)
            continue
        usual, count = _usual(read, row.within)
        if usual is None and row.within and len(read) > 2:
            why = f"they differ so much that none of the {len(read)} is the odd one"
            yield from (Checked(row, fact.subject, fact.value, "unknown", row.expected, why) for fact in read)
            continue
        for fact in read:
            if usual is None:
                fine = all(_near(fact.value, other.value, row.within) for other in read)
            else:
                fine = _near(fact.value, usual, row.within)
            near = f" within {row.within:.0%}" if row.within else ""
            expected = (
                row.expected
                if usual is None
                else f"{words_of(usual, row.fact)}{near}, as {count} of {len(read)} have"
            )
            yield Checked(row, fact.subject, fact.value, "fine" if fine else "out_of_line", expected)


def _ways(row: Row, read: Sequence[Fact]) -> Iterator[Checked]:
    rates = {fact.subject: float(fact.value) for fact in read if isinstance(fact.value, int | float)}
    found = slow_ways(rates, row.within)
    for fact in read:
        if found is None or fact.subject not in rates:
            why = f"they differ so much that none of the {len(read)} is the odd one"
            yield Checked(row, fact.subject, fact.value, "unknown", row.expected, why)
            continue
        expected = (
            f"{words_of(found.usual, row.fact)} within {row.within:.0%}, as {found.near} of {len(read)} have"
        )
        state: State = "out_of_line" if fact.subject in found.slow else "fine"
        yield Checked(row, fact.subject, fact.value, state, expected)


def _usual(facts: Sequence[Fact], within: float) -> tuple[Value, int]:
    """The value that more than half of the parts have, and how many; of figures the median of theirs."""
    figures = [fact.value for fact in facts if isinstance(fact.value, int | float)]
    if within and len(figures) == len(facts):
        middle = float(median_low(figures))
        count = sum(_near(value, middle, within) for value in figures)
        return (middle if 2 * count > len(facts) else None), count
    value, count = Counter(fact.value for fact in facts).most_common(1)[0]
    return (value if 2 * count > len(facts) else None), count


def _near(value: Value, other: Value, within: float) -> bool:
    if isinstance(value, int | float) and isinstance(other, int | float) and within:
        return abs(value - other) <= within * abs(other)
    return value == other
