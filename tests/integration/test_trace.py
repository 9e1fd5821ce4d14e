"""`leadline trace` as its users run it: the command stays itself, whatever it does, and is recorded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import Command, command_line

MIB = 1 << 20


@pytest.fixture(params=["preload", "bpf"])
def via(request: pytest.FixtureRequest) -> str:
    """Each tracer, where it works here."""
    if request.param == "bpf":
        from leadline.tracing.sources.bpf import unavailable

        why_not = unavailable()
        if why_not:
            pytest.skip(f"bpf cannot be used here: {why_not}")
    return str(request.param)


@pytest.fixture
def trace(leadline: Command, tmp_path: Path) -> Callable[..., tuple[Any, dict[str, Any]]]:
    """Traces a command; what came of it, and what `show --json` says of the trace."""

    def run(via: str, *words: str, options: tuple[str, ...] = (), **more: Any) -> tuple[Any, dict[str, Any]]:
        out = tmp_path / "r"
        done = leadline("trace", "--via", via, "-o", str(out), *options, "--", *words, **more)
        if not out.is_dir():
            return done, {}
        return done, json.loads(leadline("show", str(out), "--json").stdout)

    return run


def opened(path: Path) -> str:
    """Python that opens a file as `f`."""
    return f"import os; f=os.open('{path}', os.O_CREAT|os.O_RDWR); "


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", code)


def test_streams_are_the_commands_own(via: str, trace: Any) -> None:
    done, found = trace(via, "sh", "-c", "cat; echo oops >&2", input="through")
    assert (done.stdout, done.returncode) == ("through", 0)
    assert done.stderr.startswith("oops\nleadline: ")
    assert len(done.stderr.splitlines()) == 2
    assert found["kind"] == "trace"
    assert found["trace"]["mode"] == via


def test_files_that_a_process_writes_after_the_commands_end_are_counted(
    via: str, trace: Any, tmp_path: Path
) -> None:
    # The process that is left begins to write when the command, its first parent, is gone.
    left = f"while [ -e /proc/$$ ]; do sleep 0.02; done; dd if=/dev/zero of='{tmp_path}/late' bs=1M count=4"
    done, found = trace(via, "bash", "-c", f"({left}) >/dev/null 2>&1 & disown")
    assert done.returncode == 0
    (late,) = (file for file in found["trace"]["files"] if file["path"] == f"{tmp_path}/late")
    assert late["bytes_written"] == 4 * MIB
    assert found["state"] == "VALID"


def test_a_trace_that_ends_before_a_process_of_the_command_is_not_valid(
    via: str, trace: Any, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go")
    left = f"read word < '{tmp_path}/go'"
    _, found = trace(via, "bash", "-c", f"({left}) >/dev/null 2>&1 & disown", options=("--wait", "0s"))
    (tmp_path / "go").write_text("go\n")
    assert found["state"] == "DOUBTFUL"
    assert any(
        "1 process of the command still runs" in code["evidence"]
        for code in found["cells"][0]["validity"]["codes"]
    )


def test_the_exit_code_is_the_commands(via: str, trace: Any) -> None:
    done, found = trace(via, "sh", "-c", "exit 7")
    assert done.returncode == 7
    assert found["trace"]["copies"][0]["ended"] == "exit code 7"


def test_a_death_by_signal_is_died_again_and_what_was_recorded_is_kept(
    via: str, trace: Any, tmp_path: Path
) -> None:
    (tmp_path / "data").write_bytes(bytes(3 * MIB))
    done, found = trace(
        via, *python(f"import os; open('{tmp_path}/data','rb',0).read(); os.kill(os.getpid(), 9)")
    )
    assert done.returncode == -signal.SIGKILL
    assert found["trace"]["copies"][0]["ended"] == "killed by signal 9"
    assert found["trace"]["totals"]["bytes_read"] >= 3 * MIB


def test_bytes_of_a_known_program_are_counted(via: str, trace: Any, tmp_path: Path) -> None:
    code = opened(tmp_path / "w") + "[os.write(f, bytes(4096)) for _ in range(100)]; "
    done, found = trace(via, *python(code + "[os.pread(f, 1024, 0) for _ in range(50)]"))
    assert done.returncode == 0
    (row,) = [item for item in found["trace"]["files"] if item["path"] == f"{tmp_path}/w"]
    assert (row["bytes_written"], row["writes"], row["bytes_read"], row["reads"]) == (409600, 100, 51200, 50)


def test_copies_run_at_once_with_their_numbers_as_one_trial(via: str, trace: Any, tmp_path: Path) -> None:
    code = (
        "import os; n=os.environ['LEADLINE_COPY']; "
        f"open('{tmp_path}/w' + n, 'wb', 0).write(bytes(1000 * (1 + int(n))))"
    )
    done, found = trace(via, *python(code), options=("-n", "3"))
    assert done.returncode == 0
    sizes = {
        item["path"]: item["bytes_written"]
        for item in found["trace"]["files"]
        if f"{tmp_path}/w" in item["path"]
    }
    assert sizes == {f"{tmp_path}/w{n}": 1000 * (1 + n) for n in range(3)}
    assert [item["copy"] for item in found["trace"]["copies"]] == [0, 1, 2]
    assert len(found["cells"]) == 1


def test_children_are_followed(via: str, trace: Any, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for number in range(50):
        (tmp_path / "src" / f"f{number}").write_bytes(bytes(1000))
    script = f"cd {tmp_path} && tar cf a.tar src && tar xf a.tar --one-top-level=out"
    done, found = trace(via, "sh", "-c", script)
    assert done.returncode == 0
    programs = [Path(item["executable"]).name for item in found["trace"]["processes"]]
    assert programs.count("tar") == 2
    least = 50 * 1000 + (tmp_path / "a.tar").stat().st_size
    assert least <= found["trace"]["totals"]["bytes_read"] < least + MIB


def test_a_command_that_closes_every_descriptor_is_recorded(via: str, trace: Any, tmp_path: Path) -> None:
    code = f"import os; os.closerange(0, 500); {opened(tmp_path / 'w')}os.write(f, bytes(77)); os._exit(3)"
    done, found = trace(via, *python(code))
    assert done.returncode == 3
    assert [i["bytes_written"] for i in found["trace"]["files"] if i["path"] == f"{tmp_path}/w"] == [77]


def test_segments_give_bytes_over_time(via: str, trace: Any, leadline: Command, tmp_path: Path) -> None:
    code = opened(tmp_path / "w") + "[os.write(f, bytes(65536)) for _ in range(200)]"
    done, _ = trace(via, *python(code), options=("--segments",))
    assert done.returncode == 0
    page = leadline("report", str(tmp_path / "r"))
    assert "time-0" in page.stdout
    assert (tmp_path / "r" / "segments" / "t0001.parquet").is_file()


def test_a_signal_sent_to_leadline_reaches_the_command(leadline: Command, tmp_path: Path) -> None:
    code = (
        "import signal,sys,time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
        f"open('{tmp_path}/ready','w').close()\n"
        "time.sleep(60)"
    )
    words = command_line("trace", "--via", "preload", "-o", str(tmp_path / "r"), "--", *python(code))
    with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 60
        while not (tmp_path / "ready").exists() and time.monotonic() < end and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 9
    assert (tmp_path / "r" / "manifest.json").is_file()


def test_what_leadline_itself_cannot_do_is_125(leadline: Command, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    assert leadline("trace", "--no-such-option", "--", "true").returncode == 125
    assert leadline("trace").returncode == 125
    assert leadline("trace", "--segments=much", "-o", str(tmp_path / "r"), "--", "true").returncode == 125
    assert leadline("trace", "-o", str(tmp_path / "there"), "--", "true").returncode == 125
    assert not (tmp_path / "r").exists()


def test_a_command_that_is_missing_or_not_executable_is_127_or_126(leadline: Command, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    missing = leadline("trace", "--", "no-such-command-anywhere", cwd=tmp_path)
    assert (missing.returncode, "not found" in missing.stderr) == (127, True)
    assert leadline("trace", "--", str(tmp_path / "data"), cwd=tmp_path).returncode == 126
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_nothing_but_the_result_is_left(via: str, trace: Any, tmp_path: Path) -> None:
    trace(via, "true")
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_a_static_program_goes_through_the_kernel_or_is_refused(leadline: Command, tmp_path: Path) -> None:
    from leadline.tracing.sources.bpf import unavailable

    source = tmp_path / "s.c"
    source.write_text('#include <unistd.h>\nint main(void){return write(1,"hi",2)!=2;}')
    built = subprocess.run(["gcc", "-static", "-o", tmp_path / "s", source], check=False, capture_output=True)
    if built.returncode:
        pytest.skip("no static C library: install Debian's package libc6-dev")
    refused = leadline("trace", "--via", "preload", "-o", str(tmp_path / "p"), "--", str(tmp_path / "s"))
    assert (refused.returncode, refused.stdout) == (125, "")
    found = leadline("trace", "-o", str(tmp_path / "r"), "--", str(tmp_path / "s"))
    if unavailable():
        assert found.returncode == 125
        return
    assert (found.returncode, found.stdout) == (0, "hi")
    assert "traced by bpf, since preload cannot follow it" in found.stderr


def codes_of(leadline: Command, result: Path) -> set[str]:
    shown = json.loads(leadline("show", str(result), "--json").stdout)
    return {code["code"] for cell in shown["cells"] for code in cell["validity"]["codes"]}


def with_file_limit(kib: int, *words: str) -> subprocess.CompletedProcess[str]:
    """`leadline WORDS` where no file may grow beyond `kib` KiB."""
    limited = ["bash", "-c", f'ulimit -f {kib}; exec "$@"', "limited", *command_line(*words)]
    return subprocess.run(limited, capture_output=True, text=True, timeout=60, check=False)


def test_a_limit_on_the_size_of_files_does_not_end_the_program(leadline: Command, tmp_path: Path) -> None:
    """A log that grew beyond it would bring the program SIGXFSZ: it is made smaller."""
    out = tmp_path / "r"
    done = with_file_limit(400, "trace", "--via", "preload", "-o", str(out), "--", "cat", "/etc/passwd")
    assert (done.returncode, done.stdout) == (0, Path("/etc/passwd").read_text())
    assert not codes_of(leadline, out) & {"not_followed", "partly_seen"}


@pytest.mark.provokes("not_followed")
def test_a_program_that_could_write_no_log_is_not_said_to_do_no_io(leadline: Command, tmp_path: Path) -> None:
    out = tmp_path / "r"
    done = with_file_limit(60, "trace", "--via", "preload", "-o", str(out), "--", "cat", "/etc/passwd")
    assert (done.returncode, done.stdout) == (0, Path("/etc/passwd").read_text())
    assert "NOTHING WAS RECORDED" in done.stderr
    assert codes_of(leadline, out) == {"not_followed"}


@pytest.mark.provokes("partly_seen")
def test_a_static_child_is_out_of_the_librarys_sight_and_said(leadline: Command, tmp_path: Path) -> None:
    source = tmp_path / "s.c"
    source.write_text('#include <unistd.h>\nint main(void){return write(1,"hi",2)!=2;}')
    built = subprocess.run(["gcc", "-static", "-o", tmp_path / "s", source], check=False, capture_output=True)
    if built.returncode:
        pytest.skip("no static C library: install Debian's package libc6-dev")
    out = tmp_path / "r"
    done = leadline("trace", "--via", "preload", "-o", str(out), "--", "sh", "-c", f"{tmp_path / 's'}; true")
    assert (done.returncode, done.stdout) == (0, "hi")
    assert "partly_seen" in codes_of(leadline, out)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system: needs root")
def test_a_full_disk_is_said_before_the_command_runs(leadline: Command, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", small], check=True)
    try:
        done = leadline("trace", "-o", str(small / "r"), "--", "echo", "ran")
    finally:
        subprocess.run(["umount", small], check=True)
    assert (done.returncode, done.stdout) == (125, "")
    assert "MiB left" in done.stderr
