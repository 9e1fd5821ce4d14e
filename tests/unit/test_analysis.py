"""Means, ratios and metrics, against values that were computed by hand or by another library."""

from __future__ import annotations

import math

import numpy as np
import pytest
from builders import MIB, job, latency_row, trial_row
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from leadline import _core
from leadline.analysis.cells import CellTable, compare_cells
from leadline.analysis.chain import bytes_read
from leadline.analysis.metrics import Measured
from leadline.analysis.statistics.intervals import mean_of_blocks
from leadline.analysis.statistics.means import geometric_mean, paired_ratio, unpaired_ratio
from leadline.workloads.io.judge import JudgedIo, io_metrics

_POSITIVE = st.lists(st.floats(1e-3, 1e9), min_size=2, max_size=20)


@given(_POSITIVE)
def test_the_interval_is_symmetric_about_the_mean_of_logarithms(values: list[float]) -> None:
    found = geometric_mean(values)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.value == pytest.approx(float(stats.gmean(values)), rel=1e-9)
    assert found.low <= found.value * (1 + 1e-9)
    assert found.value <= found.high * (1 + 1e-9)
    if found.high < math.exp(690):
        assert found.low * found.high == pytest.approx(found.value**2, rel=1e-6)


def test_one_value_has_no_interval_and_none_no_mean() -> None:
    found = geometric_mean([5.0])
    assert found is not None
    assert (found.low, found.high) == (None, None)
    assert geometric_mean([]) is None
    assert geometric_mean([1.0, 0.0]) is None


def test_the_paired_ratio_is_the_ratio_of_the_means() -> None:
    base, other = [100.0, 130.0, 90.0], [50.0, 60.0, 47.0]
    means = [geometric_mean(values) for values in (base, other)]
    ratio = paired_ratio(base, other)
    assert ratio is not None
    assert means[0] is not None
    assert means[1] is not None
    assert ratio.value == pytest.approx(means[1].value / means[0].value)


def test_an_interval_is_drawn_at_the_level_that_was_asked_for() -> None:
    values = [100.0, 130.0, 90.0, 110.0]
    for alpha in (0.2, 0.05, 0.01):
        found = geometric_mean(values, alpha)
        half_width = float(mean_of_blocks([np.log(values)]).half_width(alpha)[0])
        assert found is not None
        assert found.high is not None
        assert math.log(found.high / found.value) == pytest.approx(half_width)
        assert found.confidence == 1 - alpha


def test_pairing_removes_what_blocks_share() -> None:
    drift = [1.0, 2.0, 4.0, 8.0]
    base, other = [100 * d for d in drift], [110 * d for d in drift]
    paired, unpaired = paired_ratio(base, other), unpaired_ratio(base, other)
    assert paired is not None
    assert unpaired is not None
    assert paired.estimate().low == pytest.approx(1.1)
    low = unpaired.estimate().low
    assert low is not None
    assert low < 0.3


def test_an_unpaired_interval_is_wider_than_welchs_which_takes_blocks_as_independent() -> None:
    base, other = [1.0, 1.2, 0.9, 1.1], [2.0, 2.6, 1.9]
    found = unpaired_ratio(base, other)
    reference = stats.ttest_ind(np.log(other), np.log(base), equal_var=False).confidence_interval(0.95)
    assert found is not None
    estimate = found.estimate()
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low < math.exp(reference.low) < found.value < math.exp(reference.high) < estimate.high


def test_the_margin_of_two_measured_apart_is_the_root_of_the_sum_of_their_squares() -> None:
    base, other = [1.0, 1.2, 0.9, 1.1], [2.0, 2.6, 1.9]
    found = unpaired_ratio(base, other)
    assert found is not None
    high = found.estimate(0.1).high
    margins = [float(mean_of_blocks([np.log(values)]).half_width(0.1)[0]) for values in (base, other)]
    assert high is not None
    assert math.log(high / found.value) == pytest.approx(math.hypot(*margins))


def test_rates_are_over_the_measured_interval_and_mixed_work_has_both_directions() -> None:
    row = trial_row(write_bytes=50 * MIB, write_operations=12_800)
    values = io_metrics(row, [], open_loop=False).values
    assert values["bandwidth"] == 75 * MIB
    assert values["iops"] == 19_200
    assert values["read_bandwidth"] == 50 * MIB
    assert values["write_iops"] == 6_400
    assert "read_bandwidth" not in io_metrics(trial_row(), [], open_loop=False).values


def test_an_empty_trial_has_reasons_and_no_zeros() -> None:
    found = io_metrics(trial_row(read_operations=0, read_bytes=0), [], open_loop=False)
    assert not found.values
    assert set(found.reasons) == {"bandwidth", "iops"}


def test_only_blocks_that_both_cells_have_are_compared() -> None:
    def table(name: str, values: dict[int, float]) -> CellTable:
        measured = {block: Measured({"iops": value}, {}) for block, value in values.items()}
        return CellTable(name, (), measured)

    found = compare_cells(table("a", {1: 1.0, 2: 2.0, 3: 4.0}), table("b", {2: 6.0, 3: 12.0, 4: 1.0}), "iops")
    assert found is not None
    assert (found.value, found.count) == (pytest.approx(3.0), 2)


def test_each_block_is_divided_by_the_same_block_whatever_else_its_cells_have() -> None:
    base, other = ({4: 1.0, 1: 8.0, 2: 2.0, 3: 4.0}, {3: 12.0, 2: 6.0, 5: 7.0, 4: 3.0})
    tables = [
        CellTable("x", (), {block: Measured({"iops": value}, {}) for block, value in values.items()})
        for values in (base, other)
    ]
    found = compare_cells(tables[0], tables[1], "iops")
    assert found is not None
    assert found.blocks == (2, 3, 4)
    assert found.logarithms == pytest.approx([math.log(3)] * 3)


def test_latencies_of_an_open_loop_count_from_when_operations_were_to_begin() -> None:
    histogram = _core.histogram_of([1_000_000])
    rows = [
        latency_row(clock=clock, mean_ns=mean_ns, histogram=histogram)
        for clock, mean_ns in (("total", 1e6), ("intended", 5e6))
    ]
    for open_loop, mean_ns in ((False, 1e6), (True, 5e6)):
        assert io_metrics(trial_row(), rows, open_loop=open_loop).values["latency_mean"] == mean_ns


def test_small_blocks_are_asked_for_operations_and_large_ones_for_bandwidth() -> None:
    assert JudgedIo().default_metrics(job(bs=4096))[0] == "iops"
    assert JudgedIo().default_metrics(job(bs=MIB))[0] == "bandwidth"


def test_bytes_behind_ceph_are_what_the_stores_read() -> None:
    row = trial_row(device_read_bytes=None, store_read_bytes=120 * MIB, wire_received_bytes=101 * MIB)
    found = bytes_read([row, row])
    assert (found.application, found.wire, found.device) == (200 * MIB, 202 * MIB, 240 * MIB)
    assert found.osd is None
    assert found.reasons["osd"]


def test_what_one_trial_does_not_have_is_no_sum_of_the_others() -> None:
    found = bytes_read([trial_row(wire_received_bytes=5 * MIB), trial_row(wire_received_bytes=None)])
    assert found.wire is None
    assert found.reasons["wire"]
