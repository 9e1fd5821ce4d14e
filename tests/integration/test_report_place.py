"""Where a page goes: a terminal is told its path, a pipe gets the page."""

from __future__ import annotations

import os
import pty
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from trace_tables import tables

from leadline.tracing.store import create_trace_result
from support import Command, command_line


@pytest.fixture
def result(tmp_path: Path) -> Path:
    create_trace_result(tmp_path / "r", {"t0001": tables()}, title="tar", details={}, now_ns=lambda: 0)
    return tmp_path / "r"


def on_terminal(*words: str) -> tuple[int, str]:
    """Exit code and output of a command whose standard output is a terminal."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", 0) as terminal:
        process = subprocess.Popen(command_line(*words), stdout=theirs, stderr=theirs)
        os.close(theirs)
        printed = b""
        with suppress(OSError):  # EIO, once nobody has the other end any more
            while part := terminal.read(1 << 16):
                printed += part
        return process.wait(60), printed.decode()


def test_a_page_is_written_next_to_the_result_and_not_on_a_terminal(result: Path) -> None:
    code, printed = on_terminal("report", str(result))
    assert (code, printed) == (0, f"report: {result}/report.html\r\n")
    assert (result / "report.html").read_text().startswith("<!doctype html>")
    assert on_terminal("show", str(result))[0] == 0  # the result is whole, as before


def test_other_forms_are_printed_on_a_terminal_and_so_is_what_is_asked_for(result: Path) -> None:
    for words in (("--format", "md"), ("-o", "-")):
        code, printed = on_terminal("report", str(result), *words)
        assert code == 0
        assert "tar" in printed
    assert not (result / "report.html").exists()


def test_a_pipe_gets_the_page(leadline: Command, result: Path) -> None:
    done = leadline("report", str(result))
    assert done.stdout.startswith("<!doctype html>")
    assert not (result / "report.html").exists()
