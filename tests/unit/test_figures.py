"""Which trials a cell's figures come from, over which time, and which cells and blocks are held together."""

from __future__ import annotations

import math

import pytest
from builders import cell, latency_row, trial_row

from leadline import _core
from leadline.analysis.cells import CellTable, compare_cells, tabulate
from leadline.analysis.metrics import Measured, add_latency
from leadline.verdict.comparisons.comparisons import compare_targets
from leadline.verdict.kinds import metric_kind
from leadline.verdict.model import State
from leadline.workloads.io.judge import io_metrics


def table(name: str, rates: dict[int, float]) -> CellTable:
    return CellTable(name, (), {block: Measured({"iops": rate}, {}) for block, rate in rates.items()})


def test_blocks_are_paired_by_their_number() -> None:
    base, other = {2: 10.0, 3: 100.0, 4: 1.0}, {1: 5000.0, 2: 20.0, 3: 200.0}
    ratio = compare_cells(table("a.w", base), table("b.w", other), "iops")
    assert ratio is not None
    assert ratio.logarithms == pytest.approx([math.log(2)] * 2)


def test_a_trial_that_failed_gives_no_figure() -> None:
    trials = [trial_row(), trial_row(trial="t0002", block=2, state="failed")]
    found = tabulate(trials, {}, lambda *_: Measured({"iops": 1.0}, {}))
    assert set(found["a.randread_4k"].by_block) == {1}


def test_a_work_is_compared_with_the_same_work_of_the_base() -> None:
    cells = tuple(cell(name) for name in ("a.small", "a.large", "b.small", "b.large"))
    rates = {"small": 10.0, "large": 1000.0}
    tables = {one.id: table(one.id, dict.fromkeys((1, 2, 3), rates[one.work])) for one in cells}
    states: dict[str, State] = {one.id: "VALID" for one in cells}
    found = compare_targets(cells, tables, states, "a", ("iops",), 0.05)
    assert [(one.work, one.ratio) for one in found] == [("small", 1.0), ("large", 1.0)]


@pytest.mark.parametrize("bad", ["a.small", "b.small"])
def test_what_is_invalid_on_either_side_decides_nothing(bad: str) -> None:
    cells = (cell("a.small"), cell("b.small"))
    tables = {
        one.id: table(one.id, {block: 10.0 + 90 * (one.target == "b") for block in range(1, 7)})
        for one in cells
    }
    states: dict[str, State] = {one.id: "INVALID" if one.id == bad else "VALID" for one in cells}
    (found,) = compare_targets(cells, tables, states, "a", ("iops",), 0.05)
    assert (found.verdict, found.validity) == ("undecided", "INVALID")


def test_rates_are_over_the_measured_time_without_its_ramp() -> None:
    found = io_metrics(trial_row(ramp_ns=500_000_000), (), open_loop=False)
    assert found.values["iops"] == 25_600 / 2
    assert found.values["bandwidth"] == 100 * (1 << 20) / 2


def test_more_is_better_of_rates_and_less_of_times() -> None:
    assert metric_kind("bandwidth").higher_is_better
    assert metric_kind("read_iops").higher_is_better
    assert not metric_kind("latency_p99").higher_is_better
    assert not metric_kind("cpu_per_operation").higher_is_better


def test_a_percentile_needs_ten_operations_beyond_it() -> None:
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    blob = _core.histogram_of([1000] * 800)
    row = latency_row(operations=800, histogram=blob)
    add_latency(values, reasons, (row,), "read", "total", prefix="")
    assert "latency_p95" in values
    assert "latency_p99" not in values
    assert "800 operations are too few" in reasons["latency_p99"]
