"""Samples read line by line are those that the rows have, and nothing that is no measured number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from builders import trial_row

from leadline.store.parquet import sample_lines_of
from leadline.store.tables import SeriesRow, schema, to_arrow
from leadline.verdict.diagnosis.samples import Samples

ROWS = [
    SeriesRow("t1", at, source, subject, metric, value, "1")
    for at, source, subject, metric, value in (
        (-5, "daemon", "osd.1", "cpu", 9.0),
        (0, "daemon", "osd.1", "cpu", 9.0),
        (30, "daemon", "osd.1", "cpu", 0.3),
        (10, "daemon", "osd.1", "cpu", 0.1),
        (20, "daemon", "osd.1", "cpu", None),
        (10, "daemon", "osd.1", "threads", 7.0),
        (10, "ceph", "osd.1", "cpu", 5.0),
        (10, "daemon", "osd.2", "cpu", 0.2),
    )
]


def stored(place: Path, rows: list[SeriesRow]) -> Path:
    pq.write_table(to_arrow(rows, SeriesRow), place / "t1.parquet")
    return place / "t1.parquet"


def test_each_line_has_its_own_samples_and_none_without_a_value(tmp_path: Path) -> None:
    lines = sample_lines_of(stored(tmp_path, ROWS), schema(SeriesRow))
    plain = {key: sorted(zip(*line, strict=True)) for key, line in lines.items()}
    assert plain == {
        ("daemon", "osd.1", "cpu"): [(10, 0.1), (30, 0.3)],
        ("daemon", "osd.1", "threads"): [(10, 7.0)],
        ("ceph", "osd.1", "cpu"): [(10, 5.0)],
        ("daemon", "osd.2", "cpu"): [(10, 0.2)],
    }


def test_they_answer_as_rows_do(tmp_path: Path) -> None:
    trial = replace(trial_row(), ramp_ns=0, measured_ns=100)
    read = Samples(trial, sample_lines_of(stored(tmp_path, ROWS), schema(SeriesRow)))
    made = Samples.of_rows(trial, ROWS)
    for one in (read, made):
        assert one.by_subject("daemon", "osd.", "cpu") == pytest.approx({"osd.1": 0.7 / 3, "osd.2": 0.2})
        assert one.values("daemon", "osd.1", "cpu") == (0.1, 0.3)
        assert one.count == 5


def test_a_sample_is_of_the_time_since_the_one_before() -> None:
    """Of the interval is what lies in it by half or more, and it counts for as long as it is of."""
    trial = replace(trial_row(), ramp_ns=20, measured_ns=80)

    def mean(*samples: tuple[int, float]) -> float | None:
        rows = [
            SeriesRow("t1", at, "ceph", "osd.1", "operations_written", value, "") for at, value in samples
        ]
        return Samples.of_rows(trial, rows).mean("ceph", "osd.1", "operations_written")

    assert mean((15, 9.0), (60, 1.0), (100, 4.0)) == pytest.approx((40 * 1 + 40 * 4) / 80)
    assert mean((50, 1.0), (90, 2.0), (130, 3.0)) == pytest.approx((30 * 1 + 40 * 2) / 70)
    assert mean((60, 1.0), (103, 2.0)) == pytest.approx(1.5)
    assert mean((90, 2.0), (140, 7.0)) == 2.0
    assert mean((400, 7.0)) == 7.0
    assert mean() is None


def test_a_table_without_samples_has_no_lines(tmp_path: Path) -> None:
    assert sample_lines_of(stored(tmp_path, []), schema(SeriesRow)) == {}
