"""`leadline watch` on directories of this host: who uses them, bad input, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from leadline.tracing.sources.bpf import unavailable
from mount_loads import load
from support import Command, command_line

traced = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))


@traced
def test_a_known_load_is_named_with_its_process(leadline: Command, tmp_path: Path) -> None:
    with load("metadata", tmp_path) as program:
        done = leadline("watch", str(tmp_path), "--for", "2s", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    mine = next(row for row in found["processes"] if row["pid"] == program.pid)
    assert mine["work"]["metadata"] > 0
    assert "metadata" in [cause["rule"] for cause in found["load"]]


def test_without_the_tracer_the_report_says_that_calls_were_not_seen(
    leadline: Command, tmp_path: Path
) -> None:
    with load("small_writes", tmp_path) as program:
        done = leadline("watch", str(tmp_path), "--for", "1s", "--no-bpf", "--json")
    found = json.loads(done.stdout)
    mine = next(row for row in found["processes"] if row["pid"] == program.pid)
    assert mine["everywhere"]
    assert mine["work"]["bytes_written"] > 0
    assert "not to be used" in found["not_seen"]["calls"]
    assert found["load"] == []


def test_nothing_is_written_where_one_looks_on(leadline: Command, tmp_path: Path) -> None:
    before = tmp_path.stat().st_mtime_ns
    assert leadline("watch", str(tmp_path), "--for", "1s").returncode == 0
    assert list(tmp_path.iterdir()) == []
    assert tmp_path.stat().st_mtime_ns == before


def test_an_interrupt_ends_it_early_with_what_was_seen(tmp_path: Path) -> None:
    with (
        load("small_writes", tmp_path),
        subprocess.Popen(
            command_line("watch", str(tmp_path), "--for", "10m"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as watching,
    ):
        while not Path(f"/proc/{watching.pid}/task/{watching.pid}/children").read_text().split():
            assert watching.poll() is None
        os.kill(watching.pid, signal.SIGINT)
        output, errors = watching.communicate(timeout=60)
    # 130: it was interrupted before it had begun to look on, and so has seen nothing to print.
    assert watching.returncode in (0, 130), errors
    if watching.returncode == 0:
        assert "watched for" in output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("/nowhere/at/all",), "No such file"),
        (("/tmp", "--for", "soon"), "is not a time"),
        (("/tmp", "--for", "10ms"), "from 1 second"),
        (("/tmp", "--for", "3d"), "from 1 second"),
    ],
)
def test_bad_input_is_refused_with_what_would_be_right(
    leadline: Command, words: tuple[str, ...], expected: str
) -> None:
    done = leadline("watch", *words)
    assert done.returncode == 2
    assert expected in done.stderr
