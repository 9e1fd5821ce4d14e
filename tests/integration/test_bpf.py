"""The tracer in the kernel against what strace counts, what programs print and what the kernel sums."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bpf_support import calls, rows_of, trace
from strace_counts import strace_counts

from built import PROGRAM, built
from leadline import _core
from leadline.tracing.sources import bpf

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"

pytestmark = pytest.mark.skipif(bpf.unavailable() is not None, reason=str(bpf.unavailable()))

# Git reads a file again that is as young as its index, to the second: old files do not depend on the clock.
GIT = (
    "rm -rf a b; git init -q a; cd a; seq 1000 > f; seq 9 > g; touch -d 2020-01-01 f g; git add .; "
    "git -c gc.auto=0 -c user.name=n -c user.email=e commit -qm m; git -c gc.auto=0 clone -q . ../b"
)
PYTHON = os.path.realpath(sys.executable)
COMMANDS = {
    "tar": "tar cf archive.tar files; mkdir -p out; tar xf archive.tar -C out; rm -r out",
    "git": GIT,
    "sqlite3": "rm -f d.db; sqlite3 d.db 'create table t(a); insert into t values (1), (2); select * from t'",
    "python3": f"{PYTHON} -I -S -c 'print(len(open(\"files/7\").read()))'",
    "ffmpeg": "ffmpeg -v error -y -threads 1 -f lavfi -i testsrc=d=0.2:s=64x64 -threads 1 o.mkv",
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    for number in range(40):
        (tmp_path / "files" / str(number)).write_text("x" * 100 * number)
    return tmp_path


def _fixed(directory: Path) -> dict[str, str]:
    """Surroundings in which a command does the same every time."""
    moment = "2026-01-01T00:00:00Z"
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "PWD": str(directory),  # a shell looks for it otherwise, and the one that waits has done so
        "PYTHONHASHSEED": "0",
        "GIT_AUTHOR_DATE": moment,
        "GIT_COMMITTER_DATE": moment,
    }


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("program", COMMANDS)
def test_calls_are_those_that_strace_counts(program: str, files: Path, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    command = ["/bin/sh", "-c", f"({COMMANDS[program]}) </dev/null >/dev/null 2>&1"]
    environment = _fixed(files)
    # What only a first run does, such as making a cache, is done for both.
    subprocess.run(command, cwd=files, env=environment, check=True)

    counted = calls(trace(command, cwd=files, env=environment))
    truth = strace_counts(
        command,
        tmp_path / "log",
        counted=frozenset(_core.bpf_calls()),
        directory=files,
        environment=environment,
    )

    assert sum(truth.values()) > 50
    assert counted == truth


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_a_static_go_program_is_seen(tmp_path: Path) -> None:
    data, source = tmp_path / "data", PROGRAMS / "static_writer.go"
    environment = {**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off", "GOFLAGS": ""}
    program = built("writer", [source], ["go", "build", "-o", PROGRAM, str(source)], environment)
    written, read = subprocess.run(
        [str(program), str(data)], check=True, capture_output=True, text=True
    ).stdout.split()

    tables = trace([str(program), str(data)])

    (row,) = rows_of(tables, data)
    assert (row["BYTES_WRITTEN"], row["BYTES_READ"]) == (int(written), int(read))
    assert (row["WRITES"], row["READS"], row["OPENS"]) == (64, 64, 1)
    assert (row["CONSEC_WRITES"], row["SEQ_READS"]) == (63, 0)
    assert (row["SIZE_WRITE_100_1K"], row["MAX_BYTE_READ"]) == (64, 63_999)


@pytest.fixture
def raw_calls() -> Path:
    source = PROGRAMS / "raw_calls.c"
    return built("raw_calls", [source], ["gcc", "-O2", "-static", "-pthread", "-o", PROGRAM, str(source)])


def test_threads_on_one_file_lose_no_count_to_each_other(raw_calls: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(bytes(4096))
    printed = int(subprocess.run([str(raw_calls), str(data)], check=True, capture_output=True).stdout)

    tables = trace([str(raw_calls), str(data)])

    parent, child = rows_of(tables, data)
    assert (parent["READS"], parent["BYTES_READ"]) == (8000, printed)
    assert (child["WRITES"], child["BYTES_WRITTEN"]) == (1, 100)
    assert [(row.end, row.status) for row in tables.processes] == [("exit", 0), ("signal", 9)]
    assert tables.processes[0].threads == 9


def test_every_call_of_every_thread_is_a_segment(raw_calls: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(bytes(4096))

    tables = trace([str(raw_calls), str(data)], segments_bytes=16 << 20)

    assert tables.segments is not None
    reads = [row for row in tables.segments.to_pylist() if row["call"] == "pread64"]
    assert len(reads) == 8000
    assert {row["offset"] for row in reads} == set(range(0, 4096, 512))
    assert len({row["thread"] for row in reads}) == 8
    assert {(row["length"], row["result"]) for row in reads} == {(512, 512)}
    assert tables.warnings == ()


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_reads_and_writes_through_io_uring_are_those_that_fio_prints(tmp_path: Path) -> None:
    job = ["fio", "--name=j", "--ioengine=io_uring", "--rw=randrw", "--bs=4k", "--size=1M", "--iodepth=8"]
    job += [f"--filename={tmp_path / 'data'}", "--output-format=json", "--thread", "--randseed=1"]
    printed = json.loads(subprocess.run([*job], check=True, capture_output=True).stdout)["jobs"][0]

    tables = trace(job)

    found = calls(tables)
    assert found["io_uring:read"] == printed["read"]["total_ios"]
    assert found["io_uring:write"] == printed["write"]["total_ios"]
    (row,) = rows_of(tables, tmp_path / "data")
    assert row["BYTES_WRITTEN"] == printed["write"]["io_bytes"]
    assert any("io_uring" in json.loads(process.notes) for process in tables.processes)


def test_bytes_are_those_that_the_kernel_sums_for_the_process(tmp_path: Path) -> None:
    program = (
        "import os; d = os.open('data', os.O_CREAT | os.O_RDWR); before = open('/proc/self/io').read(); "
        "[os.write(d, bytes(777)) for _ in range(9)]; [os.pread(d, 500, n * 100) for n in range(50)]; "
        "after = open('/proc/self/io').read(); open('sums', 'w').write(before + after)"
    )
    tables = trace([PYTHON, "-I", "-S", "-c", program], cwd=tmp_path)

    lines = (tmp_path / "sums").read_text().splitlines()
    before, after = (dict(line.split(": ") for line in half) for half in (lines[:7], lines[7:]))
    first_words = sum(len(line) + 1 for line in lines[:7])
    (row,) = rows_of(tables, tmp_path / "data")
    assert row["BYTES_WRITTEN"] == int(after["wchar"]) - int(before["wchar"])
    assert row["BYTES_READ"] == int(after["rchar"]) - int(before["rchar"]) - first_words


def test_copies_keep_their_processes_apart(files: Path) -> None:
    tables = trace(["/bin/sh", "-c", "cat files/9 | wc -c"], cwd=files, copies=3)

    by_copy = [[row for row in tables.processes if row.copy == copy] for copy in range(3)]
    assert [[row.process for row in rows] for rows in by_copy] == [list(range(len(by_copy[0])))] * 3
    assert all(calls_["read"] for calls_ in (json.loads(rows[0].calls) for rows in by_copy))


def test_pipes_are_calls_but_no_bytes_of_files(tmp_path: Path) -> None:
    tables = trace(["/usr/bin/head", "-c", "100000", "/dev/zero"])

    (process,) = tables.processes
    assert json.loads(process.calls)["read"] > 1
    assert process.bytes_written == 0
    assert process.bytes_read < 100_000


def test_files_named_by_path_have_rows_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("x")
    steps = "mkdir d; mv old new; ln -s new link; stat new; rm new; rmdir d"

    tables = trace(["/bin/sh", "-c", steps], cwd=tmp_path)

    def total(path: str, counter: str) -> int:
        return sum(row[counter] for row in rows_of(tables, tmp_path / path))

    assert total("d", "mkdirs") == 1
    assert total("d", "rmdirs") == 1
    assert total("old", "RENAME_SOURCES") == 1
    assert total("new", "RENAME_TARGETS") == 1
    assert total("link", "links") == 1
    assert total("new", "unlinks") == 1


def test_paths_that_begin_alike_are_told_apart_whatever_came_before_them(tmp_path: Path) -> None:
    """Lengths around every word's end, longest first; once several times in a row, once in turns."""
    names = ["n" * length for length in range(40, 0, -1)]
    for name in names:
        (tmp_path / name).touch()
    code = f"import os\nfor name in {names}: os.stat(name); os.stat(name)\nfor name in {names}: os.stat(name)"

    tables = trace([PYTHON, "-I", "-S", "-c", code], cwd=tmp_path)

    found = {name: sum(row["STATS"] for row in rows_of(tables, tmp_path / name)) for name in names}
    assert found == dict.fromkeys(names, 3)
