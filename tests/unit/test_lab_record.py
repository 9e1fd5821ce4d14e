"""Only a lab is ever removed: what is not one, is another's or is damaged is refused and left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from leadline import lab as leadline_lab
from leadline.cli.machine.lab import command
from leadline.errors import LabError, UsageError
from leadline.lab import mounts, record, registry
from leadline.lab.cluster import process, stop
from leadline.lab.paths import GUEST_PREFIX, run_name
from leadline.lab.record import LabRecord
from leadline.lab.spec import LabSpec
from private_mounts import bind, mount_dead_fuse, unbind, with_private_mounts

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts of its own need root")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    return state / "leadline/labs"


def make_record(directory: Path, **changes: object) -> LabRecord:
    """A lab's directory as a start that was killed early leaves it."""
    directory.mkdir(parents=True)
    made = LabRecord(
        name=directory.name,
        fsid=f"test-{os.getpid()}-{directory.name}",
        spec=LabSpec(name=directory.name, directory=directory),
        directory=directory,
        run_directory=directory / "run",
        made_directory=True,
        owner_uid=os.geteuid(),
        created_unix_s=1.0,
    )
    made = replace(made, **changes)  # type: ignore[arg-type]
    (directory / record.LOCK).touch()
    record.write_record(made)
    return made


def remove(directory: Path) -> bool:
    return stop.remove(directory, os.environ, lambda _: None)


def test_record_survives_json(tmp_path: Path) -> None:
    made = make_record(tmp_path / "a", processes=(process.ProcessIdentity("osd.0", 7, 8, "b"),), mon_port=9)
    assert record.read_record(tmp_path / "a") == made


@pytest.mark.parametrize(
    "files",
    [
        {"precious": "x"},
        {"lab.json": "{}"},
        {"lab.json": "[]"},
        {"lab.json": "not json"},
        {"lab.json": '{"format": "leadline.lab/1"}'},
        {"lab.json": '{"format": "leadline.lab/2"}'},
        {"leadline-lab.lock": "", "precious": "x"},
        {},
    ],
)
def test_directory_that_is_no_lab_is_refused_and_left_alone(tmp_path: Path, files: dict[str, str]) -> None:
    directory = tmp_path / "mine"
    directory.mkdir()
    for name, text in files.items():
        (directory / name).write_text(text)
    with pytest.raises(UsageError):
        remove(directory)
    assert {entry.name: entry.read_text() for entry in directory.iterdir()} == files


def test_a_file_is_no_lab(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is not a lab"):
        remove(tmp_path / "file")


def test_half_started_lab_is_removed_and_again_is_no_error(tmp_path: Path) -> None:
    made = make_record(tmp_path / "a", starting_process="osd.0")
    (made.directory / "data/osd.0").mkdir(parents=True)
    (made.directory / "data/osd.0/block").write_text("x")
    assert remove(made.directory)
    assert not made.directory.exists()
    assert not remove(made.directory)


@pytest.mark.parametrize("whose", ["users", "leadlines"])
def test_start_killed_at_birth_leaves_what_is_removed_and_the_directory_goes_where_leadline_makes_them(
    tmp_path: Path, home: Path, whose: str
) -> None:
    directory = (tmp_path if whose == "users" else home) / "a"
    directory.mkdir(parents=True)
    (directory / record.LOCK).touch()
    (directory / f"{record.FILE}.new").write_text("{")
    assert remove(directory)
    assert directory.exists() == (whose == "users")
    assert whose != "users" or list(directory.iterdir()) == []


def test_users_own_empty_directory_is_emptied_and_kept(tmp_path: Path) -> None:
    made = make_record(tmp_path / "a", made_directory=False)
    assert remove(made.directory)
    assert list(made.directory.iterdir()) == []


@pytest.mark.parametrize("made_directory", [False, True])
def test_what_is_not_the_labs_is_named_and_left_and_the_lab_is_gone(
    tmp_path: Path, made_directory: bool
) -> None:
    made = make_record(tmp_path / "a", made_directory=made_directory)
    registry.claim("a", made.directory, os.environ)
    own = ["data/osd.0", "log", "crash", "run", f"{GUEST_PREFIX}abc"]
    users = ["results", "gateways", "mnt/mine", "guest-metadata"]  # without gateways, their name is free
    for name in own + users:
        (made.directory / name).mkdir(parents=True)
        (made.directory / name / "file").write_text("x")
    (made.directory / "ceph.conf").write_text("x")
    said: list[str] = []
    assert stop.remove(made.directory, os.environ, said.append)
    assert sorted(str(path.relative_to(made.directory)) for path in made.directory.rglob("file")) == sorted(
        f"{name}/file" for name in users
    )
    assert sorted(entry.name for entry in made.directory.iterdir()) == [
        "gateways", "guest-metadata", "mnt", "results",
    ]  # fmt: skip
    assert said == [f"left in {made.directory}, not of the lab's: gateways, guest-metadata, mnt, results"]
    assert registry.directories(os.environ) == {}
    with pytest.raises(UsageError, match="is not a lab"):
        remove(made.directory)


@needs_root
def test_what_is_mounted_after_the_look_is_not_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious, place = tmp_path / "precious", tmp_path / "a/data/osd.0"
    precious.mkdir()
    (precious / "file").write_text("x")
    made = make_record(tmp_path / "a")
    place.mkdir(parents=True)

    def action() -> None:
        bind(precious, place)
        monkeypatch.setattr(mounts, "mounts_below", lambda _: [])  # in this process, which is a fork
        with pytest.raises(LabError, match=f"is mounted on {place}"):
            remove(made.directory)
        unbind(place)

    with_private_mounts(action)
    assert (precious / "file").read_text() == "x"
    assert remove(made.directory)
    assert not made.directory.exists()


@needs_root
@pytest.mark.skipif(not mounts.FUSE_DEVICE.exists(), reason="no /dev/fuse")
@pytest.mark.parametrize(("name", "kind"), [("mine", "fuse.ceph-fuse"), ("mnt", "fuse.sshfs")])
def test_only_the_labs_own_mounts_are_undone_and_none_where_another_is_there(
    tmp_path: Path, name: str, kind: str
) -> None:
    made = make_record(tmp_path / "a", spec=LabSpec(directory=tmp_path / "a", subvolume="x"))
    own, others = made.paths.subvolume_mount, made.directory / name
    own.mkdir()
    others.mkdir()

    def action() -> None:
        mount_dead_fuse(others, kind)
        mount_dead_fuse(own, "fuse.ceph-fuse")
        with pytest.raises(LabError, match=rf"something else \({kind}\) is mounted on {others}"):
            remove(made.directory)
        assert mounts.is_mounted(own)
        assert mounts.is_mounted(others)
        unbind(others)
        others.rmdir()
        assert remove(made.directory)
        assert not made.directory.exists()

    with_private_mounts(action)


def test_recorded_and_unrecorded_processes_are_ended_and_a_stranger_with_a_recorded_pid_is_not(
    tmp_path: Path, token_processes: list[process.ProcessIdentity]
) -> None:
    fsid = f"test-{os.getpid()}-a"
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    recorded = process.start(
        "osd.0", sleeper, process.environment(fsid, tmp_path / "a", os.environ), tmp_path / "0.log"
    )
    marked = process.start(
        "osd.1", sleeper, process.environment(fsid, tmp_path / "a", os.environ), tmp_path / "1.log"
    )
    stranger = process.start(
        "other", sleeper, process.environment("y", tmp_path / "y", os.environ), tmp_path / "2.log"
    )
    token_processes += [recorded, marked, stranger]
    reused = replace(stranger, name="osd.2", start_ticks=stranger.start_ticks - 100)
    # An edited file may even have the stranger's own identity: it does not carry the lab's mark.
    innocent = replace(stranger, name="osd.3")
    made = make_record(tmp_path / "a", processes=(recorded, reused, innocent))
    assert remove(made.directory)
    assert [process.is_running(item) for item in (recorded, marked, stranger)] == [False, False, True]


@pytest.fixture
def token_processes() -> Iterator[list[process.ProcessIdentity]]:
    """Processes that are ended with the test."""
    started: list[process.ProcessIdentity] = []
    yield started
    process.end(started, grace_s=0.0)


def test_edited_lab_file_cannot_have_another_directory_removed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    made = make_record(tmp_path / "a", run_directory=precious)
    assert remove(made.directory)
    assert precious.is_dir()


def test_a_lab_is_not_changed_by_a_command_that_runs_under_one_of_its_processes(tmp_path: Path) -> None:
    made = make_record(tmp_path / "a", state="up")
    # A shell of the lab's, and in it another whose environment says nothing of it.
    down = f"env -u {process.MARK} {sys.executable} -m leadline lab down --dir {made.directory}; exit $?"
    variables = process.environment(made.fsid, made.directory, os.environ)
    done = subprocess.run(
        ["sh", "-c", down], env=variables, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "this command runs under it" in done.stderr
    assert record.read_record(made.directory) == made


@pytest.mark.parametrize("fsid", ["", "../x", "a/b", "a b"])
def test_edited_identity_names_no_device_or_directory_elsewhere(tmp_path: Path, fsid: str) -> None:
    made = make_record(tmp_path / "a")
    file = made.directory / record.FILE
    file.write_text(file.read_text().replace(made.fsid, fsid))
    with pytest.raises(UsageError, match="is damaged"):
        record.read_record(made.directory)


def test_symbolic_link_in_a_lab_is_removed_and_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    made = make_record(tmp_path / "a")
    (made.directory / "log").mkdir()
    (made.directory / "log/link").symlink_to(precious)
    (made.directory / "data").symlink_to(precious)
    assert remove(made.directory)
    assert not made.directory.exists()
    assert (precious / "file").read_text() == "x"


def test_moved_lab_says_where_it_belongs(tmp_path: Path) -> None:
    make_record(tmp_path / "a").directory.rename(tmp_path / "b")
    with pytest.raises(UsageError, match="was moved from"):
        remove(tmp_path / "b")


@pytest.mark.skipif(os.geteuid() != 0, reason="to be two users needs root")
@pytest.mark.parametrize("whose", ["", record.FILE])
def test_lab_that_another_user_could_have_written_is_refused_and_nothing_of_it_believed(
    tmp_path: Path, token_processes: list[process.ProcessIdentity], whose: str
) -> None:
    made, own = make_record(tmp_path / "a"), ["sleep", "60"]
    marked = process.start(
        "osd.0", own, process.environment(made.fsid, made.directory, os.environ), tmp_path / "0.log"
    )
    token_processes.append(marked)
    record.write_record(replace(made, processes=(marked,)))
    os.chown(made.directory / whose, 65534, 65534)
    with pytest.raises(UsageError, match="belongs to user 65534: nothing in it is believed"):
        remove(made.directory)
    assert process.is_running(marked)
    os.chown(made.directory / whose, 0, 0)
    (made.directory / whose).chmod(0o770)
    with pytest.raises(UsageError, match=r"others than its owner may write .*a.* \(mode 0770\)"):
        remove(made.directory)
    assert process.is_running(marked)
    assert (made.directory / record.FILE).exists()


def test_link_to_a_lab_is_not_followed(tmp_path: Path) -> None:
    made = make_record(tmp_path / "a")
    (tmp_path / "link").symlink_to(made.directory)
    with pytest.raises(UsageError, match="is a link, which is not followed"):
        remove(tmp_path / "link")
    done = CliRunner().invoke(command, ["down", "--dir", str(tmp_path / "link")])
    assert isinstance(done.exception, UsageError)
    assert record.read_record(made.directory) == made
    (made.directory / record.FILE).rename(tmp_path / "elsewhere")
    (made.directory / record.FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LabError, match="cannot be read"):
        remove(made.directory)


def test_directory_for_sockets_elsewhere_goes_with_its_lab_unless_it_is_another_users(tmp_path: Path) -> None:
    made = make_record(tmp_path / "a")
    run = tmp_path / run_name(made.fsid)
    record.write_record(replace(made, run_directory=run))
    (run / "below").mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(run, 65534, 65534)
        with pytest.raises(UsageError, match="belongs to user 65534"):
            remove(made.directory)
        assert (run / "below").is_dir()
        os.chown(run, 0, 0)
    assert remove(made.directory)
    assert not run.exists()


def test_lab_that_another_command_holds_is_left_alone(tmp_path: Path) -> None:
    made = make_record(tmp_path / "a")
    with record.locked(made.directory):
        with (
            pytest.raises(LabError, match=f"pid {os.getpid()}"),
            record.locked(made.directory, deadline_s=0.2),
        ):
            pass
        assert made.directory.exists()


@pytest.mark.parametrize("content", ["file", "lab.json"])
def test_start_refuses_a_directory_in_use(tmp_path: Path, content: str) -> None:
    if not can_mount():
        pytest.skip("packages or FUSE are missing, which is said first")
    directory = tmp_path / "mine"
    directory.mkdir()
    (directory / content).write_text("x")
    with pytest.raises(UsageError, match=r"not empty|already a lab"):
        leadline_lab.start(LabSpec(directory=directory))
    assert (directory / content).read_text() == "x"


def can_mount() -> bool:
    from leadline.lab import requirements

    return not requirements.missing_packages() and os.access("/dev/fuse", os.R_OK | os.W_OK)


def test_labs_elsewhere_are_found_by_name_until_they_are_gone(tmp_path: Path, home: Path) -> None:
    made = make_record(tmp_path / "else/a")
    registry.claim("a", made.directory, os.environ)
    make_record(home / "b")
    assert registry.directories(os.environ) == {"a": made.directory, "b": home / "b"}
    assert leadline_lab.open("a").directory == made.directory
    with pytest.raises(UsageError, match="several labs: a, b"):
        leadline_lab.open()
    assert remove(made.directory)
    assert registry.directories(os.environ) == {"b": home / "b"}
    assert leadline_lab.open().directory == home / "b"
    assert remove(home / "b")
    assert not home.exists()


def test_name_that_is_taken_is_refused_and_a_free_one_is_found(tmp_path: Path) -> None:
    made = make_record(tmp_path / "x/a")
    registry.claim("a", made.directory, os.environ)
    with pytest.raises(UsageError, match="already a lab named a"):
        registry.claim("a", tmp_path / "y/a", os.environ)
    assert registry.free_name(tmp_path / "y/a", os.environ) == "a-2"


def test_mount_table_with_spaces_is_read() -> None:
    text = (
        "36 35 0:31 / /srv/a\\040b/mnt rw,nosuid shared:1 - fuse.ceph-fuse ceph-fuse rw\n"
        "37 35 0:32 / /srv/c rw - ext4 /dev/vda rw\nbroken\n"
    )
    found = [(str(point), kind) for point, kind, _ in mounts.parse_mountinfo(text)]
    assert found == [("/srv/a b/mnt", "fuse.ceph-fuse"), ("/srv/c", "ext4")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["up", "--ec", "nonsense"], "is not K+M"),
        (["up", "--osds", "3", "--ec", "6+3"], "too few"),
        (["up", "--osd-size", "10"], "cannot be made"),
        (["down", "--all", "x"], "contradict"),
        (["down", "a/../../b\n"], ""),
        (["status", "nope"], "does not exist"),
        (["env", "x", "--dir", "/tmp"], "Give one"),
    ],
)
def test_command_line_refuses_what_cannot_be(words: list[str], message: str) -> None:
    done = CliRunner().invoke(command, words)
    if message:
        assert isinstance(done.exception, UsageError)
        assert message in str(done.exception)
    else:
        assert done.exit_code == 0


def test_list_is_empty_and_down_without_labs_is_no_error() -> None:
    assert json.loads(CliRunner().invoke(command, ["list", "--json"]).stdout)["labs"] == {}
    assert CliRunner().invoke(command, ["down"]).exit_code == 0
    assert CliRunner().invoke(command, ["down", "--all"]).exit_code == 0
