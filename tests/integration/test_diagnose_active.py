"""`leadline diagnose --active`: the experiment is shown, asked for, made, and says what it speaks for."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import slow_fuse
from leadline.store.reader import open_result
from slow_fuse import SlowMount
from support import Command, command_line, show

pytestmark = pytest.mark.processors  # the experiment asks whether processors are to spare

STUDY = """
format: leadline.study/1
blocks: 2
limits: {reserve: 1M}
works:
  alone: {rw: randread, bs: 4k, size: 4M, engine: psync, direct: false, time_based: true, runtime: 1s}
"""
DELAY_MS = 40
ATTEMPTS = 25
SPARE = 0.65  # below the share of processors at which the cause is not considered (0.7, load.yaml)


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlowMount]:
    if (reason := slow_fuse.missing()) is not None:
        pytest.skip(reason)
    with slow_fuse.mounted(slow_fuse.build(), tmp_path_factory.mktemp("active")) as mount:
        yield mount


@pytest.fixture
def slow(mounted: SlowMount) -> SlowMount:
    """Each read takes 40 ms, and as many as are asked for at once."""
    mounted.rules(read_ms=DELAY_MS)
    return mounted


@pytest.fixture(scope="module")
def result(mounted: SlowMount, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a work that has one read in flight, on a host with processors to spare: these must not bound it."""
    mounted.rules(read_ms=DELAY_MS)
    for _ in range(ATTEMPTS):
        out = measured(mounted, tmp_path_factory.mktemp("result"))
        busy = [trial.cpu_busy_share for trial in open_result(out).trials()]
        if all(share is not None and share < SPARE for share in busy):
            return out
    pytest.fail(f"other processes kept this host busy in each of {ATTEMPTS} runs: {busy} at last")


def measured(mounted: SlowMount, place: Path) -> Path:
    study, out = place / "study.yaml", place / "out"
    study.write_text(STUDY)
    words = command_line("run", str(study), "--target", f"slow={mounted.path}", "-o", str(out), "--quiet")
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, 3), done.stderr  # 3: a loaded machine may make a cell INVALID
    return out


def active(leadline: Command, result: Path, tmp_path: Path) -> str:
    words = ("diagnose", str(result), "--cell", "alone", "--active", "--yes", "-o", str(tmp_path / "e"))
    done = leadline(*words, timeout=180)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_twice_as_many_at_once_are_twice_as_fast_where_nothing_is_full(
    leadline: Command, slow: SlowMount, result: Path, tmp_path: Path
) -> None:
    said = active(leadline, result, tmp_path)
    assert "2 jobs instead of 1" in said
    assert "For: latency_bound" in said
    assert "Against: latency_bound" not in said
    cells = {cell["id"] for cell in show(leadline, tmp_path / "e")["cells"]}
    assert cells == {"slow.as_it_was", "slow.changed"}
    assert not [path for path in slow.backing.iterdir() if not path.name.startswith(".")]


def test_where_one_server_does_all_the_experiment_speaks_against_it(
    leadline: Command, slow: SlowMount, result: Path, tmp_path: Path
) -> None:
    """The first run cannot see that: with one in flight there is nothing to wait for."""
    slow.rules(read_ms=DELAY_MS, servers=1)
    said = active(leadline, result, tmp_path)
    assert "Against: latency_bound" in said
    assert "For: latency_bound" not in said


def test_nothing_is_run_where_nobody_can_be_asked(leadline: Command, result: Path, tmp_path: Path) -> None:
    out = tmp_path / "e"
    done = leadline("diagnose", str(result), "--cell", "alone", "--active", "-o", str(out))
    assert done.returncode == 2
    assert "Experiment: slow.alone with" in done.stdout
    assert "add --yes" in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--active", "--yes", "--for", "1s"), "--for"),
        (("--yes",), "--yes is for an experiment"),
        (("--alternative", "r=rados://p"), "--alternative is for an experiment"),
        (("--active", "--live", "/"), "--live"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    leadline: Command, result: Path, words: tuple[str, ...], complaint: str
) -> None:
    done = leadline("diagnose", str(result), *words)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert json.dumps("experiment") not in done.stdout
