"""The check against a baseline, and its outputs read back by parsers."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as Tree

import pytest

from findings_examples import hostile
from leadline.report import render
from leadline.report.renderers.exchange import regression_openmetrics, to_junit
from leadline.verdict.comparisons.two_results import check_of
from leadline.verdict.model import Cell, Comparison, Findings, Quantity, Regression, Validity
from openmetrics_grammar import parse


def comparison(metric: str, low: float | None, high: float | None, **changes: object) -> Comparison:
    ratio = 1.0 if low is None or high is None else (low * high) ** 0.5
    found = Comparison("w", metric, "A:a", "B:a", ratio, low, high, 5, "undecided")
    return replace(found, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("metric", "low", "high", "passed"),
    [
        ("iops", 0.80, 0.94, "lost"),
        ("iops", 0.80, 0.96, "undecided"),
        ("iops", 0.96, 1.20, "holds"),
        ("iops", 1.20, 1.40, "holds"),
        ("latency_p99", 1.06, 1.30, "lost"),
        ("latency_p99", 1.04, 1.30, "undecided"),
        ("latency_p99", 0.50, 1.04, "holds"),
        ("iops", None, None, "undecided"),
    ],
)
def test_only_a_whole_interval_beyond_what_is_allowed_is_a_loss(
    metric: str, low: float | None, high: float | None, passed: str
) -> None:
    assert check_of(comparison(metric, low, high), 0.05).passed == passed


@pytest.mark.parametrize(
    ("metric", "ratio", "low", "high", "passed", "words"),
    [
        ("latency_p99", 1.2, 0.53, 2.70084716813657e18, "undecided", "5 blocks: too noisy for a CI"),
        ("latency_p99", 1.2, 1e-18, 1e18, "undecided", "5 blocks: too noisy for a CI"),
        ("iops", 1.2, 1e-300, 1e304, "undecided", "5 blocks: too noisy for a CI"),
        ("iops", 1.0, 0.0, 2.0, "undecided", "5 blocks: too noisy for a CI"),
        (
            "iops",
            float("inf"),
            1.0,
            float("inf"),
            "undecided",
            "no ratio: one of the two values is too close to zero",
        ),
        ("iops", 0.0, 0.0, 0.0, "undecided", "no ratio: one of the two values is too close to zero"),
        ("latency_p99", 1e9, 4.0, 1e18, "lost", "CI: a loss of 300.0 % to more than 10,000 %"),
        ("iops", 1e5, 4.0, 1e10, "holds", "CI: a gain of 300.0 % to more than 10,000 %"),
        ("iops", 1e-9, 1e-18, 0.5, "lost", "CI: a loss of more than 99.9 % to 50.0 %"),
        ("iops", 0.9, 0.8, 1.1, "undecided", "CI: a loss of 20.0 % to a gain of 10.0 %"),
    ],
)
def test_a_change_beyond_what_its_interval_can_tell_is_not_printed_as_a_figure(
    metric: str, ratio: float, low: float, high: float, passed: str, words: str
) -> None:
    found = check_of(comparison(metric, low, high, ratio=ratio), 0.05)
    assert found.passed == passed
    assert words in found.words
    assert not any(len(digits) > 6 for digits in re.findall(r"[0-9,]+", found.words))


def test_an_invalid_cell_is_never_judged() -> None:
    found = check_of(comparison("iops", 0.1, 0.2, validity="INVALID"), 0.05)
    assert found.passed == "invalid"
    assert "INVALID" in found.words


NASTY = "a<&>\"'\x1b[31m\u202e\\"


def regression() -> Regression:
    checks = (
        check_of(comparison("iops", 0.80, 0.94), 0.05),
        check_of(comparison("iops", 0.80, 0.96, work="v"), 0.05),
        check_of(comparison("iops", 0.1, 0.2, validity="INVALID", work="u"), 0.05),
        check_of(comparison("iops", 0.99, 1.0, work=NASTY), 0.05),
    )
    return Regression(NASTY, "new", 0.05, checks)


def test_junit_is_read_back_with_its_counts() -> None:
    root = Tree.fromstring(to_junit(regression(), allow_undecided=False))  # noqa: S314 - our own text
    suite = root.find("testsuite")
    assert suite is not None
    assert {k: suite.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "2",
        "errors": "1",
        "skipped": "0",
    }
    cases = suite.findall("testcase")
    assert [case[0].tag for case in cases] == ["failure", "failure", "error", "system-out"]
    assert [case[0].get("type") for case in cases[:2]] == ["lost", "undecided"]
    assert cases[3].get("classname") == "a.a<&>\"'\\x1b[31m\\u202e\\"
    allowed = Tree.fromstring(to_junit(regression(), allow_undecided=True))  # noqa: S314 - our own text
    assert (allowed.get("failures"), allowed.get("skipped")) == ("1", "1")
    assert [case[0].tag for case in allowed.iter("testcase")] == ["failure", "skipped", "error", "system-out"]


def test_openmetrics_of_a_check_follow_the_grammar() -> None:
    families = parse(regression_openmetrics(regression()))
    ratios = families["leadline_gate_ratio"].samples
    assert len(ratios) == 9
    assert any(labels["cell"].startswith("a.a<&>\"'\\x1b") for labels, _ in ratios)
    outcomes = families["leadline_gate_outcome"]
    assert sum(value for _, value in outcomes.samples) == 4


def test_openmetrics_of_a_result_follow_the_grammar_and_leave_invalid_figures_out() -> None:
    found = hostile()
    families = parse(render(found, "openmetrics"))
    figures = [
        labels for family in families.values() if family.kind == "gauge" for labels, _ in family.samples
    ]
    pairs = {(cell.target, cell.work) for cell in found.cells if cell.validity.state == "INVALID"}
    assert pairs
    assert not any((labels.get("target"), labels.get("work")) in pairs for labels in figures)
    states = families["leadline_cell_validity"].samples
    assert any(labels["leadline_cell_validity"] == "INVALID" and value for labels, value in states)


def test_openmetrics_use_base_units() -> None:
    cell = Cell(
        "a.w", "a", "w", {}, {}, {"latency_p99.9": Quantity(2e6, "ns", 1e6, 3e6, 3)}, Validity("VALID")
    )
    found = Findings("1", "study", "t", "", "2026-01-01T00:00:00+00:00", "VALID", (), (cell,), (), ())
    family = parse(render(found, "openmetrics"))["leadline_latency_p99_9_seconds"]
    assert [(labels["bound"], value) for labels, value in family.samples] == [
        ("value", 0.002),
        ("low", 0.001),
        ("high", 0.003),
    ]
