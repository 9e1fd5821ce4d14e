"""No module of the working directory runs in a child: a directory may be another account's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leadline.check.storage.places import DeviceChild, DevicePlace, NotAnsweredError
from leadline.cli.explain.check_members import LabMembers, echoes
from leadline.errors import UsageError
from leadline.tracing.sources import darshan_tables


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that a planted `leadline` or `json` writes once it is imported from the working directory."""
    mark, here = tmp_path / "ran", tmp_path / "here"
    (here / "leadline").mkdir(parents=True)
    for name in ("leadline/__init__.py", "json.py", "distributed.py"):
        (here / name).write_text(f"open({str(mark)!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(here)
    return mark


def test_the_reader_of_darshan_logs_takes_no_module_of_the_working_directory(planted: Path) -> None:
    with pytest.raises(UsageError):
        darshan_tables._run_reader(planted.parent / "no.darshan", planted.parent)
    assert not planted.exists()


def test_the_child_that_measures_a_device_takes_no_module_of_the_working_directory(planted: Path) -> None:
    child = DeviceChild(DevicePlace(planted.parent / "none", False, False, "none", "ssd", ("none",)))
    with suppress(NotAnsweredError):
        child.answer()
    child.end()
    assert not planted.exists()


def test_echoes_take_no_module_of_the_working_directory(planted: Path) -> None:
    facts = echoes("here", {"127.0.0.1": "peer"})
    assert facts
    assert not planted.exists()


def test_a_member_of_a_lab_takes_no_module_of_the_working_directory(planted: Path) -> None:
    lab: Any = SimpleNamespace(record=SimpleNamespace(name="none", network=None))
    LabMembers(lab)._run("host1", ["leadline", "--version"], 60.0)
    assert not planted.exists()


def test_the_server_on_another_host_takes_no_module_of_its_working_directory(planted: Path) -> None:
    from leadline.hosts.workers.request import listed_hosts
    from leadline.hosts.workers.ssh import ssh_command

    line = ssh_command(listed_hosts("alpha").hosts[0])[-1]
    subprocess.run(["sh", "-c", line], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    assert not planted.exists()


_ASKS = """
import json, subprocess
from leadline.interpreter import module_command, module_environment, remote_python, user_environment
words, environment = module_command("json.tool", "--help"), module_environment()
subprocess.run(words, env=environment, check=True, capture_output=True)
remote = [remote_python(None)[-2:], remote_python("python3")]
print(json.dumps([words[1], *remote, user_environment()["PYTHONPATH"]]))
"""


def test_an_installation_with_its_own_python_takes_nothing_of_the_sites_modules(planted: Path) -> None:
    """It is started with -I: PYTHONPATH is of another Python, and the user's programs keep it."""
    here = str(planted.parent / "here")
    done = subprocess.run(
        [sys.executable, "-I", "-c", _ASKS],
        env={**os.environ, "PYTHONPATH": here},
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout) == ["-I", "-I", "python3 -P", here]
    assert not planted.exists()
