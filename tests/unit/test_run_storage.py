"""A study's directory is made, told apart from others' and removed alike, by paths and by a library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leadline import _core
from leadline.errors import TargetError, UsageError
from leadline.run.workspace import MARK, Workspace, make_workspace, remove_files, remove_workspace

ID = "0abcdef1"


class FakeVolume:
    """A library's storage, below a directory of this host."""

    top = Path("/nonexistent")

    def __init__(self, _location: str) -> None:
        pass

    def _at(self, path: str) -> Path:
        return self.top / path.lstrip("/")

    def make_directory(self, path: str) -> None:
        self._at(path).mkdir()

    def put(self, path: str, data: bytes) -> None:
        self._at(path).write_bytes(data)

    def get(self, path: str, limit: int) -> bytes | None:
        try:
            return self._at(path).read_bytes()[:limit]
        except FileNotFoundError:
            return None

    def names_in(self, directory: str, limit: int) -> list[str]:
        return [path.name for path in self._at(directory).iterdir()][:limit]

    def remove_files(self, directory: str, prefix: str, _slice_s: float) -> bool:
        for path in self._at(directory).iterdir():
            if path.name.startswith(prefix) and path.name != MARK:
                path.unlink()
        return False

    def remove_directory(self, directory: str, mark: str) -> None:
        self._at(f"{directory}/{mark}").unlink(missing_ok=True)
        self._at(directory).rmdir()


@pytest.fixture(params=["path", "library"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Where a study works; what it makes is seen below `tmp_path`."""
    if request.param == "path":
        return Workspace(str(tmp_path / f"leadline-{ID}"))
    monkeypatch.setattr(FakeVolume, "top", tmp_path)
    monkeypatch.setattr(_core, "Volume", FakeVolume)
    return Workspace(f"/leadline-{ID}", "cephfs:///")


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    return tmp_path / f"leadline-{ID}"


def test_a_directory_is_marked_and_made_once(place: Workspace, seen: Path) -> None:
    make_workspace(place, ID)
    make_workspace(place, ID)
    assert json.loads((seen / MARK).read_text()) == {"format": "leadline.workspace/1", "id": ID}


def test_files_of_a_trial_go_and_the_mark_with_others_stays(place: Workspace, seen: Path) -> None:
    make_workspace(place, ID)
    for name in ("data.0.0", "data.0.1", "other.0"):
        (seen / name).touch()
    assert not remove_files(place, "data", 60.0)
    assert sorted(path.name for path in seen.iterdir()) == [MARK, "other.0"]


def test_all_of_it_is_removed(place: Workspace, seen: Path) -> None:
    make_workspace(place, ID)
    (seen / "data.0.0").touch()
    assert not remove_workspace(place, ID, ("",), None, 60.0)
    assert not seen.exists()


@pytest.mark.parametrize("mark", ['{"id": "other"}', "[1]", "no JSON"])
def test_what_others_marked_is_neither_used_nor_removed(place: Workspace, seen: Path, mark: str) -> None:
    seen.mkdir()
    (seen / MARK).write_text(mark)
    with pytest.raises(TargetError, match="exists and leadline did not make it"):
        make_workspace(place, ID)
    with pytest.raises(TargetError, match="was not removed"):
        remove_workspace(place, ID, ("",), None, 60.0)
    assert (seen / MARK).exists()


@pytest.mark.parametrize("mark", [None, "", '{"format": "lead'])
def test_one_whose_maker_died_before_its_mark_was_whole_goes_while_nothing_else_is_in_it(
    place: Workspace, seen: Path, mark: str | None
) -> None:
    seen.mkdir()
    if mark is not None:
        (seen / MARK).write_text(mark)
    (seen / "notes").touch()
    with pytest.raises(TargetError, match="was not removed"):
        remove_workspace(place, ID, ("",), None, 60.0)
    with pytest.raises(TargetError, match="exists and leadline did not make it"):
        make_workspace(place, ID)
    (seen / "notes").unlink()
    assert not remove_workspace(place, ID, ("",), None, 60.0)
    assert not seen.exists()


@pytest.mark.parametrize("mark", [None, "", '{"format": "lead'])
def test_one_that_a_server_made_after_its_maker_had_died_is_made_anew(
    place: Workspace, seen: Path, mark: str | None
) -> None:
    seen.mkdir()
    if mark is not None:
        (seen / MARK).write_text(mark)
    make_workspace(place, ID)
    assert json.loads((seen / MARK).read_text()) == {"format": "leadline.workspace/1", "id": ID}


@pytest.mark.parametrize(
    "name", ["x/../projects", "0abcdef", "0ABCDEF1", "0abcdef1\n", "0abcdef1/..", "", "a" * 65]
)
def test_no_workspace_has_the_name_of_any_other_directory(name: str) -> None:
    for directory, location in ((f"/mnt/leadline-{name}", None), (f"/leadline-{name}", "cephfs:///")):
        with pytest.raises(UsageError):
            Workspace(directory, location)


@pytest.mark.parametrize(
    "directory", ["/projects", "/a/leadline-0abcdef1", "/leadline-x/../leadline-0abcdef1"]
)
def test_a_workspace_of_a_url_lies_at_its_top(directory: str) -> None:
    with pytest.raises(UsageError):
        Workspace(directory, "cephfs:///")


@pytest.mark.parametrize("prefix", ["", "..", "../x", "a/b", "a\0"])
def test_no_files_are_removed_by_a_prefix_that_leads_elsewhere(place: Workspace, prefix: str) -> None:
    make_workspace(place, ID)
    with pytest.raises(UsageError):
        remove_files(place, prefix, 60.0)


def test_the_name_of_another_study_is_refused(place: Workspace, seen: Path) -> None:
    make_workspace(place, ID)
    with pytest.raises(TargetError, match="was not removed"):
        remove_workspace(place, "1abcdef0", ("",), None, 60.0)
    assert seen.exists()


def test_a_file_that_is_gone_does_not_pass_for_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forgetful(FakeVolume):
        def remove_files(self, directory: str, prefix: str, _slice_s: float) -> bool:
            raise FileNotFoundError(directory, prefix)

    monkeypatch.setattr(FakeVolume, "top", tmp_path)
    monkeypatch.setattr(_core, "Volume", Forgetful)
    place = Workspace(f"/leadline-{ID}", "cephfs:///")
    make_workspace(place, ID)
    with pytest.raises(FileNotFoundError):
        remove_workspace(place, ID, ("",), None, 60.0)


def test_a_link_is_no_directory_of_ours(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / f"leadline-{ID}"
    link.symlink_to("elsewhere")
    with pytest.raises(TargetError, match="was not removed"):
        remove_workspace(Workspace(str(link)), ID, ("",), None, 60.0)


def test_a_parent_that_refuses_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="cannot make a directory below") as refused:
        make_workspace(Workspace(str(tmp_path / "missing" / f"leadline-{ID}")), ID)
    assert "mounted" in refused.value.remedy
