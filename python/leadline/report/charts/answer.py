"""The one picture that answers a question: a map of works by targets, or ratios with their intervals."""

from __future__ import annotations

import math
from typing import Any

from leadline.report import format as fmt
from leadline.report.charts.parts import PALETTE, Chart, marks, name_axis, nominal, panel, quantitative, tips
from leadline.report.screen_table import INVALID, comparable, ratio_words, value_words
from leadline.verdict.model import UNUSABLE, FigureTable, Findings, outcome_words
from leadline.verdict.sections.section import AskedFigure, StudyAnswer, TextTable

_ROW = 26
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
    return _figures_map(leading, list(targets)) if len(targets) > 1 else None


def _figures_map(figures: list[AskedFigure], targets: list[str]) -> Chart:
    """A row for each work, a column for each target: the nearer to the best of its row, the darker."""
    rows = []
    for one in figures:
        usable = one.quantity.value is not None and one.state not in UNUSABLE
        beside = [other for other in figures if other.work == one.work]
        rows.append(
            {
                "work": fmt.printable(one.work),
                "target": fmt.printable(one.target),
                "near": _nearness(one, beside) if usable else 0.0,
                "text": ", ".join(filter(None, (value_words(one), ratio_words(one)))),
                "state": one.state,
                "tip": _tip(one),
            }
        )
    words = tips(rows[:20])
    title = "Which target for which work: the darker, the nearer to the best of its row"
    return Chart(_NAME, title, "", words, _map(rows, len({one.work for one in figures}), targets))


def _nearness(one: AskedFigure, beside: list[AskedFigure]) -> float:
    """1 for the best of a row, 0 for what is `_BELOW_BEST` times below it or more."""
    values = [
        other.quantity.value for other in beside if other.state not in UNUSABLE and other.quantity.value
    ]
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
        "y": nominal("work", sort=None, title=None, axis=name_axis()),
        "x": nominal(
            "target",
            sort=names,
            title=None,
            axis={"orient": "top", "labelAngle": 0, "grid": False, "labelColor": "var(--ink)"},
        ),
    }
    field = marks(
        {"type": "rect", "color": PALETTE[0], "stroke": "var(--grid)"},
        {
            **place,
            "fillOpacity": quantitative(
                "near", legend=None, scale={"domain": [0, 1], "range": [_LIGHTEST, 0.75]}
            ),
            "tooltip": {"field": "tip"},
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
    return Chart(_NAME, table.title, "", words, _map(rows, len(table.rows), list(table.columns)))


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
    name = nominal("work", sort=None, title=None, axis={**name_axis(), "labelLimit": 260})
    colour = nominal(
        "verdict",
        title=None,
        scale={
            "domain": [outcome_words(one) for one in ("faster", "slower", "same", "undecided")],
            "range": [*PALETTE[:3], "var(--muted)"],
        },
        legend={"orient": "bottom"},
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
        {"y": name, "x": {"field": "ratio", **scale}, "color": colour, "tooltip": {"field": "tip"}},
    )
    unit = marks({"type": "rule", "color": "var(--ink)"}, {"x": {"datum": 1}})
    words = tips(rows[:20])
    title = f"Ratios to {fmt.printable(answer.against)} with their intervals; what leaves 1 out is decided"
    return Chart(_NAME, title, "", words, panel(rows, [unit, rule, point], _ROW * len(rows) + 50))
