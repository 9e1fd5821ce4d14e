"""`leadline watch` on directories of this host: who uses them, how much, bad input, and Ctrl-C."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from leadline.tracing.sources.bpf import unavailable
from leadline.tracing.sources.waits import call_of
from mount_loads import load
from support import Command, command_line

traced = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))


# Opens its file, then writes a block when it is told to, as often as it is told, and says how much that was.
_WRITER = """
import os, sys
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
print('open', flush=True)
for line in sys.stdin:
    total = sum(os.write(file, b'x' * int(sys.argv[2])) for _ in range(int(line)))
    print(total, flush=True)
"""


@contextlib.contextmanager
def writer(path: Path, block_bytes: int, *before: str) -> Iterator[subprocess.Popen[str]]:
    """A program with `path` open."""
    command = [*before, sys.executable, "-c", _WRITER, str(path), str(block_bytes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        try:
            assert program.stdout.readline() == "open\n"
            yield program
        finally:
            program.stdin.close()
            program.wait(60)


def write(program: subprocess.Popen[str], blocks: int) -> int:
    """Have it write; how many bytes it says that it wrote."""
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(f"{blocks}\n")
    program.stdin.flush()
    return int(program.stdout.readline())


@dataclass
class Followed:
    """What `leadline watch` printed."""

    text: str = ""

    @property
    def json(self) -> dict[str, Any]:
        """As values."""
        return dict(json.loads(self.text))


@contextlib.contextmanager
def following(path: Path, *options: str) -> Iterator[Followed]:
    """`leadline watch` of `path`, from when it has met every process that was there; ended by Ctrl-C."""
    found, command = Followed(), command_line("watch", str(path), "--for", "10m", *options)
    told, terminal = os.openpty()  # on a terminal it says how many processes it has met
    with os.fdopen(told, "rb", 0) as progress:
        with (
            os.fdopen(terminal, "wb", 0) as errors,
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
            ) as program,
        ):
            said = b""
            while b"processes seen" not in said:
                said += progress.read(4096)
            yield found
            os.kill(program.pid, signal.SIGINT)
            found.text, _ = program.communicate(timeout=60)
        assert program.returncode == 0, said


def wchar(pid: int) -> int:
    """Bytes that a process wrote by calls, as the kernel counts them."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two directories of one file system."""
    for name in ("below/deep", "belowother"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def file_row(found: dict[str, Any], path: Path) -> dict[str, Any]:
    (row,) = (row for row in found["files"] if row["path"] == str(path))
    return dict(row)


@traced
def test_files_and_rates_are_those_below_the_path_and_others_stand_apart(folder: Path) -> None:
    below, other = folder / "below" / "deep" / "a", folder / "belowother" / "b"
    with (
        writer(below, 65_536) as one,
        writer(other, 4096) as two,
        following(folder / "below", "--json") as followed,
    ):
        before = wchar(one.pid)
        mine, theirs = write(one, 100), write(two, 30)
        assert wchar(one.pid) - before - len(f"{mine}\n") == mine == 6_553_600
    found = followed.json
    row = file_row(found, below)
    assert (row["work"]["bytes_written"], row["work"]["writes"]) == (mine, 100)
    assert row["highest_byte"] == mine
    assert row["pids"] == [one.pid]
    assert [file["path"] for file in found["files"]] == [str(below)]
    assert [process["pid"] for process in found["processes"]] == [one.pid]
    followed_s = found["processes"][0]["followed_s"]
    assert found["figures"]["written_bytes_per_s"] * followed_s == pytest.approx(mine)
    assert row["per_s"]["bytes_written"] * followed_s == pytest.approx(mine)
    (stranger,) = (process for process in found["rest"]["processes"] if process["pid"] == two.pid)
    assert stranger["rest"]["work"]["bytes_written"] == theirs == 122_880
    assert stranger["work"]["bytes_written"] == 0


@traced
def test_the_screen_has_the_files_below_the_path_and_not_those_beside_it(folder: Path) -> None:
    with (
        writer(folder / "below/deep/a", 65_536) as one,
        writer(folder / "belowother/b", 65_536) as two,
        following(folder / "below") as followed,
    ):
        write(one, 10)
        write(two, 10)
    above, _, below = followed.text.partition("Who uses")
    who, _, files = below.partition("Files below")
    assert f"What goes on below {folder / 'below'}" in above
    assert re.search(rf"^\S+ +\S+ +pid {one.pid} .* 64 KiB ", who, re.MULTILINE)
    assert re.search(rf"^deep/a +{one.pid} .* 640 KiB$", files, re.MULTILINE)
    assert f"pid {two.pid} " not in who
    assert "leadline" not in who.partition("\n")[2]
    # Whom it names there are the busiest of the whole file system, which others of this machine may be.
    assert re.search(r"written [\d.]+ .iB/s, .* most by \S+ \(\d+\) ", files.partition("rest of")[2])


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root, and unshare of util-linux"
)
@pytest.mark.parametrize("options", [pytest.param((), marks=traced), ("--no-bpf",)], ids=["tracer", "proc"])
def test_a_process_of_another_mount_namespace_is_met_by_where_its_file_lies(
    folder: Path, options: tuple[str, ...]
) -> None:
    """As in a container: there the directory has another name, that of one beside it here."""
    inside = folder / "belowother"
    enter = f"mount --bind '{folder}/below' '{inside}' && exec \"$@\""
    with (
        writer(inside / "deep" / "a", 4096, "unshare", "--mount", "sh", "-c", enter, "sh") as one,
        following(folder / "below", "--json", *options) as followed,
    ):
        written = write(one, 50)
    found = followed.json
    assert written == 204_800
    assert one.pid in [process["pid"] for process in found["processes"]]
    row = file_row(found, folder / "below" / "deep" / "a")
    assert written == (row["advanced_bytes"] if options else row["work"]["bytes_written"])


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


_LOCKS = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX)"


@pytest.mark.parametrize("options", [(), ("--no-bpf",)], ids=["bpf", "proc"])
def test_a_call_that_does_not_end_is_named_with_its_file(folder: Path, options: tuple[str, ...]) -> None:
    below = folder / "below" / "deep" / "a"
    with below.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = subprocess.Popen([sys.executable, "-c", _LOCKS, str(below)])
        try:
            shown = Path(f"/proc/{waiting.pid}/syscall")
            while (call_of(shown.read_text()) or ("",))[0] != "flock":
                assert waiting.poll() is None
            command = command_line("watch", str(folder / "below"), "--for", "5s", "--json", *options)
            found = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)
        finally:
            fcntl.flock(held, fcntl.LOCK_UN)
            waiting.wait(60)
    assert found["figures"]["longest_wait"].endswith(f"(pid {waiting.pid}) in flock of deep/a")
    assert found["limit"][0]["rule"] == "stands"
    assert "in flock of deep/a, for " in found["limit"][0]["evidence"]
    if not options and unavailable() is None:
        row = next(one for one in found["processes"] if one["pid"] == waiting.pid)
        assert row["per_s"]["metadata_s"] > 0.6
