"""What bounds each cell, as reports have it: the way as a picture, of a few cells, never without INVALID."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console
from test_diagnosed import port, seen

from findings_examples import typical
from leadline.report import render
from leadline.report.redact import redacted
from leadline.report.renderers.terminal import show
from leadline.report.section_parts import place_lines
from leadline.study.target import TargetFacts
from leadline.verdict.diagnosis.causes import CauseEntry, applying, causes
from leadline.verdict.diagnosis.ceilings import Ceiling, RateCeilings
from leadline.verdict.diagnosis.judge import diagnose
from leadline.verdict.diagnosis.places import _part_of
from leadline.verdict.diagnosis.results import CellDiagnosed
from leadline.verdict.diagnosis.samples import Figures
from leadline.verdict.diagnosis.section import PICTURES_MAX, bounds_section
from leadline.verdict.model import Cell, Findings, Validity
from leadline.verdict.sections.charts import PlaceUse

FULL = seen(*port("client1", 25e6, 23.5e6))
STOPPED = seen(
    ("daemon", "osd.1", "throttled", 9.0),
    ("daemon", "osd.1", "cpu", 0.02),
    ("ceph", "osd.1", "op_write_latency", 1.0),
)


def cell(name: str, figures: Figures, *, invalid: bool = False) -> CellDiagnosed:
    base = typical().cells[0]
    validity = Validity("INVALID" if invalid else "VALID")
    made = Cell(f"a.{name}", "a", name, {}, base.job, {}, validity)
    should = RateCeilings(10e6, (Ceiling(20e6, "the link of client1"),))
    return CellDiagnosed(made, diagnose([figures]), should)


def with_bounds(*cells: CellDiagnosed) -> Findings:
    section = bounds_section(cells)
    assert section is not None
    return replace(typical(), sections=(section,))


def use_of(figures: Figures, what: str) -> PlaceUse:
    return next(part for part in diagnose([figures]).uses if part.what.startswith(what))


def test_the_part_that_bounds_is_marked_even_where_it_is_hardly_in_use() -> None:
    full, stopped = use_of(FULL, "fullest port"), use_of(STOPPED, "OSDs")
    assert (full.bounds, full.use) == (True, pytest.approx(23.5 / 25 / 0.956))
    assert (stopped.bounds, stopped.use) == (True, 0.02)
    assert stopped.waits == "osd.1 without CPU in 9 of 10 periods a second"
    assert stopped.saturation["osd_throttled_per_s"] == 9.0
    assert [part.what for part in diagnose([FULL]).uses if part.bounds] == ["fullest port"]


def test_what_was_not_observed_is_said_and_is_no_zero() -> None:
    part = use_of(FULL, "metadata server")
    assert (part.use, part.waits, part.saturation) == (None, "not observed", {})
    (line,) = place_lines([part], 100)
    assert line.endswith("not observed")
    assert "%" not in line


@pytest.mark.parametrize("width", [40, 60, 79, 80, 100])
def test_lines_keep_to_the_terminal_and_mark_what_bounds_by_a_word(width: int) -> None:
    lines = list(place_lines(diagnose([STOPPED]).uses, width))
    assert max(map(len, lines)) <= max(width, 50)  # a bar, its share and the mark
    (marked,) = [at for at, line in enumerate(lines) if line.endswith("< bottleneck")]
    assert "OSDs, busiest thread" in "".join(lines[marked - 1 : marked + 1])
    assert "osd.1 without CPU" in " ".join(" ".join(lines[marked + 1 :]).split())


def test_a_gateway_is_on_the_way_where_one_answers() -> None:
    busy = ("daemon", "proxy.xrootd.1/x.7", "cpu", 0.5)
    behind = {**seen(busy), "behind_server": 1.0}
    assert use_of(behind, "gateway").use == 0.5
    assert "proxy" not in {part.place for part in diagnose([seen(busy)]).uses}


def test_a_cause_of_the_work_marks_the_work() -> None:
    syncs = {**FULL, "port_share": 0.1, "syncs_per_write": 1.0, "sync_latency_s": 1.0, "latency_s": 0.01}
    assert "load" in {part.place for part in diagnose([syncs]).uses if part.bounds}


def test_what_cannot_be_on_the_way_is_not_drawn() -> None:
    local = applying(TargetFacts("local", "ext4", "ext4 on vda"))
    quiet = seen()
    parts = {part.what for part in diagnose([{**quiet, "device_share": 0.4}], local).uses}
    assert parts >= {"this host's CPUs", "block device here"}
    assert not {"network", "mds", "osd"} & {part.place for part in diagnose([quiet], local).uses}
    assert "client daemon, busiest thread" not in parts
    assert "block device here" not in {part.what for part in diagnose([quiet]).uses}


def test_every_report_has_the_line_the_picture_and_the_evidence() -> None:
    findings = with_bounds(cell("w", FULL))
    stream = io.StringIO()
    show(findings, Console(file=stream, width=120))
    for text in (stream.getvalue(), render(findings, "md"), render(findings, "html")):
        for words in (
            "a full link, client1 (98 %)",
            "9.54 MiB/s",
            "19.1 MiB/s",
            "50 %",
            "the link of client1",
        ):
            assert words in text
        assert "fullest port" in text
        assert "Widen that link" in text
    page = render(findings, "html")
    assert 'data-chart="places-0"' in page
    assert '<details class="part" id="bounds">' in page
    assert "bottleneck" in page
    found = json.loads(render(findings, "json"))["bounds"]["cells"][0]
    assert found["named"][0]["cause"] == "link_full"
    (marked,) = [part for part in found["places"] if part["bounds"]]
    assert marked["what"] == "fullest port"


def test_no_figure_of_an_invalid_cell_is_without_the_word() -> None:
    text = render(with_bounds(cell("w", FULL, invalid=True)), "md")
    for words in ("INVALID 9.54 MiB/s", "INVALID 50 %", "INVALID a full link", "INVALID bottleneck: "):
        assert words in text


def test_of_many_cells_a_few_have_pictures_and_each_cause_is_among_them() -> None:
    many = [cell(f"w{number}", FULL) for number in range(50)] + [cell("late", STOPPED)]
    page = render(with_bounds(*many), "html")
    assert page.count('data-chart="places-') == PICTURES_MAX
    assert "a.late" in page.partition("The I/O path of a cell")[2]
    assert "6 of 51 cells" in page


def test_where_nothing_is_known_there_is_no_section() -> None:
    blind = replace(cell("w", {**FULL, "port_share": None}), should=None)
    assert blind.found.named == ()
    assert bounds_section([blind]) is None


def test_redaction_reaches_every_name_in_it() -> None:
    full = seen(*port("secrethost", 25e6, 23.5e6))
    findings = with_bounds(cell("w", full))
    hidden = redacted(replace(findings, private={"secrethost": "<host 1>"}))
    for form in ("html", "md", "json"):
        assert "secrethost" in render(findings, form)
        assert "secrethost" not in render(hidden, form)


def test_the_picture_marks_what_the_words_name() -> None:
    """Nearly all of a request is at the device, and the CPUs are fuller than what is drawn of it."""
    slow = {
        **seen(),
        "device_request_s": 84e-6,
        "device_carried": 1.0,
        "latency_s": 100e-6,
        "cpu_share": 0.57,
    }
    slow |= {"device_share": 0.5}
    local = applying(TargetFacts("local", "ext4", "ext4 on vda"))
    found = diagnose([slow], local)
    assert [one.entry.name for one in found.named] == ["device_latency"]
    (marked,) = [part for part in found.uses if part.bounds]
    assert (marked.what, marked.by) == ("block device here", found.named[0].words)
    assert "84 %" in marked.by
    lines = list(place_lines(found.uses, 100))
    (at,) = [place for place, line in enumerate(lines) if line.endswith("< bottleneck")]
    assert lines[at].startswith("  device   block device here")
    assert lines[at + 1].strip().startswith("the latency of this host's device (84 %)")


@pytest.mark.parametrize("cause", causes(), ids=lambda one: one.name)
def test_no_cause_is_marked_at_a_part_of_another_place(cause: CauseEntry) -> None:
    """But at a device: the tables have those of this host and of OSDs."""
    places_of = {cause.place, "device"}
    assert _part_of(cause).place in places_of
