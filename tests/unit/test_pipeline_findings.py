"""From trials of pipelines to tables and sentences, on made figures with known answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import geometric_mean, mean
from typing import Any

import pytest
from builders import MIB, facts, trial_row
from builders import cell as io_cell
from pipeline_examples import S, action, pipeline, planned, stage_row, trial
from trace_tables import process

from leadline.analysis.cells import cell_metrics, tabulate
from leadline.plan.model import PlannedCell
from leadline.report.charts.ways import stage_charts
from leadline.store.own import StageRow
from leadline.store.tables import TrialRow
from leadline.study.kind.lookups import SourceFacts
from leadline.study.target import TargetFacts
from leadline.tracing.tables import TraceTables, files_schema
from leadline.verdict.cells import judge
from leadline.verdict.codes.case import Case
from leadline.verdict.comparisons.comparisons import compare_targets
from leadline.verdict.kinds import measure_of, metric_kind
from leadline.verdict.model import Cell, Comparison, FigureTable, Quantity, TrialView, Validity
from leadline.verdict.sections.charts import StageBars
from leadline.verdict.sections.section import Panels, Section
from leadline.workloads.application.planner import PlannedPrograms
from leadline.workloads.pipeline.job import Stage
from leadline.workloads.pipeline.judge import JudgedPipeline, metric_stage
from leadline.workloads.pipeline.messages import pipeline_answer, pipeline_statements
from leadline.workloads.pipeline.planner import PipelinePlanned, _say
from leadline.workloads.pipeline.runner import stage_traces
from leadline.workloads.pipeline.tables import (
    PipelineBeside,
    PipelineSeries,
    beside_base,
    lines_of,
    pipeline_section,
)

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
        views = tuple(
            TrialView(one.trial, one.block, one.order, one.state, one.error, {})
            for one in trials
            if one.cell == cell.id
        )
        shown.append(Cell(cell.id, cell.target, cell.work, {}, job, metrics, Validity("VALID"), views))
    states: dict[str, Any] = {cell.id: "VALID" for cell in cells}
    comparisons = compare_targets(cells, tables, states, cells[0].target, (), 0.05)
    return lines_of(cells, shown, tables, stages), comparisons


def beside(made: Made, alpha: float = 0.05) -> tuple[PipelineBeside, ...]:
    return beside_base(*made, alpha)


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
    expected = mean([10.0, 31.0, 90.0, 12.0, 25.0, 44.0])
    (duration, *parts) = [item.value or 0.0 for item in spent_in.rows[0].values][:5]
    assert compared.rows[0].values[0].value == pytest.approx(expected)
    assert duration == pytest.approx(expected)
    assert sum(parts) == pytest.approx(duration)
    assert parts[0] == pytest.approx(0.3 * duration)
    rate = tables["file_copy"].rows[0].values[0].value
    assert rate == pytest.approx(1000 / geometric_mean([10.0, 31.0, 90.0, 12.0, 25.0, 44.0]))
    assert "geometric mean" in tables["file_copy"].note.lower()
    for table in (compared, spent_in, tables["bytes"]):
        assert "plain mean" in table.note.lower()


def codes_of(
    target: TargetFacts, received: int | None, cold: int = 400 * MIB, *, cache: str = "cold", **changes: Any
) -> dict[str, tuple[str, str]]:
    """State and evidence by code of three trials of a pipeline whose stages read so much of their inputs."""
    own = planned("a", *NAMES, cache=cache, source_bytes=200 * MIB)
    rows = []
    for block in (1, 2, 3):
        made = trial("a", block, {"ingest": 10.0, "encode": 30.0}, wire_received_bytes=received, **changes)
        stages = [
            {"client": 1, "stage": name, "seconds": 9.0, "cold_bytes": cold // len(NAMES)} for name in NAMES
        ]
        summary = json.loads(made.summary) | {"stages": stages}
        moved = {"total_read_bytes": 900 * MIB, "device_read_bytes": None, "measured_ns": 40 * S}
        rows.append(replace(made, summary=json.dumps(summary), **{**moved, **changes}))
    found = judge(Case(own, target, tuple(rows), 3, 1 << 34, None)).codes
    return {code.code: (code.state, code.evidence) for code in found}


FUSE = facts(access="ceph-fuse", file_system="fuse.ceph-fuse", words="CephFS")


def test_what_a_clients_cache_served_to_stages_is_invalid_as_of_any_other_work() -> None:
    """99.5 % came out of the client's cache, and the cell was DOUBTFUL for something else."""
    state, evidence = codes_of(FUSE, 2 * MIB)["cached_reads"]
    assert state == "INVALID"
    assert evidence.startswith("6 MiB came over the wire for 1.17 GiB read: 99 %") or "100 %" in evidence
    assert codes_of(FUSE, 320 * MIB)["cached_reads"][0] == "DOUBTFUL"
    assert "cached_reads" not in codes_of(FUSE, 395 * MIB)
    same = judge(
        Case(
            io_cell("a.read", rw="read", direct=False),
            FUSE,
            tuple(
                trial_row(total_read_bytes=400 * MIB, device_read_bytes=None, wire_received_bytes=2 * MIB)
                for _ in range(3)
            ),
            3,
            1 << 34,
            None,
        )
    )
    assert {code.code: code.state for code in same.codes}["cached_reads"] == "INVALID"


def test_what_a_stage_reads_again_and_a_warm_start_may_come_from_a_cache() -> None:
    assert "cached_reads" not in codes_of(FUSE, 120 * MIB, cold=120 * MIB)  # of 900 MiB in all
    assert "cached_reads" not in codes_of(FUSE, 2 * MIB, cache="warm")


def test_where_nothing_shows_the_origin_of_what_stages_read_that_is_said() -> None:
    assert "origin_unknown" in codes_of(FUSE, None)


@pytest.mark.parametrize(
    ("passes", "by", "expected"),
    [(2.0, "trace", 1000), (0.25, "trace", 250), (None, None, 0), (1.5, "calls", 1000), (0.5, "calls", 0)],
)
def test_a_stage_reads_its_input_cold_once_at_most(
    passes: float | None, by: str | None, expected: int
) -> None:
    row = stage_row("t", 1, "encode", 0, 1, input_bytes=1000, passes=passes, passes_by=by)
    assert row.cold_bytes == expected


def section(made: Made) -> Section:
    found = pipeline_section(made[0], beside(made))
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
    return " ".join(" ".join((one.text, *one.evidence)) for one in pipeline_statements(made[0], beside(made)))


def one_trial(*rows: StageRow, cell: PlannedCell | None = None, **changes: Any) -> Made:
    own = cell or planned("a", *(row.stage for row in rows))
    times: Mapping[str, float] = {row.stage: row.seconds for row in rows}
    return judged([own], [trial("a", 1, times, **changes)], rows)


def test_every_stage_is_compared_by_its_time_and_the_whole_first() -> None:
    kind = JudgedPipeline()
    assert kind.default_metrics(pipeline(*NAMES)) == ("run_time",)
    assert kind.explaining_metrics(pipeline(*NAMES)) == ("stage_time_ingest", "stage_time_encode")
    assert metric_stage("stage_time_ingest") == "ingest"
    assert metric_kind("stage_time_ingest").unit == "s"


def test_the_comparison_has_each_operation_by_target_and_its_ratio_to_the_first() -> None:
    found = table(two_targets(), "comparison")
    assert found.columns == ("kernel", "fuse", "fuse \u2212 kernel")
    assert [row.keys for row in found.rows] == [("ingest",), ("encode",), ("the whole",)]
    ingest = found.rows[0].values
    assert ingest[0].value == pytest.approx(10.02, abs=0.01)
    assert ingest[2].value == pytest.approx(53.0)
    assert ingest[2].low is not None


def test_words_name_what_differs_with_its_interval_and_what_does_not() -> None:
    text = said(two_targets())
    assert "fuse compared with kernel: the whole is 53.0 s longer" in text
    assert "ingest is 53.0 s longer (" in text
    assert "encode is not significantly different" in text


# Of ten stages three take longer on the mount; the link takes 7 to 20 ms there against 0.25 to 0.57.
BASE_S = {
    "download": 2.0,
    "ingest": 8.0,
    "link": 0.0004,
    "inspect": 3.0,
    "a": 20.0,
    "b": 40.0,
    "publish": 0.0005,
}
LONGER_S = {"ingest": 30.0, "link": 0.013, "publish": 6.0}
LOAD = (1.0, 1.04, 0.97)


def platform(traced: bool = True, blocks: int = 3, longer: Mapping[str, Any] = LONGER_S) -> Made:
    """Seven stages on two targets: calls on files are a tenth, and all that takes longer on the mount."""
    cells = [planned("local", *BASE_S), planned("mount", *BASE_S)]
    trials, rows = [], []
    for target in ("local", "mount"):
        for block in range(1, blocks + 1):
            at, times = 0.0, {}
            for place, (stage, base_s) in enumerate(BASE_S.items(), start=1):
                wobble = 1 + 0.06 * ((place * block + (target == "mount")) % 3 - 1)
                more = longer.get(stage, 0.0)
                more = more[block - 1] if isinstance(more, tuple) else more * wobble
                added = more if target == "mount" else 0.0
                took = base_s * LOAD[block % 3] * wobble + added
                io = {"read_s": 0.1 * base_s + added, "write_s": 0.0, "meta_s": 0.0} if traced else {}
                io = io or dict.fromkeys(("read_s", "write_s", "meta_s"))
                rows.append(stage_row(f"{target}{block}", place, stage, at, at + took, **io))
                times[stage], at = took, at + took
            trials.append(trial(target, block, times))
    return judged(cells, trials, rows)


def seconds_of(made: Made, target: str, stage: str) -> list[float]:
    line = next(one for one in made[0] if one.cell.target == target)
    return [row.seconds for rows in line.good for row in rows if row.stage == stage]


def test_three_blocks_tell_which_stages_take_longer_and_how_much_of_the_whole_is_calls_on_the_mount() -> None:
    made = platform()
    (found,) = beside(made)
    differ = {one.stage for one in found.stages if one.longer.found}
    assert differ == set(LONGER_S)
    for one in found.stages:
        before, after = (mean(seconds_of(made, target, one.stage)) for target in ("local", "mount"))
        assert one.longer.value == pytest.approx(after - before)
        assert one.longer.low <= LONGER_S.get(one.stage, 0.0) <= one.longer.high
    answer = pipeline_answer(made[0], (found,)).text
    whole = [sum(seconds_of(made, "mount", stage)[block] for stage in BASE_S) for block in range(3)]
    assert f"Of {mean(whole):.0f} s end to end on mount, " in answer
    calls_s = 0.1 * sum(BASE_S.values())
    assert found.whole.base_calls_s == pytest.approx(calls_s)
    assert found.whole.other_calls_s == pytest.approx(calls_s + sum(LONGER_S.values()), abs=0.01)
    assert found.calls_longer is not None
    assert found.calls_longer.found
    assert answer.startswith("Yes: on mount it takes ")
    assert "of it in calls on files: ingest 30" in answer
    assert "link 0.013" in answer
    assert "4 stages are not significantly different" in answer
    matrix = pipeline_answer(made[0], (found,)).matrix
    assert matrix is not None
    assert matrix.columns == ("local", "in calls", "mount", "in calls", "longer than local")
    assert [row.keys[0] for row in matrix.rows] == [*BASE_S, "the whole"]
    marked = {row.keys[0] for row in matrix.rows if not str(row.values[-1].text).startswith("? ")}
    assert marked >= set(LONGER_S)


def test_a_stage_that_scatters_unlike_all_others_is_bounded_in_seconds_of_the_whole() -> None:
    """The link takes 7, 13 and 20 ms against 0.4: three blocks do not tell it, and it cannot matter."""
    (found,) = beside(platform(longer={"ingest": 30.0, "link": (0.0066, 0.0126, 0.0196)}))
    link = next(one for one in found.stages if one.stage == "link").longer
    assert link.low is not None
    assert link.high is not None
    assert max(-link.low, link.high) < 0.002 * found.whole.other_s


def test_targets_that_do_the_same_are_not_told_apart_in_any_stage() -> None:
    made = platform(longer={})
    (found,) = beside(made)
    assert pipeline_answer(made[0], (found,)).text.startswith(("No: ", "Inconclusive: "))
    assert not any(one.longer.found for one in (*found.stages, found.whole))


def test_without_a_trace_nothing_is_said_of_calls_and_with_one_block_there_is_no_interval() -> None:
    made = platform(traced=False, blocks=1)
    (found,) = beside(made)
    assert found.calls_longer is None
    text = pipeline_answer(made[0], (found,)).text
    assert "calls on its files were not traced" in text
    assert "1 block: no CI" in text
    assert "stages are not significantly different" in text


def test_what_cannot_be_used_is_held_against_nothing() -> None:
    lines, comparisons = platform()
    bad = replace(lines[1], cell=replace(lines[1].cell, validity=Validity("INVALID")))
    assert not beside(((lines[0], bad), comparisons))
    answer = pipeline_answer((lines[0], bad))
    assert "mount" not in answer.text
    assert answer.matrix is not None
    assert {row.values[2].text for row in answer.matrix.rows} == {"INVALID"}


def test_more_than_two_targets_have_a_column_each_with_the_difference_behind() -> None:
    lines, comparisons = platform()
    third = replace(lines[1], cell=replace(lines[1].cell, target="third", id="third.media"))
    again = tuple(replace(one, other="third") for one in comparisons)
    made = ((*lines, third), (*comparisons, *again))
    matrix = pipeline_answer(made[0], beside(made)).matrix
    assert matrix is not None
    assert matrix.columns == ("local", "mount", "third")
    ingest = next(row for row in matrix.rows if row.keys == ("ingest",))
    assert [str(one.text).count(" s") for one in ingest.values] == [1, 2, 2]
    assert "how much longer than on local" in matrix.note


def test_times_of_stages_add_up_also_as_means_of_a_cell() -> None:
    metrics = platform()[0][1].cell.metrics
    parts = [metrics[f"stage_time_{stage}"].value or 0.0 for stage in BASE_S]
    assert sum(parts) == pytest.approx(metrics["run_time"].value)


def test_an_encode_is_called_bound_by_cpu_and_an_ingest_by_its_calls() -> None:
    text = said(two_targets())
    assert "kernel: the bottleneck of encode is CPU." in text
    assert "fuse: the bottleneck of ingest is reading, writing and metadata." in text


def test_a_stage_that_waits_for_nothing_here_is_called_neither() -> None:
    text = said(one_trial(stage_row("a1", 1, "wait", 0, 10, read_s=0.1, host_busy_share=0.1)))
    assert "bound by" not in text


def test_a_stage_on_a_host_that_is_busy_with_something_else_is_said_to_wait_for_its_cpus() -> None:
    assert "the bottleneck of encode is CPUs that other processes keep busy" in said(
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
    assert "inspect reads its input 2.00 times" in said(made)
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


pipeline_seconds = PipelinePlanned().seconds
WIDTHS = (640, 854, 1280, 1920, 3840)


def encodes(*widths: int) -> tuple[Stage, ...]:
    command = action(step=None, command=("ffmpeg",))
    return tuple(
        Stage(
            stage=f"to_{width}",
            actions=(command,),
            inputs=("source",),
            output=None,
            width=width,
            widths=(width,),
        )
        for width in widths
    )


@pytest.mark.parametrize("film", [(3840, 2160, 25, 10 * S), None])
def test_the_time_of_a_film_is_that_of_its_encodes_whether_it_was_made_or_named(
    monkeypatch: pytest.MonkeyPatch, film: tuple[int, int, int, int] | None
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    changes: dict[str, Any] = {
        "film": film,
        "source_width": 3840,
        "source_elements": 250 * 3840 * 2160,
        "runtime_ns": 6 * 3600 * S,
        "pipeline": encodes(*WIDTHS),
    }
    assert pipeline_seconds(pipeline(**changes)) == pytest.approx(263, rel=0.1), "as it was measured"
    assert pipeline_seconds(pipeline(**{**changes, "runtime_ns": 60 * S})) == 60
    small = {**changes, "source_width": 640, "source_elements": 50 * 640 * 360}
    assert pipeline_seconds(pipeline(**small)) == pytest.approx(14, rel=0.3), "as it was measured"
    monkeypatch.setattr("os.getloadavg", lambda: (8.0, 8.0, 8.0))
    assert pipeline_seconds(pipeline(**small)) == pytest.approx(5 * 14, rel=0.3), "beside eight others"
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    few = {**small, "pipeline": encodes(640)}
    assert pipeline_seconds(pipeline(**few)) < 1.5
    together = encodes(3840)[0].model_copy(update={"widths": WIDTHS})
    bounded = {**small, "pipeline": (together,), "widest": 640}
    assert pipeline_seconds(pipeline(**bounded)) < 2
    assert pipeline_seconds(pipeline(**{**bounded, "widest": None})) > 10


def test_of_a_source_that_nobody_looked_at_the_time_is_that_of_any_program() -> None:
    any_program = PlannedPrograms.seconds(PipelinePlanned(), pipeline("ingest"))
    assert pipeline_seconds(pipeline(pipeline=encodes(*WIDTHS))) == any_program


@pytest.mark.parametrize(
    ("access", "megabytes", "warned"),
    [("ceph-fuse", 40, True), ("ceph-fuse", 400, False), ("local", 40, False)],
)
def test_a_film_that_the_client_itself_keeps_is_warned_of_before_anything_runs(
    access: str, megabytes: int, warned: bool
) -> None:
    notes: list[str] = []
    source = SourceFacts("/f.mov", megabytes << 20, made=True)
    _say(pipeline("ingest"), source, TargetFacts(access, "fuse", "a mount"), notes)
    assert any("fits into ceph-fuse's own cache" in note for note in notes) is warned
