"""The journeys of two users, step by step on a fresh lab: each screen is kept in `target/journeys`, and what
it says is held against strace, wc, ffprobe and /proc."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

KEPT = Path(__file__).parents[2] / "target" / "journeys"
Step = Callable[..., subprocess.CompletedProcess[str]]


def first_screen(done: subprocess.CompletedProcess[str]) -> str:
    """What a user reads first, in one line: it has to fit on a screen."""
    assert len(done.stdout.rstrip().splitlines()) <= 60, done.stdout
    return " ".join(done.stdout.split())


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory of the journeys' own, with the homes that commands write to."""
    found = tmp_path_factory.mktemp("journeys")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(found / "state"))
        patch.setenv("XDG_CACHE_HOME", str(found / "cache"))
        patch.setenv("COLUMNS", "120")
        yield found


@pytest.fixture(scope="session")
def step(place: Path) -> Step:
    """Runs `leadline WORDS` in `cwd`, keeps what it printed as NAME; it has to end with one of `codes`."""
    KEPT.mkdir(parents=True, exist_ok=True)

    def run(
        name: str, *words: str, cwd: Path = place, codes: tuple[int, ...] = (0,), deadline_s: float = 900
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "leadline", *words]
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, timeout=deadline_s, check=False, env=os.environ
        )
        kept = f"$ leadline {' '.join(words)}\n{done.stdout}{done.stderr}exit code {done.returncode}\n"
        (KEPT / f"{name}.txt").write_text(kept)
        assert done.returncode in codes, kept
        return done

    return run


@pytest.fixture(scope="session")
def targets(step: Step, place: Path) -> Iterator[dict[str, Path]]:
    """Two places: this host's disk, and CephFS with three replicas on a lab."""
    lab, local = place / "lab", place / "local"
    local.mkdir()
    step("lab-up", "lab", "up", "--dir", str(lab), "--name", "journeys")
    try:
        status = json.loads(step("lab-status", "lab", "status", "--dir", str(lab), "--json").stdout)
        yield {"local": local, "ceph": Path(status["targets"]["replicated"])}
    finally:
        step("lab-down", "lab", "down", str(lab))
