"""Dask writes and imports nothing where another account was first."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from leadline.hosts import worker_rpc
from leadline.lab.workers import LabCrew

OTHER = 65534
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")


class Planted:
    """A temporary directory for all, where another account made Dask's, with links to a file of root's."""

    def __init__(self, above: Path) -> None:
        self.place, self.precious = above / "tmp", above / "precious"
        self.precious.write_text("precious")
        self.place.mkdir()
        self.place.chmod(0o1777)
        self.theirs = self.place / "dask-scratch-space"
        self.theirs.mkdir()
        for name in ("global.lock", "purge.lock"):
            (self.theirs / name).symlink_to(self.precious)
        os.chown(self.theirs, OTHER, OTHER)

    def check(self) -> None:
        assert self.precious.read_text() == "precious"
        assert sorted(path.name for path in self.theirs.iterdir()) == ["global.lock", "purge.lock"]
        assert [path.name for path in self.place.iterdir()] == [self.theirs.name]


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planted:
    found = Planted(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(found.place))
    return found


def test_a_labs_scheduler_and_workers_take_the_labs_own_directory(tmp_path: Path) -> None:
    class Paths:
        def log(self, name: str) -> Path:
            return tmp_path / name

    lab: Any = type("Lab", (), {"fsid": "f", "directory": tmp_path, "paths": Paths()})()
    crew = LabCrew(lab, tmp_path)
    crew._run("one", [sys.executable, "-Ic", "import os; print(os.environ['DASK_TEMPORARY_DIRECTORY'])"])
    assert crew._running["one"].wait() == 0
    assert (tmp_path / "dask-one").read_text() == f"{tmp_path}\n"


def test_a_worker_whose_modules_another_account_could_write_is_refused(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = planted.theirs / "worker-x"
    monkeypatch.setattr(sys, "path", [str(work), *sys.path])
    found = worker_rpc.probe({})
    assert f"{planted.theirs} belongs to uid {OTHER}" in found["refused"]
    os.chown(planted.theirs, 0, 0)
    assert worker_rpc.why_not_own_modules(sys.path) == ""
