"""From trials of applications to metrics, tables and sentences, on made figures with known answers."""

from __future__ import annotations

import json
import math
import random
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from application_examples import MIB, account, planned, traced, trial
from builders import facts
from trace_tables import process as process_row
from trace_tables import tables as trace_tables_of

from findings_examples import typical
from leadline import units
from leadline.analysis.cells import CellTable, cell_metrics, compare_cells, tabulate
from leadline.analysis.statistics.means import arithmetic_mean
from leadline.plan.model import PlannedCell
from leadline.report.charts import draw as charts
from leadline.report.figures import printed_figures
from leadline.report.redact import redacted
from leadline.report.renderers.markdown import to_markdown
from leadline.report.renderers.page import to_html
from leadline.report.renderers.show_json import to_json
from leadline.store.tables import TrialRow
from leadline.verdict.cells import Case, judge
from leadline.verdict.comparisons.comparisons import compare_targets, compare_within
from leadline.verdict.kinds import known_metrics, metric_kind
from leadline.verdict.model import Cell, Quantity, Statement, Validity
from leadline.workloads.application.figures import CopyTrace, copy_traces
from leadline.workloads.application.judge import JudgedApplication
from leadline.workloads.application.messages import application_statements
from leadline.workloads.application.tables import CopiesCell, application_section, places_of

Traces = Mapping[str, Mapping[int, CopyTrace]]


def tabulated(rows: Sequence[TrialRow], traces: Traces | None = None) -> dict[str, CellTable]:
    """Tables of trials of applications."""
    kind = JudgedApplication()
    return tabulate(rows, {}, lambda row, latency: kind.measured(row, latency, extra=traces))


def view_of(
    cells: Sequence[PlannedCell], rows: Sequence[TrialRow], traces: Traces
) -> tuple[tuple[CopiesCell, ...], dict[str, CellTable]]:
    """The places of a made result, every cell VALID."""
    tables = tabulated(rows, traces)
    shown = []
    for cell in cells:
        metrics = {
            name: Quantity(
                m.estimate.value, metric_kind(name).unit, m.estimate.low, m.estimate.high, m.estimate.count
            )
            if m.estimate
            else Quantity(None, metric_kind(name).unit, reason=m.reason)
            for name, m in cell_metrics(tables[cell.id]).items()
        }
        job = {**cell.job.as_json(), "notes": []}
        shown.append(Cell(cell.id, cell.target, cell.work, cell.factors, job, metrics, Validity("VALID")))
    return places_of(cells, shown, tables, traces), tables


def document(blocks: int = 3) -> tuple[list[PlannedCell], list[TrialRow], Traces]:
    """The document's four copies: 943 s with 170 s of I/O on one target, 832 s with 67 s on the other."""
    cells = [planned("current", 4), planned("ceph", 4)]
    rows, traces = [], {}
    for target, seconds, io_s in (("current", 942.7, 169.7), ("ceph", 832.3, 66.6)):
        for block in range(1, blocks + 1):
            row = trial(f"{target}.run_4", block, [seconds * (1 + 0.001 * block)] * 4, cpus=8)
            rows.append(row)
            traces[row.trial] = {copy: traced(seconds, io_s, meta_s=1.0) for copy in (1, 2, 3, 4)}
    return cells, rows, traces


def said(cells: Sequence[PlannedCell], rows: Sequence[TrialRow], traces: Traces) -> list[Statement]:
    places, tables = view_of(cells, rows, traces)
    states = {cell.id: "VALID" for cell in cells}
    found = compare_targets(cells, tables, states, cells[0].target, (), 0.05)  # type: ignore[arg-type]

    within, _ = compare_within(cells, tables, states, (), 0.05)  # type: ignore[arg-type]
    return list(application_statements(places, found, within))


def test_a_trials_figures_are_means_over_its_copies() -> None:
    row = trial("a.run_2", 1, [10.0, 14.0])
    found = tabulated([row], {row.trial: {1: traced(10, 2), 2: traced(14, 7)}})
    values = found["a.run_2"].by_block[1].values
    assert values["run_time"] == pytest.approx(statistics.geometric_mean([10, 14]))
    assert values["run_time_slowest"] == 14
    assert values["read_write_time"] == pytest.approx(statistics.geometric_mean([2, 7]))
    assert values["read_share"] == pytest.approx((0.2 + 0.5) / 2)
    assert values["compute_share"] == pytest.approx(0.5)  # as long as their CPUs ran
    assert values["wait_share"] == pytest.approx((0.3 + 0.0) / 2)
    assert values["bytes_read"] == 28 * MIB
    assert values["agg_perf_by_slowest"] == pytest.approx(statistics.geometric_mean([15, 30 / 7]) * MIB)


def test_the_row_of_the_mean_is_the_mean_of_the_rows_above_it() -> None:
    """Geometric of times and rates, plain of amounts; over blocks and copies, and the note names it."""
    cells, draw = [planned("a", 3)], random.Random(7)  # noqa: S311 - no secret
    rows = [trial("a.run_3", block, [draw.uniform(5, 50) for _ in range(3)]) for block in (1, 2, 3, 4)]
    traces = {
        row.trial: {copy: traced(50, draw.uniform(0.1, 4), draw.uniform(0.1, 4)) for copy in (1, 2, 3)}
        for row in rows
    }
    view = application_section(view_of(cells, rows, traces)[0])
    assert view is not None
    tables = {table.name: table for table in view.tables}
    for name in ("run_times", "speeds"):
        *each, mean = tables[name].rows
        for place, column in enumerate(tables[name].columns):
            values = [row.values[place].value for row in each]
            plain = column in ("Read", "Written")
            of = statistics.fmean if plain else statistics.geometric_mean
            assert mean.values[place].value == pytest.approx(of(values)), column  # type: ignore[arg-type]
        assert "geometric mean" in tables[name].note
    for name in ("reading_and_writing", "shares", "by_copies"):
        assert "geometric" in tables[name].note or "plain mean" in tables[name].note


def test_without_a_trace_bytes_are_the_kernels_and_shares_have_a_reason() -> None:
    found = tabulated([trial("a.run_1", 1, [10.0])])
    measured = found["a.run_1"].by_block[1]
    assert measured.values["bytes_read"] == 40 * MIB
    assert measured.values["wall_throughput"] == pytest.approx(4.2 * MIB)
    assert "read_share" not in measured.values
    assert "not traced" in measured.reasons["read_share"]


def test_a_share_of_zero_is_a_figure_with_an_interval() -> None:
    rows = [trial("a.run_1", block, [10.0 + block]) for block in (1, 2, 3)]
    traces = {row.trial: {1: traced(10, 2.0 + 0.1 * place)} for place, row in enumerate(rows)}
    metrics = cell_metrics(tabulated(rows, traces)["a.run_1"])
    write, read = metrics["write_share"].estimate, metrics["read_share"].estimate
    assert write is not None
    assert (write.value, write.low) == (0, 0)
    assert read is not None
    assert read.low is not None
    assert read.low < 0.21 < (read.high or 0)


def test_the_plain_mean_never_reaches_below_zero() -> None:
    found = arithmetic_mean([0.0, 0.5])
    assert found is not None
    assert found.value == 0.25
    assert found.low == 0
    assert arithmetic_mean([]) is None


def test_programs_are_compared_in_run_time_and_what_explains_it() -> None:
    kind, job = JudgedApplication(), planned("a", 1).job
    assert kind.default_metrics(job)[0] == "run_time"
    assert kind.default_metrics(job) == ("run_time", "read_write_time", "agg_perf_by_slowest")
    assert kind.default_metrics(planned("a", 1, trace="off").job) == ("run_time",)
    assert set(kind.default_metrics(job)) <= set(known_metrics())
    assert not metric_kind("run_time").higher_is_better
    assert metric_kind("read_share").unit == "1"


def test_a_time_and_a_share_are_never_mixed_up() -> None:
    """8 % of 832 s against 18 % of 943 s is 61 % less time, and 10 points of share: not "about 40 %"."""
    text = next(s.text for s in said(*document()) if s.text.startswith("Reading and writing"))
    assert "60.8 % less time" in text
    assert "10.0 points lower" in text
    assert "The run time itself is 11.7 % less" in text


def test_targets_are_compared_block_by_block() -> None:
    cells, rows, traces = document()
    tables = tabulated(rows, traces)
    ratio = compare_cells(tables[cells[0].id], tables[cells[1].id], "run_time")
    assert ratio is not None
    assert ratio.value == pytest.approx(832.3 / 942.7)


def test_the_documents_tables_are_all_there() -> None:
    places, _ = view_of(*document())
    view = application_section(places)
    assert view is not None
    tables = {table.name: table for table in view.tables}
    assert list(tables) == ["run_times", "speeds", "reading_and_writing", "shares", "by_copies"]
    assert tables["run_times"].columns == ("current", "ceph")
    assert [row.keys for row in tables["run_times"].rows] == [("4", str(n)) for n in (1, 2, 3, 4)] + [
        ("4", "mean")
    ]
    share = tables["reading_and_writing"].rows[1].values[1]
    assert share.value == pytest.approx(66.6 / 832.3)
    assert share.blocks == 3
    printed = {table.title: printed_figures(table) for table in view.tables}
    assert printed["Run times compared"].units == ("min", "min")


def test_tables_of_what_only_a_trace_knows_are_left_out_without_one() -> None:
    cells, rows, _ = document()
    view = application_section(view_of(cells, rows, {})[0])
    assert view is not None
    assert [table.name for table in view.tables] == ["run_times", "speeds", "by_copies"]


def grown(
    times: Mapping[int, float | Sequence[float]], cpus: int, busy: float, own: float
) -> list[Statement]:
    """Statements on one target whose copies took these times; `busy` and `own` are shares of all CPUs."""
    return said(*grown_result(times, cpus, busy, own))


def grown_result(
    times: Mapping[int, float | Sequence[float]], cpus: int = 8, busy: float = 0.3, own: float = 0.3
) -> tuple[list[PlannedCell], list[TrialRow], Traces]:
    """By copies the time of three blocks, or of each block."""
    rows = [
        trial(
            *(f"a.run_{copies}", block, [seconds] * copies),
            cpus=cpus,
            cpu_busy_share=busy,
            cpu_user_ns=round(seconds * cpus * own * 1e9),
        )
        for copies, given in times.items()
        for block, seconds in enumerate(given if isinstance(given, Sequence) else [given] * 3, start=1)
    ]
    return [planned("a", copies) for copies in times], rows, {}


def test_saturated_cpus_are_told_from_a_busy_storage() -> None:
    told = [s.text for s in grown({1: 10, 4: 20}, cpus=2, busy=0.98, own=0.9)]
    assert any("CPUs and not the storage" in text for text in told)
    told = [s.text for s in grown({1: 10, 4: 20}, cpus=2, busy=0.3, own=0.2)]
    assert not any("CPUs" in text for text in told)


def test_cpus_that_somebody_else_keeps_busy_are_not_laid_to_the_copies() -> None:
    told = [s.text for s in grown({1: 10, 2: 11}, cpus=4, busy=0.95, own=0.2)]
    assert any("something else than the copies" in text for text in told)
    assert not any("not the storage" in text for text in told)


def test_run_times_of_one_target_are_said_with_their_intervals() -> None:
    times = [800.0, 810.0, 790.0, 805.0]
    (text,) = (s.text for s in grown({1: times, 2: [900.0] * 4}, 8, 0.3, 0.3) if s.says == "copies_took")
    mean = statistics.geometric_mean(times)
    assert f"{units.format_duration(mean)} with one copy" in text
    assert re.search(r"with one copy \(95 % CI 1[0-9] minutes .* to 1[0-9] minutes .*, 4 blocks\)", text)
    (one,) = (s.text for s in grown({1: [800.0]}, 8, 0.3, 0.3) if s.says == "copies_took")
    assert "(1 block: no CI)" in one
    (wide,) = (s.text for s in grown({1: [800.0, 90.0]}, 8, 0.3, 0.3) if s.says == "copies_took")
    assert "(2 blocks: too noisy for a CI)" in wide


def growth_of(times: Mapping[int, float | Sequence[float]], cpus: int = 8) -> str:
    (text,) = (s.text for s in grown(times, cpus, 0.3, 0.3) if s.says == "copies_growth")
    return text


def test_growth_with_copies_is_said_with_the_work_done_and_its_interval() -> None:
    text = growth_of({1: [800, 810, 790, 805], 8: [1600, 1625, 1590, 1605]})
    ratio = math.prod([1600 / 800, 1625 / 810, 1590 / 790, 1605 / 805]) ** 0.25
    assert f"takes {units.format_times(ratio)} as long as with one copy" in text
    assert f"{units.format_times(8 / ratio)} the throughput" in text
    bounds = [float(one) for one in re.findall(r"% CI ([0-9.]+) to ([0-9.]+)", text)[0]]
    assert bounds[0] * 0.99 < ratio < bounds[1] * 1.01
    work = [float(one) for one in re.findall(r"throughput \(CI ([0-9.]+) to ([0-9.]+)\)", text)[0]]
    assert work == pytest.approx([8 / bounds[1], 8 / bounds[0]], rel=0.03)
    assert "4 blocks" in text


def test_growth_that_blocks_do_not_tell_is_undecided_and_no_work_is_claimed() -> None:
    """Four copies on two CPUs were said to take 0.849 times as long and to do 4.71 times the work."""
    text = growth_of({1: [10.0, 14.0, 7.0], 2: [9, 12, 8], 4: [6.0, 11.0, 9.1]}, cpus=2)
    assert "inconclusive" in text
    assert "CI" in text
    assert "the throughput" not in text
    assert "x as long" not in text
    one_block = growth_of({1: [10.0], 4: [8.49]})
    assert "inconclusive" in one_block
    assert "4.71" not in one_block


def test_growth_of_nothing_is_the_same_within_the_margin() -> None:
    text = growth_of({1: [10.0, 10.01, 10.0, 10.02], 4: [10.01, 10.0, 10.02, 10.0]})
    assert "as long as with one copy, within 5 %" in text
    assert "4.0x the throughput" in text


def models_of(times: Mapping[int, float], cpus: int) -> tuple[list[str], object]:
    """What is said of a model, and what of it stands in `show --json`."""
    cells, rows, traces = grown_result(times, cpus)
    view = application_section(view_of(cells, rows, traces)[0])
    assert view is not None
    return [s.text for s in said(cells, rows, traces) if s.says == "copies_model"], view.json["application"][
        "models"
    ]


def test_a_model_needs_more_points_than_it_has_parameters() -> None:
    """Two numbers of copies within the CPUs give C and s whatever they measured."""
    assert models_of({1: 10.0, 2: 11.0, 4: 22.0}, cpus=2) == ([], [])
    assert models_of({1: 10.0, 2: 11.0}, cpus=8) == ([], [])


def test_a_model_is_called_one_and_reported_only_where_it_holds() -> None:
    fits = {1: 10.0, 2: 11.0, 4: 13.0, 8: 22.0}  # C = 9 s, s = 1 s, 4 CPUs
    (text,), (model,) = models_of(fits, cpus=4)  # type: ignore[misc]
    assert "a model and no measurement" in text
    assert "C = 9.00 s" in text
    assert "off by up to 0.0 %" in text
    assert model["fitted_to"] == (1, 2, 4)
    assert models_of({**fits, 8: 60.0}, cpus=4) == ([], [])
    assert models_of({**fits, 2: 17.0}, cpus=4) == ([], [])  # nor does it hold where it was fitted


def test_a_change_of_io_time_that_blocks_do_not_tell_is_undecided() -> None:
    cells, rows, _ = document()
    apart = {"current": (60.0, 200.0, 110.0), "ceph": (90.0, 100.0, 180.0)}
    loose = {row.trial: {1: traced(900, apart[row.target][row.block - 1])} for row in rows}
    one = [replace(row, summary=json.dumps({"copies": [account(1, 900)], "cpus": 8})) for row in rows]
    text = next(s.text for s in said(cells, one, loose) if s.says == "io_and_run_time")
    assert "inconclusive" in text
    assert "% less time" not in text
    assert "% more time" not in text
    assert "points" not in text


def test_copies_that_moved_different_amounts_did_not_do_the_same() -> None:
    cells, rows, traces = document()
    other = {copy: replace(trace, bytes_read=20 * MIB) for copy, trace in traces[rows[-1].trial].items()}
    uneven = {**traces, **{row.trial: other for row in rows if row.target == "ceph"}}
    assert any("did not all do the same" in s.text for s in said(cells, rows, uneven))
    assert not any("did not all do the same" in s.text for s in said(cells, rows, traces))


def test_a_cold_start_that_read_next_to_nothing_from_storage_is_doubted() -> None:
    cell = planned("a", 2)
    for device, fires in ((MIB // 2, True), (20 * MIB, False)):
        row = trial("a.run_2", 1, [5.0, 5.0], device_read_bytes=device, total_read_bytes=60 * MIB)
        found = judge(Case(cell, facts(), (row,), 1, 8 << 30, None))
        assert ("cached_reads" in {code.code for code in found.codes}) == fires
    warm = judge(Case(planned("a", 2, cache="warm"), facts(), (row,), 1, 8 << 30, None))
    assert {code.code for code in warm.codes} == {"few_blocks"}


def test_a_run_of_a_blink_is_said_to_be_mostly_starting() -> None:
    row = trial("a.run_1", 1, [0.02])
    found = judge(Case(planned("a", 1, cache="warm"), facts(), (row,), 1, 8 << 30, None))
    assert "too_short" in {code.code for code in found.codes}


def test_every_report_has_the_tables_and_the_page_its_charts() -> None:
    cells, rows, traces = document()
    places, _ = view_of(cells, rows, traces)
    view = application_section(places)
    assert view is not None
    shown = tuple(place.cell for place in places)
    findings = replace(typical(), cells=shown, comparisons=(), sections=(view,))
    copies, shares = (drawn.every for drawn in charts.draw(findings).sections)
    assert len(copies) == 1
    assert [chart.title for chart in shares] == ["current", "ceph"]
    for text in (to_markdown(findings), to_html(findings)):
        for title in ("Run times compared", "Where the run time went", "Reading and writing together"):
            assert title in text
    points = to_json(findings)["application"]["points"]
    assert {point["copies"] for point in points} == {4}


def test_an_invalid_cell_is_never_shown_without_the_word() -> None:
    cells, rows, traces = document()
    places, _ = view_of(cells, rows, traces)
    bad = [replace(p, cell=replace(p.cell, validity=Validity("INVALID"))) for p in places]
    view = application_section(bad)
    assert view is not None
    findings = replace(typical(), cells=tuple(p.cell for p in bad), comparisons=(), sections=(view,))
    table = to_markdown(findings).partition("## Run time by number of runs")[2].partition("## ")[0]
    assert "| 4 | INVALID 15.7" in table
    assert "| INVALID 13.9" in table


def test_commands_that_differ_make_series_of_their_own() -> None:
    cells = [
        planned("a", 1),
        replace(planned("a", 1, command=("other",)), id="a.more_1", work="more_1"),
    ]
    rows = [trial("a.run_1", 1, [5.0]), trial("a.more_1", 1, [6.0])]
    places, _ = view_of(cells, rows, {})
    assert {place.series for place in places} == {"a run_1", "a more_1"}


def test_a_copy_whose_bytes_cannot_be_read_has_a_reason_and_no_zero() -> None:
    row = trial("a.run_1", 1, [5.0])
    blind = account(1, 5.0, read_bytes=None, write_bytes=None, memory_max_bytes=None)
    found = tabulated([replace(row, summary=json.dumps({"copies": [blind]}))])
    measured = found["a.run_1"].by_block[1]
    assert "bytes_read" not in measured.values
    assert measured.reasons["bytes_read"]
    assert measured.reasons["memory_max"]


def test_a_redacted_report_says_nothing_of_the_command_or_what_it_printed() -> None:
    cells, rows, traces = document()
    places, _ = view_of(cells, rows, traces)
    own = replace(
        places[0].cell, job={**places[0].cell.job, "command": ["prog", "--password=hush"], "input": "/data/x"}
    )
    text = "1 of 3 trials; t1: copy 2 of 4: exit code 7: token hush (program)"
    findings = replace(
        typical(), cells=(own,), comparisons=(), statements=(Statement("caution", text, says="example"),)
    )
    shown = redacted(findings)
    assert shown.statements[0].text.endswith("exit code 7 (program)")
    assert "hush" not in str(shown.cells)


def test_what_a_trace_lost_is_said() -> None:
    cells, rows, traces = document(blocks=2)
    found = json.loads(rows[0].summary) | {"trace_lost": 12}
    failed = json.loads(rows[1].summary) | {"trace_error": "the log is damaged"}
    broken = [
        replace(rows[0], summary=json.dumps(found)),
        replace(rows[1], summary=json.dumps(failed)),
        *rows[2:],
    ]
    told = said(cells, broken, traces)
    assert any("12 records lost" in " ".join(s.evidence) for s in told)
    assert any("1 of 4 trials have no trace" in s.text for s in told)


def test_shares_of_a_copy_are_of_its_run_time_or_of_longer_lives_of_its_processes() -> None:
    own = {"read": 2.0, "write": 1.0, "meta": 0.5, "sync": 0.5}
    one = process_row(copy=1, started_ns=0, ended_ns=5 * 10**9, seconds=own)
    extra = {"wall_s": 10.0, "copies": [{"copy": 1, "wall_s": 10.0}]}
    alone = copy_traces(trace_tables_of(processes=(one,), extra=extra))[1]
    assert alone.share == {"read": 0.2, "write": 0.1, "sync": 0.05, "meta": 0.05}
    long = [replace(one, process=number, ended_ns=10 * 10**9) for number in (0, 1)]
    both = copy_traces(trace_tables_of(processes=tuple(long), extra=extra))[1]
    assert both.share["read"] == 0.2
    assert both.seconds["read"] == 4.0
