"""A lab is begun, named and given sockets only where no other account could exchange what it has there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from leadline import lab as leadline_lab
from leadline.errors import UsageError
from leadline.lab import lab as lab_module
from leadline.lab import record, registry
from leadline.lab.journal import LabJournal
from leadline.lab.paths import run_name
from leadline.lab.record import LabRecord
from leadline.lab.spec import LabSpec

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    return state / "leadline/labs"


@pytest.fixture
def made(tmp_path: Path) -> LabRecord:
    """A lab's directory as a start that was killed early leaves it, with its sockets elsewhere."""
    directory, fsid = tmp_path / "a", f"test-{os.getpid()}-places"
    directory.mkdir(mode=0o700)
    found = LabRecord(
        name="a",
        fsid=fsid,
        spec=LabSpec(name="a", directory=directory),
        directory=directory,
        run_directory=tmp_path / run_name(fsid),
        made_directory=True,
        owner_uid=os.geteuid(),
        created_unix_s=1.0,
    )
    record.write_record(found)
    return found


@pytest.mark.parametrize(("owner", "mode"), [(65534, 0o755), (0, 0o775), (0, 0o777), (65534, 0o1777)])
@pytest.mark.parametrize("below", ["lab", "deeper/lab"])
def test_no_lab_is_begun_where_another_account_could_exchange_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int, mode: int, below: str
) -> None:
    above = tmp_path / "above"
    above.mkdir()
    os.chown(above, owner, owner)
    above.chmod(mode)
    monkeypatch.setattr(lab_module, "_start_in", lambda *_: pytest.fail("it was begun"))
    with pytest.raises(UsageError, match=str(above)):
        leadline_lab.start(LabSpec(directory=above / below))
    assert list(above.iterdir()) == []


@pytest.mark.parametrize("by_name", [True, False])
def test_no_lab_is_begun_behind_a_link_of_another_account(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, by_name: bool
) -> None:
    precious, link = tmp_path / "precious", home / "a"
    precious.mkdir(mode=0o700)
    home.mkdir(parents=True)
    link.symlink_to(precious)
    os.lchown(link, 65534, 65534)
    monkeypatch.setattr(lab_module, "_start_in", lambda *_: pytest.fail("it was begun"))
    with pytest.raises(UsageError, match="belongs to uid 65534"):
        leadline_lab.start(LabSpec(name="a") if by_name else LabSpec(directory=link))
    assert list(precious.iterdir()) == []


@pytest.mark.parametrize("kind", ["link", "directory"])
def test_no_lab_is_begun_where_another_account_was_the_first_to_make_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    place, precious = tmp_path / "tmp", tmp_path / "precious"
    place.mkdir()
    place.chmod(0o1777)
    precious.mkdir()
    mkdir = Path.mkdir

    def overtaken(self: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        if self == place / "new/lab" and not os.path.lexists(place / "new"):
            (place / "new").symlink_to(precious) if kind == "link" else mkdir(place / "new")
            os.lchown(place / "new", 65534, 65534)
        mkdir(self, mode, parents, exist_ok)

    monkeypatch.setattr(Path, "mkdir", overtaken)
    monkeypatch.setattr(lab_module, "_start_in", lambda *_: pytest.fail("it was begun"))
    with pytest.raises(UsageError, match="belongs to uid 65534"):
        leadline_lab.start(LabSpec(directory=place / "new/lab"))
    assert list(precious.iterdir()) == []


def test_nothing_is_started_with_sockets_in_a_directory_that_another_account_made_anew(
    made: LabRecord,
) -> None:
    made.run_directory.mkdir()
    os.chown(made.run_directory, 65534, 65534)
    journal = LabJournal(record.read_record(made.directory), dict(os.environ))
    with pytest.raises(UsageError, match="belongs to user 65534"):
        journal.start("osd.0", ["true"])
    assert record.read_record(made.directory).processes == ()


def test_names_of_labs_are_neither_kept_nor_forgotten_where_another_account_could_lead_elsewhere(
    tmp_path: Path, home: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "dangling").symlink_to(tmp_path / "gone")
    home.parent.mkdir(parents=True)
    home.symlink_to(precious)
    os.chown(home.parent, 65534, 65534)
    with pytest.raises(UsageError, match="belongs to uid 65534"):
        registry.claim("a", tmp_path / "else/a", os.environ)
    registry.forget_gone(os.environ)
    assert [path.name for path in precious.iterdir()] == ["dangling"]
