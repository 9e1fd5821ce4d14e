"""A proof that is killed, and one beside which others change settings: by the command, on real sysctls."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import Command
from tune_alone import BACKLOG as KEY
from tune_alone import DEADLINE_S, Alone, alone_in
from tune_alone import SLOW_START as OTHER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: a network of its own needs root")
STUDY = """
format: leadline.study/1
blocks: 40
limits: {reserve: 100M}
defaults: {size: 1M, runtime: 1s, time_based: true}
works:
  write: {rw: randwrite, bs: 4k}
"""


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Alone]:
    """A network of its own."""
    with alone_in(tmp_path) as found:
        yield found


@contextmanager
def proving(alone: Alone, base: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Both settings in all four states, until both have been in force at once; then it is killed."""
    with subprocess.Popen(alone.proof_of_both(base, STUDY), stdout=subprocess.DEVNULL) as running:
        try:
            until(lambda: running.poll() is not None or alone.both_in_force)
            assert running.poll() is None
            yield running
        finally:
            running.kill()
            running.wait()


def until(reached: Callable[[], object]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not reached():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.2)


def test_a_proof_that_is_killed_is_undone_by_revert_and_nobody_changes_settings_beside_it(
    alone: Alone, tmp_path: Path, leadline: Command
) -> None:
    before = alone.value(KEY), alone.value(OTHER)
    with proving(alone, tmp_path) as running:
        refused = alone.tune("apply", f"{KEY}=99", "--yes", code=2)
        assert f"process {running.pid} is changing settings" in refused
        (tmp_path / "second").mkdir()
        words = ("--target", f"here={tmp_path / 'second'}", "--with", f"{KEY}=99", "--quiet")
        second = alone.tune(
            "prove", str(tmp_path / "small.yaml"), *words, "--out", str(tmp_path / "s"), code=2
        )
        assert f"process {running.pid} is changing settings" in second
        assert not (tmp_path / "s").exists()

    assert len(alone.journal.state().outstanding()) == 2
    alone.tune("revert")
    assert (alone.value(KEY), alone.value(OTHER)) == before
    assert leadline("undo", str(tmp_path / "r")).returncode == 0
    assert not list((tmp_path / "data").iterdir())


def test_undo_puts_back_what_a_killed_proof_set_and_revert_then_finds_nothing(
    alone: Alone, tmp_path: Path
) -> None:
    before = alone.value(KEY), alone.value(OTHER)
    with proving(alone, tmp_path):
        pass
    done = subprocess.run(
        alone.plain("undo", str(tmp_path / "r")),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (alone.value(KEY), alone.value(OTHER)) == before
    assert not alone.journal.state().outstanding()
    assert "nothing to put back" in alone.tune("revert")
