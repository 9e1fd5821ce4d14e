"""What a process inherits when it is started: workers must have the command's own of that moment.

A helper was started in the command's circumstances; where they are others now it is none to fork from.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from leadline.interpreter import module_environment

_OWN = Path("/proc/thread-self")
# proc(5): accounts, umask, capabilities, filters, processors and memory of a thread.
_INHERITED = ("Umask", "Uid", "Gid", "Groups", "Cap", "NoNewPrivs", "Seccomp", "Cpus_allowed", "Mems_allowed")
_LIMITS = ("limits", "cgroup", "oom_score_adj", "timerslack_ns")

Circumstances = tuple[object, ...]


def circumstances(command: Sequence[str]) -> Circumstances:
    """Equal for two processes that a `command` would find the same around them."""
    namespaces = tuple(sorted((one.name, str(one.readlink())) for one in (_OWN / "ns").iterdir()))
    status = (_OWN / "status").read_text().splitlines()
    return (
        tuple(command),
        tuple(sorted(module_environment().items())),
        os.getpid(),
        str((_OWN / "cwd").readlink()),  # its name alone: it may lie on what hangs
        namespaces,
        tuple(line for line in status if line.startswith(_INHERITED)),
        tuple(_text(name) for name in _LIMITS),
        (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)),
    )


def _text(name: str) -> str:
    try:
        return (_OWN / name).read_text()
    except OSError:
        return ""
