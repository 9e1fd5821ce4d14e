"""What tests of the command line share: running it, and reading what it printed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

UNUSABLE = ("INVALID", "NOT_RUN")  # states of a result, whose commands end with 3
Command = Callable[..., subprocess.CompletedProcess[str]]


class Process(Protocol):
    """A command that runs: of `subprocess.Popen`, what tests use."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def communicate(self, *, timeout: float | None = None) -> tuple[str, str]: ...
    def send_signal(self, sig: int, /) -> None: ...
    def kill(self) -> None: ...


Start = Callable[..., Process]


def command_line(*arguments: str) -> list[str]:
    """Arguments that run `leadline` as a process of its own."""
    return [sys.executable, "-m", "leadline", *arguments]


def show(leadline: Command, result: Path) -> dict[str, Any]:
    """What `leadline show --json` says of a result."""
    found = leadline("show", str(result), "--json")
    value: dict[str, Any] = json.loads(found.stdout or "{}")
    assert found.returncode == (3 if value.get("state") in UNUSABLE else 0), found.stderr
    return value


def wait_for_event(out: Path, name: str, seconds: float = 30) -> None:
    """Poll the journal until it has the event."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        journal = out / "events.jsonl"
        if journal.exists() and f'"event": "{name}"' in journal.read_text():
            return
        time.sleep(0.02)
    raise AssertionError(f"no {name} in {out} within {seconds} s")


def assert_one_screen(printed: str) -> None:
    """What `show` prints of any result without `--all`: one screen, in a pipe too."""
    lines = printed.splitlines()
    assert 0 < len(lines) <= 40, printed
    # A command is not folded: its path may be long.
    assert max(len(line) for line in lines if " leadline " not in line) <= 100, printed
    more = next((place for place, line in enumerate(lines) if " more: leadline " in f" {line}"), None)
    assert more is not None, printed
    assert any("leadline show " in line for line in lines[more:]), printed
