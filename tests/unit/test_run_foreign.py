"""What others mounted in a study's directory, or put in its place, is neither used nor removed.

With real mounts and a real second user, so as root only.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from core_jobs import job

import slow_fuse
from leadline import _core
from leadline.cli.files import write_file
from leadline.cli.machine import undo
from leadline.errors import TargetError
from leadline.observe.mounts.mountinfo import mount_of, read_mounts
from leadline.observe.probe import _direct
from leadline.removal import open_in, remove_entries
from leadline.run.storage import Mounted
from leadline.run.workspace import MARK, Workspace, make_workspace, remove_files, remove_workspace
from leadline.store.writer import create_result
from private_mounts import as_user, bind, unbind, with_private_mounts

ID = "0badcafe"
ATTACKER = 65534
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts, and another user, need root")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A directory in which everybody may make files, and of which the ways there are open."""
    place = tmp_path / "target"
    place.mkdir()
    place.chmod(0o777)
    for way in (tmp_path, *tmp_path.parents):
        if not way.stat().st_mode & 0o001:
            way.chmod(way.stat().st_mode | 0o011)
    return place


@pytest.fixture
def own(target: Path) -> Path:
    return target / f"leadline-{ID}"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    place = tmp_path / "precious"
    (place / "below").mkdir(parents=True)
    for name in ("file", "below/file"):
        (place / name).write_text("precious")
    return place


def whole(precious: Path) -> bool:
    return all((precious / name).read_text() == "precious" for name in ("file", "below/file"))


def mark_of(directory: Path) -> None:
    (directory / MARK).write_text(json.dumps({"format": "leadline.workspace/1", "id": ID}))


@pytest.mark.parametrize("what", ["directory", "file"])
def test_what_is_mounted_in_a_copys_directory_is_left_and_named(own: Path, precious: Path, what: str) -> None:
    def action() -> None:
        make_workspace(Workspace(str(own)), ID)
        copy = own / "job-t0001.1"
        copy.mkdir()
        over = copy / "data"
        if what == "file":
            over.touch()
            bind(precious / "file", over)
        else:
            over.mkdir()
            bind(precious, over)
        for remove in (
            lambda: removed(Workspace(str(own)), ID),
            lambda: remove_files(Workspace(str(own)), "job-t0001"),
        ):
            with pytest.raises(TargetError, match=f"mounted on {over}") as refused:
                remove()
            assert f"umount {over}" in refused.value.remedy
        assert whole(precious)
        assert (own / MARK).exists()
        unbind(over)
        assert not removed(Workspace(str(own)), ID)
        assert not own.exists()

    with_private_mounts(action)
    assert whole(precious)


def test_a_mount_over_the_directory_itself_is_left_and_named(own: Path, precious: Path) -> None:
    def action() -> None:
        make_workspace(Workspace(str(own)), ID)
        mark_of(precious)
        bind(precious, own)
        with pytest.raises(TargetError, match=f"mounted on {own}"):
            removed(Workspace(str(own)), ID)

    with_private_mounts(action)
    assert whole(precious)


def test_undo_says_what_is_in_the_way_and_goes_on_when_it_is_gone(
    own: Path, precious: Path, tmp_path: Path
) -> None:
    def action() -> None:
        place = Workspace(str(own))
        plan = {"targets": [{"name": "t", "url": str(own.parent)}]}
        writer = create_result(tmp_path / "result", {"kind": "study", "id": ID, "plan": plan}, lambda: 1)
        writer.journal("workspace_intended", target="t", **place._asdict())
        writer.close()
        make_workspace(place, ID)
        (own / "t-copy.1").mkdir()
        bind(precious, own / "t-copy.1")
        answer = CliRunner().invoke(undo.command, [str(tmp_path / "result")])
        assert f"could not be removed: {own}: " in answer.stderr
        assert f"umount {own}/t-copy.1" in answer.stderr
        unbind(own / "t-copy.1")
        answer = CliRunner().invoke(undo.command, [str(tmp_path / "result")])
        assert answer.stdout == f"removed: {own}\n"

    with_private_mounts(action)
    assert whole(precious)
    assert not own.exists()


def removed(place: Workspace, study_id: str) -> bool:
    return remove_workspace(place, study_id, ("",), None)


def test_a_directory_that_another_user_made_and_marked_is_not_taken(own: Path) -> None:
    def attack() -> None:
        own.mkdir(mode=0o755)
        mark_of(own)
        (own / "data.0.0").write_text("bait")

    as_user(ATTACKER, attack)
    for act in (make_workspace, removed):
        with pytest.raises(TargetError, match=f"user {ATTACKER}"):
            act(Workspace(str(own)), ID)
    assert sorted(path.name for path in own.iterdir()) == [MARK, "data.0.0"]


def test_a_user_who_may_not_look_into_a_directory_is_told_that_it_is_none_of_theirs(own: Path) -> None:
    make_workspace(Workspace(str(own)), ID)

    def other() -> None:
        for act in (make_workspace, removed):
            with pytest.raises(TargetError):
                act(Workspace(str(own)), ID)

    as_user(ATTACKER, other)
    assert (own / MARK).exists()


def test_an_empty_directory_of_another_user_is_not_taken(own: Path) -> None:
    as_user(ATTACKER, lambda: own.mkdir(mode=0o755))
    for act in (make_workspace, removed):
        with pytest.raises(TargetError):
            act(Workspace(str(own)), ID)
    assert list(own.iterdir()) == []


def test_a_directory_of_ours_that_others_may_write_in_is_not_taken(own: Path) -> None:
    make_workspace(Workspace(str(own)), ID)
    own.chmod(0o777)
    for act in (make_workspace, removed):
        with pytest.raises(TargetError, match="may write") as refused:
            act(Workspace(str(own)), ID)
        assert "chmod" in refused.value.remedy
    own.chmod(0o700)
    assert not removed(Workspace(str(own)), ID)


@pytest.mark.parametrize("mark", ["link", "second name", "another user's"])
def test_a_mark_that_leadline_did_not_write_is_none(own: Path, tmp_path: Path, mark: str) -> None:
    own.mkdir(mode=0o700)
    mark_of(tmp_path)
    if mark == "link":
        (own / MARK).symlink_to(tmp_path / MARK)
    elif mark == "second name":
        (own / MARK).hardlink_to(tmp_path / MARK)
    else:
        mark_of(own)
        os.chown(own / MARK, ATTACKER, ATTACKER)
    with pytest.raises(TargetError, match="leadline did not make it"):
        make_workspace(Workspace(str(own)), ID)
    with pytest.raises(TargetError, match="was not removed"):
        removed(Workspace(str(own)), ID)


def test_the_mark_is_not_written_through_a_link(own: Path, precious: Path) -> None:
    own.mkdir(mode=0o700)
    (own / MARK).symlink_to(precious / "file")
    with pytest.raises(TargetError):
        make_workspace(Workspace(str(own)), ID)
    assert whole(precious)


@pytest.mark.parametrize("swapped", ["a link", "a directory"])
def test_the_engine_writes_nothing_where_another_user_put_something_in_the_directorys_place(
    own: Path, precious: Path, swapped: str
) -> None:
    make_workspace(Workspace(str(own)), ID)
    os.chown(precious, ATTACKER, ATTACKER)

    def attack() -> None:
        own.rename(own.with_name("taken"))
        if swapped == "a link":
            own.symlink_to(precious)
        else:
            own.mkdir()

    as_user(ATTACKER, attack)
    asked = job(own)
    with pytest.raises((OSError, RuntimeError)):
        _core.layout(asked)
    assert whole(precious)
    assert {path.name for path in precious.iterdir()} == {"below", "file"}
    assert own.is_symlink() or not any(own.iterdir())


def test_storage_that_shows_all_files_as_another_users_is_worked_on(tmp_path: Path) -> None:
    why = slow_fuse.missing()
    if why:
        pytest.skip(f"NOT RUN: {why}")
    with slow_fuse.mounted(slow_fuse.build(), tmp_path, owner=ATTACKER) as mount:
        place = mount.path / f"leadline-{ID}"
        make_workspace(Workspace(str(place)), ID)
        assert place.stat().st_uid == ATTACKER
        _core.layout(job(place))
        assert not removed(Workspace(str(place)), ID)
        assert not place.exists()


@pytest.mark.parametrize(("user", "mode"), [(0, 0o700), (ATTACKER, 0o755)])
def test_a_result_of_root_is_for_root_alone(target: Path, user: int, mode: int) -> None:
    target.chmod(0o1777)

    def action() -> None:
        os.umask(0o022)
        create_result(target / "result", {"id": ID}, lambda: 1).close()

    as_user(user, action)
    assert (target / "result").stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("put", ["link", "second name"])
def test_the_probe_of_a_target_writes_into_its_own_file_only(
    target: Path, precious: Path, monkeypatch: pytest.MonkeyPatch, put: str
) -> None:
    """Where no file without a name can be made, another user may exchange it before it is opened again."""
    opened = os.open

    def exchanging(path: str, flags: int, mode: int = 0o777, **more: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "no")
        descriptor = opened(path, flags, mode, **more)
        if flags & os.O_CREAT:
            Path(path).unlink()
            (os.symlink if put == "link" else os.link)(precious / "file", path)
        return descriptor

    monkeypatch.setattr(os, "open", exchanging)
    assert not _direct(str(target))["direct_io"]
    assert whole(precious)


def test_a_file_that_is_asked_for_is_not_written_through_a_link(target: Path, precious: Path) -> None:
    target.chmod(0o1777)
    as_user(ATTACKER, lambda: (target / ".report.html.partial").symlink_to(precious / "file"))
    write_file(target / "report.html", b"report")
    assert whole(precious)
    assert (target / "report.html").read_bytes() == b"report"


def test_what_a_user_put_among_our_files_is_named_and_stays(own: Path) -> None:
    place = Workspace(str(own))
    make_workspace(place, ID)
    (own / "t-data-0.0").write_text("ours")
    (own / "thesis.tex").write_text("theirs")
    with pytest.raises(TargetError, match=r"thesis\.tex"):
        remove_workspace(place, ID, ["t-"], None)
    assert sorted(path.name for path in own.iterdir()) == [MARK, "thesis.tex"]
    (own / "thesis.tex").rename(own.parent / "thesis.tex")
    assert not remove_workspace(place, ID, ["t-"], None)
    assert not own.exists()


def test_a_directory_that_was_exchanged_while_it_was_made_is_not_taken(
    own: Path, precious: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exchanged(parent: int, path: Path) -> int:
        path.rename(path.with_name("aside"))
        precious.rename(path)
        return open_in(parent, path)

    monkeypatch.setattr("leadline.run.storage.open_in", exchanged)
    with pytest.raises(TargetError, match="exchanged"):
        make_workspace(Workspace(str(own)), ID)
    assert whole(own)
    assert not (own / MARK).exists()


def test_what_was_left_on_a_file_system_that_is_not_mounted_is_not_called_removed(own: Path) -> None:
    place, top = Workspace(str(own)), own.parent
    elsewhere = top.with_name("elsewhere")
    elsewhere.mkdir()

    def action() -> None:
        bind(elsewhere, top)
        mount = mount_of(str(top), read_mounts())
        assert mount is not None
        was = Mounted(mount.mount_point, mount.file_system, mount.source)
        make_workspace(place, ID)
        unbind(top)
        with pytest.raises(TargetError, match="mounted on"):
            remove_workspace(place, ID, ["t-"], was)
        bind(elsewhere, top)
        assert not remove_workspace(place, ID, ["t-"], was)
        assert not own.exists()

    with_private_mounts(action)


@pytest.mark.parametrize("made", [Path.touch, lambda _: None])
def test_a_target_that_is_gone_is_not_called_clean(tmp_path: Path, made: Callable[[Path], None]) -> None:
    top = tmp_path / "top"
    made(top)
    with pytest.raises((TargetError, NotADirectoryError)):
        remove_workspace(Workspace(str(top / f"leadline-{ID}")), ID, ["t-"], None)


def test_directories_nested_beyond_reason_are_one_error(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    with pytest.raises((TargetError, OSError)):
        remove_entries(tmp_path, 60.0)
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)
