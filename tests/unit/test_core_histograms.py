"""Latency histograms as Python sees them: exact sums, three digits, honest about bad bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from core_jobs import run

from leadline import _core


def blobs(tmp_path: Path) -> list[bytes]:
    _, record = run(tmp_path, engine="null", time_based=True, runtime_ns=500_000_000)
    return [one["histograms"]["total"] for one in record["intervals"]]


def test_merging_parts_equals_the_whole_bucket_by_bucket(tmp_path: Path) -> None:
    parts = blobs(tmp_path)
    assert len(parts) >= 4
    counts: dict[int, int] = {}
    for part in parts:
        for value, count in _core.histogram_buckets(part):
            counts[value] = counts.get(value, 0) + count
    assert _core.histogram_buckets(_core.histogram_merge(parts)) == sorted(counts.items())


def test_the_order_of_merging_does_not_matter(tmp_path: Path) -> None:
    parts = blobs(tmp_path)
    stepwise = _core.histogram_merge([])
    for part in reversed(parts):
        stepwise = _core.histogram_merge([part, stepwise])
    assert stepwise == _core.histogram_merge(parts)


def test_percentiles_rise_to_the_maximum(tmp_path: Path) -> None:
    whole = _core.histogram_merge(blobs(tmp_path))
    summary = _core.histogram_summary(whole)
    values = _core.histogram_percentiles(whole, [0.0, 50.0, 99.0, 99.9, 100.0])
    assert values == sorted(values)
    assert values[-1] == summary["max"]
    assert summary["min"] <= summary["mean"] <= summary["max"]
    assert sum(count for _, count in _core.histogram_buckets(whole)) == summary["count"]


def test_an_empty_histogram_is_all_zero() -> None:
    empty = _core.histogram_merge([])
    assert _core.histogram_summary(empty) == {"count": 0, "min": 0, "max": 0, "mean": 0.0, "stdev": 0.0}
    assert _core.histogram_buckets(empty) == []


def test_bytes_that_are_no_histogram_are_refused() -> None:
    with pytest.raises(RuntimeError, match="HdrHistogram"):
        _core.histogram_merge([b"nonsense"])


def test_a_percentile_beyond_100_is_refused() -> None:
    with pytest.raises(ValueError, match="0 to 100"):
        _core.histogram_percentiles(_core.histogram_merge([]), [101.0])
