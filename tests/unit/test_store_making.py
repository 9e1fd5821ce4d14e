"""What a killed command left of what it was making is removed by the next, and nothing else ever is."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from builders import clock, manifest
from click.testing import CliRunner

from leadline.cli.main import leadline as program
from leadline.errors import ResultError
from leadline.store.files import JOURNAL, MARK
from leadline.store.journal import read_journal
from leadline.store.making import Leftover, leftovers, making, remove_leftovers
from leadline.store.reader import open_result
from leadline.store.writer import create_result, reopen_result

ATTACKER = 65534


def killed(place: Path) -> Path:
    """What a command leaves that is killed while it writes what is to be at `place`."""
    before = set(place.parent.iterdir())
    pid = os.fork()
    if pid == 0:
        with making(place, 0o700) as (path, _):
            (path / "copy-0").mkdir()
            (path / "copy-0" / "1.lltrace").write_text("log")
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    (left,) = set(place.parent.iterdir()) - before
    return left


def result(place: Path) -> None:
    create_result(place, manifest(), clock()).close()


def logs(place: Path) -> None:
    with making(place, 0o700):
        pass


@pytest.mark.parametrize("make", [result, logs])
def test_what_a_killed_command_left_goes_when_the_next_makes_something_there(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    left = killed(tmp_path / "r")
    assert leftovers(tmp_path) == [Leftover(left, True)]
    make(tmp_path / "other")
    assert {path.name for path in tmp_path.iterdir()} <= {"other"}


def test_what_is_being_made_is_neither_removed_nor_named(tmp_path: Path) -> None:
    with making(tmp_path / "r", 0o700) as (path, _):
        assert leftovers(tmp_path) == []
        assert remove_leftovers(tmp_path) == []
        result(tmp_path / "other")
        assert (path / MARK).exists()
    assert {path.name for path in tmp_path.iterdir()} == {"other"}


def another_boot(left: Path) -> None:
    (left / MARK).write_text(json.dumps({"format": "leadline.unfinished/1", "boot": "another"}))


def unmarked(left: Path) -> None:
    (left / MARK).unlink()


def cut(left: Path) -> None:
    os.truncate(left / MARK, 10)


def linked(left: Path) -> None:
    (left / MARK).rename(left.parent / "mark")
    (left / MARK).symlink_to(left.parent / "mark")


def writable(left: Path) -> None:
    left.chmod(0o777)


@pytest.mark.parametrize("change", [another_boot, unmarked, cut, linked, writable])
def test_what_is_not_certainly_a_killed_commands_stays_and_is_named(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    place = tmp_path / "here"
    place.mkdir()
    left = killed(place / "r")
    change(left)
    assert remove_leftovers(place) == []
    assert leftovers(place) == [Leftover(left, False)]
    done = CliRunner().invoke(program, ["list", str(place)])
    assert done.exit_code == 0
    assert f"rm -r {left}" in done.stderr.replace("\n", " ")
    assert (left / "copy-0" / "1.lltrace").read_text() == "log"


@pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")
@pytest.mark.parametrize("whose", ["directory", "mark"])
def test_root_removes_nothing_that_another_user_made(tmp_path: Path, whose: str) -> None:
    left = killed(tmp_path / "r")
    os.chown(left if whose == "directory" else left / MARK, ATTACKER, ATTACKER)
    assert remove_leftovers(tmp_path) == []
    assert (left / "copy-0").exists()


def test_undo_removes_what_a_killed_command_left_beside_the_result_and_list_names_it(tmp_path: Path) -> None:
    result(tmp_path / "r")
    left = killed(tmp_path / "r")
    assert str(left) in CliRunner().invoke(program, ["list", str(tmp_path)]).stderr.replace("\n", "")
    done = CliRunner().invoke(program, ["undo", str(tmp_path / "r")])
    assert f"removed: {left}" in done.stdout.replace("\n", " "), done.output
    assert {path.name for path in tmp_path.iterdir()} == {"r"}


def test_a_result_that_was_whole_when_its_maker_was_killed_loses_the_mark_when_it_is_opened(
    tmp_path: Path,
) -> None:
    result(tmp_path / "r")
    (tmp_path / "r" / MARK).touch()
    assert open_result(tmp_path / "r").manifest
    reopen_result(tmp_path / "r", clock()).close()
    assert not (tmp_path / "r" / MARK).exists()


def test_a_journal_opens_before_its_result_can_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever finds an empty one may say that somebody emptied it, even where its maker was killed."""
    rename, opened = Path.rename, []

    def renaming(path: Path, place: Path) -> Path:
        opened.extend(event.event for event in read_journal(path / JOURNAL))
        return rename(path, place)

    monkeypatch.setattr(Path, "rename", renaming)
    create_result(tmp_path / "r", manifest(), clock(), opening="session_opened").close()
    assert opened == ["session_opened"]


def test_a_manifest_that_cannot_be_read_again_leaves_no_descriptor_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result(tmp_path / "r")
    whole = (tmp_path / "r" / "manifest.json").read_bytes()

    def damaging(path: Path, found: object) -> None:
        del found
        (path / "manifest.json").write_bytes(whole[:10])

    monkeypatch.setattr("leadline.store.writer.require_study", damaging)
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(ResultError):
        reopen_result(tmp_path / "r", clock())
    assert set(Path("/proc/self/fd").iterdir()) == before
