"""Results that somebody else may have written: nothing is executed or deleted by their words unasked."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest

from support import Command, command_line
from undoing import ID, MARK, crafted

NOBODY = 65534
EVIL = ["sh", "-c", "echo \x1b[2J"]


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """What a run left below its target."""
    path = tmp_path / "target" / f"leadline-{ID}"
    path.mkdir(parents=True)
    (path / ".leadline").write_bytes(MARK)
    return path


@pytest.fixture
def result(tmp_path: Path, left: Path) -> Path:
    """Its result, with a program to be run again."""
    place = {"target": "t", "directory": str(left), "location": None}
    cells = [{"job": {"command": EVIL}}, {"job": {"stages": [{"actions": [{"command": EVIL}]}]}}]
    return crafted(tmp_path / "r", {"t": str(left.parent)}, [place], cells=cells)


def test_a_result_that_others_may_have_written_removes_nothing_unasked(
    leadline: Command, result: Path, left: Path
) -> None:
    if os.geteuid() == 0:
        os.chown(result, NOBODY, NOBODY)
    else:
        result.chmod(0o777)
    refused = leadline("undo", str(result))
    assert refused.returncode == 2
    assert f"{result} {'is owned by' if os.geteuid() == 0 else 'may be written'}" in refused.stderr
    assert "--trust-result" in refused.stderr
    assert (left / ".leadline").exists()
    trusted = leadline("undo", str(result), "--trust-result")
    assert trusted.returncode == 0, trusted.stderr
    assert not left.exists()


def test_its_commands_are_named_before_they_are_run_again(leadline: Command, result: Path) -> None:
    result.chmod(0o777)
    done = leadline("run", "--resume", str(result))
    assert done.returncode == 2
    assert done.stderr.count(json.dumps(EVIL)) == 1
    assert "\x1b" not in done.stderr


def test_a_trace_that_others_may_have_written_is_not_replayed_unasked(
    leadline: Command, tmp_path: Path
) -> None:
    trace = crafted(tmp_path / "t", {}, [])
    manifest = json.loads((trace / "manifest.json").read_text())
    (trace / "manifest.json").write_text(json.dumps(manifest | {"kind": "trace"}))
    trace.chmod(0o777)
    done = leadline("replay", str(trace), "--target", f"t={tmp_path}")
    assert done.returncode == 2
    assert "--trust-result" in done.stderr


@pytest.mark.parametrize("answer", ["\n", "y\n"])
def test_a_person_is_asked_with_the_reason_and_the_commands(result: Path, left: Path, answer: str) -> None:
    result.chmod(0o777)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command_line("undo", str(result)), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        said = read_until(ours, b"[y/N]")
        os.write(ours, answer.encode())
        code = process.wait(60)
    finally:
        process.kill()
        os.close(ours)
    assert b"may be written by others" in said
    assert b"\x1b[2J" not in said
    assert json.dumps(EVIL).encode() in said
    assert (code, left.exists()) == ((0, False) if answer == "y\n" else (2, True))


def read_until(terminal: int, words: bytes, seconds: float = 60) -> bytes:
    said, end = b"", time.monotonic() + seconds
    while words not in said:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert ready, said
        said += os.read(terminal, 1 << 16)
    return said
