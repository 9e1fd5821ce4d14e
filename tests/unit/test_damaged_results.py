"""Stored files that somebody damaged or forged: one error that names the file, whatever is in it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders import clock, latency_row, manifest, trial_row

from leadline.errors import ResultError
from leadline.store.index import INDEX, IndexRow, journal_size, read_indexes, write_index
from leadline.store.own import STAGES, read_stages
from leadline.store.parquet import check_claims
from leadline.store.reader import check_manifest, find_results, open_result
from leadline.store.tables import SeriesRow
from leadline.store.writer import create_result

DEEP = "[" * 100_000 + "]" * 100_000


def stored(path: Path, **changes: Any) -> Path:
    """A small sound result."""
    writer = create_result(path, manifest(**changes), clock())
    writer.write_trial(
        trial_row(), [latency_row()], [SeriesRow("t0001", 5, "host", "cpu0", "busy", 0.5, "1")]
    )
    writer.close()
    return path


def _text(text: str) -> Callable[[Path], object]:
    return lambda file: file.write_text(text)


def _bytes(data: bytes) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(data)


def _sparse(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(4 << 30)


PLACED = {
    "deep": _text(DEEP),
    "not UTF-8": _bytes(b'{"format": "leadline.result/1", "id": "\xff\xfe"}'),
    "truncated": _text('{"format": "leadline.res'),
    "a list": _text("[1]"),
    "a directory": lambda file: file.mkdir(),
    "a FIFO": os.mkfifo,
    "a loop": lambda file: file.symlink_to(file.name),
    "nowhere": lambda file: file.symlink_to("/nonexistent"),
    "a device": lambda file: file.symlink_to("/dev/zero"),
    "4 GiB": _sparse,
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["manifest.json", "events.jsonl"])
@pytest.mark.parametrize("kind", PLACED)
def test_whatever_stands_in_place_of_a_stored_file_is_named(tmp_path: Path, name: str, kind: str) -> None:
    path = stored(tmp_path / "r")
    (path / name).unlink()
    PLACED[kind](path / name)
    if (name, kind) == ("events.jsonl", "truncated"):
        pytest.skip("a torn line of a journal is passed over")
    with pytest.raises(ResultError, match=name):
        open_result(path)
    assert list(find_results(tmp_path)) == [path]


@pytest.mark.parametrize(
    "changes",
    [
        {"id": None},
        {"id": "x/../projects"},
        {"id": 5},
        {"id": "0badcafe\n"},
        {"plan": {"trials": 5}},
        {"plan": {"trials": [5]}},
        {"plan": {"trials": [{"id": "../../t0001"}]}},
        {"plan": {"targets": "all"}},
        {"plan": {"targets": [{}]}},
        {"plan": {"study": ["a"]}},
        {"plan": []},
        {"created": 5},
        {"host": []},
        {"options": 7},
        {"targets": {"a": None}},
        {"study": "s"},
        {"command": [1]},
        {"kind": []},
        {"kind": "workflows", "since_change_ns": 1 << 80},
        {"format": "leadline.result/" + "9" * 5000},
        {"format": "leadline.result/²"},
        {"x": float("nan")},
        {"x": 1e308 * 10},
    ],
    ids=lambda changes: str(changes)[:60],
)
def test_a_manifest_of_another_shape_is_named(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = stored(tmp_path / "r")
    file = path / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    with pytest.raises(ResultError) as caught:
        check_manifest(path)
    assert str(path) in caught.value.message
    assert caught.value.remedy
    assert len(caught.value.message) < 500


def test_a_number_that_python_does_not_read_is_named(tmp_path: Path) -> None:
    path = stored(tmp_path / "r")
    for number in ("9" * 10_000, "1e999", "-Infinity"):
        (path / "manifest.json").write_text(f'{{"format": "leadline.result/1", "x": {number}}}')
        with pytest.raises(ResultError, match=r"manifest\.json is damaged"):
            check_manifest(path)


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "trial_finished", "trial": "../../elsewhere/t0001"}',
        '{"event": "trial_finished", "trial": 5}',
        '{"event": "trial_finished"}',
        '{"event": "trials_finished", "trials": 5}',
        '{"event": "trials_finished", "trials": {"../t0001": "complete"}}',
        '{"event": "trials_finished", "trials": ["t0001", null]}',
        '{"event": "trial_not_run", "cell": "a"}',
        '{"event": "block_added"}',
        '{"event": "block_added", "cells": 5}',
        '{"event": "workspace_intended", "target": "a"}',
        '{"event": "workspace_intended", "target": [], "directory": "/x"}',
        '{"event": "workspace_removed"}',
        '{"event": "self_measured", "null_ns_per_operation": NaN}',
        '{"event": "self_measured", "null_ns_per_operation": "fast"}',
        '{"event": "fault_began", "lab": "/x", "id": "1", "kind": "k", "on": "o", "words": "w"}',
        '{"event": "fault_began", "lab": "", "id": 1, "kind": "", "on": "", "words": "", "began_unix_s": 1}',
        '{"event": "fault_ended", "lab": "", "id": "", "kind": "", "on": "", "words": "", "began_unix_s": 1}',
        '{"event": "x", "t_ns": "now"}',
        '{"event": "x", "t_ns": -1}',
        '{"event": 5}',
        "[]",
        DEEP,
    ],
    ids=lambda line: line[:60],
)
def test_an_event_of_another_shape_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    path = stored(tmp_path / "r")
    with (path / "events.jsonl").open("a") as journal:
        journal.write(line + "\n")
    with pytest.raises(ResultError, match=r"events\.jsonl, line 2"):
        open_result(path)


def test_a_trial_of_another_result_is_not_read(tmp_path: Path) -> None:
    """What a journal calls a trial is a name, and no way out of the result."""
    stored(tmp_path / "other")
    path = stored(tmp_path / "r")
    for table in ("trials", "latency", "series"):
        (path / table / "t0001.parquet").unlink()
    event = {"event": "trial_finished", "trial": "../../other/trials/t0001"}
    (path / "events.jsonl").write_text(json.dumps(event))
    with pytest.raises(ResultError, match="line 1"):
        open_result(path)


def changed(path: Path, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Write a table anew as a forger would."""
    file = path / table / "t0001.parquet"
    pq.write_table(change(pq.read_table(file)), file)


def column(name: str, values: list[Any], of: pa.DataType | None = None) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.set_column(table.schema.get_field_index(name), name, pa.array(values, of))


FORGED = {
    "text for a number": ("trials", column("read_bytes", ["many"])),
    "a number for text": ("trials", column("cell", [5])),
    "nothing": ("trials", column("cell", [None], pa.string())),
    "no column": ("trials", lambda table: table.drop_columns(["cell"])),
    "another trial": ("trials", column("trial", ["../../x"])),
    "no JSON": ("trials", column("summary", ["{"])),
    "deep JSON": ("trials", column("job", [DEEP])),
    "a scalar of JSON": ("trials", column("reasons", ["5"])),
    "faults that are no JSON": ("trials", column("faults", ["{"], pa.string())),
    "infinite": ("trials", column("busy_share_max", [float("inf")])),
    "no bytes": ("latency", column("histogram", ["text"])),
    "series of another trial": ("series", column("trial", ["t9999"])),
    "nested": ("series", column("value", [[1.0]])),
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_table_of_other_columns_is_named(tmp_path: Path, kind: str) -> None:
    table, change = FORGED[kind]
    path = stored(tmp_path / "r")
    changed(path, table, change)
    result = open_result(path)
    with pytest.raises(ResultError, match=f"table `{table}` of {path} is damaged"):
        getattr(result, table)()


def _many_rows(file: Path) -> None:
    """Millions of rows in a few kilobytes."""
    pq.write_table(pa.table({"x": pa.repeat(pa.scalar(0, pa.int8()), 3_000_000)}), file)
    assert file.stat().st_size < 20_000


def test_millions_of_rows_in_some_kilobytes_are_not_unpacked(tmp_path: Path) -> None:
    path = stored(tmp_path / "r")
    _many_rows(path / "series" / "t0001.parquet")
    with pytest.raises(ResultError, match="it claims 3000000 rows"):
        open_result(path).series()


def test_what_files_of_this_size_do_not_hold_is_refused() -> None:
    check_claims(rows=2_000_000, unpacked_bytes=200 << 20, file_bytes=10 << 20)
    for rows, unpacked_bytes in ((10**9, 1), (-1, 1), (1, 8 << 30), (1, -1)):
        with pytest.raises(ValueError, match="it claims"):
            check_claims(rows, unpacked_bytes, file_bytes=1 << 20)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1"])
def test_a_truncated_table_is_named(tmp_path: Path, data: bytes) -> None:
    path = stored(tmp_path / "r")
    for table in ("trials", "latency", "series", STAGES):
        (path / table).mkdir(exist_ok=True)
        (path / table / "t0001.parquet").write_bytes(data)
    result = open_result(path)
    reads = (result.trials, result.latency, result.series, lambda: read_stages(result))
    for read in reads:
        with pytest.raises(ResultError, match="is damaged"):
            read()


def index_row(path: Path, **changes: Any) -> IndexRow:
    values = {"result": "0badcafe", "created": "2026-01-01", "study": "s", "targets": "a", "trials": "1/1"}
    values |= {"target": "a", "work": "w", "cell": "a.w", "metric": "iops", "unit": "1/s", "state": "VALID"}
    rest = {
        "complete": True,
        "value": 1.0,
        "low": None,
        "high": None,
        "blocks": 1,
        "codes": "",
        "version": "1",
    }
    return IndexRow(**{**values, **rest, "journal_bytes": journal_size(path), **changes})


def test_a_forged_summary_is_passed_over_and_the_others_are_read(tmp_path: Path) -> None:
    paths = [
        stored(tmp_path / name) for name in ("good", "wrong", "lacking", "infinite", "no", "fifo", "bomb")
    ]
    for path in paths:
        write_index(path, [index_row(path)])
    good, wrong, lacking, infinite, no, fifo, bomb = paths
    table = pq.read_table(wrong / INDEX)
    pq.write_table(column("value", ["many"])(table), wrong / INDEX)
    pq.write_table(column("created", [None], pa.string())(table), lacking / INDEX)
    write_index(infinite, [index_row(infinite, value=float("nan"))])
    (no / INDEX).write_bytes(b"PAR1")
    (fifo / INDEX).unlink()
    os.mkfifo(fifo / INDEX)
    _many_rows(bomb / INDEX)
    assert list(read_indexes(paths)) == [good]
