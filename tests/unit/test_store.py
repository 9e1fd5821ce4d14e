"""The result directory: what a crash leaves, what is refused, what comes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import clock, latency_row, manifest, trial_row

from leadline.durable import unfinished
from leadline.errors import ResultError, UsageError
from leadline.store.journal import Journal, read_journal
from leadline.store.reader import find_results, open_result
from leadline.store.tables import SeriesRow
from leadline.store.writer import create_result, reopen_result


def test_a_stored_trial_is_read_back_equal(tmp_path: Path) -> None:
    writer = create_result(tmp_path / "r", manifest(), clock())
    row, series = trial_row(), SeriesRow("t0001", 5, "host", "cpu0", "busy", 0.5, "1")
    writer.write_trial(row, [latency_row()], [series])
    writer.close()
    result = open_result(tmp_path / "r")
    assert result.trials() == [row]
    assert result.latency() == [latency_row()]
    assert result.series(["host"]) == [series]
    assert result.series(["engine"]) == []


def test_an_existing_directory_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        create_result(tmp_path / "r", manifest(), clock())
    assert list((tmp_path / "r").iterdir()) == []


def test_nothing_else_is_beside_a_result_that_was_made_or_could_not_be(tmp_path: Path) -> None:
    create_result(tmp_path / "r", manifest(), clock()).close()
    with pytest.raises(TypeError):
        create_result(tmp_path / "failed", manifest(no_json=object()), clock())
    assert {path.name for path in tmp_path.iterdir()} == {"r"}


def test_what_a_killed_run_was_writing_goes_when_it_is_resumed_and_is_read_by_nobody(tmp_path: Path) -> None:
    writer = create_result(tmp_path / "r", manifest(), clock())
    writer.write_trial(trial_row(), [], [])
    writer.close()
    left = [unfinished(tmp_path / "r" / name) for name in ("manifest.json", "trials/t0001.parquet")]
    for path in left:
        path.write_text("half")
    own = tmp_path / "r" / ".leadline-notes"
    own.touch()
    assert len(open_result(tmp_path / "r").trials()) == 1
    reopen_result(tmp_path / "r", clock()).close()
    assert not any(path.exists() for path in left)
    assert own.exists()


def test_a_trial_counts_only_when_the_journal_says_so(tmp_path: Path) -> None:
    writer = create_result(tmp_path / "r", manifest(), clock())
    writer.write_trial(trial_row(), [], [])
    writer.write_trial(trial_row(trial="t0002", order=2), [], [])
    writer.close()
    journal = tmp_path / "r" / "events.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-1]) + lines[-1][:20])
    assert open_result(tmp_path / "r").finished == {"t0001"}


def test_a_trial_whose_table_is_gone_does_not_count(tmp_path: Path) -> None:
    writer = create_result(tmp_path / "r", manifest(), clock())
    writer.write_trial(trial_row(), [], [])
    writer.close()
    (tmp_path / "r" / "latency" / "t0001.parquet").unlink()
    assert open_result(tmp_path / "r").finished == frozenset()


def test_a_torn_line_is_closed_before_the_next_event(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"t_ns": 1, "event": "a"}\n{"t_ns": 2, "ev')
    Journal(path, clock()).append("b", detail=1)
    assert [event.event for event in read_journal(path)] == ["a", "b"]


def test_two_runs_cannot_write_one_result(tmp_path: Path) -> None:
    writer = create_result(tmp_path / "r", manifest(), clock())
    with pytest.raises(ResultError, match="another leadline run"):
        reopen_result(tmp_path / "r", clock())
    writer.close()
    reopen_result(tmp_path / "r", clock()).close()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is damaged"),
        ("[]", "no manifest of leadline"),
        ('{"format": "somebody.else/1"}', "no manifest of leadline"),
        ('{"format": "leadline.result/2", "kind": "study", "plan": {}}', "newer leadline"),
        ('{"format": "leadline.result/1", "kind": "study"}', "lacks its plan"),
        ('{"format": "leadline.result/1", "kind": "study", "plan": ', "is damaged"),
    ],
)
def test_a_bad_manifest_gives_one_clear_error(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(ResultError, match=message) as caught:
        open_result(tmp_path)
    assert caught.value.remedy


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    writer = create_result(tmp_path / "r", manifest(), clock())
    writer.write_trial(trial_row(), [], [])
    writer.close()
    (tmp_path / "r" / "trials" / "t0001.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(ResultError, match=r"trials.*damaged"):
        open_result(tmp_path / "r").trials()


def test_columns_that_an_older_version_did_not_write_are_none(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    writer = create_result(tmp_path / "r", manifest(), clock())
    writer.write_trial(trial_row(), [], [])
    writer.close()
    path = tmp_path / "r" / "trials" / "t0001.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["osd_read_bytes"]), path)
    assert open_result(tmp_path / "r").trials()[0].osd_read_bytes is None


def test_results_are_found_below_a_directory(tmp_path: Path) -> None:
    create_result(tmp_path / "one", manifest(), clock()).close()
    create_result(tmp_path / "deep" / "two", manifest(), clock()).close()
    (tmp_path / "neither").mkdir()
    assert list(find_results(tmp_path)) == [tmp_path / "deep" / "two", tmp_path / "one"]


def test_the_manifest_is_stored_whole(tmp_path: Path) -> None:
    create_result(tmp_path / "r", manifest(), clock()).close()
    assert json.loads((tmp_path / "r" / "manifest.json").read_text())["format"] == "leadline.result/1"
