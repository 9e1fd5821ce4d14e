"""From trials of pipelines to tables and sentences, on made figures with known answers."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pipeline_examples import S, action, pipeline, planned, stage_row, trial
from trace_tables import process

from leadline.analysis.cells import cell_metrics, tabulate
from leadline.plan.model import PlannedCell
from leadline.report.charts.stages import stage_charts
from leadline.store.stages import StageRow
from leadline.store.tables import TrialRow
from leadline.tracing.tables import TraceTables, files_schema
from leadline.verdict.compared.comparisons import compare_targets
from leadline.verdict.model import Cell, Comparison, FigureTable, Quantity, Validity
from leadline.verdict.sections.charts import StageBars
from leadline.verdict.sections.section import Panels, Section
from leadline.workloads.judged import measure_of, metric_kind
from leadline.workloads.pipeline.figures import metric_stage
from leadline.workloads.pipeline.job import Stage
from leadline.workloads.pipeline.judged import JudgedPipeline
from leadline.workloads.pipeline.planned import pipeline_seconds
from leadline.workloads.pipeline.tables import PipelineSeries, lines_of, pipeline_section
from leadline.workloads.pipeline.traced import stage_traces
from leadline.workloads.pipeline.words import pipeline_statements

Made = tuple[tuple[PipelineSeries, ...], tuple[Comparison, ...]]
NAMES = ("ingest", "encode")


def judged(cells: Sequence[PlannedCell], trials: Sequence[TrialRow], stages: Sequence[StageRow]) -> Made:
    """The lines of a made result, every cell VALID, and its comparisons with the first target."""
    tables = tabulate(trials, {}, measure_of(cells))
    shown = []
    for cell in cells:
        metrics = {}
        for name, found in (cell_metrics(tables[cell.id]) if cell.id in tables else {}).items():
            one, unit = found.estimate, metric_kind(name).unit
            known = Quantity(one.value, unit, one.low, one.high, one.count) if one else None
            metrics[name] = known or Quantity(None, unit, reason=found.reason)
        job = {**cell.job.as_json(), "notes": []}
        shown.append(Cell(cell.id, cell.target, cell.work, {}, job, metrics, Validity("VALID")))
    states: dict[str, Any] = {cell.id: "VALID" for cell in cells}
    comparisons = compare_targets(cells, tables, states, cells[0].target, (), 0.05)
    return lines_of(cells, shown, tables, stages), comparisons


def two_targets(ingest_s: tuple[float, float] = (10.0, 63.0), blocks: int = 6) -> Made:
    """A mount on which the ingest takes 6.3 times as long, and the encode as long."""
    cells = [planned("kernel", *NAMES), planned("fuse", *NAMES)]
    trials, stages = [], []
    for target, first_s in zip(("kernel", "fuse"), ingest_s, strict=True):
        for block in range(1, blocks + 1):
            noise = 1 + 0.002 * (block % 3)
            row = trial(target, block, {"ingest": first_s * noise, "encode": 100.0 * noise})
            trials.append(row)
            io = {"read_s": 0.4 * first_s, "write_s": 0.5 * first_s}
            stages.append(stage_row(row.trial, 1, "ingest", 0, first_s, **io, passes=1.0))
            busy = {"cpu_user_ns": 190 * 10**9, "read_s": 1.0}
            stages.append(stage_row(row.trial, 2, "encode", first_s, first_s + 100, **busy))
    return judged(cells, trials, stages)


def test_durations_are_one_mean_in_every_table_and_their_parts_add_up_to_them() -> None:
    cells = [planned("a", *NAMES, copies=2)]
    trials, rows = [], []
    for block, (first, second) in enumerate(((10.0, 31.0), (90.0, 12.0), (25.0, 44.0)), start=1):
        made = trial("a", block, {})
        spent = [{"client": n, "stage": "ingest", "seconds": s} for n, s in ((1, first), (2, second))]
        summary = json.loads(made.summary) | {"stages": spent}
        trials.append(replace(made, summary=json.dumps(summary)))
        for client, seconds in ((1, first), (2, second)):
            own = {"client": client, "read_s": 0.3 * seconds, "write_s": seconds / 7, "meta_s": 0.0}
            rows.append(stage_row(made.trial, 1, "ingest", 0, seconds, **own))
    tables = {table.name: table for table in section(judged(cells, trials, rows)).tables}
    compared, spent_in = tables["comparison_media"], tables["time"]
    expected = statistics.geometric_mean([10.0, 31.0, 90.0, 12.0, 25.0, 44.0])
    (duration, *parts) = [item.value or 0.0 for item in spent_in.rows[0].values][:5]
    assert compared.rows[0].values[0].value == pytest.approx(expected)
    assert duration == pytest.approx(expected)
    assert sum(parts) == pytest.approx(duration)
    assert parts[0] == pytest.approx(0.3 * duration)
    rate = tables["file_copy"].rows[0].values[0].value
    assert rate == pytest.approx(1000 / expected)
    for table in (compared, spent_in, tables["file_copy"]):
        assert "geometric mean" in table.note.lower()
    assert "plain mean" in tables["bytes"].note.lower()


def section(made: Made) -> Section:
    found = pipeline_section(*made)
    assert found is not None
    return found


def stages(made: Made) -> StageBars:
    panels = next(part for part in section(made).parts if isinstance(part, Panels))
    ((found,),) = panels.rows
    assert isinstance(found, StageBars)
    return found


def table(made: Made, name: str) -> FigureTable:
    return next(one for one in section(made).tables if one.name.startswith(name))


def said(made: Made) -> str:
    return " ".join(" ".join((one.text, *one.evidence)) for one in pipeline_statements(*made))


def one_trial(*rows: StageRow, cell: PlannedCell | None = None, **changes: Any) -> Made:
    own = cell or planned("a", *(row.stage for row in rows))
    times: Mapping[str, float] = {row.stage: row.seconds for row in rows}
    return judged([own], [trial("a", 1, times, **changes)], rows)


def test_every_stage_is_compared_by_its_time_and_the_whole_first() -> None:
    assert JudgedPipeline().default_metrics(pipeline(*NAMES)) == (
        "run_time",
        "stage_time_ingest",
        "stage_time_encode",
    )
    assert metric_stage("stage_time_ingest") == "ingest"
    assert metric_kind("stage_time_ingest").unit == "s"


def test_the_comparison_has_each_operation_by_target_and_its_ratio_to_the_first() -> None:
    found = table(two_targets(), "comparison")
    assert found.columns == ("kernel", "fuse", "fuse / kernel")
    assert [row.keys for row in found.rows] == [("ingest",), ("encode",), ("the whole",)]
    ingest = found.rows[0].values
    assert ingest[0].value == pytest.approx(10.02, abs=0.01)
    assert ingest[2].value == pytest.approx(6.3)
    assert ingest[2].low is not None


def test_words_name_what_differs_with_its_interval_and_what_does_not() -> None:
    text = said(two_targets())
    assert "fuse against kernel, operation by operation: ingest is" in text
    assert "times slower" in text
    assert "encode does not differ (within 5%)" in text


def test_an_encode_is_called_bound_by_cpu_and_an_ingest_by_its_calls() -> None:
    text = said(two_targets())
    assert "kernel: encode is bound by CPU." in text
    assert "fuse: ingest is bound by reading, writing and metadata." in text


def test_a_stage_that_waits_for_nothing_here_is_called_neither() -> None:
    text = said(one_trial(stage_row("a1", 1, "wait", 0, 10, read_s=0.1, host_busy_share=0.1)))
    assert "bound by" not in text


def test_a_stage_on_a_host_that_is_busy_with_something_else_is_said_to_wait_for_its_cpus() -> None:
    assert "encode is bound by CPUs that were busy with something else" in said(
        one_trial(stage_row("a1", 1, "encode", 0, 10, cpu_user_ns=4 * 10**9, host_busy_share=0.99))
    )


def test_without_a_trace_nothing_is_said_of_what_bounds_a_stage() -> None:
    blind = stage_row("a1", 1, "encode", 0, 10, read_s=None, write_s=None, meta_s=None, cpu_user_ns=10**11)
    made = one_trial(blind)
    assert "bound by" not in said(made)
    (row,) = table(made, "time").rows
    assert (row.values[1].value, row.values[4].value) == (None, None)


def test_several_passes_and_enlarging_are_said_and_marked() -> None:
    twice = stage_row("a1", 1, "inspect", 0, 10, passes=2.0)
    wide = stage_row("a1", 2, "encode", 10, 20, enlarges=True)
    made = one_trial(twice, wide)
    assert "inspect reads its input 2.00 times over" in said(made)
    assert "larger picture than the source has (1920 wide)" in said(made)
    assert [row.keys[0] for row in table(made, "comparison").rows][:2] == ["inspect", "encode (enlarges)"]


def test_stages_that_leave_a_gap_are_said_not_to_add_up() -> None:
    fits = one_trial(
        stage_row("a1", 1, "one", 0, 10, settle_ns=2 * 10**9), stage_row("a1", 2, "two", 12.1, 20)
    )
    gap = one_trial(stage_row("a1", 1, "one", 0, 10), stage_row("a1", 2, "two", 17, 20))
    assert "stages add up to the whole" in said(fits)
    assert "do not add up" in said(gap)


def test_rates_of_interfaces_are_in_bits_and_packets_each_way() -> None:
    moved = {"received_bytes": 1000, "received_packets": 20, "sent_bytes": 500, "sent_packets": 10}
    row = stage_row("a1", 1, "download", 0, 2, interfaces=json.dumps({"eth0": moved}), output_bytes=4000)
    (found,) = table(one_trial(row), "network").rows
    assert found.keys == ("a", "download", "eth0")
    assert [(value.value, value.unit) for value in found.values] == [
        (4000.0, "b/s"),
        (10.0, "1/s"),
        (2000.0, "b/s"),
        (5.0, "1/s"),
    ]
    (copied,) = table(one_trial(row), "file_copy").rows
    assert copied.values[0].value == pytest.approx(2000.0)


def test_digests_that_differ_are_a_caution() -> None:
    details = [json.dumps([{"bytes": 1000, "digest": digit * 32}]) for digit in ("a", "b", "a")]
    rows = [stage_row("a1", n, f"s{n}", n, n + 1, details=text) for n, text in enumerate(details, start=1)]
    assert "what was read is not what was written" in said(one_trial(rows[0], rows[1]))
    assert "what was read" not in said(one_trial(rows[0], rows[2]))


def test_what_was_measured_before_a_failure_is_shown_and_called_that() -> None:
    good, bad = (
        stage_row("a1", 1, "ingest", 0, 10),
        stage_row("a1", 2, "encode", 10, 11, state="error", error="full"),
    )
    made = one_trial(good, bad, state="error", error="stage encode: full")
    assert "failed in encode: full. ingest had been measured before." in said(made)
    assert [row.keys[3] for row in table(made, "operations").rows] == ["ingest", "encode (failed)"]
    assert table(made, "comparison").rows[0].values[0].value is None


def test_the_chart_has_a_bar_for_every_stage_on_one_scale() -> None:
    charts = stage_charts(stages(two_targets()), ["kernel", "fuse"])
    assert [chart.title for chart in charts] == ["kernel", "fuse"]
    spans = [[(row["stage"], row["from"], row["to"]) for row in c.spec["data"]["values"]] for c in charts]
    assert [name for name, _, _ in spans[0]] == list(NAMES)
    assert spans[0][1][2] == pytest.approx(110 / 60)  # minutes
    scales = [chart.spec["layer"][0]["encoding"]["x"]["scale"]["domain"] for chart in charts]
    assert scales[0] == scales[1]


def test_a_process_belongs_to_the_stage_in_whose_time_it_began() -> None:
    import pyarrow as pa

    stages = [
        {"client": 1, "place": 1, "from_unix_ns": 100, "ended_unix_ns": 200, "inputs": ["/t/w/in"]},
        {"client": 1, "place": 2, "from_unix_ns": 210, "ended_unix_ns": 300, "inputs": ["/t/w/dir"]},
    ]
    rows = tuple(process(process=n, copy=1, started_ns=start) for n, start in enumerate((5, 120, 205)))
    files = [
        (0, "/t/w/in", 10, 0),
        (0, "/usr/lib/x.so", 99, 0),
        (1, "/t/w/dir/a", 7, 3),
        (1, "/t/w/other", 5, 0),
        (2, "/t/w/in", 50, 0),
    ]
    columns: dict[str, list[Any]] = {field.name: [None] * len(files) for field in files_schema()}
    columns |= {
        "copy": [1] * len(files),
        "process": [one[0] for one in files],
        "file": list(range(len(files))),
        "module": ["POSIX"] * len(files),
        "path": [one[1] for one in files],
        "BYTES_READ": [one[2] for one in files],
        "BYTES_WRITTEN": [one[3] for one in files],
        "F_READ_TIME": [0.5] * len(files),
    }
    tables = TraceTables("preload", rows, pa.table(columns, schema=files_schema()))
    found = stage_traces(tables, stages, 100, "/t")
    assert (found[1, 1].read_bytes, found[1, 1].inputs_read_bytes, found[1, 1].read_s) == (10, 10, 0.5)
    assert (found[1, 2].read_bytes, found[1, 2].written_bytes, found[1, 2].inputs_read_bytes) == (12, 3, 7)


def test_the_time_of_a_film_is_that_of_its_encodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    five = tuple(
        Stage(stage=f"to_{width}", actions=(action(),), inputs=("source",), output=None, width=width)
        for width in (640, 854, 1280, 1920, 3840)
    )
    changes: dict[str, Any] = {"film": (3840, 2160, 25, 10 * S), "runtime_ns": 6 * 3600 * S}
    plain_s = pipeline_seconds(pipeline("ingest", **changes))
    encoded_s = pipeline_seconds(pipeline(**{**changes, "pipeline": five}))
    assert encoded_s - plain_s == pytest.approx(263, rel=0.1), "as it was measured"
    assert pipeline_seconds(pipeline(**{**changes, "pipeline": five, "runtime_ns": 60 * S})) == 60
    unknown_s = pipeline_seconds(pipeline(**{**changes, "pipeline": five, "film": None}))
    assert unknown_s == plain_s, "of another source nothing is known"
