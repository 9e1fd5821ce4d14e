"""`leadline tune search` by the command, on a real sysctl in a network of its own: told, ended, undone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import command_line

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: a network of its own needs root")
DEADLINE_S = 120.0
KEY = "net.ipv4.tcp_slow_start_after_idle"
SPACE = (f"--space={KEY}=0|1",)
STUDY = """
format: leadline.study/1
limits: {reserve: 1M}
defaults: {size: 1M, runtime: RUNTIME, time_based: true}
works:
  reads: {rw: randread, bs: 4k}
"""


class Searching:
    """A network namespace with the sysctl, and searches in it."""

    def __init__(self, place: Path) -> None:
        self.net, self.target, self.out = place / "net", place / "target", place / "r"
        self.environment = {
            **os.environ,
            "XDG_STATE_HOME": str(place / "state"),
        }  # not the host's own journal
        self.target.mkdir()
        self.net.touch()
        subprocess.run(["unshare", f"--net={self.net}", "true"], check=True, timeout=20)

    def study(self, runtime: str = "100ms") -> str:
        """A file of a study with trials of this length."""
        file = self.net.with_name("study.yaml")
        file.write_text(STUDY.replace("RUNTIME", runtime))
        return str(file)

    def line(self, *words: str) -> list[str]:
        """A command there."""
        return ["nsenter", f"--net={self.net}", *command_line(*words)]

    def words(self, study: str, *more: str) -> tuple[str, ...]:
        """Of a search."""
        target = ("--target", f"here={self.target}", "--out", str(self.out), "--seed", "1")
        return ("tune", "search", study, *target, *more)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """To its end."""
        return subprocess.run(
            self.line(*words),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
            env=self.environment,
        )

    @property
    def value(self) -> str:
        """As the kernel has it there."""
        words = ["nsenter", f"--net={self.net}", "sysctl", "-n", KEY]
        return subprocess.run(words, capture_output=True, text=True, timeout=20, check=True).stdout.strip()


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Searching]:
    """A network of its own."""
    found = Searching(tmp_path)
    yield found
    subprocess.run(["umount", str(found.net)], check=True, timeout=20)


def _until(reached: Callable[[], object]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not reached():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_a_search_tells_every_proposal_and_leaves_all_as_it_was(there: Searching) -> None:
    before = there.value
    done = there.run(
        *there.words(
            there.study(), *SPACE, "--budget", "60s", "--compare-random", "--tries", "1", "--blocks", "2"
        )
    )
    assert done.returncode == 0, done.stderr
    assert there.value == before
    assert "The search measured 1 proposal" in done.stdout
    assert "and random search 1 proposal" in done.stdout
    shown = json.loads(there.run("show", str(there.out), "--json").stdout)
    said = shown["search"]
    assert {one["values"][KEY] for one in said["proposals"]} == {"0", "1"} - {before}
    assert [one["side"] for one in said["proposals"]].count("random") == 1
    assert said["default"] == {KEY: before}
    if said["seemed_best"] is not None:  # a sysctl of TCP does nothing for a local disk: chance decides
        proof = json.loads(there.run("show", str(there.out / "proof"), "--json").stdout)
        assert {one["target"] for one in proof["cells"]} >= {"without", "with"}
        refused = there.run("tune", "prove", "--resume", str(there.out / "proof"))
        assert "tune search --resume" in refused.stderr
    assert there.run("undo", str(there.out)).stdout == "nothing to undo\n"


@pytest.mark.parametrize(
    ("how", "back"),
    [
        (signal.SIGKILL, ("undo", "OUT")),
        (signal.SIGKILL, ("tune", "revert", "--state", "JOURNAL")),
        (signal.SIGKILL, ()),
        (signal.SIGINT, ()),
    ],
)
def test_a_search_that_is_ended_amid_a_proposal_is_put_back_and_goes_on(
    there: Searching, how: signal.Signals, back: tuple[str, ...]
) -> None:
    before = there.value
    places = {"OUT": str(there.out), "JOURNAL": str(there.out.with_name("journal"))}
    limits = ("--budget", "60s", "--tries", "1", "--blocks", "2", "--state", places["JOURNAL"])
    words = there.words(there.study("2s"), *SPACE, *limits)
    with subprocess.Popen(
        there.line(*words),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=there.environment,
    ) as process:
        _until(lambda: there.value != before)
        process.send_signal(how)
        _, errors = process.communicate(timeout=DEADLINE_S)
    if how == signal.SIGINT:
        assert process.returncode == 130, errors
        assert f"go on with: leadline tune search --resume {there.out}" in errors
    else:
        assert there.value != before
    if back:
        done = there.run(*(places.get(word, word) for word in back))
        assert done.returncode == 0, done.stderr
    assert (there.value == before) == bool(back or how == signal.SIGINT)
    tried = json.loads((there.out / "proposals.json").read_text())["proposals"]
    done = there.run("tune", "search", "--resume", str(there.out))
    assert done.returncode == 0, done.stderr
    assert there.value == before
    stored = json.loads((there.out / "proposals.json").read_text())["proposals"]
    assert [one["values"] for one in stored] == [one["values"] for one in tried]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--space", "no_such_setting=1|2", "--budget", "60s"), "there is no setting no_such_setting"),
        (("--space", f"{KEY}=0|9", "--budget", "60s"), "takes no '9'"),
        (("--space", "net.ipv4.tcp_max_syn_backlog=0..5", "--budget", "60s"), "takes no 0"),
        (("--space", f"{KEY}=1", "--budget", "60s"), "one value only"),
        (("--space", "mitigations=auto|off", "--budget", "60s"), "mitigations"),
        ((*SPACE, "--budget", "2s"), "is too short"),
        ((*SPACE, "--budget", "60s", "--bound", "p98=1ms"), "no latency is called"),
        ((*SPACE,), "a study, a space and a budget"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_anything_is_made(
    there: Searching, words: tuple[str, ...], why: str
) -> None:
    before = there.value
    done = there.run(*there.words(there.study(), *words))
    assert done.returncode == 2, done.stderr
    assert why in done.stderr
    assert there.value == before
    assert not there.out.exists()
    assert not list(there.target.iterdir())
