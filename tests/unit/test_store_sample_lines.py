"""Samples read line by line are those that the rows have, and nothing that is no measured number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from builders import trial_row

from leadline.store.parquet import sample_lines_of
from leadline.store.tables import SeriesRow, schema, to_arrow
from leadline.verdict.diagnosed.samples import Samples

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
        assert one.by_subject("daemon", "osd.", "cpu") == pytest.approx({"osd.1": 0.2, "osd.2": 0.2})
        assert one.values("daemon", "osd.1", "cpu") == (0.1, 0.3)
        assert one.count == 5


def test_a_table_without_samples_has_no_lines(tmp_path: Path) -> None:
    assert sample_lines_of(stored(tmp_path, []), schema(SeriesRow)) == {}
