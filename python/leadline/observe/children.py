"""Starts one of this package's modules as a child process, and never waits for it past a deadline.

A system call on a hung mount cannot be interrupted, so whatever may hang runs in a child.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import leadline

_REAP_S = 0.2  # a killed child is gone by then, unless the kernel holds it


@dataclass(frozen=True)
class ChildAnswer:
    """JSON objects that a child printed; `stuck_pid` is set when it did not end within its deadline."""

    lines: tuple[dict[str, Any], ...]
    stuck_pid: int | None
    exit_code: int | None
    stderr: str


def module_command(module: str, *arguments: str) -> list[str]:
    """Arguments that run a module of this package whatever the working directory holds (`-P`)."""
    return [sys.executable, "-P", "-m", module, *arguments]


def _root() -> str:
    return str(Path(leadline.__file__).resolve().parents[1])


def user_environment() -> dict[str, str]:
    """The inverse of `module_environment`, in a child: what the user's own programs are to be given."""
    found = dict(os.environ)
    first, _, rest = found.get("PYTHONPATH", "").partition(os.pathsep)
    if first == _root():
        found.pop("PYTHONPATH")
        found |= {"PYTHONPATH": rest} if rest else {}
    return found


def module_environment() -> dict[str, str]:
    """The environment in which `module_command` finds this very package."""
    root = _root()
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": root if not inherited else f"{root}{os.pathsep}{inherited}"}


def ask_child(module: str, arguments: list[str], deadline_s: float) -> ChildAnswer:
    """Run a module to its end, or kill it after `deadline_s` and return what it said so far."""
    child = subprocess.Popen(
        module_command(module, *arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=module_environment(),
        start_new_session=True,
    )
    try:
        output, errors = child.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired as late:
        child.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_REAP_S)
        return ChildAnswer(_json_lines(late.stdout or b""), child.pid, None, _text(late.stderr))
    except BaseException:
        child.kill()
        raise
    return ChildAnswer(_json_lines(output), None, child.returncode, _text(errors))


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace").strip()


def _json_lines(output: bytes) -> tuple[dict[str, Any], ...]:
    lines = []
    for line in output.splitlines():
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                lines.append(value)
    return tuple(lines)
