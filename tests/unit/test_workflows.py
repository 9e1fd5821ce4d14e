"""Workflows of a media platform: the forms in which it answers, and what its times allow one to say.

The examples are made by hand after the documented forms; no platform was asked.
"""

from __future__ import annotations

import io
import json
import re
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from leadline.errors import SpecError
from leadline.report import render
from leadline.report.charts.draw import draw
from leadline.report.renderers.show_json import to_json
from leadline.report.renderers.terminal import show
from leadline.store.reader import open_result
from leadline.verdict.model import FigureTable, Findings
from leadline.workflows.findings import workflow_findings
from leadline.workflows.reading import Operation, Workflow, parse_moment, read_workflows, write_workflows

DATA = Path(__file__).parents[1] / "data" / "opencast"
DAY_NS = 86_400 * 10**9
START_NS = parse_moment("2026-01-01", "")


def read(name: str) -> Workflow:
    (found,) = read_workflows((DATA / name).read_text(), name)
    return found


def findings(tmp_path: Path, *workflows: Workflow, change_ns: int | None = None) -> Findings:
    details = {"title": "t", "since_change_ns": change_ns}
    write_workflows(tmp_path / "r", workflows, details, lambda: 1)
    return workflow_findings(open_result(tmp_path / "r"))


def table(found: Findings, name: str) -> FigureTable:
    (section,) = found.sections
    return next(one for one in section.tables if one.name == name)


def said(found: Findings) -> str:
    return " ".join(" ".join((one.text, *one.evidence)) for one in found.statements)


def test_the_external_form_gives_operations_with_host_times_and_queue() -> None:
    found = read("external.json")
    assert (found.id, found.state, found.bytes) == ("1603", "succeeded", None)
    names = [(one.name, one.state, one.seconds) for one in found.operations]
    assert names[:2] == [("ingest", "succeeded", 1020.0), ("inspect", "succeeded", 637.25)]
    assert names[3] == ("cleanup", "skipped", None)
    assert found.operations[1].queue_ns == 2_500_000_000
    assert found.operations[2].host == "http://worker-2.example:8080"


def test_the_internal_form_gives_the_same_and_the_size_of_what_was_uploaded() -> None:
    found = read("internal.json")
    assert (found.id, found.state, found.bytes) == ("2001", "failed", 68_200_000_000)
    assert [(one.name, one.seconds) for one in found.operations] == [
        ("inspect", 660.0),
        ("encode", 600.0),
        ("publish", None),
        ("archive", None),
    ]


def test_xml_gives_the_same() -> None:
    found = read("internal.xml")
    assert (found.id, found.state, found.bytes) == ("2002", "running", 2_000_000_000)
    assert [(one.name, one.seconds) for one in found.operations] == [("inspect", 120.0), ("encode", None)]
    assert found.operations[0].queue_ns == 4_000_000_000


def test_lists_and_pages_hold_several_and_a_list_of_one_has_no_brackets() -> None:
    one = json.loads((DATA / "external.json").read_text())
    assert len(read_workflows(json.dumps([one, {**one, "identifier": 7}]), "x")) == 2
    inner = json.loads((DATA / "internal.json").read_text())["workflow"]
    inner["operations"]["operation"] = inner["operations"]["operation"][0]
    page = {"workflows": {"totalCount": "1", "workflow": inner}}
    (found,) = read_workflows(json.dumps(page), "x")
    assert [operation.name for operation in found.operations] == ["inspect"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("3", "no workflow"),
        ('{"a": 1}', "no workflow"),
        ('{"identifier": 4, "title": "x"}', "without its operations"),
        ('{"identifier": 4, "operations": [3]}', "an operation that is none"),
        ('{"identifier": 4, "operations": [{"operation": "a", "start": "soon"}]}', "no time"),
        ("<html><body>Log in</body></html>", "is a page"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><workflow/>', "is a page"),
        ("<workflow", "no XML"),
        ("<other/>", "no workflow"),
    ],
)
def test_what_is_no_workflow_is_refused_with_a_remedy(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words) as error:
        read_workflows(text, "x")
    assert error.value.remedy


def test_failed_and_running_workflows_and_lacking_times_are_named_and_the_rest_is_counted(
    tmp_path: Path,
) -> None:
    found = findings(tmp_path, read("external.json"), read("internal.json"), read("internal.xml"))
    text = said(found)
    assert "2001: failed, in encode" in text
    assert "2002: running, in encode" in text
    counted = {row.keys[0]: row.keys[1:] for row in table(found, "by_operation").rows}
    assert counted == {
        "ingest": ("1", "0", "0"),
        "inspect": ("3", "0", "0"),
        "encode": ("1", "1", "1"),
        "archive": ("1", "0", "0"),
    }
    by_host = {row.keys[:2] for row in table(found, "by_host").rows}
    assert ("http://worker-2.example:8080", "encode") in by_host


def test_time_per_gigabyte_is_known_where_the_size_is(tmp_path: Path) -> None:
    found = findings(tmp_path, read("internal.xml"))
    row, running = table(found, "by_operation").rows
    assert row.values[2].value == pytest.approx(60.0)
    assert (running.keys, running.values[0].value) == (("encode", "0", "0", "1"), None)
    without = replace(read("internal.xml"), bytes=None)
    row, _ = table(findings(tmp_path / "b", without), "by_operation").rows
    assert (row.values[2].value, row.values[2].reason) == (None, "sizes are not known")


def done(day: int, seconds: float, size: int | None = 10**9) -> Workflow:
    begin = START_NS + day * DAY_NS
    operation = Operation("ingest", "succeeded", "h", begin, begin + round(seconds * 1e9), 0)
    return Workflow(str(day), "", "succeeded", (operation,), size)


def test_a_change_that_made_an_operation_quicker_is_found_with_its_interval(tmp_path: Path) -> None:
    slow = [done(day, 600 + 10 * (day % 3)) for day in range(8)]
    quick = [done(day, 100 + 2 * (day % 3)) for day in range(10, 18)]
    found = findings(tmp_path, *slow, *quick, change_ns=START_NS + 9 * DAY_NS)
    (row,) = table(found, "since_change").rows
    assert row.keys == ("ingest", "8", "8", "0", "0", "faster")
    ratio = row.values[2]
    assert ratio.value == pytest.approx(101.9 / 609.9, rel=0.01)
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low < 101.9 / 609.9 < ratio.high
    assert "times faster" in said(found)


def test_a_change_among_films_of_unknown_size_is_said_with_that_caution(tmp_path: Path) -> None:
    workflows = [done(day, 100 + day % 4, None) for day in range(20)]
    found = findings(tmp_path, *workflows, change_ns=START_NS + 10 * DAY_NS)
    assert "Sizes are not known" in said(found)
    (row,) = table(found, "since_change").rows
    assert row.keys[-1] == "same"


def test_a_date_on_one_side_of_everything_compares_nothing(tmp_path: Path) -> None:
    found = findings(tmp_path, done(1, 10), done(2, 11), change_ns=START_NS + 90 * DAY_NS)
    assert "No operation succeeded twice both before and after" in said(found)


CHANGE_NS = START_NS + 9 * DAY_NS


def encoded(day: int, seconds: float, state: str = "succeeded", workflow: str = "succeeded") -> Workflow:
    begin = START_NS + day * DAY_NS
    end = None if state == "running" else begin + round(seconds * 1e9)
    return Workflow(str(day), "", workflow, (Operation("encode", state, "h", begin, end, 0),))


def test_failed_and_running_operations_are_no_durations_but_counted_and_named(tmp_path: Path) -> None:
    before = [encoded(day, seconds) for day, seconds in enumerate((2400, 2330, 2500, 2280))]
    failed = [encoded(day, 5, "failed", "failed") for day in range(10, 14)]
    found = findings(tmp_path, *before, *failed, encoded(15, 0, "running", "running"), change_ns=CHANGE_NS)
    assert "times faster" not in said(found)
    (row,) = table(found, "since_change").rows
    assert row.keys == ("encode", "4", "0", "0", "5", "-")
    assert row.values[2].value is None
    (row,) = table(found, "by_operation").rows
    assert row.keys == ("encode", "4", "4", "1")
    assert row.values[0].value == pytest.approx(statistics.geometric_mean((2400, 2330, 2500, 2280)))
    assert "encode failed 4 times and did not end once" in said(found)


def test_a_change_of_37_percent_is_found_with_four_against_four(tmp_path: Path) -> None:
    from scipy import stats

    before, after = (301.0, 288.0, 315.0, 296.0), (190.0, 183.0, 196.0, 177.0)
    works = [encoded(day, one) for day, one in enumerate(before)]
    works += [encoded(day, one) for day, one in enumerate(after, start=10)]
    found = findings(tmp_path, *works, change_ns=CHANGE_NS)
    (row,) = table(found, "since_change").rows
    welch = stats.ttest_ind(np.log(after), np.log(before), equal_var=False)
    assert welch.pvalue < 0.0005
    interval = welch.confidence_interval(0.95)
    assert row.keys[-1] == "faster"
    assert row.values[2].value == pytest.approx(
        statistics.geometric_mean(after) / statistics.geometric_mean(before)
    )
    assert (row.values[2].low, row.values[2].high) == pytest.approx(tuple(np.exp(interval)))
    assert row.values[1].value / row.values[0].value == pytest.approx(row.values[2].value)  # type: ignore[operator]


def test_several_operations_are_decided_together(tmp_path: Path) -> None:
    """By Holm: with twenty operations a p of 0.03 is no difference, and one of 1e-6 is."""
    names = [f"o{number}" for number in range(20)]
    works = []
    for side, day in ((0, 0), (1, 10)):
        for number in range(4):
            begin = START_NS + (day + number) * DAY_NS
            operations = tuple(
                Operation(name, "succeeded", "h", begin, begin + round(seconds * 1e9), 0)
                for place, name in enumerate(names)
                for seconds in [100.0 * (1 + 0.02 * (number - 1.5)) * _factor(place, side)]
            )
            works.append(Workflow(f"{side}{number}", "", "succeeded", operations))
    rows = {
        row.keys[0]: row
        for row in table(findings(tmp_path, *works, change_ns=CHANGE_NS), "since_change").rows
    }
    assert rows["o0"].keys[-1] == "faster"
    assert rows["o1"].keys[-1] == "undecided"  # 5 % with a p of about 0.03


def _factor(place: int, side: int) -> float:
    return {0: 0.5, 1: 0.953}.get(place, 1.0) if side else 1.0


def test_times_that_are_all_alike_have_the_spread_of_the_clock(tmp_path: Path) -> None:
    works = [encoded(day, 60) for day in range(4)] + [encoded(day, 30) for day in range(10, 14)]
    (row,) = table(findings(tmp_path, *works, change_ns=CHANGE_NS), "since_change").rows
    assert row.keys[-1] == "faster"
    assert row.values[2].low is not None
    assert row.values[2].high is not None
    assert row.values[2].low < 0.5 < row.values[2].high


def test_failed_running_and_longest_workflows_come_first_and_none_is_left_out(tmp_path: Path) -> None:
    works = [encoded(day, 100 + day) for day in range(30)]
    works += [encoded(40, 5, "failed", "failed"), encoded(41, 0, "running", "running")]
    found = findings(tmp_path, *works)
    rows = table(found, "workflows").rows
    assert [row.keys[:2] for row in rows[:3]] == [("40", "failed"), ("41", "running"), ("29", "succeeded")]
    assert len(rows) == 32
    assert rows[0].values[0].value is None
    assert len(table(found, "operations").rows) == 32
    brief, whole = printed(found, whole=False), printed(found, whole=True)
    assert "succeeded" in brief
    assert len(brief.splitlines()) < 60
    assert "leadline show DIR --all" in brief
    for day in (*range(30), 40, 41):
        assert re.search(rf"^{day} ", whole, re.MULTILINE)


def printed(found: Findings, *, whole: bool) -> str:
    stream = io.StringIO()
    show(found, Console(file=stream, width=160), whole=whole)
    return stream.getvalue()


def test_a_result_without_cells_claims_no_validity_and_has_no_empty_section(tmp_path: Path) -> None:
    found = findings(tmp_path, *(encoded(day, 100 + day) for day in range(6)), change_ns=CHANGE_NS)
    page, text, words = render(found, "html"), render(found, "md"), printed(found, whole=True)
    for one in (text, words):
        assert "VALID" not in one
    body = page[page.index("<main>") : page.index("<footer>")]
    assert "relied on" not in page
    assert ">VALID<" not in body
    assert "No validity code fired" not in body
    for section in re.findall(r"<section.*?</section>|<details class=\"part\".*?</details>", body, re.DOTALL):
        rest = re.sub(r"<h[1-6].*?</h[1-6]>|<p class=\"note\">.*?</p>", "", section, flags=re.DOTALL)
        assert re.search(r">[^<>\s][^<>]*<", rest), section
    for anchor in re.findall(r'<a href="#([\w-]+)"', page):
        assert f'id="{anchor}"' in page
    assert to_json(found)["state"] is None


def test_every_bar_of_the_chart_has_a_colour(tmp_path: Path) -> None:
    found = findings(
        tmp_path, *(encoded(day, 100 + day) for day in range(6)), encoded(9, 5, "failed", "failed")
    )
    drawn = [chart for panels in draw(found).sections for chart in panels.every]
    assert drawn
    for chart in drawn:
        colours = chart.spec["layer"][0]["encoding"]["color"]["scale"]
        known = dict(zip(colours["domain"], colours["range"], strict=True))
        assert all(known.get(row["target"]) for row in chart.spec["data"]["values"])
    assert any(
        "failed after 5.00 s" in row["label"] for chart in drawn for row in chart.spec["data"]["values"]
    )
