"""What the store makes and removes where somebody else may make, rename and exchange what lies beside it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from builders import clock, manifest

from leadline.cli.files import write_file
from leadline.cli.measure.trace import _logs_beside
from leadline.durable import write_whole
from leadline.errors import ResultError, UsageError
from leadline.store import making, writer
from leadline.store.acting import look_at
from leadline.store.index import INDEX, write_index
from leadline.store.merge import copy_result
from leadline.store.reader import open_result
from leadline.store.writer import create_result, reopen_result
from private_mounts import as_user, in_child

ATTACKER = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")


def precious_at(place: Path) -> Path:
    """A directory of the user's, with a file in it."""
    place.mkdir(parents=True)
    (place / "file").write_text("precious")
    return place


def is_whole(precious: Path) -> bool:
    return (precious / "file").read_text() == "precious"


def made(path: Path) -> Path:
    create_result(path, manifest(), clock()).close()
    return path


def copied(path: Path) -> None:
    copy_result(open_result(made(path.parent / "away" / path.name)), path.parent)


@pytest.mark.parametrize("make", [made, copied])
def test_a_directory_of_the_users_beside_a_result_that_is_made_stays(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    own = precious_at(tmp_path / ".r.partial")
    make(tmp_path / "r")
    assert is_whole(own)
    assert open_result(tmp_path / "r").manifest


@pytest.mark.parametrize("make", [made, copied])
def test_a_result_that_appears_meanwhile_is_neither_replaced_nor_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object]
) -> None:
    rename = Path.rename

    def overtaken(self: Path, place: Path) -> Path:
        if place == tmp_path / "r":
            precious_at(place)
        return rename(self, place)

    monkeypatch.setattr(Path, "rename", overtaken)
    with pytest.raises(UsageError):
        make(tmp_path / "r")
    assert is_whole(tmp_path / "r")
    assert {path.name for path in tmp_path.iterdir()} <= {"r", "away"}


@pytest.mark.parametrize("make", [made, copied])
def test_what_others_put_in_the_place_of_a_result_that_fails_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object]
) -> None:
    rename, seen = Path.rename, []

    def exchanged(self: Path, place: Path) -> Path:
        if place != tmp_path / "r":
            return rename(self, place)
        rename(self, tmp_path / "taken")
        seen.append(precious_at(self))
        raise OSError(5, "no")

    monkeypatch.setattr(Path, "rename", exchanged)
    with pytest.raises(UsageError):
        make(tmp_path / "r")
    assert is_whole(seen[0])


def test_of_two_runs_with_one_place_one_gets_it_and_the_other_is_told(tmp_path: Path) -> None:
    ready, told = threading.Barrier(2), []

    def run() -> None:
        ready.wait()
        try:
            made(tmp_path / "r")
        except UsageError as error:
            told.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 1
    assert open_result(tmp_path / "r").manifest
    assert {path.name for path in tmp_path.iterdir()} == {"r"}


def test_another_directory_in_the_place_of_one_that_was_made_is_let_be(tmp_path: Path) -> None:
    with _logs_beside(tmp_path / "r") as logs:
        logs.rename(tmp_path / "taken")
        precious_at(logs)
    assert is_whole(logs)


def test_logs_that_are_still_there_are_removed(tmp_path: Path) -> None:
    with _logs_beside(tmp_path / "r") as logs:
        (logs / "log").touch()
    assert list(tmp_path.iterdir()) == []


def test_an_open_result_removes_nothing_in_another_that_has_its_place(tmp_path: Path) -> None:
    one = create_result(tmp_path / "r", manifest(), clock())
    (tmp_path / "r").rename(tmp_path / "taken")
    own = precious_at(tmp_path / "r" / "records" / "t0001-logs")
    (own.parent / "t0001.llrec").touch()
    one.discard("t0001")
    one.discard_all()
    one.close()
    assert is_whole(own)
    assert (own.parent / "t0001.llrec").exists()


def test_a_result_that_is_exchanged_while_it_is_opened_again_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "r")
    own = precious_at(made(tmp_path / "other") / "records")
    check = writer.check_manifest

    def exchanging(path: Path) -> object:
        found = check(path)
        path.rename(tmp_path / "taken")
        (tmp_path / "other").rename(path)
        (path / "manifest.json").write_text('{"id": "another"}')
        return found

    monkeypatch.setattr(writer, "check_manifest", exchanging)
    with pytest.raises(ResultError, match="exchanged"):
        reopen_result(tmp_path / "r", clock())
    assert is_whole(tmp_path / "r" / own.name)


@pytest.mark.parametrize("put", ["second name", "FIFO", "link"])
def test_a_file_is_written_whatever_waits_under_the_name_it_once_had(tmp_path: Path, put: str) -> None:
    own = precious_at(tmp_path / "own") / "file"
    trap = tmp_path / f".{INDEX}.partial"
    if put == "FIFO":
        os.mkfifo(trap)
    else:
        (os.link if put == "second name" else os.symlink)(own, trap)

    def action() -> None:
        import signal

        signal.alarm(10)  # a FIFO would be waited for
        write_whole(tmp_path / INDEX, b"summary")

    in_child(action)
    assert is_whole(own.parent)
    assert (tmp_path / INDEX).read_bytes() == b"summary"


def test_no_summary_is_written_where_others_may_write(tmp_path: Path) -> None:
    result = made(tmp_path / "r")
    result.chmod(0o770)
    assert not write_index(result, [])
    result.chmod(0o700)
    assert write_index(result, [])


@needs_root
def test_root_writes_no_summary_into_the_directory_of_another_user(tmp_path: Path) -> None:
    result = made(tmp_path / "r")
    os.chown(result, ATTACKER, ATTACKER)
    assert not write_index(result, [])
    assert not (result / INDEX).exists()


@needs_root
@pytest.mark.parametrize(("user", "mode"), [(ATTACKER, 0o755), (0, 0o777), (0, 0o1777), (0, 0o755)])
def test_root_doubts_a_result_that_others_could_exchange(tmp_path: Path, user: int, mode: int) -> None:
    above = tmp_path / "above"
    result = made(above / "r")
    os.chown(above, user, user)
    above.chmod(mode)
    doubts = look_at(result).doubts
    if (user, mode) in ((0, 0o1777), (0, 0o755)):
        assert doubts == ()
    else:
        assert len(doubts) == 1
        assert doubts[0].startswith(f"{result} could be exchanged: ")


@pytest.mark.parametrize(
    "name",
    ["manifest.json", "events.jsonl", "replay.script", INDEX, "workflows.json", "trials/t0001.parquet"],
)
def test_a_report_does_not_take_the_place_of_a_file_of_a_result(tmp_path: Path, name: str) -> None:
    result = made(tmp_path / "r")
    (result / "trials").mkdir()
    (tmp_path / "way").symlink_to(result)
    before = {path: path.read_bytes() for path in result.rglob("*") if path.is_file()}
    for way in (result, tmp_path / "way"):
        with pytest.raises(UsageError, match="is a file of the result"):
            write_file(way / name, b"report", "-o")
    assert {path: path.read_bytes() for path in result.rglob("*") if path.is_file()} == before


def test_a_report_takes_the_place_of_any_other_file(tmp_path: Path) -> None:
    result = made(tmp_path / "r")
    (tmp_path / "manifest.json").write_text('{"name": "of a web page"}')
    mine = tmp_path / ".report.html.partial"
    mine.write_text("mine")
    for place in (result / "report.html", tmp_path / "manifest.json", tmp_path / "report.html"):
        for data in (b'{"report": 1}', b'{"report": 2}'):
            write_file(place, data, "-o")
        assert place.read_bytes() == b'{"report": 2}'
    assert mine.read_text() == "mine"


@needs_root
@pytest.mark.parametrize("empty", [False, True])
def test_a_directory_that_another_user_puts_in_a_new_ones_place_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty: bool
) -> None:
    parent = tmp_path / "home"
    own = precious_at(parent / "own")
    if empty:
        (own / "file").unlink()
        os.chown(own, ATTACKER, ATTACKER)
    for way in (tmp_path, *tmp_path.parents):
        if not way.stat().st_mode & 0o001:
            way.chmod(way.stat().st_mode | 0o011)
    os.chown(parent, ATTACKER, ATTACKER)
    mkdir = Path.mkdir

    def exchanged(self: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        mkdir(self, mode, parents, exist_ok)
        if self.parent == parent:

            def attack() -> None:
                self.rename(parent / "taken")
                own.rename(self)

            as_user(ATTACKER, attack)

    monkeypatch.setattr(Path, "mkdir", exchanged)
    monkeypatch.setattr(making, "own_place", lambda path: path)  # as if it had become theirs meanwhile
    with pytest.raises(OSError, match="exchanged"), making.making(parent / "r", 0o700):
        pass
    kept = [path for path in parent.iterdir() if path.name != "taken"]
    assert [[file.name for file in path.iterdir()] for path in kept] == [[] if empty else ["file"]]


def test_a_link_of_ones_own_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    link, real = tmp_path / "link", tmp_path / "real"
    link.symlink_to(real)
    for data in (b"first", b"second"):
        write_file(link, data)
        assert link.is_symlink()
        assert real.read_bytes() == data


def test_a_link_to_a_file_of_a_result_is_no_way_around_the_refusal(tmp_path: Path) -> None:
    create_result(tmp_path / "r", manifest(), lambda: 1).close()
    journal, link = tmp_path / "r" / "events.jsonl", tmp_path / "report.html"
    before = journal.read_bytes()
    link.symlink_to(journal)
    with pytest.raises(UsageError, match="file of the result"):
        write_file(link, b"page")
    assert journal.read_bytes() == before


def test_a_result_without_its_journal_is_not_called_clean(tmp_path: Path) -> None:
    create_result(tmp_path / "r", manifest(), lambda: 1).close()
    (tmp_path / "r" / "events.jsonl").unlink()
    with pytest.raises(ResultError, match="no events"):
        reopen_result(tmp_path / "r", lambda: 1)
    assert not (tmp_path / "r" / "events.jsonl").exists()
