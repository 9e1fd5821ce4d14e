"""Every condition of the tables of rules, by SQLite as by DuckDB, over facts made by chance and by hand."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence

import duckdb
import pytest

from leadline.knowledge.evaluator import RuleCondition, answered
from leadline.knowledge.tables import with_numbers
from leadline.verdict.diagnosis.causes import _TEXTS as DIAGNOSIS_TEXTS
from leadline.verdict.diagnosis.causes import causes
from leadline.watch.causes import _TEXTS as WATCH_TEXTS
from leadline.watch.causes import rules as watch_rules

_WORD = re.compile(r"(?<![\w$'])[a-z_][a-z_0-9]*(?![\w(])")
_SQL = {"coalesce", "greatest", "least", "trunc", "null", "true", "false", "is", "not", "in", "and", "or"}
_SQL |= {"between"}
_QUOTED = re.compile(r"'(\w+)'")
ROWS = 400


def conditions() -> list[RuleCondition]:
    """Of diagnosis and of watch, with what speaks against a cause as conditions of their own."""
    of_diagnosis = [
        RuleCondition(
            one.name,
            one.seen,
            one.share,
            "t.yaml",
            "docs",
            tuple(e["where"] for e in one.against),
            one.thresholds,
        )
        for one in causes()
    ]
    of_watch = [
        RuleCondition(one.name, one.seen, one.share, "t.yaml", "docs", thresholds=one.thresholds)
        for one in watch_rules()
    ]
    return of_diagnosis + of_watch


def facts_of(asked: Sequence[RuleCondition]) -> tuple[list[str], list[str], list[float]]:
    """The names of facts, and the texts and the numbers that they are compared with."""
    parts = [
        with_numbers(text, one.thresholds) for one in asked for text in (one.holds, one.share, *one.against)
    ]
    whole = " ; ".join(parts)
    texts = sorted({*_QUOTED.findall(whole), "", "osd.1", "osd.2"})
    numbers = sorted({0.0, 1.0, *map(float, re.findall(r"(?<![\w.])\d+(?:\.\d+)?", whole))})
    names = dict.fromkeys(word for word in _WORD.findall(_QUOTED.sub("", whole)) if word.lower() not in _SQL)
    return list(names), texts, numbers


def by_duckdb(
    rows: Sequence[Mapping[str, object]], texts: Iterable[str], asked: Sequence[RuleCondition]
) -> list[tuple[object, ...]]:
    """What DuckDB says to the same expressions."""
    with duckdb.connect() as connection:
        kinds = ", ".join(f'"{name}" {"VARCHAR" if name in texts else "DOUBLE"}' for name in rows[0])
        connection.execute(f"CREATE TABLE facts (place BIGINT, {kinds})")
        marks = ", ".join("?" * (len(rows[0]) + 1))
        values = [[place, *row.values()] for place, row in enumerate(rows)]
        connection.executemany(f"INSERT INTO facts VALUES ({marks})", values)  # noqa: S608
        wanted = ", ".join(text for one in asked for text in one.expressions())
        return connection.execute(f"SELECT {wanted} FROM facts ORDER BY place").fetchall()  # noqa: S608


def chosen(chance: random.Random, numbers: Sequence[float]) -> float | None:
    """Nothing, a threshold, just beside one, or anything."""
    kind = chance.random()
    if kind < 0.2:
        return None
    number = chance.choice(numbers)
    return (
        number
        if kind < 0.5
        else math.nextafter(number, chance.choice((-1e9, 1e9)))
        if kind < 0.7
        else chance.lognormvariate(0, 3)
    )


@pytest.mark.parametrize("seed", range(4))
def test_sqlite_answers_as_duckdb_does(seed: int) -> None:
    asked, chance = conditions(), random.Random(seed)  # noqa: S311 - data of a test
    names, words, numbers = facts_of(asked)
    texts = (DIAGNOSIS_TEXTS | WATCH_TEXTS) & set(names)
    assert len(asked) > 60
    assert len(names) > 80
    rows = [
        {name: chance.choice((None, *words)) if name in texts else chosen(chance, numbers) for name in names}
        for _ in range(ROWS)
    ]
    wrong, held, shares = [], 0, 0
    for row, ours, theirs in zip(
        rows, answered(rows, texts, asked), by_duckdb(rows, texts, asked), strict=True
    ):
        values = iter(theirs)
        for one, answer in zip(asked, ours, strict=True):
            holds, share = bool(next(values)), next(values)
            against = tuple(bool(next(values)) for _ in one.against)
            share, said = (
                one if one is not None and math.isfinite(one) else None for one in (share, answer.share)
            )
            held += holds
            shares += said is not None
            if (answer.holds, said, answer.against) != (holds, share, against):
                wrong.append((one.name, answer, holds, share, against, row))
    assert wrong == []
    assert held > 500
    assert shares > 50
