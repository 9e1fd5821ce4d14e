"""The page of a check in a real browser: it asks for nothing, foreign words are text, it fits."""

from __future__ import annotations

from pathlib import Path

import pytest
from devtools import Page

from leadline.check.judge import judge
from leadline.check.rows import ROLES, Fact, rows
from leadline.check.view import shown
from leadline.cli.explain.check import check_findings
from leadline.report import render

pytestmark = pytest.mark.browser
EVIL = "node<script>alert(1)</script>" + "x" * 90


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hosts of which one has a slow link, and a name that is markup."""
    rates = {"a > b": 1e9, "b > a": 1e9, "a > c": 1e8, "c > a": 1e8, "b > c": 1e9, "c > b": 1e9}
    facts = [Fact("path", way, "streams_bit_s", rate) for way, rate in rates.items()]
    facts += [Fact("path", "a > all at once", "at_once_bit_s", 1.1e9)]
    facts += [
        Fact("host", EVIL, "clock_synchronized", False),
        Fact("host", EVIL, "tcp_sack", None, "<b>no</b>"),
    ]
    facts += [Fact("device", f"{EVIL}:/dev/sda", "randread_4k_iops", 1000)]
    checked = judge(facts, rows(), ROLES)
    path = tmp_path_factory.mktemp("check") / "check.html"
    text = render(
        check_findings(shown(facts, checked, []), "2026-01-02T03:04:05+00:00", everything=True), "html"
    )
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("dark", [False, True])
def test_it_opens_without_a_complaint_or_a_request(tab: Page, page: Path, dark: bool) -> None:
    tab.open(page, dark=dark, wait=False)
    assert tab.complaints() == []
    assert tab.requests() == []


def test_what_is_foreign_is_text(tab: Page, page: Path) -> None:
    tab.open(page, wait=False)
    assert tab.value("document.scripts.length") == 1
    assert tab.value("document.body.innerText.includes('node<script>alert(1)</script>')")


def test_the_odd_way_is_marked_in_the_matrix(tab: Page, page: Path) -> None:
    tab.open(page, wait=False)
    cells = tab.value(
        "[...document.querySelectorAll('#tables tbody tr:first-child td')].map(x => x.innerText)"
    )
    assert cells[1:5] == ["-", "1.00 Gbit/s", "! 100 Mbit/s", "1.10 Gbit/s"]


@pytest.mark.parametrize("width", [390, 1366])
def test_it_fits_its_window(tab: Page, page: Path, width: int) -> None:
    tab.open(page, width=width, wait=False)
    assert tab.value("document.documentElement.scrollWidth") <= width
