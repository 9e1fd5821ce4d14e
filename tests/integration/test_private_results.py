"""Command lines may hold secrets: what a trace of one leaves is its owner's alone, also while it runs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from measured import assert_measured
from support import Command, command_line


def modes(directory: Path) -> Iterator[tuple[str, int]]:
    for path in (directory, *directory.rglob("*")):
        wanted = 0o700 if path.is_dir() else 0o600
        if path.stat().st_mode & 0o777 != wanted:
            yield str(path.relative_to(directory)), path.stat().st_mode & 0o777


def test_files_of_a_trace_are_for_their_owner_alone(leadline: Command, tmp_path: Path) -> None:
    out, gate = tmp_path / "r", tmp_path / "gate"
    script = 'cat /etc/hostname; : > "$1.began"; while [ ! -e "$1" ]; do sleep 0.05; done; cat /etc/hostname'
    words = [
        "trace",
        "--via",
        "preload",
        "--segments",
        "-o",
        str(out),
        "--",
        "sh",
        "-c",
        script,
        "hush",
        str(gate),
    ]
    with subprocess.Popen(command_line(*words), stdout=subprocess.DEVNULL, umask=0o022) as process:
        end = time.monotonic() + 30
        while not Path(f"{gate}.began").exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        (logs,) = tmp_path.glob(".leadline-*")
        while_it_ran, found = list(modes(logs)), [path.name for path in logs.rglob("*") if path.is_file()]
        gate.touch()
    assert process.returncode == 0
    assert found
    assert while_it_ran == []
    assert (out / "processes" / "t0001.parquet").exists()
    assert list(modes(out)) == []
    assert leadline("import", "result", str(out), "--into", str(tmp_path / "all")).returncode == 0
    assert list(modes(tmp_path / "all" / "r")) == []


def test_a_study_of_a_program_is_for_its_owner_alone(leadline: Command, target: Path, tmp_path: Path) -> None:
    study = tmp_path / "s.yaml"
    study.write_text(
        "format: leadline.study/1\nblocks: 1\nlimits: {reserve: 1M}\n"
        "works:\n  prog: {command: [cat, /etc/hostname, --, /etc/hostname]}\n"
    )
    out = tmp_path / "r"
    done = leadline("run", str(study), "--target", f"a={target}", "--out", str(out))
    assert_measured(done, out)
    assert list(out.rglob("*.out"))
    assert list(modes(out)) == []
