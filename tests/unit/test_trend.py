"""Histories: level shifts, the summary beside a result, and that only fresh ones are believed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from leadline.analysis.statistics.drift import level_shift, thinned
from leadline.cli.read.trend import sparkline
from leadline.store.index import (
    INDEX,
    Indexed,
    IndexRow,
    journal_size,
    read_indexes,
    refresh,
    refreshed,
    write_index,
)


def index_row(**changes: object) -> IndexRow:
    values: dict[str, object] = {
        "result": "1",
        "created": "2026-01-01T00:00:00+00:00",
        "study": "s",
        "targets": "a,b",
        "trials": "6/6",
        "complete": True,
        "target": "a",
        "work": "w",
        "cell": "a.w",
        "metric": "iops",
        "value": 5.0,
        "unit": "1/s",
        "low": None,
        "high": None,
        "blocks": 1,
        "state": "VALID",
        "codes": "",
        "version": "0",
        "journal_bytes": 0,
    }
    return IndexRow(**{**values, **changes})  # type: ignore[arg-type]


def result(path: Path, **changes: object) -> Path:
    path.mkdir()
    (path / "events.jsonl").write_text("")
    assert write_index(path, [index_row(**changes)])
    return path


def test_a_level_shift_is_found_where_it_is() -> None:
    chance = random.Random(3)  # noqa: S311 - data of a test
    values = [chance.gauss(100, 3) for _ in range(30)] + [chance.gauss(90, 3) for _ in range(20)]
    shift = level_shift(values)
    assert shift is not None
    assert abs(shift.before - 29) <= 2
    assert shift.median_before == pytest.approx(100, abs=2)
    assert shift.median_after == pytest.approx(90, abs=2)


def test_chance_gives_a_level_shift_in_at_most_two_of_a_hundred_series() -> None:
    chance = random.Random(5)  # noqa: S311 - data of a test
    found = sum(
        level_shift([chance.lognormvariate(0, 0.3) for _ in range(30)]) is not None for _ in range(500)
    )
    assert found <= 10


def test_few_results_have_no_level_shift() -> None:
    assert level_shift([1.0] * 4 + [9.0] * 3) is None
    assert level_shift([]) is None
    assert level_shift([5.0] * 100) is None


def test_a_line_of_a_thousand_results_keeps_its_width_and_ends() -> None:
    assert thinned([1.0, 2.0], 60) == [1.0, 2.0]
    line = sparkline(thinned([float(v) for v in range(1000)], 60))
    assert len(line) == 60
    assert (line[0], line[-1]) == ("▁", "█")
    assert sparkline([4.0, 4.0]) == "▄▄"


def test_summaries_are_read_with_a_condition(tmp_path: Path) -> None:
    paths = [result(tmp_path / "one"), result(tmp_path / "two", metric="latency_p99", value=None)]
    found = read_indexes(paths, lambda figure: figure.endswith(".iops"))
    assert found == {paths[0]: [index_row()], paths[1]: []}
    assert len(read_indexes(paths)) == 2
    assert read_indexes([tmp_path]) == {}


def test_a_stale_or_damaged_summary_is_not_believed_and_hides_no_other(tmp_path: Path) -> None:
    stale, damaged, good = (result(tmp_path / name) for name in ("stale", "damaged", "good"))
    (stale / "events.jsonl").write_text("more")
    (damaged / INDEX).write_bytes(b"PAR1 and then nothing")
    assert list(read_indexes([stale, damaged, good])) == [good]
    for path in (stale, damaged):
        rows = [index_row(journal_bytes=journal_size(path)), index_row(metric="bandwidth")]
        found = refresh(path, rows, lambda figure: figure.endswith(".iops"))
        assert found["stored"]
        assert refreshed(path, json.loads(json.dumps(found))) == [Indexed(path, rows[0])]
    assert len(read_indexes([stale, damaged, good])) == 3
