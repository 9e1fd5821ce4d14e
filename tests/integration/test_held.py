"""While a study runs, nobody undoes it or goes on with it by a copy of its result."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.errors import ResultError
from leadline.run.workspace import held
from leadline.study.target import Target
from private_mounts import as_user
from support import Command, command_line, wait_for_event
from whole import wait_until_workers_are_gone

STUDY = (
    "format: leadline.study/1\nblocks: 1\nlimits: {reserve: 1M}\n"
    "works:\n  long: {command: [sh, -c, 'read line < $0', %s]}\n"
)
ID = "0badcafe"


@pytest.fixture
def running(tmp_path: Path, target: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run that waits in the middle of a trial, until its end."""
    os.mkfifo(tmp_path / "gate")
    (tmp_path / "s.yaml").write_text(STUDY % (tmp_path / "gate"))
    words = ("run", str(tmp_path / "s.yaml"), "--target", f"a={target}", "--out", str(tmp_path / "r"))
    with subprocess.Popen(command_line(*words, "--quiet"), stdout=subprocess.DEVNULL) as process:
        wait_for_event(tmp_path / "r", "trial_started")
        yield process
        process.kill()


@pytest.mark.parametrize("verb", [("undo",), ("run", "--quiet", "--resume")])
def test_a_copy_of_the_result_of_a_study_that_runs_is_refused_until_the_run_is_killed(
    leadline: Command, running: subprocess.Popen[bytes], target: Path, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    shutil.copytree(tmp_path / "r", tmp_path / "copy")
    (place,) = target.iterdir()
    before = {path.name for path in place.iterdir()}
    assert ".leadline" in before
    for result in ("copy", "r"):
        done = leadline(*verb, str(tmp_path / result))
        assert done.returncode == 2, done.stderr
        assert f"process {running.pid}" in done.stderr or result == "r"
        assert before <= {path.name for path in place.iterdir()}
    running.send_signal(signal.SIGKILL)
    running.wait()
    wait_until_workers_are_gone(tmp_path / "r")
    undone = leadline("undo", str(tmp_path / "copy"))
    assert undone.returncode == 0, undone.stderr
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("url", ["/somewhere", "smb://127.0.0.1:1/share"])
def test_a_study_is_held_once_whatever_its_targets_and_free_when_its_holder_dies(
    tmp_path: Path, url: str
) -> None:
    target = Target("a", url)
    ready, stay = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        with held(ID, [target], tmp_path):
            os.write(ready[1], b"+")
            os.read(stay[0], 1)
    os.read(ready[0], 1)
    with pytest.raises(ResultError, match=f"process {pid}"), held(ID, [target], tmp_path / "copy"):
        pass
    with held("1badcafe", [target], tmp_path):
        pass
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with held(ID, [target], tmp_path):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")
def test_what_another_account_holds_keeps_nobody_waiting(tmp_path: Path) -> None:
    target = Target("a", f"/{tmp_path.name}")

    def other() -> None:
        with held(ID, [target], Path("/")):
            in_root()

    def in_root() -> None:
        os.write(ready[1], b"+")
        os.read(stay[0], 1)

    ready, stay = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        as_user(65534, other)
        os._exit(0)
    os.read(ready[0], 1)
    with held(ID, [target], tmp_path):
        pass
    os.write(stay[1], b"+")
    os.waitpid(pid, 0)
