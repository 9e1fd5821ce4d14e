"""Starts one of this package's modules as a child process, and never waits for it past a deadline.

A system call on a hung mount cannot be interrupted, so whatever may hang runs in a child.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.foreign import parse_json
from leadline.interpreter import module_command, module_environment

_REAP_S = 0.2  # a killed child is gone by then, unless the kernel holds it


@dataclass(frozen=True)
class ChildAnswer:
    """JSON objects that a child printed; `stuck_pid` is set when it did not end within its deadline.

    It was killed then, and `held` says that the kernel holds it even so.
    """

    lines: tuple[dict[str, Any], ...]
    stuck_pid: int | None
    exit_code: int | None
    stderr: str
    held: bool = False


@dataclass(frozen=True)
class Finished:
    """What a program printed; `exit_code` is None where it was killed at its deadline, `stuck` even so."""

    output: bytes
    errors: bytes
    exit_code: int | None
    pid: int
    stuck: bool = False


def finish(
    command: Sequence[str], deadline_s: float, environment: Mapping[str, str] | None = None
) -> Finished:
    """Run a program to its end, or kill it after `deadline_s`; unlike `subprocess.run` never waits longer."""
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    try:
        output, errors = child.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired as late:
        child.kill()
        stuck = False
        try:
            child.wait(_REAP_S)
        except subprocess.TimeoutExpired:
            stuck = True
        return Finished(late.stdout or b"", late.stderr or b"", None, child.pid, stuck)
    except BaseException:
        child.kill()
        raise
    return Finished(output, errors, child.returncode, child.pid)


def ask_child(module: str, arguments: list[str], deadline_s: float) -> ChildAnswer:
    """Run a module to its end, or kill it after `deadline_s` and return what it said so far."""
    done = finish(module_command(module, *arguments), deadline_s, module_environment())
    late = done.pid if done.exit_code is None else None
    errors = done.errors.decode("utf-8", "replace").strip()
    return ChildAnswer(_json_lines(done.output), late, done.exit_code, errors, done.stuck)


def _json_lines(output: bytes) -> tuple[dict[str, Any], ...]:
    lines = []
    for line in output.splitlines():
        with contextlib.suppress(ValueError):
            value = parse_json(line)
            if isinstance(value, dict):
                lines.append(value)
    return tuple(lines)
