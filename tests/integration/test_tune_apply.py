"""`leadline tune apply` and its kin on real sysctls, in a network of their own, by the command."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from printed_commands import told, wrong

from leadline.tuning.changing import holding
from leadline.tuning.changing.journal import TuningJournal
from support import command_line
from tune_alone import DEADLINE_S, KEY, OTHER, Alone, alone_in

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: a network of its own needs root")


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Alone]:
    """A network of its own."""
    with alone_in(tmp_path) as found:
        yield found
        for run in found.journal.state().runs.values():
            if holding.is_held(run):
                os.kill(run.holder_pid, signal.SIGKILL)


def _until(reached: Callable[[], object]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not reached():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_a_plan_is_shown_applied_seen_and_put_back(alone: Alone, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(f"settings:\n  {KEY}: 1234\n  {OTHER}: {{value: 1, on: host}}\n")
    before = alone.value(KEY), alone.value(OTHER)

    assert f"would change: {KEY} on this host: {before[0]} -> 1234" in alone.tune(
        "apply", str(plan), "--dry-run"
    )
    assert (alone.value(KEY), alone.value(OTHER)) == before
    assert not alone.state.exists()
    alone.tune("apply", str(plan), "--yes")
    assert (alone.value(KEY), alone.value(OTHER)) == ("1234", "1")
    states = {row["setting"]: row["state"] for row in json.loads(alone.tune("status", "--json"))["changes"]}
    assert states == {KEY: "in force", OTHER: "in force"}
    assert f"put back: {KEY} on this host: {before[0]}" in alone.tune("revert")
    assert (alone.value(KEY), alone.value(OTHER)) == before
    assert "nothing to put back" in alone.tune("revert")


def test_nothing_is_changed_without_a_word_or_for_a_plan_that_is_half_wrong(
    alone: Alone, tmp_path: Path
) -> None:
    before = alone.value(KEY)
    plan = tmp_path / "plan.yaml"
    plan.write_text(f"settings:\n  {KEY}: 1234\n  {OTHER}: 7\n")

    assert "without --yes" in alone.tune("apply", f"{KEY}=1234", code=2)
    assert f"plan.yaml, line 3: {OTHER} on this host" in alone.tune("apply", str(plan), "--yes", code=2)
    assert "there is no setting" in alone.tune("apply", "nonesuch=1", f"{KEY}=1234", "--yes", code=2)
    assert alone.value(KEY) == before


def test_what_another_has_set_since_is_left_and_named(alone: Alone) -> None:
    before = alone.value(KEY)
    alone.tune("apply", f"{KEY}=1234", "--yes")
    alone.set(KEY, "777")

    assert "not in force: it is 777 now" in alone.tune("status")
    assert "somebody else has set it to 777 since" in alone.tune("revert", code=1)
    assert alone.value(KEY) == "777"
    alone.tune("revert", "--force")
    assert alone.value(KEY) == before


def test_a_command_that_is_killed_in_the_midst_is_undone_by_revert(alone: Alone) -> None:
    """Killed as soon as the journal says that something comes."""
    before = alone.value(KEY), alone.value(OTHER)
    with subprocess.Popen(
        alone.line("apply", f"{KEY}=1234", f"{OTHER}=1", "--yes"), stdout=subprocess.DEVNULL
    ) as running:
        _until(lambda: running.poll() is not None or alone.journal.state().outstanding())
        running.kill()
        running.wait()

    assert alone.journal.state().outstanding()
    alone.tune("revert")
    assert (alone.value(KEY), alone.value(OTHER)) == before


def test_what_nobody_confirms_is_put_back_by_a_process_that_outlives_the_command(alone: Alone) -> None:
    before = alone.value(KEY)
    printed = alone.tune("apply", f"{KEY}=1234", "--yes", "--confirm-within", "1s")

    assert "unless: leadline tune confirm" in printed
    _until(lambda: alone.value(KEY) == before)
    _until(lambda: not alone.journal.state().outstanding())
    assert "nobody confirmed it in time" in alone.tune("status")
    assert "nothing waits" in alone.tune("confirm", code=2)


def test_what_is_confirmed_stays_and_the_process_ends(alone: Alone) -> None:
    alone.tune("apply", f"{KEY}=1234", "--yes", "--confirm-within", "30m")
    (run,) = alone.journal.state().runs.values()
    assert holding.is_held(run)
    assert "is put back in" in alone.tune("status")

    assert "kept: 1 changes" in alone.tune("confirm")
    _until(lambda: not holding.is_held(run))
    assert alone.value(KEY) == "1234"
    alone.tune("revert")
    assert alone.value(KEY) != "1234"


def test_after_the_end_of_everything_revert_puts_back_what_nobody_does(alone: Alone) -> None:
    before = alone.value(KEY)
    alone.tune("apply", f"{KEY}=1234", "--yes", "--confirm-within", "30m")
    (run,) = alone.journal.state().runs.values()
    os.kill(run.holder_pid, signal.SIGKILL)
    _until(lambda: not holding.is_held(run))

    assert "what was to do it has ended" in alone.tune("status")
    alone.tune("revert")
    assert alone.value(KEY) == before


@pytest.fixture
def filled(alone: Alone) -> Iterator[Callable[[], None]]:
    """Fills the journal's disk, a small one of its own."""
    alone.state.mkdir(mode=0o700)
    words = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "none", str(alone.state)]
    subprocess.run(words, check=True, timeout=20)

    def fill() -> None:
        with (alone.state / "others").open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 512)

    yield fill
    subprocess.run(["umount", "--lazy", str(alone.state)], check=True, timeout=20)


def test_a_disk_that_is_full_keeps_neither_the_guard_nor_revert_from_putting_back(
    alone: Alone, filled: Callable[[], None]
) -> None:
    """So many changes that what is said of them when they are put back needs a page of its own."""
    switches = ("sack", "timestamps", "window_scaling", "fastopen", "slow_start_after_idle")
    changes = {KEY: "1234", OTHER: "1", **{f"net.ipv4.tcp_{name}": "0" for name in switches}}
    before = [alone.value(key) for key in changes]
    words = [f"{key}={value}" for key, value in changes.items()]

    alone.tune("apply", *words, "--yes", "--confirm-within", "2s")
    filled()
    _until(lambda: [alone.value(key) for key in changes] == before)
    _until(lambda: not alone.journal.state().outstanding())
    (alone.state / "others").unlink()
    alone.tune("apply", *words, "--yes")
    filled()
    assert alone.tune("revert").count("put back: ") == len(changes)
    assert [alone.value(key) for key in changes] == before


def _printed(words: Sequence[str], alone: Alone, code: int = 0) -> list[str]:
    """The commands that it prints, each tried by the parser of its verb."""
    done = subprocess.run(
        alone.entered(*command_line(*words)), capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    commands = list(told(done.stdout + done.stderr))
    assert [one for one in commands if wrong(one)] == []
    return commands


def test_every_command_that_is_printed_on_the_way_back_is_the_one_that_is_needed(
    alone: Alone, tmp_path: Path
) -> None:
    """With names that a shell would split, and from whichever directory."""
    own = tmp_path / "its own"
    own.mkdir()
    conf = own / "a ceph.conf"
    conf.touch()
    before = alone.value(KEY)
    where = ("--conf", str(conf), "--id", "tuner", "--state", str(own / "state"))

    done = _printed(
        ("tune", "apply", f"{KEY}=1234", "--yes", "--restart", "--confirm-within", "30m", *where), alone
    )
    assert [one.split()[:2] for one in done] == [["tune", "confirm"], ["tune", "revert"]]
    assert {words for one in done for words in shlex.split(one)} >= {*where, "--restart"}
    assert _printed(("tune", "status", *where), alone) == [done[0]]
    _printed(shlex.split(done[0]), alone)
    assert _printed(shlex.split(done[0]), alone, code=2) == [done[0].replace("confirm", "status")]
    with TuningJournal(own / "state").locked():
        assert _printed(("tune", "apply", f"{OTHER}=1", "--yes", *where), alone, code=2) == [
            done[1].replace(" --restart", "")
        ]
    assert alone.value(KEY) == "1234"
    _printed(shlex.split(done[1]), alone)
    assert alone.value(KEY) == before


def test_two_at_once_are_refused(alone: Alone) -> None:
    with alone.journal.locked():
        assert f"process {os.getpid()} is changing settings" in alone.tune(
            "apply", f"{KEY}=1234", "--yes", code=2
        )
    assert alone.value(KEY) != "1234"
