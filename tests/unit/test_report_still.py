"""What draws charts as SVG is started beforehand, for pages alone, and no failure of that is anybody's."""

from __future__ import annotations

import threading

import pytest

from leadline.report import prepare
from leadline.report.charts import still


def started(format: str) -> int:
    """How many threads it began, all of which have ended."""
    before = set(threading.enumerate())
    prepare(format)
    begun = set(threading.enumerate()) - before
    for one in begun:
        one.join(60)
        assert not one.is_alive()
    return len(begun)


def test_the_least_chart_is_drawn() -> None:
    assert still.svg_of(still._LEAST).startswith("<svg")


def test_only_a_page_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[object] = []
    gate = threading.Event()
    monkeypatch.setattr(still, "svg_of", lambda spec: (gate.wait(60), drawn.append(spec)))
    threading.Timer(0.2, gate.set).start()
    for format in ("md", "csv", "json"):
        prepare(format)
    assert drawn == []
    prepare("html")
    gate.wait(60)
    for one in threading.enumerate():
        if one is not threading.current_thread() and not one.daemon:
            one.join(60)
    assert drawn == [still._LEAST]


def test_what_cannot_start_is_met_by_who_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[object] = []

    def broken(_spec: object) -> str:
        raise ImportError("no vl_convert")

    monkeypatch.setattr(still, "svg_of", broken)
    monkeypatch.setattr(threading, "excepthook", failures.append)
    assert started("html") <= 1
    assert failures == []
