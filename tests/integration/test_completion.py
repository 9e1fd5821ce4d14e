"""TAB in a real bash: built-in studies, results, and files where nothing else is offered."""

from __future__ import annotations

import os
import pty
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import Command

DEADLINE_S = 60


class Shell:
    """An interactive bash on a terminal of its own."""

    def __init__(self, directory: Path, script: str) -> None:
        (directory / "bin").mkdir()
        program = directory / "bin" / "leadline"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m leadline "$@"\n')
        program.chmod(0o755)
        (directory / "completion").write_text(script)
        self._own, other = pty.openpty()
        variables = {
            **os.environ,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "PS1": "ready ",
            "TERM": "dumb",
        }
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"],
            stdin=other, stdout=other, stderr=other, cwd=directory, env=variables, start_new_session=True,
        )  # fmt: skip
        os.close(other)
        self._seen = ""
        self.until("ready ")
        self.type("source completion\n")
        self.until("ready ")

    def type(self, keys: str) -> None:
        """Press keys."""
        self._seen = ""
        os.write(self._own, keys.encode())

    def until(self, text: str) -> str:
        """What the terminal shows since, once `text` is in it."""
        end = time.monotonic() + DEADLINE_S
        while text not in self._seen:
            assert time.monotonic() < end, f"{text!r} is not in {self._seen!r}"
            if select.select([self._own], [], [], 1)[0]:
                self._seen += os.read(self._own, 65536).decode(errors="replace")
        return self._seen

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._own)


@pytest.fixture
def shell(leadline: Command, tmp_path: Path) -> Iterator[Shell]:
    for name in ("first", "feb"):
        (tmp_path / name).mkdir()
    (tmp_path / "first" / "manifest.json").write_text("{}")
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "within").mkdir()
    done = leadline("completion", "bash")
    assert done.returncode == 0, done.stderr
    shell = Shell(tmp_path, done.stdout)
    yield shell
    shell.close()


def test_tab_completes_studies_results_directories_and_the_place_of_a_target(shell: Shell) -> None:
    shell.type("leadline run qui\t")
    shell.until("leadline run quick ")
    shell.type("\x15leadline show f\t")
    shell.until("leadline show first ")
    shell.type("\x15leadline show far/\t")
    shell.until("leadline show far/within/")
    shell.type("\x15leadline run quick --target a=fa\t")
    shell.until("a=far/")
    shell.type("\x15leadline rep\t")
    shell.until("rep")  # of report, replay and reproduce nothing more is certain
    shell.type("o\t")
    shell.until("ort ")
