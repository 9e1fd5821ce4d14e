"""A journal damaged in its middle is named with the line; undo still removes what carries the mark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import clock, manifest
from click.testing import CliRunner

from leadline.cli.main import leadline as program
from leadline.errors import ResultError
from leadline.run.workspace import make_workspace, workspace_of
from leadline.store.journal import Journal, read_journal
from leadline.store.writer import create_result
from leadline.study.target import Target

ID = "0badcafe"
EVENT = '{"t_ns": 12, "event": "said", "reason": "caf\\u00e9 x", "more": {"a": [1.5e+9, true, null, -1]}}'


@pytest.mark.parametrize("length", range(1, len(EVENT)))
def test_an_event_that_was_cut_short_anywhere_is_passed_over(tmp_path: Path, length: int) -> None:
    path = tmp_path / "events.jsonl"
    for tail in ("", "\0" * 9):
        path.write_text(EVENT[:length] + tail)
        Journal(path, clock()).append("next")
        assert [event.event for event in read_journal(path)] == ["next"]


@pytest.mark.parametrize(
    "line",
    [
        EVENT.replace("reason", 'rea"son'),
        EVENT.replace('{"t_ns"', '["t_ns"', 1),
        EVENT.replace("true", "trxe"),
        EVENT[1:],
        EVENT[40:],
        EVENT + "}",
        EVENT[:-1] + "\x11",
        "of somebody else",
    ],
)
def test_a_line_that_was_damaged_is_an_error_that_names_it(tmp_path: Path, line: str) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(f"{EVENT}\n{line}\n{EVENT}\n")
    with pytest.raises(ResultError, match="line 2, is damaged"):
        read_journal(path)


def left(tmp_path: Path, result: Path) -> Path:
    """A target with what a killed run of this result made on it."""
    top = tmp_path / "target"
    top.mkdir(exist_ok=True)
    place = workspace_of(Target("a", str(top)), ID)
    make_workspace(place, ID)
    (Path(place.directory) / "a-data-1.0").write_text("data")
    found: dict[str, Any] = manifest(id=ID)
    found["plan"] = {**found["plan"], "targets": [{"name": "a", "url": str(top)}]}
    writer = create_result(result, found, clock())
    writer.journal("run_started", remaining=1)
    writer.journal("workspace_intended", target="a", **place._asdict())
    writer.close()
    return Path(place.directory)


def undo(result: Path) -> Any:
    return CliRunner().invoke(program, ["undo", "--trust-result", str(result)])


def test_undo_with_a_damaged_journal_removes_what_carries_the_mark_and_says_so(tmp_path: Path) -> None:
    place = left(tmp_path, tmp_path / "r")
    journal = tmp_path / "r" / "events.jsonl"
    journal.write_text(journal.read_text().replace('"workspace_intended"', '"workspace_int"ended"'))
    done = undo(tmp_path / "r")
    assert done.return_value is None or done.exit_code == 0
    assert f"removed: {place}" in done.stdout.replace("\n", " "), done.output
    assert "line 2, is damaged" in " ".join(done.stderr.split())
    assert not place.exists()


def test_a_result_in_the_directory_of_its_own_study_is_not_removed_with_it(tmp_path: Path) -> None:
    place = left(tmp_path, tmp_path / "r")
    inside = place / "a-results" / "r"
    inside.parent.mkdir()
    (tmp_path / "r").rename(inside)
    (tmp_path / "way").symlink_to(inside)
    for way in (inside, tmp_path / "way"):
        done = undo(way)
        assert isinstance(done.exception, ResultError), done.output
        assert "move the result elsewhere" in str(done.exception)
    assert json.loads((inside / "manifest.json").read_text())["id"] == ID
    assert (place / "a-data-1.0").exists()
    inside.rename(tmp_path / "r")
    undo(tmp_path / "r")
    assert not place.exists()


def test_undo_that_is_interrupted_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left(tmp_path, tmp_path / "r")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("leadline.run.session.remove_workspaces", interrupted)
    done = undo(tmp_path / "r")
    assert f"go on with: leadline undo {tmp_path / 'r'}" in " ".join(done.stderr.split()), done.output
