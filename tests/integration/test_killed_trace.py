"""A trace whose leadline is killed: nothing that was recorded is lost, and nothing stays unnamed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.store.files import MARK
from leadline.store.making import RECOVERY, leftovers
from leadline.store.reader import open_result
from leadline.tracing.store import read_trace
from support import Command, command_line

SCRIPT = 'printf before > "$0/a"; touch "$0/began"; read line; printf afterwards > "$0/b"'
BEFORE, AFTERWARDS = len("before"), len("afterwards")
ATTACKER = 65534


class KilledTrace:
    """A traced command that waits for a line, while its leadline is dead."""

    def __init__(self, directory: Path, *, group: bool = False) -> None:
        self.place, self.directory = directory / "r", directory
        words = ("trace", "--via", "preload", "--segments", "-o", str(self.place), "--")
        self._process = subprocess.Popen(
            command_line(*words, "sh", "-c", SCRIPT, str(directory)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        end = time.monotonic() + 60
        while not (directory / "began").exists():
            assert time.monotonic() < end, "the command did not begin"
            time.sleep(0.02)
        (self.logs,) = directory.glob(".leadline-*")
        self.mark = json.loads((self.logs / RECOVERY).read_text())["mark"]
        assert leftovers(directory) == []
        (os.killpg if group else os.kill)(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """Let the command go on, and wait for its end."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def written_bytes(self) -> int:
        """Bytes that all its processes wrote, in the recovered result."""
        return sum(row.bytes_written for row in read_trace(open_result(self.place)).processes)

    def names(self) -> set[str]:
        return {path.name for path in self.directory.iterdir()}


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[KilledTrace]:
    trace = KilledTrace(tmp_path)
    try:
        yield trace
    finally:
        trace.end()


def test_what_the_command_does_before_and_after_the_kill_is_recovered(
    leadline: Command, killed: KilledTrace
) -> None:
    place = str(killed.place)
    other = leadline("trace", "-o", str(killed.directory / "other"), "--", "true")
    assert other.returncode == 0, other.stderr
    assert killed.logs.exists(), "the next result that was made there removed the records"
    assert f"leadline trace --recover {place}" in leadline("list", str(killed.directory)).stderr
    assert f"leadline trace --recover {place}" in leadline("show", place).stderr

    early = leadline("trace", "--recover", place, "--wait", "0s")
    assert early.returncode == 125
    assert "the traced command still runs: process " in early.stderr

    killed.end()
    done = leadline("trace", "--recover", place)
    assert done.returncode == 0, done.stderr
    assert killed.written_bytes() == BEFORE + AFTERWARDS
    assert killed.names() == {"a", "b", "began", "other", "r"}
    shown = leadline("show", place)
    assert shown.returncode == 0, shown.stderr
    assert "a trace that was not stored as it ended" in " ".join(shown.stdout.split())


def test_what_was_recorded_before_the_whole_group_was_killed_is_recovered(
    leadline: Command, tmp_path: Path
) -> None:
    killed = KilledTrace(tmp_path, group=True)
    done = leadline("trace", "--recover", str(killed.place))
    assert done.returncode == 0, done.stderr
    assert killed.written_bytes() == BEFORE
    assert killed.names() == {"a", "began", "r"}


def test_undo_removes_what_was_recorded(leadline: Command, killed: KilledTrace) -> None:
    killed.end()
    done = leadline("undo", str(killed.place))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["removed:", str(killed.logs)]
    assert killed.logs.name not in killed.names()
    again = leadline("trace", "--recover", str(killed.place))
    assert (again.returncode, f"left for {killed.place}" in again.stderr) == (125, True), again.stderr


def test_records_of_another_start_of_the_host_are_recovered_by_their_own_name_only(
    leadline: Command, killed: KilledTrace
) -> None:
    killed.end()
    (killed.logs / MARK).write_text(json.dumps({"format": "leadline.unfinished/1", "boot": "another"}))
    for verb in (("trace", "--recover"), ("undo",)):
        refused = leadline(*verb, str(killed.place))
        assert refused.returncode != 0
        assert f"leadline {' '.join(verb)} {killed.logs}" in " ".join(refused.stderr.split())
    done = leadline("trace", "--recover", str(killed.logs))
    assert done.returncode == 0, done.stderr
    assert killed.written_bytes() == BEFORE + AFTERWARDS
    assert killed.logs.name not in killed.names()


def test_a_result_that_is_there_by_now_is_left_and_so_are_the_records(
    leadline: Command, killed: KilledTrace
) -> None:
    killed.end()
    killed.place.mkdir()
    refused = leadline("trace", "--recover", str(killed.place))
    assert (refused.returncode, "exists already" in refused.stderr) == (125, True), refused.stderr
    assert killed.logs.exists()
    assert list(killed.place.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"format": "leadline.recovery/1", "place": "../r"}',
        b'{"format": "leadline.recovery/1", "place": "r"}',
        b'{"format": "leadline.recovery/1", "place": "r", "options": {"copies": 1000000000}}',
    ],
)
def test_a_damaged_recovery_file_is_a_clear_error(
    leadline: Command, killed: KilledTrace, content: bytes
) -> None:
    killed.end()
    (killed.logs / RECOVERY).write_bytes(content)
    refused = leadline("trace", "--recover", str(killed.place))
    assert refused.returncode == 125
    assert "damaged" in refused.stderr or "no trace that was killed is left" in refused.stderr
    assert "internal" not in refused.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")
def test_records_that_another_account_could_have_written_are_not_recovered(
    leadline: Command, killed: KilledTrace
) -> None:
    killed.end()
    os.chown(killed.logs / RECOVERY, ATTACKER, ATTACKER)
    assert leadline("trace", "--recover", str(killed.place)).returncode == 125
    assert not killed.place.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_records_that_do_not_fit_the_disk_are_kept_until_there_is_room(
    leadline: Command, tmp_path: Path
) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(tmp_path)], check=True)
    try:
        place, full = tmp_path / "r", tmp_path / "full"
        script = f'printf before > "$0/a"; head -c {1 << 27} /dev/zero > "$0/full" 2> /dev/null; true'
        words = ("trace", "--via", "preload", "-o", str(place), "--", "sh", "-c", script, str(tmp_path))
        refused = leadline(*words)
        assert refused.returncode == 125, refused.stderr
        assert f"leadline trace --recover {place}" in refused.stderr
        assert not place.exists()
        full.unlink()
        done = leadline("trace", "--recover", str(place))
        assert done.returncode == 0, done.stderr
        assert {path.name for path in tmp_path.iterdir()} == {"a", "r"}
        files = read_trace(open_result(place)).files.to_pylist()
        (row,) = [row for row in files if row["path"] == str(tmp_path / "a")]
        assert row["BYTES_WRITTEN"] == BEFORE
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def test_recover_takes_no_command(leadline: Command, tmp_path: Path) -> None:
    refused = leadline("trace", "--recover", str(tmp_path / "r"), "--", "true")
    assert (refused.returncode, "--recover takes no command" in refused.stderr) == (125, True)
