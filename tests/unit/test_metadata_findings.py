"""Metadata from a stored trial to what reports say: each operation has its own rate, none is added up."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from builders import cell, facts, latency_row, trial_row

from findings_examples import typical
from leadline import _core
from leadline.analysis.cells import tabulate
from leadline.plan.model import PlannedCell
from leadline.report import tables
from leadline.report.charts import draw as charts
from leadline.report.metrics import parts
from leadline.report.renderers.markdown import to_markdown
from leadline.store.tables import TrialRow
from leadline.verdict.cells import judge
from leadline.verdict.codes.case import Case
from leadline.verdict.comparisons.comparisons import compare_targets
from leadline.verdict.kinds import known_metrics, measure_of, metric_kind
from leadline.verdict.messages import statements
from leadline.verdict.model import Cell, Quantity, Validity
from leadline.workloads.metadata.job import MetadataJob
from leadline.workloads.metadata.judge import JudgedMetadata, operation_metrics

JOB = MetadataJob(
    operations=("create", "stat"),
    files=1000,
    branch=1,
    depth=0,
    private=True,
    file_size=0,
    bs=4096,
    numjobs=1,
    time_based=False,
    runtime_ns=0,
)


def phases(**changes: Any) -> str:
    found = {
        "create": {"operations": 1000, "bytes": 0, "elapsed_ns": 500_000_000},
        "stat": {"operations": 1000, "bytes": 0, "elapsed_ns": 10_000_000},
    }
    return json.dumps({"directions": {**found, **changes}})


def trial(**changes: Any) -> TrialRow:
    values: dict[str, Any] = {
        "read_bytes": 0,
        "read_operations": 0,
        "total_read_bytes": 0,
        "summary": phases(),
    }
    return trial_row(**{**values, **changes})


def planned(name: str = "a.tree") -> PlannedCell:
    return replace(cell(name), job=JOB, layout=None)


def judged(*trials: TrialRow) -> set[str]:
    case = Case(planned(), facts(), trials or (trial(),), max(len(trials), 1), 8 << 30, None)
    return {code.code for code in judge(case).codes} - {"few_blocks"}


def shown(target: str) -> Cell:
    metrics = {
        "create_iops": Quantity(2000, "1/s", 1900, 2100, 3),
        "create_latency_p99": Quantity(9e5, "ns", 8e5, 1e6, 3),
        "stat_iops": Quantity(1e5, "1/s", 9e4, 1.1e5, 3),
    }
    job = {**JOB.as_json(), "notes": []}
    layout = JudgedMetadata().shown(JOB)
    return Cell(f"{target}.tree", target, "tree", {}, job, metrics, Validity("VALID"), shown=layout)


def test_a_rate_is_over_the_time_of_its_own_phase() -> None:
    blob = _core.histogram_merge([])
    rows = [latency_row(direction="stat", operations=1000, mean_ns=9_000.0, histogram=blob)]
    measured = operation_metrics(trial(), rows)
    assert measured.values["create_iops"] == 2000
    assert measured.values["stat_iops"] == 100_000
    assert measured.values["stat_latency_mean"] == 9_000
    assert not {"iops", "bandwidth"} & (measured.values.keys() | measured.reasons.keys())


def test_a_phase_that_was_not_reached_has_a_reason_and_no_rate() -> None:
    row = trial(summary=phases(stat={"operations": 0, "bytes": 0, "elapsed_ns": 0}))
    measured = operation_metrics(row, [])
    assert "stat_iops" not in measured.values
    assert measured.reasons["stat_iops"]


def test_every_metric_of_an_operation_is_known_and_has_its_direction() -> None:
    assert {"create_iops", "first_byte_latency_p99", "rmdir_latency_max"} <= set(known_metrics())
    assert metric_kind("first_byte_iops").higher_is_better
    assert metric_kind("create_latency_p99").words == "latency, p99"


def test_targets_are_compared_operation_by_operation() -> None:
    assert JudgedMetadata().default_metrics(JOB)[:2] == ("create_iops", "stat_iops")
    cells = [planned("a.tree"), planned("b.tree")]
    slow = phases(create={"operations": 1000, "bytes": 0, "elapsed_ns": 1_000_000_000})
    rows = [trial(trial=f"t{b}", cell="a.tree", block=b) for b in (1, 2)]
    rows += [trial(trial=f"u{b}", cell="b.tree", target="b", block=b, summary=slow) for b in (1, 2)]
    tables_of = tabulate(rows, {}, measure_of(cells))
    found = compare_targets(cells, tables_of, {"a.tree": "VALID", "b.tree": "VALID"}, "a", (), 0.05)
    verdicts = {comparison.metric: comparison.verdict for comparison in found}
    assert verdicts == {"create_iops": "slower", "stat_iops": "same"}
    views = typical().targets
    text = statements(views, [], [replace(c, base=views[0].name, other=views[1].name) for c in found], True)[
        0
    ]
    assert "in tree create" in text.text
    assert "1 operation" in text.text


def test_a_short_phase_of_many_operations_is_no_misfire() -> None:
    assert judged() == set()


def test_few_operations_or_a_phase_of_microseconds_are_doubted() -> None:
    few = phases(stat={"operations": 3, "bytes": 0, "elapsed_ns": 10_000_000})
    quick = phases(stat={"operations": 100, "bytes": 0, "elapsed_ns": 90_000})
    for summary in (few, quick):
        assert judged(trial(summary=summary)) == {"too_short"}


def test_a_row_for_each_operation_stands_in_every_table() -> None:
    findings = replace(typical(), cells=(shown("a"), shown("b")), comparisons=())
    rows = tables.key_table(findings, findings.cells).rows
    assert [row.cell.work for row in rows] == ["tree create", "tree stat"] * 2
    assert [rates.title for rates in charts.draw(findings).rates] == ["tree create", "tree stat"]
    text = to_markdown(findings)
    assert "| tree create | VALID | 2,000 |" in text


def test_a_cell_of_data_is_laid_out_as_it_is() -> None:
    one = typical().cells[0]
    assert parts(one) == (one,)


def test_compressible_data_is_named_by_its_shares() -> None:
    percentages = {"incompressible": False, "dedupe_percentage": 30}
    case = Case(cell(**percentages), facts(), (trial_row(),), 1, 8 << 30, None)
    evidence = {code.code: code.evidence for code in judge(case).codes}
    assert "30 % of the blocks" in evidence["compressible_data"]
