"""Faults on a chart over time: a band for each trial that ran under one, and its words above the chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leadline.report import format as fmt
from leadline.verdict.model import Line

_LABELS_MAX = 4
_LABEL_PIXELS, _LABEL_LETTERS = 13, 56  # what a panel has room for
_OPACITY = 0.3  # of all bands together, where every trial has one
_OPACITY_MIN = 0.03


def fault_rows(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """A row for each fault and trial, numbered by fault; `begins`, `ends`: it does so in the trial."""
    numbers = {words: number for number, words in enumerate(_words(lines), 1)}
    return [
        {
            "from": round(span.from_s, 3),
            "to": round(span.to_s, 3),
            "number": numbers[span.words],
            "begins": span.from_s > 0,
            "ends": span.to_s < max(second for second, _ in line.points),
            "tip": f"{fmt.printable(span.words)}, in {line.trial}",
        }
        for line in lines
        for span in line.faults
    ]


def fault_labels(lines: Sequence[Line]) -> list[str]:
    """What each number stands for, and in how many trials where that is not all of them."""
    labels = []
    for number, words in enumerate(_words(lines), 1):
        count = sum(any(span.words == words for span in line.faults) for line in lines)
        which = "" if count == len(lines) else f" ({count} of {fmt.plural(len(lines), 'trial')})"
        labels.append(f"{number}: {_short(fmt.printable(words), _LABEL_LETTERS - len(which))}{which}")
    return labels


def fault_layers(rows: Sequence[dict[str, Any]], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Bands from top to bottom with their numbers, lines where they begin and end, and the labels above."""
    if not rows:
        return []
    x, x2 = {"field": "from", "type": "quantitative"}, {"field": "to"}
    edge = {"type": "rule", "color": "var(--invalid)", "strokeDash": [3, 2], "opacity": 0.7}
    opacity = max(_OPACITY / len(rows), _OPACITY_MIN)
    band = {"type": "rect", "color": "var(--invalid)", "opacity": opacity}
    at_end = {"x": {**x, "field": "to"}}
    marks: list[dict[str, Any]] = [
        {"mark": band, "encoding": {"x": x, "x2": x2, "tooltip": {"field": "tip"}}},
        {"mark": edge, "transform": [{"filter": "datum.begins"}], "encoding": {"x": x}},
        {"mark": edge, "transform": [{"filter": "datum.ends"}], "encoding": at_end},
    ]
    shown = list(labels[:_LABELS_MAX])
    if len(labels) > len(shown):
        shown[-1] += f" and {len(labels) - len(shown)} more"
    words = [
        {
            "data": {"values": [{"label": label}]},
            "mark": _text("bottom"),
            "encoding": {
                "x": {"value": 0},
                "y": {"value": -4 - _LABEL_PIXELS * (len(shown) - 1 - place)},
                "text": {"field": "label"},
            },
        }
        for place, label in enumerate(shown)
    ]
    marks += [_number(place + 1, x) for place in range(len(shown))]
    return [{"data": {"values": list(rows)}, "layer": marks}, *words]


def _number(number: int, x: dict[str, Any]) -> dict[str, Any]:
    """The number of a fault where its bands begin, above those of the ones before it."""
    above = 3 + _LABEL_PIXELS * (number - 1)
    return {
        "mark": _text("bottom", dx=3),
        "transform": [{"filter": f"datum.number === {number}"}],
        "encoding": {"x": x, "y": {"value": {"expr": f"height - {above}"}}, "text": {"value": str(number)}},
    }


def _words(lines: Sequence[Line]) -> list[str]:
    """The faults of all lines by their words, each once, in the order of the first."""
    return list(dict.fromkeys(span.words for line in lines for span in line.faults))


def _text(baseline: str, dx: int = 0) -> dict[str, Any]:
    mark = {"type": "text", "align": "left", "baseline": baseline, "fontSize": 10, "fontWeight": 600}
    return {**mark, "dx": dx, "color": "var(--invalid)"}


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
