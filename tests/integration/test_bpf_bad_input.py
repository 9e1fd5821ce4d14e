"""The tracer in the kernel where it cannot work, has no room, or is stopped: clear words, nothing left."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bpf_support import calls, own_programs, programs_held, trace, wait_at_gate

from leadline.errors import UsageError
from leadline.tracing.sources import bpf
from leadline.tracing.sources.bpf import Session

pytestmark = pytest.mark.skipif(bpf.unavailable() is not None, reason=str(bpf.unavailable()))

PYTHON = os.path.realpath(sys.executable)
SEGMENT_BYTES = 56
SYSTEM_CALL_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
NEXT_PROGRAM = 11


def programs_loaded() -> set[int]:
    """Numbers of all programs in the kernel."""
    libc, found, number = ctypes.CDLL(None, use_errno=True), set(), 0
    while True:
        attributes = (ctypes.c_uint32 * 4)(number, 0, 0, 0)
        if libc.syscall(SYSTEM_CALL_BPF, NEXT_PROGRAM, ctypes.byref(attributes), 16) != 0:
            return found
        number = attributes[1]
        found.add(number)


def wait_until_gone(programs: set[int]) -> None:
    deadline = time.monotonic() + 30
    while programs & programs_loaded():
        assert time.monotonic() < deadline, "programs stayed in the kernel"
        time.sleep(0.02)


def test_a_kernel_that_does_not_describe_its_types_is_named_with_the_remedy(tmp_path: Path) -> None:
    why = bpf.unavailable(tmp_path / "vmlinux")

    assert why is not None
    assert str(tmp_path / "vmlinux") in why
    assert "CONFIG_DEBUG_INFO_BTF" in why


def test_a_damaged_description_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "vmlinux").write_bytes(b"\x9f\xeb\x01\x00" + b"\xff" * 100)
    session = Session(segments_bytes=None, memory_bytes=1 << 20, kernel_types=tmp_path / "vmlinux")

    with pytest.raises(UsageError, match="types"):
        session.__enter__()


def test_without_privileges_the_words_say_which_are_needed() -> None:
    ask = "from leadline.tracing.sources import bpf; print(bpf.unavailable())"
    dropped = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--clear-groups"]
    # The interpreter's own directories may be closed to others: the capability to read them stays.
    kept = [part.replace("-all", "-all,+dac_override") for part in dropped]
    kept += ["--ambient-caps=+dac_override"]
    kept[2] = "--inh-caps=-all,+dac_override"
    done = subprocess.run([*kept, sys.executable, "-c", ask], capture_output=True, text=True, check=True)

    assert "CAP_BPF" in done.stdout
    assert "--via preload" in done.stdout


def test_a_process_that_was_killed_leaves_nothing_in_the_kernel() -> None:
    script = (
        "import time; from leadline.tracing.sources.bpf import Session\n"
        "with Session(segments_bytes=None, memory_bytes=1 << 20):\n"
        "    print('attached', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "attached\n"
        programs = programs_held(process.pid)
        assert len(programs) >= 5
        assert programs <= programs_loaded()
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_until_gone(programs)


def test_an_exception_inside_a_session_detaches_it() -> None:
    programs: set[int] = set()

    def interrupted() -> None:
        with Session(segments_bytes=None, memory_bytes=1 << 20) as session:
            session.follow(os.getpid())
            programs.update(own_programs())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert programs
    wait_until_gone(programs)


def test_a_session_that_has_ended_says_so() -> None:
    with Session(segments_bytes=None, memory_bytes=1 << 20) as session:
        session.finish(started_unix_ns=0)
        with pytest.raises(UsageError, match="ended"):
            session.finish(started_unix_ns=0)


def test_a_command_that_dies_at_once_has_one_process(tmp_path: Path) -> None:
    tables = trace(["/bin/sh", "-c", "kill -SEGV $$"])

    (process,) = tables.processes
    assert (process.end, process.status) == ("signal", signal.SIGSEGV)


def test_ten_thousand_forks_are_all_counted(tmp_path: Path) -> None:
    program = (
        "import os\n"
        "d = os.open('/dev/null', os.O_RDONLY)\n"
        "for number in range(10_000):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        os.fstat(d); os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
    )
    tables = trace([PYTHON, "-I", "-S", "-c", program])

    assert len(tables.processes) == 10_001
    assert calls(tables)["fstat"] + calls(tables)["newfstatat"] >= 10_000
    assert tables.warnings == ()


def test_files_that_find_no_room_are_counted_as_lost_and_their_bytes_kept(tmp_path: Path) -> None:
    program = "for n in range(3000):\n    with open(f'f{n}', 'w') as f: f.write('x' * 10)\n"

    tables = trace([PYTHON, "-I", "-S", "-c", program], cwd=tmp_path, memory_bytes=1 << 20)

    (process,) = tables.processes
    assert process.bytes_written == 30_000
    assert json.loads(process.lost)["files"] > 0
    assert any("files" in warning for warning in tables.warnings)


def test_segments_end_at_the_size_that_was_set(tmp_path: Path) -> None:
    tables = trace(["/bin/ls", "-lR", "/usr/share/doc"], segments_bytes=100 * SEGMENT_BYTES)

    assert tables.segments is not None
    assert tables.segments.num_rows == 100
    assert json.loads(tables.processes[0].lost)["segments"] > 0


def test_a_process_that_outlives_the_trace_is_running() -> None:
    with Session(segments_bytes=None, memory_bytes=1 << 20) as session:
        waiting = subprocess.Popen(
            ["/bin/sh", "-c", "read line; exec sh -c 'read line; echo; exec sleep 60'"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            wait_at_gate(waiting.pid)
            session.follow(waiting.pid)
            assert waiting.stdin is not None
            assert waiting.stdout is not None
            waiting.stdin.write(b"\n\n")
            waiting.stdin.flush()
            assert waiting.stdout.readline() == b"\n"
            tables = session.finish(started_unix_ns=time.time_ns())
        finally:
            waiting.kill()
            waiting.communicate()
    assert "running" in {row.end for row in tables.processes}
    assert sum(calls(tables).values()) > 0
