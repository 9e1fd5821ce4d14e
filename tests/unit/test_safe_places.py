"""leadline writes no result, report or other file where another account could exchange it."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from pathlib import Path

import pytest
from builders import clock, manifest

from leadline import trusted
from leadline.cli import files
from leadline.cli.files import write_file
from leadline.cli.main import run_command_line
from leadline.errors import UsageError
from leadline.store.index import INDEX, write_index
from leadline.store.making import making
from leadline.store.writer import create_result
from leadline.trusted import why_not_file, why_not_place
from private_mounts import as_user, in_child

OTHER = 65534
GROUP = 54321  # of no account
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")


@pytest.fixture(autouse=True)
def _reachable(tmp_path: Path) -> None:
    """Other accounts may pass through the directories of a test."""
    for way in (tmp_path, *tmp_path.parents):
        if not way.stat().st_mode & 0o001:
            way.chmod(way.stat().st_mode | 0o011)


def directory(path: Path, owner: int, mode: int, group: int = 0) -> Path:
    path.mkdir()
    os.chown(path, owner, group)
    path.chmod(mode)
    return path


UNSAFE = {
    "of another account": (OTHER, 0o755),
    "that a group may write": (0, 0o775),
    "that all may write": (0, 0o777),
    "of another account, and sticky": (OTHER, 0o1777),
}


@pytest.mark.parametrize("below", ["r", "deeper/r"])
@pytest.mark.parametrize("kind", UNSAFE)
def test_root_makes_no_result_below_a_directory(tmp_path: Path, kind: str, below: str) -> None:
    place = directory(tmp_path / "above", *UNSAFE[kind])
    with pytest.raises(UsageError, match=str(place)):
        create_result(place / below, manifest(), clock())
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("kind", UNSAFE)
def test_root_writes_no_file_below_a_directory(tmp_path: Path, kind: str) -> None:
    place = directory(tmp_path / "above", *UNSAFE[kind])
    with pytest.raises(UsageError, match=str(place)):
        write_file(place / "report.html", b"report", "-o")
    assert list(place.iterdir()) == []


def test_root_makes_no_logs_and_no_summary_there(tmp_path: Path) -> None:
    place = directory(tmp_path / "above", 0, 0o755)
    create_result(place / "r", manifest(), clock()).close()
    os.chown(place, OTHER, OTHER)
    with pytest.raises(UsageError, match=str(place)), making(place / "logs", 0o700):
        pass
    assert not write_index(place / "r", [])
    assert not (place / "r" / INDEX).exists()


@pytest.mark.parametrize(("owner", "mode"), [(0, 0o1777), (0, 0o755), (0, 0o700)])
def test_root_makes_a_result_where_nobody_else_can_exchange_it(tmp_path: Path, owner: int, mode: int) -> None:
    place = directory(tmp_path / "above", owner, mode)
    create_result(place / "deeper" / "r", manifest(), clock()).close()
    assert (place / "deeper" / "r" / "manifest.json").exists()


def test_a_link_of_another_account_leads_nothing_of_root_elsewhere(tmp_path: Path) -> None:
    place, own = directory(tmp_path / "tmp", 0, 0o1777), directory(tmp_path / "own", 0, 0o700)
    (own / "file").write_text("precious")
    for name, leads_to in (("report.html", own / "file"), ("directory", own)):
        (place / name).symlink_to(leads_to)
        os.lchown(place / name, OTHER, OTHER)
    with pytest.raises(UsageError, match=f"belongs to uid {OTHER}"):
        write_file(place / "report.html", b"report", "-o")
    with pytest.raises(UsageError, match=f"belongs to uid {OTHER}"):
        create_result(place / "directory" / "r", manifest(), clock())
    assert [path.read_text() for path in own.iterdir()] == ["precious"]


@pytest.mark.parametrize("kind", ["link", "directory"])
def test_a_directory_that_another_account_makes_first_gets_nothing_of_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    place, own = directory(tmp_path / "tmp", 0, 0o1777), directory(tmp_path / "own", 0, 0o700)
    mkdir = Path.mkdir

    def overtaken(self: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        if self == place / "new":
            as_user(OTHER, lambda: self.symlink_to(own) if kind == "link" else mkdir(self))
        mkdir(self, mode, parents, exist_ok)

    monkeypatch.setattr(Path, "mkdir", overtaken)
    with pytest.raises(UsageError, match=f"belongs to uid {OTHER}"):
        create_result(place / "new" / "deeper" / "r", manifest(), clock())
    assert [*own.iterdir(), *(place / "new").iterdir()] == []


def test_a_file_stays_where_storage_says_at_the_last_moment_that_the_new_one_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "report.html"
    report.write_text("good")

    def full(_: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="quota exceeded"):
        write_file(report, b"new", "-o")
    assert (report.read_text(), list(tmp_path.iterdir())) == ("good", [report])


def test_a_file_is_written_into_a_directory_that_is_there_only(tmp_path: Path) -> None:
    place = directory(tmp_path / "tmp", 0, 0o1777)
    with pytest.raises(UsageError, match="No such file or directory"):
        write_file(place / "new" / "report.html", b"report", "-o")


OPTIONS = ("-o", "--page", "--junit")
VERBS = (
    ("run", "quick", "--target", "a={here}", "-o", "{bad}/r"),
    ("replay", "{here}", "--target", "a={here}", "-o", "{bad}/r"),
    ("trace", "-o", "{bad}/r", "--", "true"),
    ("report", "{here}", "-o", "{bad}/r.html"),
    ("check", "-o", "{bad}/r.json"),
    ("check", "--page", "{bad}/r.html"),
    ("gate", "{here}", "--baseline", "{here}", "--junit", "{bad}/r.xml"),
    ("profile", "-o", "{bad}/r.json", "--", "true"),
    ("tune", "emit", "-o", "{bad}/r.conf"),
    ("tune", "prove", "quick", "-o", "{bad}/r"),
    ("tune", "search", "quick", "-o", "{bad}/r"),
    ("import", "result", "{here}", "-o", "{bad}/all"),
    ("diagnose", "{here}", "-o", "{bad}/r"),
)


@pytest.mark.parametrize("words", VERBS, ids=lambda words: " ".join(words[:2]))
def test_a_verb_refuses_such_a_place_before_it_does_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    bad = directory(tmp_path / "bad", OTHER, 0o755)
    here = directory(tmp_path / "here", 0, 0o755)
    code = run_command_line([word.format(bad=bad, here=here) for word in words])
    assert code == (125 if words[0] == "trace" else 2)
    said = " ".join(capsys.readouterr().err.split())
    assert f"{bad} belongs to uid {OTHER}" in said
    assert f"for example: {next(word for word in words if word in OPTIONS)} /root/" in said
    assert [*bad.iterdir(), *here.iterdir()] == []


@pytest.mark.parametrize("words", [("run", "quick", "--target", "a=/var/tmp"), ("trace", "--", "true")])
def test_the_working_directory_is_no_place_where_it_is_another_accounts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    bad = directory(tmp_path / "bad", OTHER, 0o755)
    monkeypatch.chdir(bad)
    assert run_command_line(list(words)) == (125 if words[0] == "trace" else 2)
    assert f"{bad} belongs to uid {OTHER}" in " ".join(capsys.readouterr().err.split())
    assert list(bad.iterdir()) == []


def places_of_an_account(tmp_path: Path) -> dict[str, Path]:
    return {
        "own": directory(tmp_path / "own", OTHER, 0o755, OTHER),
        "own, of its own group": directory(tmp_path / "private", OTHER, 0o775, OTHER),
        "of its project": directory(tmp_path / "project", 1, 0o2770, GROUP),
        "of another group": directory(tmp_path / "group", OTHER, 0o775, GROUP + 1),
        "of another account": directory(tmp_path / "other", 1, 0o755, GROUP + 1),
        "for all": directory(tmp_path / "all", 0, 0o777, GROUP),
    }


def test_an_ordinary_account_shares_directories_with_its_own_groups_only(tmp_path: Path) -> None:
    places = places_of_an_account(tmp_path)

    def look() -> None:
        os.setgroups([GROUP])
        os.setresgid(OTHER, OTHER, OTHER)
        os.setresuid(OTHER, OTHER, OTHER)
        safe = {name for name, place in places.items() if not why_not_place(place / "r")}
        assert safe == {"own", "own, of its own group", "of its project"}

    in_child(look)


def test_an_ordinary_account_makes_a_result_below_a_home_that_its_own_group_may_write(tmp_path: Path) -> None:
    home = directory(tmp_path / "home", OTHER, 0o775, OTHER)
    as_user(OTHER, lambda: create_result(home / "r", manifest(), clock()).close())
    assert stat.S_IMODE((home / "r").stat().st_mode) & 0o022 == 0


def test_in_a_user_namespace_root_has_the_number_of_nobody_and_is_still_believed(tmp_path: Path) -> None:
    home = directory(tmp_path / "home", 1000, 0o755, 1000)

    def look() -> None:
        os.setgroups([])
        os.setresgid(1000, 1000, 1000)
        os.setresuid(1000, 1000, 1000)
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: /proc/self is its own again
        if ctypes.CDLL(None, use_errno=True).unshare(0x10000000) != 0:  # CLONE_NEWUSER
            os._exit(0)  # a host without such namespaces has no such case
        Path("/proc/self/uid_map").write_text("1000 1000 1")
        assert Path("/").stat().st_uid == 65534
        assert why_not_place(home / "r") == ""

    in_child(look)


def test_outside_of_one_nobody_is_an_account_like_others(tmp_path: Path) -> None:
    assert why_not_place(directory(tmp_path / "theirs", 65534, 0o755) / "r")


def test_a_fuse_mount_of_another_account_shows_owners_that_nobody_believes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Path("/proc").stat().st_dev
    line = (
        f"36 35 {os.major(device)}:{os.minor(device)} / /proc rw - fuse.sshfs x rw,user_id={{}},group_id=0\n"
    )
    mounts = tmp_path / "mountinfo"
    monkeypatch.setattr(trusted, "_MOUNTS", mounts)
    mounts.write_text(line.format(OTHER))
    assert why_not_file("/proc/version") == f"/proc is a FUSE mount of uid {OTHER}"
    assert why_not_place(Path("/proc/r")) == f"/proc is a FUSE mount of uid {OTHER}"
    mounts.write_text(line.format(0))
    assert why_not_file("/proc/version") == ""


def test_a_device_or_a_pipe_is_no_place_for_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    unnamed = os.pipe()
    os.mknod(tmp_path / "null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    (tmp_path / "link").symlink_to(tmp_path / "null")
    for place in (tmp_path / "pipe", tmp_path / "null", tmp_path / "link", Path(f"/dev/fd/{unnamed[1]}")):
        with pytest.raises(UsageError, match="no plain file"):
            write_file(place, b"words", "-o")
    assert os.read(reader, 9) == b""
    for one in (reader, *unnamed):
        os.close(one)


def test_a_file_of_another_account_is_not_replaced(tmp_path: Path) -> None:
    place = directory(tmp_path / "tmp", 0, 0o1777)
    theirs = place / "report.html"
    theirs.write_text("theirs")
    os.chown(theirs, OTHER, OTHER)
    with pytest.raises(UsageError, match=f"belongs to uid {OTHER}"):
        write_file(theirs, b"report", "-o")
    assert (theirs.read_text(), theirs.stat().st_uid) == ("theirs", OTHER)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_replaced_keeps_its_mode_and_its_group(tmp_path: Path, mode: int) -> None:
    own = tmp_path / "report.html"
    own.write_text("old")
    os.chown(own, 0, GROUP)
    own.chmod(mode)
    write_file(own, b"new", "-o")
    found = own.stat()
    assert (own.read_text(), stat.S_IMODE(found.st_mode), found.st_gid) == ("new", mode, GROUP)


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_another_account_puts_there_meanwhile_gives_a_report_no_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    place = directory(tmp_path / "tmp", 0, 0o1777)
    report, look = place / "report.html", files.own_place

    def overtaken(path: Path, option: str) -> Path:
        found = look(path, option)
        as_user(OTHER, lambda: path.symlink_to("away") if kind == "link" else path.touch(0o666))
        return found

    monkeypatch.setattr(files, "own_place", overtaken)
    with pytest.raises(UsageError, match="another account has put something there"):
        write_file(report, b"report", "-o")
    assert [path.lstat().st_uid for path in place.iterdir()] == [OTHER]
