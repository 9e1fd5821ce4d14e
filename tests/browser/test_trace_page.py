"""The page of a trace in a real browser: every chart is drawn, nothing is asked for, nothing complains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from devtools import Page
from trace_tables import SECOND, file_row, files_table, process, segment, segments_table, tables

from leadline import _core
from leadline.report import render
from leadline.store.reader import open_result
from leadline.tracing.store import create_trace_result
from leadline.tracing.tables import TraceLatencyRow
from leadline.verdict.findings import build_findings

pytestmark = pytest.mark.browser
SECTIONS = ("shares-0", "time-0", "heat-read-0", "heat-write-0", "lives-0", "latency-0-read-total", "files-0")


def histogram(values: Sequence[int]) -> bytes:
    return bytes(_core.histogram_of(list(values)))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two copies that read and wrote for a second, with every kind of chart."""
    folder = tmp_path_factory.mktemp("trace")
    seconds = {"read": 0.3, "write": 0.2, "meta": 0.1, "sync": 0.0}
    rows = [
        segment(copy=n % 2, process=n % 2, call=call, start_ns=n * SECOND // 200, result=4096 * (1 + n % 7))
        for n, call in enumerate(("pread64", "pwrite64") * 100)
    ]
    content = tables(
        processes=(
            process(0, seconds=seconds, bytes_written=4096, lost={"files": 2}),
            process(1, copy=1, seconds=seconds, command="</script><script>alert(1)</script>"),
        ),
        files=files_table(
            [
                file_row(
                    number,
                    process=number % 2,
                    path=f"/data/{number} <b>\u202e",
                    READS=2000,
                    BYTES_READ=20000,
                    CONSEC_READS=1990,
                    F_READ_TIME=0.2 / (1 + number),
                    F_WRITE_TIME=0.1,
                    SIZE_READ_0_100=2000,
                    SIZE_WRITE_1K_10K=5,
                )
                for number in range(30)
            ]
        ),
        latency=(TraceLatencyRow(0, 0, "read", 1000, histogram(range(1000, 101000, 100))),),
        segments=segments_table(rows),
    )
    create_trace_result(folder / "r", {"t0001": content}, title="demo", details={}, now_ns=lambda: 1)
    path = folder / "r.html"
    path.write_text(render(build_findings(open_result(folder / "r")), "html"), encoding="utf-8")
    return path


@pytest.mark.parametrize("dark", [False, True])
def test_every_chart_is_drawn_without_a_complaint_or_a_request(tab: Page, page: Path, dark: bool) -> None:
    tab.open(page, dark=dark)
    for name in SECTIONS:
        marks = f"document.querySelector('[data-chart=\"{name}\"] svg')?.querySelectorAll('path').length ?? 0"
        assert tab.value(marks) > 0, name
    assert tab.complaints() == []
    assert tab.requests() == []


def test_no_legend_is_cut_off(tab: Page, page: Path) -> None:
    tab.open(page, width=1400)
    tab.value("document.querySelectorAll('details').forEach(one => { one.open = true })")
    beyond = (
        "[...document.querySelectorAll('figure svg')].flatMap(svg => [...svg.querySelectorAll('text')]"
        ".filter(one => one.getBoundingClientRect().right > svg.getBoundingClientRect().right + 6)"
        ".map(one => one.textContent))"
    )
    assert tab.value(beyond) == []


def test_what_was_lost_comes_before_any_figure(tab: Page, page: Path) -> None:
    tab.open(page)
    words = tab.value("document.querySelector('.words').innerText")
    assert words.index("2 records were lost") < words.index("2 copies ran at once")


def test_a_path_with_markup_is_text(tab: Page, page: Path) -> None:
    tab.open(page)
    assert tab.value("document.querySelectorAll('main b').length") < 40
    assert tab.value("document.body.innerText.includes('/data/0 <b>')")


@pytest.mark.parametrize("width", [390, 1366])
def test_the_page_fits_its_window(tab: Page, page: Path, width: int) -> None:
    tab.open(page, width=width)
    assert tab.value("document.documentElement.scrollWidth") <= width
