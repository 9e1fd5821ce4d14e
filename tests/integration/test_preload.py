"""The LD_PRELOAD tracer against tiny programs whose I/O is known: by their account or by construction."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from built import PROGRAM, built
from leadline import _core
from leadline.tracing.sources import preload
from leadline.tracing.tables import ProcessRow, TraceTables

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"
MEMORY_BYTES = 64 << 20
SEGMENTS_BYTES = 64 << 20

Trace = Callable[..., tuple[subprocess.CompletedProcess[str], TraceTables]]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The subject programs, compiled."""
    directory = tmp_path_factory.mktemp("programs")
    for name in ("trace_calls", "trace_life"):
        source = PROGRAMS / f"{name}.c"
        command = ["gcc", "-O1", "-Wall", "-U_FORTIFY_SOURCE", "-pthread", str(source), "-o", PROGRAM]
        shutil.copy(built(name, [source], command), directory / name)
    return directory


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def trace(tmp_path: Path, work: Path) -> Trace:
    """Runs a command in a directory of its own, traced."""

    def run(
        *command: object,
        segments_bytes: int | None = None,
        memory_bytes: int = MEMORY_BYTES,
        logs: Path | None = None,
    ) -> tuple[subprocess.CompletedProcess[str], TraceTables]:
        logs = logs or tmp_path / "logs"
        logs.mkdir(exist_ok=True)
        started_unix_ns = time.time_ns()
        ended = subprocess.run(
            [str(word) for word in command],
            cwd=work,
            env=preload.environment(
                logs, segments_bytes=segments_bytes, memory_bytes=memory_bytes, inherited=os.environ
            ),
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        return ended, preload.read_logs(logs, started_unix_ns=started_unix_ns)

    return run


def calls(tables: TraceTables) -> Counter[str]:
    total: Counter[str] = Counter()
    for process in tables.processes:
        total.update(json.loads(process.calls))
    return total


def file(tables: TraceTables, name: str, module: str = "POSIX") -> list[dict[str, Any]]:
    """The rows of the files whose path ends so."""
    rows = tables.files.to_pylist()
    return [row for row in rows if row["path"].endswith(f"/{name}") and row["module"] == module]


def only(processes: tuple[ProcessRow, ...]) -> ProcessRow:
    (process,) = processes
    return process


def lost(tables: TraceTables) -> Counter[str]:
    total: Counter[str] = Counter()
    for process in tables.processes:
        total.update(json.loads(process.lost))
    return total


@pytest.mark.parametrize("segments_bytes", [None, SEGMENTS_BYTES])
def test_every_call_is_counted_as_the_program_itself_counts_it(
    trace: Trace, programs: Path, segments_bytes: int | None
) -> None:
    ended, tables = trace(programs / "trace_calls", segments_bytes=segments_bytes)
    truth = json.loads(ended.stdout)
    expected: Counter[str] = Counter()
    for name, count in truth["calls"]:
        expected[name] += count
    process = only(tables.processes)
    assert calls(tables) == expected
    assert (process.bytes_read, process.bytes_written) == (truth["bytes_read"], truth["bytes_written"])
    assert (process.end, process.status, ended.returncode) == ("exit", 7, 7)
    assert not lost(tables)


def test_segments_are_the_calls_with_their_offsets(trace: Trace, programs: Path) -> None:
    _, tables = trace(programs / "trace_calls", segments_bytes=SEGMENTS_BYTES)
    assert tables.segments is not None
    by_file = {row["file"]: row["path"] for row in tables.files.to_pylist()}
    rows = [row for row in tables.segments.to_pylist() if by_file.get(row["file"], "").endswith("/data")]
    first = [(row["call"], row["offset"], row["length"], row["result"]) for row in rows[:9]]
    assert first == [
        ("open", None, None, first[0][3]),
        ("write", 0, 5000, 5000),
        ("pwrite", 5000, 1000, 1000),
        ("pwrite64", 6000, 1000, 1000),
        ("writev", 5000, 300, 300),
        ("pwritev", 0, 300, 300),
        ("pwritev64", 0, 300, 300),
        ("pwritev2", 0, 300, 300),
        ("pwritev64v2", 5300, 300, 300),
    ]
    starts = [row["start_ns"] for row in rows]
    assert starts == sorted(starts)
    absent = [row for row in tables.segments.to_pylist() if row["call"] == "stat" and row["result"] < 0]
    assert [row["result"] for row in absent] == [-2]


def test_counters_are_darshans(trace: Trace, programs: Path) -> None:
    _, tables = trace(programs / "trace_life", "write", "five")
    (row,) = file(tables, "five")
    expected = {
        "OPENS": 1, "WRITES": 5, "BYTES_WRITTEN": 50, "MAX_BYTE_WRITTEN": 49, "CONSEC_WRITES": 4,
        "SEQ_WRITES": 4, "SIZE_WRITE_0_100": 5, "READS": 0, "closes": 1, "rewritten_bytes": 0,
        "FILE_NOT_ALIGNED": 4, "MAX_BYTE_READ": None, "F_READ_START_TIMESTAMP": None,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    assert 0 < row["F_OPEN_START_TIMESTAMP"] < row["F_WRITE_END_TIMESTAMP"] < row["F_CLOSE_END_TIMESTAMP"]
    assert 0 < row["F_MAX_WRITE_TIME"] <= row["F_WRITE_TIME"]


def test_threads_on_one_file_add_up(trace: Trace, programs: Path) -> None:
    _, tables = trace(programs / "trace_life", "threads", segments_bytes=SEGMENTS_BYTES)
    (row,) = file(tables, "shared")
    assert (row["READS"], row["BYTES_READ"]) == (108_000, 1_080_000)
    assert only(tables.processes).threads == 109
    assert tables.segments is not None
    reads = [row["thread"] for row in tables.segments.to_pylist() if row["call"] == "pread"]
    assert sorted(Counter(reads).values()) == [1000] * 108
    reading = [latency for latency in tables.latency if latency.kind == "read"]
    assert [latency.operations for latency in reading] == [108_000]
    span = row["F_READ_END_TIMESTAMP"] - row["F_READ_START_TIMESTAMP"]
    assert row["F_READ_TIME"] <= span + 1e-6


@pytest.mark.parametrize("count", [1, 10_000])
def test_every_forked_child_has_a_small_log_of_its_own(
    trace: Trace, programs: Path, tmp_path: Path, count: int
) -> None:
    _, tables = trace(programs / "trace_life", "forks", count)
    assert len(tables.processes) == count + 1
    assert {process.parent for process in tables.processes[1:]} == {0}
    assert sum(row["BYTES_WRITTEN"] for row in file(tables, "forked")) == 10 * count
    assert {process.end for process in tables.processes} == {"exit"}
    used_bytes = sum(path.stat().st_blocks * 512 for path in (tmp_path / "logs").iterdir())
    assert used_bytes < 100_000 * (count + 1)


def test_a_child_of_the_bare_system_call_has_its_own_log(trace: Trace, programs: Path) -> None:
    _, tables = trace(programs / "trace_life", "clone")
    parent, child = tables.processes
    assert (parent.bytes_written, child.bytes_written) == (30, 30)
    assert (child.parent, child.end, child.status) == (0, "exit", 5)


def test_the_child_of_a_vfork_does_not_change_its_parents_record(trace: Trace, programs: Path) -> None:
    ended, tables = trace(programs / "trace_life", "vfork")
    assert ended.returncode == 0
    (mine,) = file(tables, "mine")
    assert (mine["WRITES"], mine["closes"]) == (1, 0)
    assert [process.bytes_written for process in tables.processes] == [10, 50]
    assert tables.processes[0].end == "exit"
    assert tables.processes[0].status == 0


def test_children_are_followed_whatever_environment_they_get(trace: Trace, programs: Path) -> None:
    _, tables = trace(programs / "trace_life", "environment")
    images = [process for process in tables.processes if "write" in json.loads(process.command)]
    assert [process.bytes_written for process in images] == [50, 50, 50]


def test_what_was_recorded_survives_sigkill(trace: Trace, programs: Path) -> None:
    ended, tables = trace(programs / "trace_life", "kill")
    assert ended.returncode == -signal.SIGKILL
    assert only(tables.processes).end == "last seen"
    (row,) = file(tables, "killed")
    assert (row["WRITES"], row["BYTES_WRITTEN"]) == (1000, 10_000)


def test_a_program_that_closes_all_descriptors_is_followed_to_its_end(trace: Trace, programs: Path) -> None:
    ended, tables = trace(programs / "trace_life", "close")
    assert ended.returncode == 6
    process = only(tables.processes)
    assert (process.bytes_written, process.end, process.status) == (60, "exit", 6)


def test_a_signal_handlers_calls_are_counted_or_said_to_be_lost(trace: Trace, programs: Path) -> None:
    ended, tables = trace(programs / "trace_life", "signals")
    handled = int(ended.stdout)
    assert handled > 0
    (row,) = file(tables, "signals")
    assert row["WRITES"] + lost(tables)["nested"] == 200_000 + handled


def test_files_beyond_the_memory_bound_still_count_in_the_processs_sums(
    trace: Trace, programs: Path, tmp_path: Path
) -> None:
    _, tables = trace(programs / "trace_life", "files", 20_000, memory_bytes=1 << 20)
    process = only(tables.processes)
    assert process.bytes_written == 200_000
    assert lost(tables)["files"] > 0
    assert calls(tables)["write"] == 20_000
    (log,) = (tmp_path / "logs").iterdir()
    assert log.stat().st_blocks * 512 <= 1 << 20


def test_a_full_file_system_is_no_signal_but_a_loss(trace: Trace, programs: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", small], check=False).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        ended, tables = trace(programs / "trace_life", "files", 20_000, logs=small)
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert ended.returncode == 0
    assert only(tables.processes).bytes_written == 200_000
    assert lost(tables)["files"] > 0


def test_children_in_a_changed_root_are_said_to_be_lost(trace: Trace, programs: Path) -> None:
    ended, tables = trace(programs / "trace_life", "chroot")
    if ended.returncode == 11:
        pytest.skip("needs the right to change the root")
    process = only(tables.processes)
    assert json.loads(process.lost) == {"children": 2}
    assert "changed root" in json.loads(process.notes)


def test_a_static_child_is_named(trace: Trace, programs: Path) -> None:
    _, tables = trace(programs / "trace_life", "static")
    process = only(tables.processes)
    assert "static child /sbin/ldconfig" in json.loads(process.notes)
    assert process.end == "exec"


def test_a_static_program_cannot_be_followed() -> None:
    reason = preload.cannot_follow(Path("/sbin/ldconfig"))
    assert reason is not None
    assert "static" in reason
    assert preload.cannot_follow(Path("/bin/cat")) is None


SPELLINGS = """
import ctypes, itertools, json, os, sys
libc, buffer = ctypes.CDLL(None), ctypes.create_string_buffer(400)
parts = ["a", ".", "..", "", ".b", "..c", "a-name-of-15-by", "a-name-of-16-byt", "a" * 60]
said = []
for count in (1, 2, 3):
    for words in itertools.product(parts, repeat=count):
        for start in ("", "/", "./", os.getcwd() + "/"):
            text = start + "/".join(words)
            buffer.value = text.encode()
            if text:
                said += [text, text]
                libc.access(buffer, 0)
                libc.access(buffer, 0)
print(json.dumps(said))
"""


def test_a_file_has_one_name_however_the_program_spells_it(trace: Trace, work: Path) -> None:
    ended, tables = trace("/usr/bin/python3", "-c", SPELLINGS, segments_bytes=SEGMENTS_BYTES)

    def name(text: str) -> str:
        whole = text if text.startswith("/") else f"{work}/{text}"
        return "/" + "/".join(part for part in whole.split("/") if part not in ("", "."))

    expected = Counter(name(text) for text in json.loads(ended.stdout))
    paths = {row["file"]: row["path"] for row in tables.files.to_pylist()}
    assert tables.segments is not None
    found = Counter(paths[row["file"]] for row in tables.segments.to_pylist() if row["call"] == "access")
    assert {path: found[path] for path in expected} == dict(expected)


def test_the_directory_that_a_program_goes_to_is_relative_to_the_one_it_leaves(
    trace: Trace, work: Path
) -> None:
    (work / "below" / "deep").mkdir(parents=True)
    script = "import os; os.chdir('below'); os.chdir('deep'); os.chdir('..')"
    _, tables = trace(sys.executable, "-I", "-S", "-c", script, segments_bytes=SEGMENTS_BYTES)
    assert tables.segments is not None
    paths = {row["file"]: row["path"] for row in tables.files.to_pylist()}
    gone = [paths[row["file"]] for row in tables.segments.to_pylist() if row["call"] == "chdir"]
    assert gone == [f"{work}/below", f"{work}/below/deep", f"{work}/below/deep/.."]


def test_a_program_of_more_files_than_the_first_table_holds_has_each_of_them_once(trace: Trace) -> None:
    code = "import os\nfor turn in range(2):\n for n in range(20000): os.access(f'f{n}', 0)"
    _, tables = trace("/usr/bin/python3", "-c", code, segments_bytes=SEGMENTS_BYTES)
    paths = {row["file"]: row["path"] for row in tables.files.to_pylist()}
    assert tables.segments is not None
    asked = Counter(paths[row["file"]] for row in tables.segments.to_pylist() if row["call"] == "access")
    ours = {path: count for path, count in asked.items() if "/work/f" in path}
    assert (len(ours), set(ours.values())) == (20_000, {2})


def test_a_log_of_another_list_of_calls_is_a_warning_that_says_what_to_do(
    trace: Trace, tmp_path: Path
) -> None:
    trace("/bin/true")
    (log,) = (tmp_path / "logs").iterdir()
    content = bytearray(log.read_bytes())
    count = len(_core.traced_calls())
    at = content.rindex(count.to_bytes(8, "little"), 0, 4096)
    content[at : at + 8] = (count + 1).to_bytes(8, "little")
    log.write_bytes(content)
    tables = preload.read_logs(log.parent, started_unix_ns=0)
    assert "install leadline anew" in tables.warnings[0]
    assert not tables.processes


def test_a_log_of_garbage_is_a_warning_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "1-2.lltrace").write_bytes(b"LLTRC\r\n\x1a" + b"\1" * 5000)
    tables = preload.read_logs(tmp_path, started_unix_ns=0)
    assert "1-2.lltrace" in tables.warnings[0]
    assert not tables.processes


def test_a_ring_of_io_uring_is_noted_as_not_followed(trace: Trace) -> None:
    code = "import ctypes; ctypes.CDLL(None).syscall(425, 4, ctypes.create_string_buffer(120))"
    _, tables = trace("/usr/bin/python3", "-c", code)
    process = tables.processes[-1]
    assert "io_uring" in json.loads(process.notes)
    assert calls(tables)["io_uring_setup"] == 1
