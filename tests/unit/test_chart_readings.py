"""Each chart has a fact of its values as a sentence, without what cannot be used. Full bars are no chart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from findings_examples import judged, typical
from leadline.report.charts.bars import origin, share_charts
from leadline.report.charts.draw import draw
from leadline.report.charts.lines import latency
from leadline.report.charts.parts import most_of, times
from leadline.report.charts.ways import chain
from leadline.report.figures import printed_figures, with_values
from leadline.verdict.model import Chain, ChainPlace, FigureRow, FigureTable, Origin, Quantity
from leadline.verdict.sections.charts import ShareBar, ShareBars

NAMES = ["local", "replicated", "ec21"]


def text(value: float) -> str:
    return f"{value:g} IOPS"


@pytest.mark.parametrize(
    ("values", "reading"),
    [
        ([("a", 5.0), ("b", 10.0)], "b has the highest mean: 10 IOPS, 2.0x that of a."),
        ([("a", 11.0), ("b", 10.0)], "a has the highest mean: 11 IOPS, 10 % above b."),
        ([("a", 10.0), ("b", 10.0)], "a: 10 IOPS; a: 10 IOPS."),
        ([("a", 10.0), ("b", None)], "a: 10 IOPS."),
        ([("a", None)], "No value can be used."),
        ([("a", 10.0), ("b", 0.0)], "a: 10 IOPS; b: 0 IOPS."),
    ],
)
def test_the_largest_value_is_named_with_how_far_the_smallest_is(
    values: list[tuple[str, float | None]], reading: str
) -> None:
    assert most_of(values, text) == reading


def test_a_factor_below_two_is_percent() -> None:
    assert (times(3, 1.5), times(1.5, 1), times(1, 0)) == ("2.0x", "50 % above", "")


def test_an_invalid_value_is_in_no_reading() -> None:
    chart = draw(typical()).rates[0]
    assert chart.reading == "local has the highest mean: 1.85 GiB/s, 7.2x that of ec21."
    cells = tuple(judged(cell, "cached_reads") for cell in typical().cells[:3])
    assert draw(replace(typical(), cells=cells)).rates[0].reading == "No value can be used."


def test_a_percentile_that_all_have_is_read_the_fastest_first() -> None:
    cells = tuple(cell for cell in typical().cells if cell.work == "seqread_1m")
    reading = latency(0, "w", cells, NAMES)[0].reading
    assert reading.startswith("p99: local ")
    assert "replicated" not in reading  # it is INVALID


def test_bars_that_are_all_full_are_a_sentence_and_no_picture() -> None:
    full = ShareBars("s", "Time", "%", (ShareBar("a", "a", (("reading", 1.0),)),))
    (chart,) = share_charts(full)
    assert chart.spec == {}
    assert chart.reading == "a: 100 % reading."
    parts = (("reading", 0.7), ("writing", 0.3))
    (chart,) = share_charts(replace(full, bars=(*full.bars, ShareBar("b", "b", parts))))
    assert chart.spec
    assert chart.reading == "a: 100 % reading; b: 70.0 % reading."


def test_bytes_that_are_all_of_one_place_are_a_sentence_and_no_picture() -> None:
    cell = typical().cells[0]

    def drawn(*shares: float) -> tuple[bool, str]:
        names = ("client_cache", "device")
        pairs = zip(names, shares, strict=True)
        places = tuple(ChainPlace(name, name, share, None, None) for name, share in pairs)
        found = chain(0, "w", (replace(cell, chains=(Chain("read", 100, places),)),), NAMES, "read")
        assert found is not None
        return bool(found.spec), found.reading

    assert drawn(0.0, 1.0) == (False, "local: 100 % device.")
    assert drawn(0.3, 0.7) == (True, "local: 70 % device.")


def test_one_byte_for_each_byte_everywhere_is_a_sentence() -> None:
    cell = typical().cells[0]

    def drawn(device: float) -> tuple[bool, str]:
        moved = Origin(100.0, wire_bytes=100.0, device_bytes=device, osd_bytes=100.0)
        found = origin(0, "w", (replace(cell, origin=moved),), NAMES)
        assert found is not None
        return bool(found.spec), found.reading

    assert drawn(100.0) == (False, "Each place moved one byte for each byte of the application.")
    assert drawn(250.0) == (True, "local, device: 2.50, the most.")


def test_every_chart_of_a_study_has_a_reading() -> None:
    for chart in draw(typical()).every:
        assert chart.reading.endswith("."), chart.id


def test_a_column_without_any_value_is_a_line_and_no_column() -> None:
    price, known = Quantity(None, "EUR", reason="no price"), Quantity(3.0, "1")
    rows = (
        FigureRow(("x",), (known, price), "VALID"),
        FigureRow(("y",), (Quantity(None, "1"), price), "VALID"),
    )
    shown = with_values(printed_figures(FigureTable("t", "T", ("key",), ("rate", "price"), rows)))
    assert shown.columns == ("rate",)
    assert "price: no price" in shown.reasons
    assert any(reason.endswith("not measured") for reason in shown.reasons)
