"""A Ctrl-C in the middle of a fork is not lost."""

from __future__ import annotations

import subprocess
import sys

from leadline.interpreter import module_environment

# The hook of a library at which the signal arrives; Python drops what is raised in one.
_PROGRAM = """
import os, signal, sys
from leadline.observe.hang_guard import in_fork
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    in_fork(lambda _: 1, "x")
except KeyboardInterrupt:
    print("interrupted")
print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""


def test_an_interrupt_amid_the_fork_is_heard() -> None:
    words = [sys.executable, "-P", "-c", _PROGRAM]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=60, env=module_environment()
    )
    assert done.stdout == "interrupted\nset()\n", done.stderr
