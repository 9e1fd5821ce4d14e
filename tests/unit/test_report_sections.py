"""A section that a verdict makes is in every report by itself, whatever it is about."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from findings_examples import HOSTILE, typical
from leadline.report import render
from leadline.report.redact import redacted
from leadline.report.renderers.terminal import show
from leadline.verdict.model import FigureRow, FigureTable, Findings, Quantity
from leadline.verdict.sections.charts import CountBars
from leadline.verdict.sections.section import Facts, Item, Panels, Part, Section, TextTable, Words

FIGURES = FigureTable(
    "berths",
    "Berths counted",
    ("Ship",),
    ("Berths",),
    (
        FigureRow(("Argo",), (Quantity(50.0, "", blocks=1),), "VALID"),
        FigureRow(("Mermaid",), (Quantity(7.0, "", blocks=1),), "INVALID"),
    ),
)
PARTS: tuple[Part, ...] = (
    Words((Item("all are afloat", "Harbour", details=("seen at noon",)),)),
    FIGURES,
    TextTable("Masters", ("ship", "master"), (("Argo", "Jason"),)),
    Facts("Weather", {"wind": "west", "force": 4}),
    Panels(((CountBars("ships", "Ships seen", "ships", "reading", (("noon", 2),)),),)),
)


def with_section(*parts: Part, **changes: object) -> Findings:
    section = replace(Section("ships", "Ships in the harbour", parts or PARTS), **changes)  # type: ignore[arg-type]
    return replace(typical(), sections=(section,))


def printed(findings: Findings) -> str:
    stream = io.StringIO()
    show(findings, Console(file=stream, width=120))
    return stream.getvalue()


def test_every_part_is_on_the_terminal_in_markdown_and_on_the_page() -> None:
    findings = with_section()
    page = render(findings, "html")
    for text in (printed(findings), render(findings, "md"), page):
        for words in ("Ships in the harbour", "all are afloat", "Berths counted", "Masters", "Jason", "west"):
            assert words in text
    assert '<details class="part" id="ships">' in page
    assert 'data-chart="ships"' in page


def test_csv_has_its_figures_behind_those_of_the_cells() -> None:
    rows = list(csv.DictReader(io.StringIO(render(with_section(), "csv"), newline="")))
    figures = [(row["factors"], row["metric"], row["value"], row["state"]) for row in rows]
    assert ('{"Ship": "Argo"}', "Berths", "50.0", "VALID") in figures
    assert len(figures) == len(list(csv.DictReader(io.StringIO(render(typical(), "csv"))))) + 6


def test_json_has_it_under_its_name_or_under_keys_of_its_own() -> None:
    found = json.loads(render(with_section(), "json"))["ships"]
    assert found["parts"][1]["rows"][0]["values"][0]["value"] == 50
    own = json.loads(render(with_section(json={"fleet": {"size": Quantity(2.0, "")}}), "json"))
    assert own["fleet"]["size"]["value"] == 2
    assert "ships" not in own


def test_an_invalid_figure_of_a_section_has_the_word() -> None:
    findings = with_section(FIGURES)
    assert "INVALID 7.00" in printed(findings)
    assert "INVALID 7.00" in render(findings, "md")
    assert "<b>INVALID</b>" in render(findings, "html")


def test_a_section_with_tables_of_no_number_is_not_shown() -> None:
    empty = replace(FIGURES, rows=(FigureRow(("Argo",), (Quantity(None, "", reason="fog"),), "VALID"),))
    assert "Berths" not in printed(with_section(empty))
    assert 'id="ships"' not in render(with_section(empty), "html")


@pytest.mark.parametrize("form", ["html", "md"])
def test_hostile_text_in_a_section_stays_text(form: str) -> None:
    parts = (
        Words((Item(HOSTILE, HOSTILE, details=(HOSTILE,)),)),
        TextTable(HOSTILE, (HOSTILE,), ((HOSTILE,),)),
        Facts(HOSTILE, {HOSTILE: HOSTILE}),
        Panels(((CountBars("ships", HOSTILE, "ships", "reading", ((HOSTILE, 2),)),),)),
    )
    text = render(with_section(*parts, title=HOSTILE), form)
    assert "<script>alert" not in text
    assert "<img src=http" not in text
    assert not {"\x1b", "\u202e"} & set(text)


def test_redaction_reaches_into_sections() -> None:
    findings = with_section(Words((Item("read from /srv/secret/plan"),)))
    for form in ("html", "md", "csv", "json"):
        assert "/srv/secret" not in render(redacted(findings), form)


def test_a_time_is_never_rounded_to_less_than_its_unit() -> None:
    """1,837 s was printed as 1,840 beside times of day that said otherwise."""
    times = [Quantity(seconds, "s", blocks=1) for seconds in (3.0, 5.0, 1837.0, 12.5)]
    rows = tuple(FigureRow((str(place),), (item,), "VALID") for place, item in enumerate(times))
    text = printed(with_section(FigureTable("times", "Times", ("Run",), ("Took",), rows)))
    assert "1,837" in text
    assert "1,840" not in text
    minutes = tuple(FigureRow((str(n),), (Quantity(60.0 * n, "s"),), "VALID") for n in (2, 1234, 1235))
    text = printed(with_section(FigureTable("times", "Times", ("Run",), ("Took",), minutes)))
    assert "1,234" in text
