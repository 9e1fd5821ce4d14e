"""A lab whose directory or file is lost: what runs of it is found, and ended only where that is certain."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from leadline.cli.machine.lab import command
from leadline.errors import LabError, UsageError
from leadline.faults import DIRECTORY
from leadline.lab import record
from leadline.lab.cluster import process, stop
from leadline.lab.cluster.process import ProcessIdentity, poll
from private_mounts import as_user, with_private_mounts

SLEEPER = ["sleep", "60"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., ProcessIdentity]]:
    """Starts a process as of a lab in a directory; each is ended with the test."""
    started: list[ProcessIdentity] = []

    def begin(directory: Path, **changes: str) -> ProcessIdentity:
        fsid = f"test-{os.getpid()}-{len(started)}"
        variables = process.environment(fsid, directory, os.environ) | changes
        started.append(process.start("osd.0", SLEEPER, variables, tmp_path / "log"))
        assert poll(lambda: process.is_own(started[-1]), 10.0)  # between fork and exec it is not
        return started[-1]

    yield begin
    for one in started:
        if process.is_running(one):
            os.kill(one.pid, signal.SIGKILL)
            os.waitpid(one.pid, 0)


def remove(directory: Path) -> bool:
    return stop.remove(directory, os.environ, lambda _: None)


def test_processes_of_a_lab_whose_directory_is_gone_are_ended_and_those_of_another_are_not(
    tmp_path: Path, start: Callable[..., ProcessIdentity]
) -> None:
    lost, other, beside = (start(tmp_path / name) for name in ("a", "ab", "b"))
    done = CliRunner().invoke(command, ["list"])
    assert f"lab down --dir {tmp_path / 'a'}" in done.stderr.replace("\n", " ")
    assert remove(tmp_path / "a")
    assert [process.is_running(one) for one in (lost, other, beside)] == [False, True, True]
    assert not remove(tmp_path / "a")


@pytest.mark.parametrize("text", [None, "{", "[]"])
def test_a_lab_whose_file_is_damaged_has_its_processes_ended_and_its_files_stay(
    tmp_path: Path, start: Callable[..., ProcessIdentity], text: str | None
) -> None:
    place = tmp_path / "a"
    (place / "data").mkdir(parents=True)
    if text is not None:
        (place / record.FILE).write_text(text)
    lost = start(place)
    with pytest.raises(LabError, match=r"were ended, its files were left alone"):
        remove(place)
    assert not process.is_running(lost)
    assert (place / "data").exists()
    with pytest.raises(UsageError):
        remove(place)


def test_a_lab_of_which_only_the_lock_is_left_has_its_processes_ended(
    tmp_path: Path, start: Callable[..., ProcessIdentity]
) -> None:
    place = tmp_path / "a"
    place.mkdir()
    (place / record.LOCK).touch()
    lost = start(place)
    assert remove(place)
    assert not process.is_running(lost)


def test_a_newer_labs_processes_are_left_to_the_newer_leadline(
    tmp_path: Path, start: Callable[..., ProcessIdentity]
) -> None:
    place = tmp_path / "a"
    place.mkdir()
    (place / record.FILE).write_text('{"format": "leadline.lab/2"}')
    running = start(place)
    with pytest.raises(UsageError, match="newer"):
        remove(place)
    assert process.is_running(running)


def test_a_process_without_the_labs_mark_is_none_of_it(
    tmp_path: Path, start: Callable[..., ProcessIdentity]
) -> None:
    stranger = start(tmp_path / "a")
    assert poll(lambda: [one.pid for one in process.find_in(tmp_path / "a")] == [stranger.pid], 10.0)
    unmarked = process.start("x", SLEEPER, {**os.environ, DIRECTORY: str(tmp_path / "b")}, tmp_path / "l")
    try:
        assert poll(lambda: b"LEADLINE_LAB_DIR" in Path(f"/proc/{unmarked.pid}/environ").read_bytes(), 10.0)
        assert process.find_in(tmp_path / "b") == []
    finally:
        os.kill(unmarked.pid, signal.SIGKILL)
        os.waitpid(unmarked.pid, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="another account, and mounts of its own, need root")
@pytest.mark.parametrize("where", [lambda do: as_user(65534, do), with_private_mounts])
def test_a_process_of_another_account_or_with_other_mounts_is_left_alone(
    tmp_path: Path, where: Callable[[Callable[[], None]], None]
) -> None:
    ready, stay = os.pipe(), os.pipe()
    variables = process.environment("test-elsewhere", tmp_path / "a", os.environ)
    pid = os.fork()
    if pid == 0:
        os.set_inheritable(stay[0], True)
        script = f"echo >&{ready[1]}; read line <&{stay[0]}"
        os.set_inheritable(ready[1], True)
        where(lambda: os.execve("/bin/bash", ["bash", "-c", script], variables))  # noqa: S606
        os._exit(0)
    try:
        os.read(ready[0], 1)
        carrying = process.find_marked("test-elsewhere")
        assert carrying
        assert process.find_in(tmp_path / "a") == []
        assert not remove(tmp_path / "a")
        assert all(process.is_running(one) for one in carrying)
    finally:
        os.write(stay[1], b"\n")
        os.waitpid(pid, 0)
