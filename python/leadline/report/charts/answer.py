"""The one picture that answers a question: a map of works by targets, or ratios with their intervals."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from leadline.report import format as fmt
from leadline.report.charts.parts import (
    FIELD,
    PALETTE,
    Chart,
    marks,
    name_axis,
    nominal,
    panel,
    quantitative,
    tips,
)
from leadline.report.screen_table import INVALID, comparable, value_words
from leadline.verdict.model import UNUSABLE, FigureTable, Findings, outcome_words
from leadline.verdict.sections.section import AskedFigure, StudyAnswer, TextTable

_ROW = 26
_NAME_PX = 165  # of a row's name
_FARTHEST = 1000.0  # a ratio beyond it is drawn there
_LIGHTEST = 0.06
_BELOW_BEST = 30.0  # so many times below the best of its row a field is lightest
_NAME = "answer"


def answer_chart(findings: Findings) -> Chart | None:
    """The picture of a study's answer; None where one target was measured and nothing is compared."""
    answer = findings.answer
    if answer is None or isinstance(answer.matrix, TextTable):
        return None
    if answer.matrix is not None and not answer.figures:
        return _words_map(answer.matrix)
    leading = [one for one in answer.figures if one.leads]
    targets = dict.fromkeys(one.target for one in leading)
    within = any(one.comparison and one.comparison.other == one.cell for one in leading)
    if within:
        return _intervals(answer, leading)
    return _figures_map(leading, list(targets), answer.against) if len(targets) > 1 else None


def _figures_map(figures: list[AskedFigure], targets: list[str], against: str) -> Chart:
    """A row for each workload, a column for each target: the nearer to the best of its row, the darker."""
    comparable_ones = [one for one in figures if _counts(one, against if against in targets else "")]
    rows = []
    for one in figures:
        usable = one.quantity.value is not None and one.state not in UNUSABLE
        beside = [other for other in comparable_ones if other.work == one.work]
        rows.append(
            {
                "work": fmt.printable(one.work),
                "target": fmt.printable(one.target),
                "near": _nearness(one, beside) if one in beside else 0.0,
                "text": value_words(one) if not usable or len(targets) <= _TEXTS_MAX else "",
                "state": one.state,
                "tip": _tip(one),
            }
        )
    words = tips(rows[:20])
    spec = _map(rows, len({one.work for one in figures}), targets)
    return Chart(
        _NAME, "Darker is closer to the best of its row", "", words, spec, _best_means(comparable_ones)
    )


_TEXTS_MAX = 4  # columns: with more of them a value has no room, and stands in the table alone


def _counts(one: AskedFigure, against: str) -> bool:
    """Whether a value can be held against the others of its row: where one is the base, it is compared."""
    known = one.quantity.value is not None and one.state not in UNUSABLE
    return known and (not against or one.target == against or one.comparison is not None)


def _best_means(figures: list[AskedFigure]) -> str:
    """How many rows each target leads, among those with several."""
    best: Counter[str] = Counter()
    for work in dict.fromkeys(one.work for one in figures):
        usable = [one for one in figures if one.work == work]
        if len(usable) > 1:
            sign = 1 if usable[0].higher_is_better else -1
            best[max(usable, key=lambda one: sign * (one.quantity.value or 0.0)).target] += 1
    every = best.total()
    if not every:
        return "No two values can be compared."
    (first, count), *others = best.most_common()
    rest = [f"{name} in {number}" for name, number in others]
    lead = f"{first} has the best mean in {count} of {fmt.plural(every, 'workload')}"
    return fmt.printable(f"{', '.join([lead, *rest])}.")


def _nearness(one: AskedFigure, beside: list[AskedFigure]) -> float:
    """1 for the best of a row, 0 for what is `_BELOW_BEST` times below it or more."""
    values = [other.quantity.value for other in beside if other.quantity.value]
    value = one.quantity.value
    if not values or not value:
        return 0.0
    higher = one.higher_is_better
    factor = max(values) / value if higher else value / min(values)
    return max(0.0, 1 - math.log(max(factor, 1.0)) / math.log(_BELOW_BEST))


def _tip(one: AskedFigure) -> str:
    item = one.quantity
    value = fmt.with_unit(item.value, item.unit) if item.value is not None else item.reason or "not measured"
    word = f"{INVALID} " if one.state == INVALID else ""
    found = one.comparison
    ratio = (
        f", {fmt.ratio(found.ratio)} ({outcome_words(found.verdict)})" if found and comparable(found) else ""
    )
    return fmt.printable(f"{one.work} on {one.target}: {word}{value} {fmt.spread(item)}{ratio}")


def _map(rows: list[dict[str, Any]], height: int, columns: list[str]) -> dict[str, Any]:
    names = [fmt.printable(name) for name in columns]
    place = {
        "y": nominal("work", sort=None, title=None, axis={**name_axis(), "labelLimit": _NAME_PX}),
        "x": nominal(
            "target",
            sort=names,
            title=None,
            axis={"orient": "top", "labelAngle": 0, "grid": False, "labelColor": "var(--ink)"},
        ),
    }
    field = marks(
        {"type": "rect", "color": FIELD, "stroke": "var(--grid)"},
        {
            **place,
            "fillOpacity": quantitative(
                "near", legend=None, scale={"domain": [0, 1], "range": [_LIGHTEST, 1]}
            ),
            "description": {"field": "tip"},
        },
    )
    text = marks({"type": "text", "color": "var(--ink)"}, {**place, "text": {"field": "text"}})
    return panel(rows, [field, text], _ROW * height + 20)


def _words_map(table: FigureTable) -> Chart:
    """Words in fields: the fuller the colour, the more often it is the answer to its question."""
    found = [(row.keys[0], item.text) for row in table.rows for item in row.values if item.text]
    asked = [question for question, _ in found]
    rows = [
        {
            "work": fmt.printable(", ".join(row.keys)),
            "target": fmt.printable(column),
            "near": _share(found, asked, row.keys[0], item.text),
            "text": fmt.printable(item.text or fmt.NO_VALUE),
            "tip": fmt.printable(f"{', '.join(row.keys)}, {column}: {item.text or item.reason}"),
        }
        for row in table.rows
        for column, item in zip(table.columns, row.values, strict=True)
    ]
    words = tips(rows[:20])
    (word, count), *_ = Counter(item for _, item in found).most_common(1) or [("", 0)]
    reading = f"The most frequent entry is {word}: {count} of {len(found)}." if count else ""
    spec = _map(rows, len(table.rows), list(table.columns))
    return Chart(_NAME, fmt.printable(table.title), "", words, spec, fmt.printable(reading))


def _share(found: list[tuple[str, str]], asked: list[str], question: str, word: str | None) -> float:
    """Of the answers to one question, those that are this word."""
    return found.count((question, word)) / asked.count(question) if word else 0.0


def _intervals(answer: StudyAnswer, figures: list[AskedFigure]) -> Chart | None:
    """A line for each ratio with its interval; one that leaves 1 out decides."""
    rows = []
    for one in figures:
        found = one.comparison
        if found is None or not comparable(found) or not found.low or not found.high or not found.ratio:
            continue
        low, ratio, high = (
            min(max(bound, 1 / _FARTHEST), _FARTHEST) for bound in (found.low, found.ratio, found.high)
        )
        rows.append(
            {
                "work": fmt.printable(f"{one.work} on {one.target}"),
                "low": low,
                "ratio": ratio,
                "high": high,
                "verdict": outcome_words(found.verdict),
                "tip": fmt.printable(
                    f"{one.work} on {one.target}: {fmt.ratio(found.ratio)}"
                    f" ({fmt.ratio_interval(found.low, found.high)}), {outcome_words(found.verdict)}"
                ),
            }
        )
    if not rows:
        return None
    bounds = [(float(str(row["low"])), float(str(row["high"]))) for row in rows]
    name = nominal("work", sort=None, title=None, axis={**name_axis(), "labelLimit": 260})
    colour = nominal(
        "verdict",
        title=None,
        scale={
            "domain": [outcome_words(one) for one in ("faster", "slower", "same", "undecided")],
            "range": [*PALETTE[:3], "var(--muted)"],
        },
        legend={"orient": "bottom", "columns": 2},
    )
    scale: dict[str, Any] = {
        "type": "quantitative",
        "scale": {"type": "log"},
        "axis": {"title": "times", "grid": True},
    }
    rule = marks(
        {"type": "rule", "strokeWidth": 3},
        {"y": name, "x": {"field": "low", **scale}, "x2": {"field": "high"}, "color": colour},
    )
    point = marks(
        {"type": "point", "filled": True, "size": 70},
        {"y": name, "x": {"field": "ratio", **scale}, "color": colour, "description": {"field": "tip"}},
    )
    unit = marks({"type": "rule", "color": "var(--ink)"}, {"x": {"datum": 1}})
    words = tips(rows[:20])
    title = f"Ratios to {fmt.printable(answer.against)}, with 95 % CI"
    decided = sum(low > 1 or high < 1 for low, high in bounds)
    reading = f"{decided} of {fmt.plural(len(rows), 'confidence interval')} exclude 1: that is a difference."
    return Chart(_NAME, title, "", words, panel(rows, [unit, rule, point], _ROW * len(rows) + 50), reading)
