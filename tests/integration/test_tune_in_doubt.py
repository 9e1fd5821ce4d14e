"""A proof and a search that are killed, and whose setting then reads as before: it is put back once more.

What they asked for last may be done only after it was read, as by a monitor. Here a hand sets the old value.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.tuning.changing.journal import TuningJournal, state_directory
from tune_alone import DEADLINE_S, Alone, alone_in
from tune_alone import SLOW_START as KEY

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: a network of its own needs root"),
    pytest.mark.skipif(shutil.which("strace") is None, reason="NOT RUN: strace sees what is set"),
]
STUDY = """
format: leadline.study/1
limits: {reserve: 1M}
defaults: {size: 1M, runtime: 2s, time_based: true}
works:
  reads: {rw: randread, bs: 4k}
"""
VERBS = {
    "prove": ("--with", f"{KEY}=0", "--blocks", "4"),
    "search": ("--space", f"{KEY}=0|1", "--budget", "60s", "--tries", "1", "--blocks", "2"),
}


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Alone]:
    """A network of its own, and a journal that is not the host's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    with alone_in(tmp_path) as found:
        yield found


@pytest.mark.parametrize("verb", VERBS)
def test_what_was_killed_is_put_back_also_where_it_reads_as_before(
    alone: Alone, tmp_path: Path, verb: str
) -> None:
    journal = TuningJournal(state_directory(os.environ))
    before = alone.value(KEY)
    assert before == "1"
    kill_amid(alone, tmp_path, verb)
    (left,) = journal.state().outstanding()
    assert left.values == ("0",)
    status = subprocess.run(
        alone.plain("tune", "status"), capture_output=True, text=True, timeout=DEADLINE_S, check=True
    ).stdout
    assert f"{KEY} on this host: 1 -> 0; in force" in status
    alone.set(KEY, before)

    log = tmp_path / "calls"
    watched = ["strace", "-f", "-qq", "-e", "trace=openat", "-e", "signal=none", "-o", str(log)]
    done = subprocess.run(
        [*watched, *alone.plain("undo", str(tmp_path / "r"))],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    place = f'"/proc/sys/{KEY.replace(".", "/")}"'
    assert any("O_WRONLY" in line for line in log.read_text().splitlines() if place in line)
    assert alone.value(KEY) == before
    assert not journal.state().outstanding()


def kill_amid(alone: Alone, place: Path, verb: str) -> None:
    """Kill it while its setting is in force."""
    (place / "small.yaml").write_text(STUDY)
    (place / "data").mkdir()
    words = ("--target", f"here={place / 'data'}", "--out", str(place / "r"), "--seed", "1", "--quiet")
    line = alone.plain("tune", verb, str(place / "small.yaml"), *VERBS[verb], *words)
    with subprocess.Popen(line, stdout=subprocess.DEVNULL) as running:
        try:
            end = time.monotonic() + DEADLINE_S
            while running.poll() is None and alone.value(KEY) != "0":
                assert time.monotonic() < end, "waited in vain"
                time.sleep(0.1)
            assert running.poll() is None
        finally:
            running.kill()
