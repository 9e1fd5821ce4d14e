"""The tests' own server of commands."""

from __future__ import annotations

import os
import signal

from forking import Forks


def test_ctrl_c_does_not_end_the_server_with_which_labs_are_taken_down() -> None:
    forks = Forks()
    try:
        assert forks.command(["--version"], os.environ, 60).returncode == 0
        os.kill(forks._process.pid, signal.SIGINT)
        shown = forks.command(["lab", "down", "--help"], os.environ, 60)
        assert shown.stdout.startswith("Usage")
        assert forks._process.poll() is None
    finally:
        forks.close()
