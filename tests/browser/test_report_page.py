"""The HTML report in a real browser: no error, no network, charts drawn, tables sorted, all media."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from devtools import Page

from findings_examples import EXAMPLES
from leadline.report import render

pytestmark = pytest.mark.browser
Report = Callable[[str], Path]

MARKS = (
    "[...document.querySelectorAll('figure')]"
    ".map(e => e.querySelectorAll('svg .mark-rect path, svg .mark-line path').length)"
)
COLUMN = "[...document.querySelectorAll('table.key tbody tr')].map(r => r.cells[{}].dataset.sort)"


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_page_draws_everything_without_error_or_network(tab: Page, report: Report, name: str) -> None:
    tab.open(report(name))
    assert tab.complaints() == []
    assert tab.requests() == []
    marks = tab.value(MARKS)
    assert all(count > 0 for count in marks)
    each = "[...document.querySelectorAll('figure')].map(e => e.querySelector('.reading')?.textContent)"
    readings = tab.value(each)
    assert all(reading and reading.endswith(".") for reading in readings)
    assert len(marks) == tab.value("document.querySelectorAll('svg[viewBox]').length")
    assert bool(marks) == (name != "empty")


def test_no_attribute_names_a_network_address(tab: Page, report: Report) -> None:
    tab.open(report("hostile"))
    names = (
        "[...document.querySelectorAll('*')]"
        ".flatMap(e => ['src', 'href', 'action', 'data'].map(a => e.getAttribute(a)))"
    )
    addresses = [value for value in tab.value(names) if value]
    assert addresses
    assert [value for value in addresses if not value.startswith("#")] == []
    source = report("hostile").read_text(encoding="utf-8")
    assert re.findall(r"""(?:src|href)\s*=\s*["']\s*https?:""", source, re.IGNORECASE) == []


def test_hostile_names_run_no_script_and_make_no_element(tab: Page, report: Report) -> None:
    tab.open(report("hostile"))
    assert tab.value("document.scripts.length") == 1
    assert tab.value("document.images.length") == 0
    assert not [event for event in tab.events if event.get("method") == "Page.javascriptDialogOpening"]
    assert "</script><script>alert(1)" in tab.value("document.querySelector('h1').textContent")


def test_the_policy_stops_a_script_and_a_request_that_are_not_ours(tab: Page, report: Report) -> None:
    tab.open(report("small"))
    tab.value(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.injected = 1';"
        " document.body.append(s); const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; })()"
    )
    assert tab.value("typeof window.injected") == "undefined"
    tab.until("true")
    assert any("Content Security Policy" in complaint for complaint in tab.complaints())


@pytest.mark.parametrize("column", [3, 5, 6])
def test_a_click_sorts_a_column_and_a_second_click_turns_it(tab: Page, report: Report, column: int) -> None:
    tab.open(report("typical"), part="numbers")
    heading = f"table.key thead th:nth-child({column + 1})"
    tab.click(f"{heading} button")
    values = [value for value in tab.value(COLUMN.format(column)) if value]
    assert values == sorted(values, key=float)
    assert tab.value(f"document.querySelector('{heading}').getAttribute('aria-sort')") == "ascending"
    tab.click(f"{heading} button")
    turned = tab.value(COLUMN.format(column))
    assert [value for value in turned if value] == sorted(values, key=float, reverse=True)
    assert turned[-1] == ""
    assert tab.value(f"document.querySelector('{heading}').getAttribute('aria-sort')") == "descending"
    assert tab.value("document.querySelectorAll('table.key [aria-sort=none]').length") == 7


def test_the_keyboard_sorts_too(tab: Page, report: Report) -> None:
    tab.open(report("typical"), part="numbers")
    tab.value("document.querySelector('table.key thead th:nth-child(2) button').focus()")
    tab.press("Enter", 13)
    names = tab.value("[...document.querySelectorAll('table.key tbody tr')].map(r => r.cells[1].textContent)")
    assert names == sorted(names)


@pytest.mark.parametrize("width", [400, 768, 1366])
@pytest.mark.parametrize("name", ["typical", "large", "hostile", "small"])
def test_the_page_never_scrolls_sideways(tab: Page, report: Report, name: str, width: int) -> None:
    tab.open(report(name), width=width)
    tab.value("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert tab.value("document.documentElement.scrollWidth") <= width


def test_dark_colours_reach_page_and_charts(tab: Page, report: Report) -> None:
    look = (
        "[getComputedStyle(document.documentElement).backgroundColor,"
        " getComputedStyle(document.querySelector('.mark-text text')).fill]"
    )
    tab.open(report("typical"))
    light = tab.value(look)
    tab.media(dark=True)
    dark = tab.value(look)
    assert [_brightness(colour) > 128 for colour in light] == [True, False]
    assert [_brightness(colour) > 128 for colour in dark] == [False, True]


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_enough_contrast(tab: Page, report: Report, dark: bool) -> None:
    tab.open(report("typical"), dark=dark)
    script = (
        "['--ink', '--muted', '--accent', '--valid', '--doubtful', '--invalid', '--notrun', '--paper']"
        ".map(n => getComputedStyle(document.documentElement).getPropertyValue(n).trim())"
    )
    *colours, paper = tab.value(script)
    assert min(_contrast(colour, paper) for colour in colours) >= 4.5


def test_print_uses_light_colours_and_makes_a_pdf(tab: Page, report: Report, tmp_path: Path) -> None:
    tab.open(report("typical"), dark=True)
    tab.media(dark=True, kind="print")
    assert _brightness(tab.value("getComputedStyle(document.documentElement).backgroundColor")) > 200
    tab.media(dark=True)
    tab.pdf(tmp_path / "report.pdf")
    data = (tmp_path / "report.pdf").read_bytes()
    assert data.startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", data)) <= 6


def test_a_page_without_pictures_draws_its_charts_when_a_part_opens(
    tab: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.report.renderers.page.undrawable", lambda: ("it is not there", "Get it."))
    path = tmp_path / "packed.html"
    path.write_text(render(EXAMPLES["typical"](), "html"), encoding="utf-8")
    assert path.stat().st_size < 700_000
    tab.open(path)
    drawn = "document.querySelectorAll('{} figure svg .mark-{} path').length"
    assert tab.value(drawn.format("#answer", "rect")) > 0
    assert tab.value(drawn.format("#latency", "line")) == 0
    tab.click("#latency > summary")
    tab.until(drawn.format("#latency", "line") + " > 5")
    assert tab.complaints() == []
    assert tab.requests() == []


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_chart_is_saved_in_light_colours_with_title_and_legend(
    tab: Page, report: Report, tmp_path: Path, kind: str
) -> None:
    tab.open(report("typical"), dark=True, part="latency")
    tab.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    tab.click(f"[data-chart^='latency-0'] [data-save={kind}]")
    path = _downloaded(tmp_path, f"*.{kind}")
    assert tab.complaints() == []
    data = path.read_bytes()
    if kind == "png":
        assert data.startswith(b"\x89PNG")
        assert len(data) > 5000
    else:
        text = data.decode()
        assert "var(--" not in text
        assert "seqread_1m, ms" in text
        assert ">replicated<" in text


def test_without_scripts_the_numbers_and_bars_are_there(tab: Page, report: Report) -> None:
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(report("typical"), wait=False)
        assert tab.value("document.querySelectorAll('#speed figure svg').length") == 5
        tab.click("#speed summary")
        assert tab.value("document.querySelector('#speed figure svg').getBoundingClientRect().width") > 100
        assert tab.value("document.querySelectorAll('table.key tbody tr').length") == 15
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)


def test_without_scripts_hostile_names_stay_text(tab: Page, report: Report) -> None:
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(report("hostile"), wait=False)
        assert tab.value("document.querySelectorAll('figure svg').length") > 20
        assert tab.value("document.querySelectorAll('script').length") == 1
        assert tab.value("document.querySelectorAll('img, image, foreignObject, a[href^=http]').length") == 0
        assert tab.requests() == []
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)


def _downloaded(folder: Path, pattern: str) -> Path:
    """The file that the browser saves, once it is whole."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = [path for path in folder.glob(pattern) if path.stat().st_size]
        if found:
            return found[0]
        time.sleep(0.05)
    raise TimeoutError(f"no {pattern} was saved: {[path.name for path in folder.iterdir()]}")


def _channels(colour: str) -> list[int]:
    if colour.startswith("#"):
        return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return [int(float(value)) for value in re.findall(r"[\d.]+", colour)[:3]]


def _brightness(colour: str) -> float:
    return sum(_channels(colour)) / 3


def _contrast(one: str, other: str) -> float:
    """WCAG 2.1's contrast ratio."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    linear = [
        value / 255 / 12.92 if value / 255 <= 0.04045 else ((value / 255 + 0.055) / 1.055) ** 2.4
        for value in _channels(colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_page_opens_with_question_answer_and_one_picture(tab: Page, report: Report) -> None:
    tab.open(report("typical"))
    assert tab.value("document.querySelector('main > section').id") == "answer"
    assert tab.value("document.querySelector('#answer h2').textContent") == "Which target is the fastest?"
    shown = "document.querySelectorAll('#answer tbody tr').length"
    assert tab.value(shown) == len(EXAMPLES["typical"]().cells)
    marks = "document.querySelectorAll('#answer [data-chart=answer] svg .mark-rect path').length"
    assert tab.value(marks) > 0
    # A figure that is INVALID is in no field of the map: the word is.
    texts = "[...document.querySelectorAll('#answer svg .mark-text text')].map(e => e.textContent)"
    assert "INVALID" in tab.value(texts)
