"""Reports that other programs read: JSON, CSV and fio keep their contracts whatever the text in them."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from findings_examples import EXAMPLES, HOSTILE, empty, hostile, large, typical
from leadline.errors import UsageError
from leadline.report import FORMATS, render
from leadline.report.renderers.exchange import COLUMNS
from leadline.report.renderers.fio import PERCENTILES
from leadline.verdict.model import Curve, Quantity

DATA = Path(__file__).parents[1] / "data" / "report"


def show(name: str) -> dict:
    return json.loads(render(EXAMPLES[name](), "json"))


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_json_follows_the_published_schema(name: str) -> None:
    schema = json.loads((DATA / "show-v1.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(show(name), schema, cls=jsonschema.Draft202012Validator)


def test_json_names_every_cell_with_value_unit_interval_and_validity() -> None:
    cells = {cell["id"]: cell for cell in show("typical")["cells"]}
    assert len(cells) == 15
    bandwidth = cells["local.seqread_1m"]["metrics"]["bandwidth"]
    assert bandwidth["low"] < bandwidth["value"] < bandwidth["high"]
    assert (bandwidth["unit"], bandwidth["blocks"]) == ("B/s", 3)
    assert cells["replicated.seqread_1m"]["validity"]["state"] == "INVALID"
    assert cells["replicated.seqread_1m"]["validity"]["codes"][0]["code"] == "cached_reads"


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_json_gives_null_and_a_reason_for_what_is_no_number(value: float | None) -> None:
    found = typical()
    cell = replace(found.cells[0], metrics={"iops": Quantity(value, "1/s", math.nan, math.inf, 3)})
    metric = json.loads(render(replace(found, cells=(cell,)), "json"))["cells"][0]["metrics"]["iops"]
    assert metric["value"] is metric["low"] is metric["high"] is None
    assert metric["reason"]


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_has_its_columns_and_a_row_for_each_cell_and_metric() -> None:
    found = typical()
    text = render(found, "csv")
    rows = rows_of(text)
    assert text.split("\r\n", 1)[0] == ",".join(COLUMNS)
    assert len(rows) == sum(len(cell.metrics) for cell in found.cells)
    assert {row["state"] for row in rows} == {"VALID", "DOUBTFUL", "INVALID", "NOT_RUN"}


def test_csv_keeps_all_digits_and_leaves_the_unmeasured_empty() -> None:
    rows = rows_of(render(typical(), "csv"))
    measured = next(row for row in rows if row["target"] == "local" and row["metric"] == "iops")
    assert float(measured["value"]) == typical().cells[0].metrics["iops"].value
    missing = next(row for row in rows if row["state"] == "NOT_RUN")
    assert (missing["value"], missing["low"]) == ("", "")
    assert "ENOSPC" in missing["reason"]


def test_csv_ends_lines_as_rfc_4180_says_and_has_no_raw_control_character() -> None:
    text = render(hostile(), "csv")
    assert text.endswith("\r\n")
    assert not {character for character in text.replace("\r\n", "") if ord(character) < 32}


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1"])
def test_csv_never_starts_a_formula(start: str) -> None:
    row = rows_of(render(replace(typical(), title=start), "csv"))[0]
    assert row["study"].lstrip()[0] not in "=+-@"


def test_csv_of_a_cell_without_metrics_says_so() -> None:
    found = empty()
    bare = replace(found, cells=(replace(found.cells[0], metrics={}),))
    row = rows_of(render(bare, "csv"))[0]
    assert (row["metric"], row["value"], row["reason"]) == ("", "", "not run")


def fio_keys(value: object, path: str = "") -> set[str]:
    """Every key with its place, so that two documents' shapes can be compared."""
    if not isinstance(value, dict):
        return set()
    return {f"{path}/{key}" for key in value} | {
        name for key, item in value.items() for name in fio_keys(item, f"{path}/{key}")
    }


def test_fio_uses_only_keys_that_fio_prints() -> None:
    real = json.loads((DATA / "fio-3.33-randrw.json").read_text(encoding="utf-8"))
    ours = json.loads(render(typical(), "fio"))
    own = {"/leadline", "/job options"}
    real_job = fio_keys(real["jobs"][0])
    for job in ours["jobs"]:
        foreign = {key for key in fio_keys(job) - real_job if not key.startswith(tuple(own))}
        assert foreign == set()
    assert set(ours) - set(real) == {"leadline", "global options"}  # which fio has of a job file's [global]


def test_fio_numbers_are_in_fios_units() -> None:
    found = typical()
    job = next(
        job for job in json.loads(render(found, "fio"))["jobs"] if job["jobname"] == "local.seqread_1m"
    )
    bandwidth = found.cells[0].metrics["bandwidth"].value
    assert job["read"]["bw_bytes"] == int(bandwidth)
    assert job["read"]["bw"] == int(bandwidth) // 1024
    assert job["read"]["runtime"] == 90_000
    assert job["read"]["io_kbytes"] == job["read"]["io_bytes"] // 1024
    assert job["read"]["lat_ns"]["percentile"]["99.000000"] == dict(found.cells[0].curves[0].points)[99.0]
    assert list(job["read"]["lat_ns"]["percentile"]) == [f"{percentile:.6f}" for percentile in PERCENTILES]
    assert (job["write"]["total_ios"], job["write"]["lat_ns"]["N"]) == (0, 0)


def test_fio_says_clat_and_slat_where_they_were_recorded_and_no_sample_where_not() -> None:
    found = typical()
    extra = (Curve("read", "completion", 10, ((50.0, 7.0),)), Curve("read", "submission", 10, ((50.0, 3.0),)))
    with_clocks = replace(found.cells[0], curves=found.cells[0].curves + extra)
    jobs = json.loads(render(replace(found, cells=(with_clocks, found.cells[3])), "fio"))["jobs"]
    assert jobs[0]["read"]["clat_ns"]["percentile"] == {"50.000000": 7}
    assert jobs[0]["read"]["slat_ns"]["percentile"] == {"50.000000": 3}
    assert [jobs[1]["write"][clock]["N"] for clock in ("clat_ns", "slat_ns")] == [0, 0]


@pytest.mark.parametrize("format_name", ["md", "csv"])
def test_a_line_with_a_number_of_an_invalid_cell_carries_the_word(format_name: str) -> None:
    value = typical().cells[1].metrics["bandwidth"].value
    printed = repr(value) if format_name == "csv" else "| 416 |"
    lines = [line for line in render(typical(), format_name).splitlines() if printed in line]
    assert lines
    assert all("INVALID" in line for line in lines)


def test_fio_and_json_carry_the_word_with_an_invalid_cell() -> None:
    jobs = json.loads(render(typical(), "fio"))["jobs"]
    assert "replicated.seqread_1m [INVALID]" in [job["jobname"] for job in jobs]
    assert not [cell for cell in show("typical")["cells"] if "state" not in cell["validity"]]


def test_markdown_shows_hostile_text_as_text() -> None:
    text = render(hostile(), "md")
    assert not {"\x1b", "\u202e"} & set(text)
    # An indented block is code: nothing in it is markup.
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    for markup in ("<script", "<img", "http://evil", "{{7*7}}"):
        assert markup not in prose
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert tables
    widths = {line.replace("\\|", "").count("|") for line in tables}
    assert widths == {11, 9, 8}


@pytest.mark.parametrize("format_name", [name for name in FORMATS if name != "html"])
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_text_format_renders_every_example(name: str, format_name: str) -> None:
    assert render(EXAMPLES[name](), format_name)


def test_an_unknown_format_is_a_usage_error_with_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        render(large(), "xlsx")
    assert "html" in caught.value.remedy


def test_json_carries_hostile_text_unchanged() -> None:
    assert HOSTILE in show("hostile")["cells"][0]["work"]


def test_csv_has_no_interval_that_says_nothing() -> None:
    """From 0.0017 ns to years: two blocks that differ give such ends, and they are no bounds."""
    wide = Quantity(4e6, "ns", 0.0017, 1.6e17, 2)
    findings = typical()
    cell = replace(
        findings.cells[0], metrics={"latency_mean": wide, "iops": Quantity(5.0, "1/s", 4.0, 6.0, 3)}
    )
    rows = list(csv.DictReader(io.StringIO(render(replace(findings, cells=(cell,)), "csv"))))
    by_metric = {row["metric"]: row for row in rows}
    found = by_metric["latency_mean"]
    assert (found["value"], found["low"], found["high"]) == ("4000000.0", "", "")
    assert found["reason"].startswith("too noisy for a CI")
    assert (by_metric["iops"]["low"], by_metric["iops"]["high"]) == ("4.0", "6.0")
