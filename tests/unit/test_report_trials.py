"""Tables of a page's trials: all of few, and of thousands a part that says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from findings_examples import typical
from leadline.report.renderers import page
from leadline.report.renderers.page import to_html, trial_tables
from leadline.verdict.model import Cell


def many(count: int, failed: tuple[int, ...] = ()) -> Cell:
    cell = next(one for one in typical().cells if one.trials)
    one = cell.trials[0]
    made = tuple(
        replace(one, trial=f"t{at:04d}", order=at, state="error" if at in failed else "complete")
        for at in range(count)
    )
    return replace(cell, trials=made)


def shown(cell: Cell) -> tuple[list[int], str]:
    (table,) = trial_tables([cell])
    return [trial.order for trial, _ in table.rows], table.note


def test_all_of_few_trials_stand_in_a_page() -> None:
    assert shown(many(30, failed=(3,))) == (list(range(30)), "")


def test_of_many_those_that_failed_stand_and_others_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = len(many(1).trials[0].values) + 5
    monkeypatch.setattr(page, "FIGURES_MAX", 20 * figures)
    orders, note = shown(many(100))
    assert orders == list(range(0, 100, 5))
    assert note == "20 of 100 trials stand here: evenly over the study. All are in the result, in trials/."
    orders, note = shown(many(100, failed=(11, 42)))
    assert {11, 42} <= set(orders)
    assert len(orders) == 20
    assert orders == sorted(orders)
    assert "all that failed (2), and others evenly over the study" in note
    orders, note = shown(many(100, failed=tuple(range(50, 100))))
    assert len(orders) == 20
    assert min(orders) == 50
    assert "some of those that failed" in note


def test_what_many_cells_share_is_little_but_never_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "FIGURES_MAX", 10)
    assert {len(table.rows) for table in trial_tables([many(100), many(9), many(2)])} == {8, 2}


def test_a_page_says_what_it_leaves_out() -> None:
    findings = replace(typical(), cells=(many(5_000), *typical().cells[1:]))
    page = to_html(findings)
    assert "of 5,000 trials stand here: evenly over the study." in page
    assert len(page) < 4_000_000
