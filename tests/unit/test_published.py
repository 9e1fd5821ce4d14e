"""Published figures: what is recomputed, what is doubted, and that altered figures change the doubts."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from leadline.analysis.models import simple as models
from leadline.errors import ResultError, SpecError, UsageError
from leadline.observe.mounts.mounts import inspect
from leadline.plan.make import Host, make_plan
from leadline.published.document import read_published, write_published
from leadline.published.findings import PublishedView, published_findings, published_view
from leadline.report import render
from leadline.store.reader import open_result
from leadline.study.library import load_study
from leadline.study.target import Target
from leadline.verdict.model import Findings
from leadline.yamlio.figures import parse_figure

ROOT = Path(__file__).parents[2]
DATA = ROOT / "python" / "leadline" / "published" / "documents"

SMALL = """
format: leadline.published/1
title: A small table
systems: {a: {host: one}, b: {host: two}}
tables:
  t:
    keys: [system, step]
    columns: {size: GB, took: {unit: s, kind: elapsed}, rate: MB/s}
    rows:
      - [a, copy, 10, 100, 100]
      - [b, copy, 10, 50, 200]
"""


def findings(text: str, path: Path) -> Findings:
    write_published(path, text, read_published(text, "x.yaml"), {"version": "0"}, lambda: 1)
    return published_findings(open_result(path))


def view(text: str, path: Path) -> PublishedView:
    findings(text, path)
    return published_view(open_result(path))


def document(name: str) -> str:
    return (DATA / f"{name}.yaml").read_text()


def codes(found: PublishedView) -> list[str]:
    return [doubt.code for doubt in found.doubts]


def test_figures_that_agree_within_rounding_raise_no_doubt(tmp_path: Path) -> None:
    found = view(SMALL, tmp_path / "r")
    assert (found.tested, found.agreed, found.doubts) == (2, 2, ())


def test_an_altered_figure_is_doubted(tmp_path: Path) -> None:
    found = view(SMALL.replace("50, 200]", "50, 250]"), tmp_path / "r")
    assert codes(found) == ["relation"]
    assert "250 MB/s is published, 200.0 MB/s follows from size over time" in found.doubts[0].text


@pytest.mark.parametrize(
    ("name", "was", "becomes", "code", "gone"),
    [
        ("opencast", "44m", "48m", "two_figures", "44m is published"),
        ("opencast", "00:53:00 PM", "00:53:00", "clock_slip", "no 00:53:00 PM"),
        ("opencast", "12:14:35 AM", "12:14:35 PM", "clock_order", "begins at 12:14:48 PM"),
        ("opencast", '"4:06:39"', '"5:27:58"', "total", "4:06:39 is published"),
        ("fermilab", "~40 %", "~61 %", "claim", "about 40 %"),
        ("fermilab", "[current, 8, 1529]", "[current, 8, 1610]", "repeated_value", "1529 s stands for both"),
        ("fermilab", '"942.6677"]', '"939.6677"]', "repeats_too_alike", "parts in a million"),
        ("suse", "shared_link: 160 Gb/s", "shared_link: 400 Gb/s", "client_limit", "79%"),
    ],
)
def test_a_doubt_goes_when_its_figure_is_put_right(
    tmp_path: Path, name: str, was: str, becomes: str, code: str, gone: str
) -> None:
    text = document(name)
    assert was in text
    before = [d.text for d in view(text, tmp_path / "a").doubts if d.code == code]
    after = [d.text for d in view(text.replace(was, becomes, 1), tmp_path / "b").doubts if d.code == code]
    assert any(gone in words for words in before)
    assert not any(gone in words for words in after)


@pytest.mark.parametrize(
    ("name", "was", "becomes", "code", "words"),
    [
        ("suse", "136306, 63]", "136306, 93]", "relation", "12,680 follows from"),
        ("suse", "220, 56489", "320, 56489", "relation", "220.7 MiB/s"),
        ("opencast", "1340.45", "1240.45", "total", "sum of its parts"),
        ("opencast", "17418]", "18418]", "relation", "operations per second times the time"),
        ("fermilab", '"905.549475"', '"915.549475"', "mean", "the mean of the rows"),
        ("castor", "200, 2200", "200, 1600", "relation", "2,200 1/s"),
        ("fermilab", '"324.80"]', '"244.80"]', "claim", "more than twice as fast"),
    ],
)
def test_a_doubt_comes_when_a_figure_is_altered(
    tmp_path: Path, name: str, was: str, becomes: str, code: str, words: str
) -> None:
    text = document(name)
    assert text.count(was) >= 1
    assert not any(words in d.text and d.code == code for d in view(text, tmp_path / "a").doubts)
    after = view(text.replace(was, becomes, 1), tmp_path / "b").doubts
    assert any(words in d.text and d.code == code for d in after), [d.text for d in after]


def test_what_a_careful_reader_of_the_four_documents_would_doubt(tmp_path: Path) -> None:
    texts = {
        name: "\n".join(f"{d.text} {d.evidence}" for d in view(document(name), tmp_path / name).doubts)
        for name in ("opencast", "castor", "fermilab", "suse")
    }
    for name, wanted in [
        ("opencast", "44m is published, 48:00 min follows from"),
        ("opencast", "1h47m is published, 1:49:18"),
        ("opencast", "has no 00:53:00 PM"),
        ("opencast", "slipped by 12 hours"),
        ("opencast", "4h06m is published, 5:22:00 follows from the sum"),
        (
            "opencast",
            "5 to 10 times as fast as fuse” holds by the measure it names (8.576 times), not by others",
        ),
        ("opencast", "2..3 x is claimed, the tables give 3.531 times"),
        ("fermilab", "~40 % is claimed, the tables give 60.76 %"),
        ("fermilab", "what is left was taken for what was saved"),
        ("fermilab", "1529 s stands for both 7 and 8"),
        ("fermilab", "computed, not measured"),
        ("suse", "Little's law"),
    ]:
        assert wanted in texts[name], texts[name]
    assert texts["castor"] == ""


def test_a_claim_says_what_it_rests_on(tmp_path: Path) -> None:
    bases = {
        name: {
            claim.text: "; ".join(claim.rests_on) for claim in view(document(name), tmp_path / name).claims
        }
        for name in ("opencast", "fermilab", "suse")
    }
    assert "one run of each" in bases["opencast"]["The kernel mount is 5 to 10 times as fast as fuse"]
    copy = bases["opencast"]["A file copy is 2 to 3 times as fast with the kernel client"]
    assert "differ in their host too (test_kernel: test, prod_fuse: production)" in copy
    assert "4 runs at the same time" in bases["fermilab"]["Ceph was more than twice as fast"]
    assert "run time: 1.13 times" in bases["fermilab"]["Ceph was more than twice as fast"]
    division = "Values for each device, by division through 120, estimate larger systems"
    assert "division by the number of devices" in bases["suse"][division]


def test_every_report_of_a_document_is_made(tmp_path: Path) -> None:
    text = document("fermilab").replace("title: Diag", "title: <i>\\x1b|Diag")
    found = findings(text, tmp_path / "r")
    for form in ("html", "md", "csv", "json"):
        made = render(found, form)
        assert "60.76" in made or form == "csv"
        assert "<i>" not in made or form in ("csv", "json")
        assert "\x1b" not in made
    with pytest.raises(UsageError, match="no fio jobs"):
        render(found, "fio")


def test_no_published_figure_counts_as_valid(tmp_path: Path) -> None:
    found = findings(SMALL, tmp_path / "r")
    assert {cell.validity.state for cell in found.cells} == {"DOUBTFUL"}
    assert found.cells[0].metrics["bandwidth"].value == 100e6


def test_castors_rows_are_cells_of_the_study_that_measures_them(tmp_path: Path) -> None:
    """A study whose levels change must take the document's table along, or nothing stands beside it."""
    target = Target("xrootd", str(tmp_path))
    plan = make_plan(
        load_study("streaming", {}), {"xrootd": target}, {"xrootd": inspect(target.url)}, Host(16 << 30), 1
    )
    planned = {cell.id for cell in plan.cells}
    measured = {
        table.cells.format(**dict(row.keys))
        for table in read_published(document("castor"), "castor.yaml").tables
        if table.cells is not None
        for row in table.rows
    }
    assert {"xrootd.aggregate_streams8", "xrootd.whole_files"} < measured
    assert measured <= planned


def test_a_changed_copy_is_refused(tmp_path: Path) -> None:
    findings(SMALL, tmp_path / "r")
    file = tmp_path / "r" / "published.yaml"
    file.write_text(file.read_text().replace("200", "201"))
    with pytest.raises(ResultError, match="changed after the import"):
        published_findings(open_result(tmp_path / "r"))


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        ("leadline.published/1", "leadline.study/1", "line 2.*no table of published values"),
        ("GB,", "GBB,", "line 8.*no unit"),
        ("100, 100]", "100]", "line 10.*4 values, where 5 are needed"),
        ("100, 100]", "lots, 100]", "line 10.*'lots'"),
        ("[b, copy", "[a, copy", "line 11.*given twice"),
        ("    keys:", "    kees: 1\n    keys:", "unknown key"),
        ("title: A small table", "title:", "a text is needed"),
    ],
)
def test_a_bad_table_gives_one_clear_error(tmp_path: Path, was: str, becomes: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        read_published(SMALL.replace(was, becomes, 1), "x.yaml")
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("t.a.copy.rate /", r"a value is needed, not the end \(character 16"),
        ("t.a.copy.rate + t.a.copy.size", "different units"),
        ("nothing.a.copy.rate", "names no table"),
        ("t.a.rate", "write t.system.step.COLUMN"),
        ("t.a.copy.speed", "names no value"),
        ("t.*.copy.rate", "names 2 values"),
        ("__import__('os')", "does not belong here"),
        ("(" * 30 + "1", "nested too deeply"),
        ("1 " * 600, "longer than 1000"),
        ("1 / 0", ""),
    ],
)
def test_a_bad_formula_gives_one_clear_error(tmp_path: Path, formula: str, message: str) -> None:
    text = f'{SMALL}claims:\n  - {{says: "x", is: "{formula}"}}\n'
    if not message:
        assert view(text, tmp_path / "r").claims
        return
    with pytest.raises(SpecError, match=message):
        view(text, tmp_path / "r")


@pytest.mark.parametrize(
    ("text", "unit", "low", "high"),
    [
        ("17", "min", 16 * 60, 18 * 60),
        ("1h49m", "min", 108 * 60, 110 * 60),
        ("4:06:39", "min", 14798, 14800),
        ("~2000000", "IOPS", 1e6, 3e6),
        ("4719.00", "Mb/s", 4718.99e6 / 8, 4719.01e6 / 8),
        ("2..3", "x", 1.5, 3.5),
        ("~40", "%", 0.3, 0.5),
    ],
)
def test_a_figure_stands_for_what_rounds_to_it(text: str, unit: str, low: float, high: float) -> None:
    figure = parse_figure(text, unit)
    assert figure.low == pytest.approx(low)
    assert figure.high == pytest.approx(high)


def test_models_give_what_their_sources_work_out() -> None:
    assert models.syncs_per_s(1e9, 5e6, models.Protection(k=8, m=3)) == pytest.approx(2200)
    assert models.network_bytes(8.0, models.Protection(k=8, m=3)) == (8.0, 10.0)
    assert models.network_bytes(8.0, models.Protection(copies=3)) == (8.0, 16.0)
    assert models.closed_loop_latency_s(8704, 260082) == pytest.approx(0.0335, abs=1e-4)
    assert models.stream_rate(1.25e9, 2e6, 2e6 / 65e6) == pytest.approx(65e6)
    assert models.stream_rate(1.25e9, 64e6, 2e6 / 65e6) == 1.25e9
    assert models.line_rate((2e6, 65e6), (32e6, 300e6), 64e6) == pytest.approx(341e6, rel=1e-3)
    times = [models.copies_time_s(n, 781, 40.5, 4) for n in (1, 2, 4, 6, 7, 8)]
    assert [round(time, 1) for time in times] == [821.5, 862, 943, 1333.5, 1528.8, 1724]
    assert models.fit_copies({1: 11.0, 2: 12.0, 4: 14.0, 8: 99.0}, 4) == pytest.approx((10.0, 1.0))


def test_the_page_of_the_four_documents_is_what_leadline_says() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "published_page.py"))["page"]()
    page = ROOT / "docs" / "published-examples.md"
    assert page.read_text() == made, "run: python tools/published_page.py"


def test_every_compared_time_that_is_more_than_a_minute_off_its_clock_is_listed(tmp_path: Path) -> None:
    """The comparison of the media document against the times of day in its other table, worked out here."""
    text = document("opencast").replace('"12:14:35 AM"', '"12:14:35 PM"')  # its slip of 12 hours put right
    published = read_published(text, "opencast.yaml")
    steps, comparison = published.table("steps"), published.table("comparison")
    assert steps is not None
    assert comparison is not None
    clocks = {}
    for row in steps.rows:
        if "start" in row.figures and "finish" in row.figures:
            start, finish = (row.figures[name].value for name in ("start", "finish"))
            clocks[row.address] = (finish - start) % 86_400
    slipped = clocks["fuse.ingest"] - 43_200  # 00:53 of 24 hours, not of 12
    clocks["fuse.ingest"] = slipped if slipped > 0 else clocks["fuse.ingest"]
    off = {
        row.address
        for row in comparison.rows
        if row.address in clocks and abs(row.figures["time"].value - clocks[row.address]) > 60
    }
    assert "local.encode_2160p" in off
    doubts = " ".join(doubt.text for doubt in view(text, tmp_path / "r").doubts)
    for address in off:
        system, step = address.split(".")
        assert f"Comparison table: {system}, {step}, time" in doubts
