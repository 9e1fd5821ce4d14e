"""The page of imported workflows in a real browser: bars that can be seen, and no section without content."""

from __future__ import annotations

from pathlib import Path

import pytest
from devtools import Page

from leadline.report import render
from leadline.store.reader import open_result
from leadline.verdict.findings import build_findings
from leadline.workflows.reading import Operation, Workflow, write_workflows

pytestmark = pytest.mark.browser
S = 10**9
START_NS = 1_767_225_600 * S


def film(day: int, *operations: tuple[str, str, int | None]) -> Workflow:
    """Operations one after the other: name, state, seconds."""
    begin_ns, found = START_NS + day * 86_400 * S, []
    for name, state, seconds in operations:
        end_ns = None if seconds is None else begin_ns + seconds * S
        found.append(Operation(name, state, "http://worker", begin_ns, end_ns, 2 * S))
        begin_ns = end_ns or begin_ns
    return Workflow(str(day), "", operations[-1][1], tuple(found))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight films that were done, one that failed and one that still runs."""
    folder = tmp_path_factory.mktemp("workflows")
    done = [film(day, ("inspect", "succeeded", 60), ("encode", "succeeded", 600 + day)) for day in range(8)]
    failed = film(8, ("inspect", "succeeded", 61), ("encode", "failed", 5))
    running = film(9, ("inspect", "succeeded", 62), ("encode", "running", None))
    details = {"title": "films", "since_change_ns": START_NS + 4 * 86_400 * S}
    write_workflows(folder / "r", [*done, failed, running], details, lambda: 1)
    path = folder / "r.html"
    path.write_text(render(build_findings(open_result(folder / "r")), "html"), encoding="utf-8")
    return path


def test_every_bar_has_a_colour_and_a_width(tab: Page, page: Path) -> None:
    tab.open(page)
    bars = (
        "Array.from(document.querySelectorAll('[data-chart^=\"stages-\"] svg .mark-rect path'))"
        ".map(bar => [getComputedStyle(bar).fill, bar.getBoundingClientRect().width])"
    )
    found = tab.value(bars)
    assert len(found) == 2 + 1 + 4 * 2  # of six films, without the operation that has no end
    for fill, width in found:
        assert fill.startswith("rgb")
        assert fill not in ("rgba(0, 0, 0, 0)", "rgb(255, 255, 255)")
        assert width > 0
    assert tab.complaints() == []
    assert tab.requests() == []


def test_it_claims_no_validity_and_leaves_nothing_empty(tab: Page, page: Path) -> None:
    tab.open(page)
    text = tab.value("document.querySelector('main').innerText")
    assert "Nothing was measured here" in text
    assert "VALID" not in text
    assert "failed after 5.00 s" in text
    bare = (
        "Array.from(document.querySelectorAll('main section'))"
        ".filter(one => !one.querySelector('p:not(.note), td, svg, pre')).map(one => one.id)"
    )
    assert tab.value(bare) == []
    links = "Array.from(document.querySelectorAll('nav a'))"
    assert tab.value(f"{links}.filter(one => !document.querySelector(one.hash)).length") == 0
