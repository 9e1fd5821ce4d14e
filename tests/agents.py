"""Agents for tests: the stand-in in Python, as a process here that is called over pipes, without SSH."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

import agent_stand_in
from leadline.hosts.agent.connection import AgentConnection, read_greeting
from leadline.hosts.agent.machine import AgentMachine
from leadline.interpreter import module_environment
from leadline.observe.machine import work_for

STAND_IN = Path(agent_stand_in.__file__)


def stand_in_script(directory: Path) -> Path:
    """A program that is the stand-in."""
    script = directory / "stand-in"
    words = f"PYTHONPATH={os.pathsep.join(sys.path)} exec {sys.executable} -P {STAND_IN}"
    script.write_text(f'#!/bin/sh\n{words} "$@"\n')
    script.chmod(0o755)
    return script


@dataclass
class Standing:
    """A stand-in that runs, and its machine."""

    process: subprocess.Popen[bytes]
    connection: AgentConnection
    machine: AgentMachine


@contextmanager
def standing_in(directory: Path) -> Iterator[Standing]:
    """This process works for a stand-in on this host, for as long as the block lasts."""
    process = subprocess.Popen(
        [sys.executable, "-P", str(STAND_IN), "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=module_environment() | {"TMPDIR": str(directory)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        connection = AgentConnection(process.stdin, process.stdout, read_greeting(process.stdout))
        connection.start()
        files = directory / "files"
        files.mkdir()
        machine = AgentMachine(connection, "stand-in", files)
        work_for(machine)
        yield Standing(process, connection, machine)
    finally:
        work_for(None)
        process.stdin.close()
        process.wait(20)
        process.stdout.close()


def machine() -> str:
    """As `uname -m` calls this one."""
    return os.uname().machine


def end_stand_ins(directory: Path) -> None:
    """Kill the stand-ins that work below a directory."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if STAND_IN.name in " ".join(process.cmdline()) and process.environ().get(
                "TMPDIR", ""
            ).startswith(str(directory)):
                process.kill()
