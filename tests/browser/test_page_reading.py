"""How a page reads: what is seen first, what opens on demand, how it prints, and who can read it."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from devtools import Page

from findings_examples import EXAMPLES

pytestmark = pytest.mark.browser
Report = Callable[[str], Path]

NAMES = [*sorted(EXAMPLES), "recorded"]
ORDINARY = ("small", "typical", "faulted", "recorded")
OPEN_ALL = "document.querySelectorAll('details').forEach(one => { one.open = true })"
AXE = resources.files("axe_core_python") / "axe.min.js"


@pytest.mark.parametrize("width", [1400, 420])
@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_short_until_a_part_is_opened(tab: Page, report: Report, name: str, width: int) -> None:
    tab.open(report(name), width=width)
    short = tab.value("document.documentElement.scrollHeight")
    assert short <= 6000
    tab.value(OPEN_ALL)
    assert tab.value("document.documentElement.scrollHeight") > short


@pytest.mark.parametrize("name", ORDINARY)
def test_the_page_of_an_ordinary_study_is_light(report: Report, name: str) -> None:
    assert report(name).stat().st_size < 700_000


@pytest.mark.parametrize("name", ["small", "recorded", "typical"])
def test_answer_table_and_chart_are_seen_first(tab: Page, report: Report, name: str) -> None:
    tab.open(report(name), width=1400)
    place = "document.querySelector('#answer {}')?.getBoundingClientRect().bottom"
    for what in (".headline", "table"):
        assert 0 < tab.value(place.format(what)) <= 900, what
    chart = tab.value(place.format("figure svg"))
    assert chart is None or chart <= 900
    assert tab.value("document.querySelectorAll('#answer table').length") == 1
    tab.open(report(name), width=420)
    assert tab.value(place.format(".headline")) <= 900
    assert tab.value("document.querySelector('#answer table').getBoundingClientRect().top") <= 900


def test_the_first_table_fits_a_phone(tab: Page, report: Report) -> None:
    tab.open(report("recorded"), width=420)
    wide = "(one => one.scrollWidth - one.clientWidth)(document.querySelector('#answer .scroll'))"
    assert tab.value(wide) <= 1


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        *(("recorded", width, dark) for width in (1400, 420) for dark in (False, True)),
        ("typical", 1400, True),
        ("empty", 420, False),
    ],
)
def test_axe_finds_nothing_closed_and_open(
    tab: Page, report: Report, name: str, width: int, dark: bool
) -> None:
    tab.open(report(name), width=width, dark=dark)
    tab.value(AXE.read_text(encoding="utf-8"))
    assert _violations(tab) == []
    tab.value(OPEN_ALL)
    assert _violations(tab) == []


def _violations(tab: Page) -> list[Any]:
    found = (
        "axe.run().then(all => all.violations.map(one => [one.id, one.nodes.slice(0, 3).map(n => n.html)]))"
    )
    return list(tab.value(found))


def test_a_part_opens_and_closes_by_the_keyboard(tab: Page, report: Report) -> None:
    tab.open(report("typical"))
    tab.value("document.querySelector('#latency > summary').focus()")
    tab.press("Enter", 13)
    assert tab.value("document.querySelector('#latency').open")
    assert tab.value("document.querySelector('#latency figure svg').getBoundingClientRect().height") > 50
    tab.press("Enter", 13)
    assert not tab.value("document.querySelector('#latency').open")


def test_an_address_opens_its_part_and_those_around_it(tab: Page, report: Report) -> None:
    tab.open(report("typical"), part="latency")
    assert tab.value("document.querySelector('#latency').open")
    tab.until("Math.abs(document.querySelector('#latency').getBoundingClientRect().top) < 450")
    assert not tab.value("document.querySelector('#details').open")


def test_a_search_in_the_page_opens_the_part_with_its_words(tab: Page, report: Report) -> None:
    """By a text fragment: a browser reveals it by the same rule as a search."""
    tab.open(report("typical"), part=":~:text=every%20nine%20as%20wide")
    tab.until("document.querySelector('#latency').open")
    assert not tab.value("document.querySelector('#origin').open")


@pytest.mark.parametrize("name", [*ORDINARY, "large"])
def test_a_page_prints_on_six_sheets_at_most(tab: Page, report: Report, name: str, tmp_path: Path) -> None:
    tab.open(report(name))
    tab.pdf(tmp_path / "page.pdf")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "page.pdf").read_bytes())) <= 6


def test_no_chart_has_full_bars_alone(tab: Page, report: Report) -> None:
    """The recorded result read everything from one place: that is a sentence and no picture."""
    tab.open(report("recorded"))
    labels = (
        "[...document.querySelectorAll('figure[data-chart^=chain]')]"
        ".map(one => [...one.querySelectorAll('.mark-text text')].map(label => label.textContent))"
    )
    assert [found for found in tab.value(labels) if set(found) <= {"100 %", ""}] == []


@pytest.mark.parametrize("dark", [False, True])
def test_colours_are_apart_and_letters_on_them_can_be_read(tab: Page, report: Report, dark: bool) -> None:
    tab.open(report("small"), dark=dark)
    names = ["--paper", "--ink", "--field", *(f"--series-{place}" for place in range(1, 9))]
    script = (
        f"{json.dumps(names)}.map(n => getComputedStyle(document.documentElement).getPropertyValue(n).trim())"
    )
    paper, ink, field, *series = [_rgb(text) for text in tab.value(script)]
    for share in (0.06, 0.25, 0.5, 0.75, 1.0):
        assert _contrast(ink, _mixed(field, paper, share)) >= 4.5
    for colour in series:
        assert _contrast(colour, paper) >= 3
        assert _contrast(ink, _mixed(colour, paper, 0.35)) >= 4.5
    for sight in (_SEEN, *_BLIND):
        seen = [tuple(_clipped(_times(sight, _linear(colour)))) for colour in series[:4]]
        for one, other in itertools.combinations(seen, 2):
            assert _distance(one, other) > 11, (sight, one, other)


Colour = tuple[float, ...]
_SEEN = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
# Machado, Oliveira and Fernandes 2009, of linear RGB at full severity: protanopia, deuteranopia.
_BLIND = (
    ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
)


def _rgb(text: str) -> Colour:
    return tuple(int(text[place : place + 2], 16) / 255 for place in (1, 3, 5))


def _mixed(one: Colour, other: Colour, share: float) -> Colour:
    return tuple(share * a + (1 - share) * b for a, b in zip(one, other, strict=True))


def _linear(colour: Colour) -> Colour:
    return tuple(v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in colour)


def _times(matrix: tuple[Colour, ...], colour: Colour) -> Colour:
    return tuple(sum(a * b for a, b in zip(row, colour, strict=True)) for row in matrix)


def _clipped(colour: Colour) -> Colour:
    return tuple(min(max(value, 0.0), 1.0) for value in colour)


def _contrast(one: Colour, other: Colour) -> float:
    light, dark = sorted(
        (_times(((0.2126, 0.7152, 0.0722),), _linear(c))[0] for c in (one, other)), reverse=True
    )
    return (light + 0.05) / (dark + 0.05)


def _distance(one: Colour, other: Colour) -> float:
    """CIE 1976's difference of two linear colours; from about 10 on they look different side by side."""
    return sum((a - b) ** 2 for a, b in zip(_lab(one), _lab(other), strict=True)) ** 0.5


def _lab(colour: Colour) -> Colour:
    to_xyz = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    white = (0.9505, 1.0, 1.089)
    x, y, z = (
        value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116
        for value in (a / b for a, b in zip(_times(to_xyz, colour), white, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)
