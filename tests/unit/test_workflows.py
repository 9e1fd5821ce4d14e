"""Workflows of a media platform: the forms in which it answers, and what its times allow one to say.

The examples are made by hand after the documented forms; no platform was asked.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from leadline.errors import SpecError
from leadline.store.reader import open_result
from leadline.verdict.model import FigureTable, Findings
from leadline.workflows.findings import workflow_findings
from leadline.workflows.reading import Operation, Workflow, parse_moment, read_workflows
from leadline.workflows.store import write_workflows

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
    counted = {row.keys[0]: row.keys[1] for row in table(found, "by_operation").rows}
    assert counted == {"ingest": "1", "inspect": "3", "encode": "2"}
    by_host = {row.keys[:2] for row in table(found, "by_host").rows}
    assert ("http://worker-2.example:8080", "encode") in by_host


def test_time_per_gigabyte_is_known_where_the_size_is(tmp_path: Path) -> None:
    found = findings(tmp_path, read("internal.xml"))
    (row,) = table(found, "by_operation").rows
    assert row.values[2].value == pytest.approx(60.0)
    without = replace(read("internal.xml"), bytes=None)
    (row,) = table(findings(tmp_path / "b", without), "by_operation").rows
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
    assert row.keys == ("ingest", "8", "8", "faster")
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
    assert row.keys[3] == "same"


def test_a_date_on_one_side_of_everything_compares_nothing(tmp_path: Path) -> None:
    found = findings(tmp_path, done(1, 10), done(2, 11), change_ns=START_NS + 90 * DAY_NS)
    assert "No operation was done both before and after" in said(found)
