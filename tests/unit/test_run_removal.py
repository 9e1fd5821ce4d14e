"""Removing what a study left: any number of files, in slices, and never through a link."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from leadline.errors import TargetError
from leadline.removal import remove_entries
from leadline.run import workspace
from leadline.run.storage import MountedStorage
from leadline.run.workspace import Workspace, make_workspace, remove_files, remove_workspace


def fill(directory: Path, files: int, depth: int = 2) -> None:
    directory.mkdir(exist_ok=True)
    for number in range(files):
        (directory / f"f{number}").touch()
    if depth:
        fill(directory / "t0", files, depth - 1)


def test_more_entries_than_one_batch_are_removed(tmp_path: Path) -> None:
    fill(tmp_path / "top", 2500, depth=0)
    assert not remove_entries(tmp_path / "top", 60)
    assert list((tmp_path / "top").iterdir()) == []


def test_a_slice_ends_in_time_and_the_next_goes_on(tmp_path: Path) -> None:
    fill(tmp_path / "top", 1500)
    ticks = itertools.count().__next__
    slices = 1
    while remove_entries(tmp_path / "top", 1.5, clock=lambda: float(ticks())):
        slices += 1
        assert slices < 100
    assert slices > 1
    assert list((tmp_path / "top").iterdir()) == []


def test_a_link_is_removed_and_not_followed(tmp_path: Path) -> None:
    fill(tmp_path / "precious", 3, depth=0)
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to(tmp_path / "precious", target_is_directory=True)
    assert not remove_entries(tmp_path / "top", 60)
    assert len(list((tmp_path / "precious").iterdir())) == 3


def test_files_of_a_trial_go_with_their_trees_and_others_stay(tmp_path: Path) -> None:
    place = tmp_path / "leadline-0abcdef1"
    place.mkdir()
    fill(place / "fresh-t0001.0", 3)
    (place / "fresh-t0001.1").touch()
    (place / "data.0").touch()
    assert not remove_files(Workspace(str(place)), "fresh-t0001")
    assert [path.name for path in place.iterdir()] == ["data.0"]


def test_a_workspace_keeps_its_mark_until_all_else_is_gone(tmp_path: Path) -> None:
    place = tmp_path / "leadline-0abcdef1"
    make_workspace(Workspace(str(place)), "0abcdef1")
    fill(place / "tree.0", 1500)
    assert remove_workspace(Workspace(str(place)), "0abcdef1", ("",), None, slice_s=0.0)
    assert (place / ".leadline").exists()
    assert not remove_workspace(Workspace(str(place)), "0abcdef1", ("",), None)
    assert not place.exists()


def test_a_directory_without_the_mark_is_never_removed(tmp_path: Path) -> None:
    fill(tmp_path / "leadline-0abcdef1", 1)
    with pytest.raises(TargetError, match="mark"):
        remove_workspace(Workspace(str(tmp_path / "leadline-0abcdef1")), "0abcdef1", ("",), None)


def test_what_a_server_makes_after_its_maker_was_killed_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Workspace(str(tmp_path / "leadline-0abcdef1"))
    looks = itertools.count(1).__next__

    class LateServer(MountedStorage):
        """It makes the directory once somebody saw that it is not there."""

        def is_absent(self, directory: str) -> bool:
            absent = super().is_absent(directory)
            if looks() == 1:
                Path(directory).mkdir()
            return absent

    monkeypatch.setattr(workspace, "open_storage", lambda _: LateServer())
    assert not remove_workspace(place, "0abcdef1", [], None, late=True)
    assert list(tmp_path.iterdir()) == []
