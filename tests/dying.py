"""Runs `leadline` so that it dies at one event of its journal: `dying.py before|after NUMBER WORD...`.

SIGKILL comes just before this process would write its event of that number, or just after it is on disk.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

Death = tuple[str, int]  # "before" or "after", and the event's number


def dying_line(dies: Death, *words: str) -> list[str]:
    """Arguments that run `leadline WORDS` as a process that dies so, or has ended sooner."""
    when, number = dies
    return [sys.executable, __file__, when, str(number), *words]


def arm(when: str, number: int) -> None:
    """Let this process die at that event."""
    from leadline.store.journal import Journal

    append, seen = Journal.append, 0

    def counted(self: Journal, event: str, **details: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == number and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        append(self, event, **details)
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    Journal.append = counted  # type: ignore[method-assign]


if __name__ == "__main__":
    when, at, *words = sys.argv[1:]
    arm(when, int(at))
    from leadline.cli.main import main

    sys.argv = ["leadline", *words]
    main()
