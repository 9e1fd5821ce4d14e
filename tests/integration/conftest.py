"""The command as its users run it: a process of its own, in directories of the test's own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forking import Forks
from support import Command, Start


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """A process that has loaded leadline, for commands to be forked from."""
    found = Forks()
    yield found
    found.close()


@pytest.fixture
def leadline(forks: Forks) -> Command:
    """Runs one command line to its end."""

    def run(*arguments: str, timeout: float = 120, **options: Any) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "NO_COLOR": "", **options.pop("env", {})}
        return forks.command(arguments, environment, timeout, **options)

    return run


@pytest.fixture(scope="session")
def start(forks: Forks) -> Start:
    """Starts a command line, for a test that meets it while it runs."""
    return lambda *arguments: forks.start(arguments)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "target"
    path.mkdir()
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a subject that is traced works: alone, so that calls on its files are its own."""
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """One work of each kind on files of 4 MiB: a whole run in about a second."""
    path = tmp_path / "small.yaml"
    path.write_text(
        "format: leadline.study/1\n"
        "blocks: 2\n"
        "limits: {reserve: 1M}\n"
        "defaults: {size: 4M, runtime: 200ms, time_based: true, engine: psync, direct: false}\n"
        "works:\n"
        "  randread_4k: {rw: randread, bs: 4k}\n"
        "  seqwrite_64k: {rw: write, bs: 64k}\n"
    )
    return path
