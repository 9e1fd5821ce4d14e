"""Tracers and the truth: what a program says of itself equals what our reading of a trace says of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trace_truth import (
    PROGRAMS,
    Counts,
    compiled_c,
    compiled_go,
    differences,
    in_system_calls,
    printed,
    under_strace,
    within,
)

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="no strace (Debian: strace)")

SCENARIOS = (
    *("data", "opens", "descriptors", "names", "directory", "sizes", "copies", "buffered", "asynchronous"),
    *("reopened", "lists", "libaio", "threads", "forks", "spawns", "replaced", "killed"),
)
VARIANTS = {
    "plain": (),
    "fortified": ("-D_FORTIFY_SOURCE=2",),
    "large": ("-D_FILE_OFFSET_BITS=64",),
    "static": ("-static",),
}


@pytest.fixture(scope="module", params=VARIANTS)
def in_c(request: pytest.FixtureRequest) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    return compiled_c(*VARIANTS[request.param])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_call_and_byte_of_a_program_in_c_is_in_an_imported_log(
    in_c: Path, scenario: str, place: Path
) -> None:
    said, tables = under_strace([str(in_c), scenario], place)
    assert differences(in_system_calls(printed(said)), within(tables, place)) == []
    assert tables.warnings == ()


@pytest.mark.parametrize("scenario", ["data", "descriptors", "copies", "libaio", "forks"])
def test_bytes_are_the_same_from_a_log_without_paths_of_descriptors(scenario: str, place: Path) -> None:
    program = compiled_c()
    said, tables = under_strace([str(program), scenario], place, paths=False)
    truth = printed(said)
    own = [row for row in tables.files.to_pylist() if not row["path"].startswith(("/usr", "/lib", "/etc"))]
    assert sum(row["BYTES_READ"] for row in own) == truth.bytes_read
    assert sum(row["BYTES_WRITTEN"] for row in own) == truth.bytes_written


def test_what_goes_through_a_ring_is_said_to_be_missing_and_counts_as_nothing_else(place: Path) -> None:
    said, tables = under_strace([str(compiled_c()), "ring"], place)
    truth, seen = printed(said), within(tables, place)
    assert truth.ring == (6000, 6000)
    assert differences(in_system_calls(truth), seen) == []
    assert "io_uring" in seen.notes
    assert any("io_uring" in warning for warning in seen.warnings)


def test_a_death_by_sigkill_is_told_apart_from_an_exit(place: Path) -> None:
    _, tables = under_strace([str(compiled_c()), "killed"], place)
    assert [(row.end, row.status) for row in tables.processes] == [("exit", 0), ("signal", 9)]


def test_an_exec_ends_one_image_and_begins_the_next(place: Path) -> None:
    _, tables = under_strace([str(compiled_c()), "replaced"], place)
    assert [(row.end, row.parent) for row in tables.processes] == [("exit", None), ("exec", 0), ("exit", 0)]
    assert tables.processes[1].pid == tables.processes[2].pid
    assert tables.processes[2].executable == "/proc/self/exe"


def _subject(make: Callable[[], Path], compiler: str) -> str:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    return str(make())


def test_a_static_program_in_go_agrees(place: Path) -> None:
    said, tables = under_strace([_subject(compiled_go, "go")], place)
    assert differences(in_system_calls(printed(said)), within(tables, place)) == []


def _tar(place: Path) -> list[str]:
    source = place / "source"
    source.mkdir()
    for number in range(500):
        (source / f"file{number}").write_bytes(bytes(number))
    return ["tar", "cf", "archive.tar", "source"]


def _git(place: Path) -> list[str]:
    origin = place / "origin"
    script = (
        "git init -q . && seq 1000 > numbers && git add . && "
        "git -c user.name=n -c user.email=e commit -qm one"
    )
    origin.mkdir()
    subprocess.run(["sh", "-c", script], cwd=origin, check=True)
    return ["git", "clone", "-q", "--no-hardlinks", "origin", "copy"]


def _sqlite(_: Path) -> list[str]:
    statement = (
        "create table t(a); insert into t select value from generate_series(1, 20000); select sum(a) from t;"
    )
    return ["sqlite3", "base.db", statement]


def _python(_: Path) -> list[str]:
    return [sys.executable, "-c", "import json, csv, sqlite3; open('out', 'w').write('x' * 100_000)"]


def _ffmpeg(_: Path) -> list[str]:
    source = ["-f", "lavfi", "-i", "testsrc=duration=1:size=128x96:rate=10"]
    return ["ffmpeg", "-loglevel", "error", *source, "out.mkv"]


REAL = {"tar": _tar, "git": _git, "sqlite3": _sqlite, "python3": _python, "ffmpeg": _ffmpeg}
# The kernel reads the headers of what it executes and counts that as read by the process.
HEADERS_MAX_BYTES = 8192


@pytest.mark.parametrize("program", REAL)
def test_bytes_of_real_programs_are_what_the_kernel_counts(program: str, place: Path, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"no {program}")
    counted = tmp_path / "io"
    wrapper = [sys.executable, "-S", str(PROGRAMS / "kernel_counts.py"), str(counted)]
    _, tables = under_strace([*wrapper, *REAL[program](place)], place)
    kernel = dict(line.split(": ") for line in counted.read_text().splitlines())
    assert tables.warnings == ()
    others = tables.extra["not_files"]
    read = others["bytes_read"] + sum(row.bytes_read for row in tables.processes[1:])
    written = others["bytes_written"] + sum(row.bytes_written for row in tables.processes[1:])
    images = sum(1 for row in tables.processes if row.end == "exec") + 1
    assert written == int(kernel["wchar"])
    assert 0 < int(kernel["rchar"]) - read <= images * HEADERS_MAX_BYTES


def test_a_difference_is_said() -> None:
    """The comparison itself can fail."""
    from collections import Counter

    truth = Counts(Counter({"read": 2}), 10, 0)
    assert len(differences(truth, Counts(Counter({"read": 1, "write": 1}), 9, 0))) == 3
