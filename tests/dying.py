"""Runs `leadline` so that it dies at one event of its journal: `dying.py before|after NUMBER WORD...`.

SIGKILL comes just before this process would write its event of that number, or just after it is on disk.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

from leadline.cli.main import main
from leadline.store.journal import Journal

_DEADLINE_S = 120


def die(when: str, number: int, *words: str) -> int:
    """The exit code of `leadline WORDS`, which dies `before` or `after` that event, or has ended sooner."""
    command = [sys.executable, __file__, when, str(number), *words]
    return subprocess.run(command, capture_output=True, timeout=_DEADLINE_S, check=False).returncode


def arm(before: bool, number: int) -> None:
    """Let the process die at that event."""
    append, seen = Journal.append, 0

    def counted(self: Journal, event: str, **details: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == number and before:
            os.kill(os.getpid(), signal.SIGKILL)
        append(self, event, **details)
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    Journal.append = counted  # type: ignore[method-assign]


if __name__ == "__main__":
    when, at, *words = sys.argv[1:]
    arm(when == "before", int(at))
    sys.argv = ["leadline", *words]
    main()
