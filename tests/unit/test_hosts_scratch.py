"""Dask writes and imports nothing where another account was first."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from leadline.hosts import worker_rpc

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


def test_a_worker_whose_modules_another_account_could_write_is_refused(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = planted.theirs / "worker-x"
    monkeypatch.setattr(sys, "path", [str(work), *sys.path])
    found = worker_rpc.probe({})
    assert f"{planted.theirs} belongs to uid {OTHER}" in found["refused"]
    os.chown(planted.theirs, 0, 0)
    assert worker_rpc.why_not_own_modules(sys.path) == ""
