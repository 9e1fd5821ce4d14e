"""Dask writes and imports nothing where another account was first."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from leadline.errors import UsageError
from leadline.hosts import worker_rpc
from leadline.hosts.own.scratch import private_scratch
from leadline.hosts.workers import cluster
from leadline.hosts.workers.request import HostsAsked
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


def test_the_commands_scheduler_takes_no_directory_of_another_account(planted: Planted) -> None:
    from distributed import Security

    with cluster.started(HostsAsked(listen="127.0.0.1", plain_tcp=True), Security(require_encryption=False)):
        assert [path for path in sys.path if path.startswith(str(planted.theirs))] == []
    planted.check()


def test_a_hosts_nanny_takes_no_directory_of_another_account(planted: Planted) -> None:
    async def made() -> None:
        nanny: Any = cluster.private_nanny("tcp://127.0.0.1:1")
        own = Path(nanny.local_directory).parent
        assert (own.parent, own.stat().st_mode & 0o777) == (planted.place, 0o700)
        await nanny.close()

    asyncio.run(made())
    planted.check()


def test_a_labs_scheduler_and_workers_take_the_labs_own_directory(tmp_path: Path) -> None:
    class Paths:
        def log(self, name: str) -> Path:
            return tmp_path / name

    lab: Any = type("Lab", (), {"fsid": "f", "directory": tmp_path, "paths": Paths()})()
    crew = LabCrew(lab, tmp_path)
    crew._run("one", [sys.executable, "-Ic", "import os; print(os.environ['DASK_TEMPORARY_DIRECTORY'])"])
    assert crew._running["one"].wait() == 0
    assert (tmp_path / "dask-one").read_text() == f"{tmp_path}\n"


def test_a_temporary_directory_that_all_may_exchange_gets_nothing_of_dasks(planted: Planted) -> None:
    planted.place.chmod(0o777)
    with pytest.raises(UsageError, match=f"others may write {planted.place}"), private_scratch():
        pass
    planted.check()


def test_a_worker_whose_modules_another_account_could_write_is_refused(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = planted.theirs / "worker-x"
    monkeypatch.setattr(sys, "path", [str(work), *sys.path])
    found = worker_rpc.probe({})
    assert f"{planted.theirs} belongs to uid {OTHER}" in found["refused"]
    os.chown(planted.theirs, 0, 0)
    assert worker_rpc.why_not_own_modules(sys.path) == ""
