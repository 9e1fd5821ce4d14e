"""Running a command under a tracer: what of the command is passed on, and what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from trace_tables import tables

from leadline.errors import CommandError, UsageError
from leadline.tracing.sources.launch import (
    COPY_VARIABLE,
    Traced,
    given_environment,
    resolve,
    run_traced,
)
from leadline.tracing.sources.lives import SurvivorWait
from leadline.tracing.sources.preload import reason_not_to_preload
from leadline.tracing.sources.sources import check_space
from leadline.tracing.tables import TraceTables


class Recorder:
    """A tracer that only notes what it was told."""

    def __init__(self) -> None:
        self.followed: list[tuple[int, int]] = []

    def environment(self, copy: int, inherited: Mapping[str, str]) -> dict[str, str]:
        return {**inherited, "TRACED": str(copy)}

    def follow(self, pid: int, copy: int) -> None:
        os.kill(pid, 0)
        self.followed.append((pid, copy))

    def finish(self, started_unix_ns: int) -> TraceTables:
        return tables(source=str(started_unix_ns))


def run(*words: str, copies: int = 1) -> Traced:
    return run_traced(words, resolve(words[0]), Recorder(), copies, now_ns=lambda: 42)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_an_exit_code_is_handed_back() -> None:
    found = run(*python("raise SystemExit(7)"))
    assert (found.ends[0].end, found.ends[0].status) == ("exit", 7)


def test_a_death_by_signal_is_handed_back() -> None:
    found = run(*python("import os; os.kill(os.getpid(), 9)"))
    assert (found.ends[0].end, found.ends[0].status) == ("signal", signal.SIGKILL)


def test_every_copy_has_its_number_and_the_tracers_environment(tmp_path: Path) -> None:
    code = f"import os; open('{tmp_path}/' + os.environ['{COPY_VARIABLE}'], 'w').write(os.environ['TRACED'])"
    found = run(*python(code), copies=3)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"0": "0", "1": "1", "2": "2"}
    assert [end.copy for end in found.ends] == [0, 1, 2]


def test_a_copy_is_followed_before_it_becomes_the_command() -> None:
    source = Recorder()
    found = run_traced(["true"], resolve("true"), source, 2)
    assert source.followed == [(end.pid, end.copy) for end in found.ends]


def test_run_times_and_cpu_times_of_the_copies_go_with_the_tables() -> None:
    extra = run(*python("sum(range(5_000_000))"), copies=2).tables.extra  # many ticks of CPU time
    assert extra["wall_s"] >= max(copy["wall_s"] for copy in extra["copies"]) > 0
    assert all(copy["cpu_user_ns"] > 0 and copy["memory_bytes_max"] > 1 << 20 for copy in extra["copies"])


def test_the_command_gets_the_signals_that_python_ignores_by_itself() -> None:
    found = run("sh", "-c", "grep -q '^SigIgn:.*[13579bdf]...$' /proc/self/status")
    assert found.ends[0].status == 1  # SIGPIPE, the 13th bit, is not ignored


def test_no_signal_stays_blocked_in_the_command_or_in_us() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    found = run("sh", "-c", "grep -q '^SigBlk:\t0000000000000000$' /proc/self/status")
    assert found.ends[0].status == 0
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before


def test_a_script_without_a_first_line_is_run_by_the_shell(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("exit 5\n")
    script.chmod(0o755)
    assert run(str(script)).ends[0].status == 5


def test_a_command_that_is_not_there_gives_127(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as caught:
        resolve("no-such-command-anywhere")
    assert caught.value.exit_code == 127
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(CommandError) as caught:
        run(str(script))
    assert caught.value.exit_code == 127


def test_a_command_that_is_not_executable_gives_126(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    for path in (tmp_path, tmp_path / "data"):
        with pytest.raises(CommandError) as caught:
            resolve(str(path))
        assert caught.value.exit_code == 126


def test_a_name_is_looked_for_along_the_path_in_its_order(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool").write_text("")
    (tmp_path / "b" / "tool").chmod(0o755)
    assert resolve("tool", [f"{tmp_path}/a", f"{tmp_path}/b"]) == tmp_path / "b" / "tool"


CLOSED_PATH = """
import os, sys
from leadline.errors import CommandError
from leadline.tracing.sources.launch import resolve
os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(resolve("true", [sys.argv[1], "/usr/bin"]))
try:
    resolve(f"{sys.argv[1]}/tool")
except CommandError as error:
    print(error.exit_code, error.message)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another account")
def test_a_directory_of_the_path_that_the_account_cannot_search_is_passed_over(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    done = subprocess.run(
        [*python(CLOSED_PATH), str(closed)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.splitlines() == [
        "/usr/bin/true",
        f"126 {closed}/tool cannot be reached: Permission denied",
    ], done.stderr


def leaving(tmp_path: Path, then: str) -> tuple[str, ...]:
    """A command that ends at once, and leaves one process that waits to be told, and then does something."""
    os.mkfifo(tmp_path / "go")
    return ("sh", "-c", f"(read word < '{tmp_path}/go'; {then}) >/dev/null 2>&1 &")


def test_what_a_command_leaves_running_is_waited_for_and_told(tmp_path: Path) -> None:
    asked: list[tuple[int, float]] = []

    def told(count: int, seconds: float) -> None:
        asked.append((count, seconds))
        (tmp_path / "go").write_text("go\n")

    words = leaving(tmp_path, f"echo done > '{tmp_path}/done'")
    found = run_traced(words, resolve("sh"), Recorder(), patience=SurvivorWait(60, told))
    assert asked == [(1, 60)]
    assert (tmp_path / "done").read_text() == "done\n"
    assert found.tables.warnings == ()


def test_what_still_runs_when_the_wait_ends_is_said(tmp_path: Path) -> None:
    found = run_traced(leaving(tmp_path, "true"), resolve("sh"), Recorder(), patience=SurvivorWait(0))
    (tmp_path / "go").write_text("go\n")
    assert [text.partition(":")[0] for text in found.tables.warnings] == [
        "1 process of the command still runs"
    ]


def test_a_signal_ends_the_wait_for_what_was_left(tmp_path: Path) -> None:
    def told(_count: int, _seconds: float) -> None:
        # To this thread, in which it is blocked and taken by the wait: other threads are the test runner's.
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    found = run_traced(leaving(tmp_path, "true"), resolve("sh"), Recorder(), patience=SurvivorWait(60, told))
    (tmp_path / "go").write_text("go\n")
    assert found.heard == (signal.SIGTERM,)
    assert len(found.tables.warnings) == 1


def test_a_trace_without_room_is_refused_before_the_command_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="MiB left"):
        check_space(tmp_path, 1 << 62)


@pytest.mark.parametrize(("given", "found"), [(b"A=1", False), (b"LC_CTYPE=C.UTF-8", True)])
def test_a_locale_that_python_added_is_not_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: bytes, found: bool
) -> None:
    (tmp_path / "environ").write_bytes(given + b"\0")
    monkeypatch.setenv("LC_CTYPE", "C.UTF-8")
    assert ("LC_CTYPE" in given_environment(tmp_path / "environ")) is found


def test_a_program_of_another_machine_is_refused_and_one_of_this_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library is for the machine that leadline was built for, whichever that is."""
    program = Path(os.path.realpath(sys.executable))
    assert reason_not_to_preload(program) is None
    for number, machine in ((0x3E, "x86_64"), (0xB7, "aarch64")):
        other = tmp_path / machine
        head = bytearray(program.read_bytes())
        head[18:20] = number.to_bytes(2, "little")
        other.write_bytes(head)
        for here in ("x86_64", "aarch64"):
            monkeypatch.setattr("platform.machine", lambda here=here: here)
            why = reason_not_to_preload(other)
            wanted = (
                None if here == machine else f"{other} is for {machine}: the tracer's library is for {here}"
            )
            assert why == wanted
