"""The pieces of reports: printed numbers, units of columns, axes, and text made safe."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findings_examples import HOSTILE, compare, hostile, judged, large, small, typical
from leadline.report import format as fmt
from leadline.report import tables
from leadline.report.charts import draw as charts
from leadline.report.charts.lines import log_ticks, nines, points_per_line, series, thin
from leadline.report.charts.parts import linear_ticks
from leadline.report.renderers.page import to_html
from leadline.verdict.model import CellShown, Comparison, FaultSpan, Line, Quantity

MIB = 2**20


@pytest.mark.parametrize(
    ("unit", "values", "label"),
    [
        ("B/s", [3 * MIB, 900 * MIB, 1200 * MIB], "MiB/s"),
        ("B/s", [2**31, 2**32], "GiB/s"),
        ("ns", [2e5, 3e6, 4e8], "ms"),
        ("ns", [900], "ns"),
        ("1/s", [5], "1/s"),
        ("1", [0.5], "%"),
        ("furlong", [5], "furlong"),
    ],
)
def test_a_column_has_the_unit_of_its_middle_value(unit: str, values: list[float], label: str) -> None:
    assert fmt.scale_for(unit, values).label == label


def test_published_tables_keep_si_units() -> None:
    assert fmt.scale_for("B/s", [2e6], si=True) == fmt.Scale("MB/s", 1e6)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (Quantity(100, "1/s", 98, 102, 3), "± 2.0 %"),
        (Quantity(100, "1/s", 70, 130, 3), "± 30 %"),
        (Quantity(100, "1/s", 80, 140, 3), "± 40 %"),
        (Quantity(100, "1/s", 1, 9000, 2), "too noisy"),
        (Quantity(1e6, "1/s", 1e6 - 1, 1e6 + 1, 3), "± < 0.1 %"),
        (Quantity(100, "1/s", None, None, 1), "one sample"),
        (Quantity(100, "1/s"), ""),
        (Quantity(0, "1/s", 0, 1, 3), ""),
        (Quantity(None, "1/s"), ""),
    ],
)
def test_the_spread_is_the_longer_side_of_the_interval_in_percent(item: Quantity, text: str) -> None:
    assert fmt.spread(item) == text


@given(st.text())
def test_printable_text_has_no_character_that_controls_anything(text: str) -> None:
    assert fmt.printable(text).isprintable()


def test_a_percentile_that_no_operation_lies_beyond_is_not_drawn() -> None:
    assert nines(99.0, 1000) == pytest.approx(2)
    assert nines(99.99, 1000) is None
    assert nines(100.0, 1000) == pytest.approx(3)


def test_thinning_keeps_the_mean_and_the_bound() -> None:
    points = tuple((float(second), float(second % 7)) for second in range(960))
    thinned = thin(points, 240)
    assert len(thinned) == 240
    assert sum(y for _, y in thinned) / 240 == pytest.approx(sum(y for _, y in points) / 960)


def test_a_page_of_many_trials_is_bounded() -> None:
    assert points_per_line(3) == 240
    assert points_per_line(1000) == 60


def test_the_word_stands_on_a_curve_even_when_the_first_block_is_missing() -> None:
    found = typical()
    cut = replace(found.cells[1], lines=found.cells[1].lines[1:])
    panel = charts.draw(replace(found, cells=(found.cells[0], cut))).series[0]
    words = [row["word"] for row in panel.spec["data"]["values"] if row["word"]]
    assert words == ["INVALID"]


@given(st.floats(1e-3, 1e12))
def test_linear_ticks_start_at_zero_and_stay_inside(maximum: float) -> None:
    ticks = linear_ticks(maximum)
    assert ticks[0] == 0
    assert 3 <= len(ticks) <= 6
    assert ticks[-1] <= maximum * 1.0001


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20))
def test_logarithmic_ticks_are_few_and_inside(values: list[float]) -> None:
    ticks = log_ticks(values)
    assert len(ticks) <= 10
    assert all(min(values) * 0.999 <= tick <= max(values) * 1.001 for tick in ticks)


def test_a_target_has_one_colour_in_every_chart() -> None:
    text = json.dumps([chart.spec for chart in charts.draw(large()).latencies])
    assert text.count('"domain": ["local", "replicated", "ec21", "kernel"]') > 15


def test_every_work_has_its_panels() -> None:
    panels = charts.draw(large())
    assert len(panels.rates) == 15
    assert len(panels.series) == 15
    assert len(panels.latencies) == 18


def test_invalid_bars_say_the_word_beside_the_number() -> None:
    chart = charts.draw(typical()).rates[0]
    row = next(row for row in chart.spec["data"]["values"] if row["target"] == "replicated")
    assert row["label"].startswith("INVALID ")
    assert "INVALID" in chart.words


def test_an_interval_far_beyond_the_bars_is_cut_and_marked() -> None:
    found = typical()
    wide = replace(found.cells[0].metrics["bandwidth"], low=1.0, high=1e15)
    cell = replace(found.cells[0], metrics=found.cells[0].metrics | {"bandwidth": wide})
    row = charts.draw(replace(found, cells=(cell,))).rates[0].spec["data"]["values"][0]
    assert row["cut"]
    assert row["high"] == pytest.approx(1.6 * row["value"])


def test_a_ratio_is_no_better_than_its_worse_side() -> None:
    states = tables.states_of(typical())
    item = Comparison("seqread_1m", "iops", "replicated", "ec21", 1.0, 0.9, 1.1, 3, "same")
    assert tables.comparison_state(item, states) == "INVALID"


def test_a_ratio_to_an_invalid_base_carries_the_word_in_a_valid_row() -> None:
    found = typical()
    cells = (judged(found.cells[0], "cached_reads"), found.cells[2])
    page = to_html(replace(found, cells=cells, comparisons=compare(cells, "local")))
    numbers = page[page.index('<details class="part" id="numbers">') :]
    row = numbers[numbers.index('<td><span class="name">ec21</span></td>') :]
    row = row[: row.index("</tr>")]
    assert row.index("INVALID") < row.index(">7.2x slower")


def test_hostile_text_stays_text_in_the_page() -> None:
    page = to_html(hostile())
    assert "<script>alert" not in page
    assert "<img" not in page
    assert page.count("</script>") == 1
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert HOSTILE not in page


def test_only_the_steady_part_of_a_line_is_drawn_thick_and_none_of_it_shaded() -> None:
    [cell] = typical().cells[:1]
    lines = tuple(
        Line(f"t{n}", n, "bandwidth", "B/s", tuple((s + 1.0, 1e9) for s in range(9)), first, first + 3.0)
        for n, first in ((1, 2.0), (2, 5.0))
    )
    [chart] = series(0, cell.work, (replace(cell, lines=lines),), [cell.target], 100, False)
    text = json.dumps(chart.spec)
    assert "thick" in chart.title
    counted = {(row["trial"], row["t"]) for row in _rows(chart.spec) if row.get("counted")}
    assert counted == {("t1", 3.0), ("t1", 4.0), ("t1", 5.0), ("t2", 6.0), ("t2", 7.0), ("t2", 8.0)}
    assert '"to": 2.0' in text
    assert '"to": 5.0' not in text


def test_a_shift_of_level_is_marked_at_the_first_point_after_it() -> None:
    [cell] = typical().cells[:1]
    points = tuple((second + 1.0, 1e9 if second < 5 else 5e8) for second in range(9))
    line = Line("t1", 1, "bandwidth", "B/s", points, shift_s=5.0)
    [chart] = series(0, cell.work, (replace(cell, lines=(line,)),), [cell.target], 100, False)
    assert "diamond: the level shifts" in chart.title
    assert [row["t"] for row in _rows(chart.spec) if row.get("shift")] == [6.0]
    [plain] = series(0, cell.work, (replace(cell, lines=(replace(line, shift_s=None),)),), ["a"], 100, False)
    assert "diamond" not in json.dumps(plain.spec)


def _faulted(*spans: tuple[FaultSpan, ...]) -> Any:
    [cell] = typical().cells[:1]
    points = tuple((second + 1.0, 1e9) for second in range(9))
    lines = tuple(
        Line(f"t{place}", place, "bandwidth", "B/s", points, faults=each) for place, each in enumerate(spans)
    )
    [chart] = series(0, cell.work, (replace(cell, lines=lines),), [cell.target], 100, False)
    return chart


def test_each_fault_has_a_band_from_its_beginning_to_its_end_and_its_words_once() -> None:
    slow, down = FaultSpan("link of host1 at 100 Mbit/s", 0.0, 9.0), FaultSpan("osd.0 is down", 2.5, 9.0)
    chart = _faulted((slow, down), (replace(slow, to_s=4.0),))
    bands = [row for row in _rows(chart.spec) if "begins" in row]
    drawn = [(row["number"], row["from"], row["to"], row["begins"], row["ends"]) for row in bands]
    assert drawn == [(1, 0.0, 9.0, False, False), (2, 2.5, 9.0, True, False), (1, 0.0, 4.0, False, True)]
    labels = [row["label"] for row in _rows(chart.spec) if "label" in row]
    assert labels == ["1: link of host1 at 100 Mbit/s", "2: osd.0 is down (1 of 2 trials)"]
    assert "red: a fault in force" in chart.title
    assert "osd.0 is down (1 of 2 trials)" in chart.words
    assert "fault" not in json.dumps(_faulted(()).spec)


def test_of_many_faults_some_are_named_and_long_words_are_cut() -> None:
    spans = tuple(FaultSpan(f"{number} {'x' * 200}", 1.0, 2.0) for number in range(9))
    chart = _faulted(spans)
    labels = [row["label"] for row in _rows(chart.spec) if "label" in row]
    assert len(labels) == 4
    assert all(len(label) < 80 for label in labels)
    assert labels[-1].endswith("and 5 more")


def _rows(spec: Any) -> list[dict[str, Any]]:
    """Every row of data in a chart."""
    if isinstance(spec, list):
        return [row for item in spec for row in _rows(item)]
    if not isinstance(spec, dict):
        return []
    own = spec["values"] if isinstance(spec.get("values"), list) else []
    return [*own, *(row for item in spec.values() for row in _rows(item))]


def test_what_a_kind_is_asked_for_has_a_column_beside_what_everybody_reads() -> None:
    findings = small()
    slept = replace(
        findings.cells[0],
        work="nap",
        metrics={"slept_time": Quantity(0.2, "s", 0.19, 0.21, 3), "naps": Quantity(5, "1", 4, 6, 3)},
        shown=CellShown(asked=(("", "slept_time"),)),
    )
    mixed = replace(findings, cells=(*findings.cells, slept))
    table = tables.key_table(mixed, mixed.cells)
    assert [column.metric for column in table.columns][-1] == "slept_time"
    assert table.rows[-1].measures[-1].value == 0.2


def test_a_result_whose_targets_are_missing_says_so_beside_its_cells() -> None:
    found = typical()
    assert "could not be measured" not in tables.tally(found)
    cells = tuple(
        replace(one, validity=replace(one.validity, state="VALID"))
        for one in found.cells
        if one.validity.state != "NOT_RUN"
    )
    said = tables.tally(replace(found, state="NOT_RUN", cells=cells))
    assert said == f"{len(cells)} VALID, targets that could not be measured"
