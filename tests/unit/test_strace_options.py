"""Logs of strace with options that change how a line looks: each says the same, or why it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.errors import UsageError
from leadline.tracing.sources.strace import read_strace
from leadline.tracing.tables import TraceTables

START = 1_700_000_000
PLAIN = (
    'execve("/bin/subject", ["subject"], 0x1 /* 1 var */) = 0 <0.000010>',
    'openat(AT_FDCWD</w>, "f", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3</w/f> <0.000020>',
    'write(3</w/f>, "x", 4096) = 4096 <0.000010>',
    'openat(AT_FDCWD</w>, "/dev/null", O_WRONLY) = 4</dev/null> <0.000020>',
    'write(4</dev/null>, "x", 10) = 10 <0.000010>',
    "close(3</w/f>) = 0 <0.000005>",
    "exit_group(3) = ?",
    "+++ exited with 3 +++",
)


def read(tmp_path: Path, lines: list[str], head: str = "") -> TraceTables:
    path = tmp_path / "log"
    path.write_text("".join(f"100 {START}.{at:06} {head}{line}\n" for at, line in enumerate(lines)))
    return read_strace(path)


def told(tables: TraceTables) -> tuple[object, ...]:
    return tables.processes, tables.files.to_pylist(), tables.warnings


def test_devices_that_yy_names_hide_no_call(tmp_path: Path) -> None:
    device = [line.replace("</dev/null>", "</dev/null<char 1:3>>") for line in PLAIN]
    assert told(read(tmp_path, device)) == told(read(tmp_path, list(PLAIN)))


def test_bytes_that_are_dumped_below_a_call_are_no_damage(tmp_path: Path) -> None:
    dump = "\n | 00000  78 78 78 78 78 78 78 78  78 78 78 78 78 78 78 78  xxxxxxxxxxxxxxxx |"
    dumped = [line + dump if line.startswith("write") else line for line in PLAIN]
    assert told(read(tmp_path, dumped)) == told(read(tmp_path, list(PLAIN)))


def test_a_relative_time_beside_an_absolute_one_is_passed_over(tmp_path: Path) -> None:
    assert told(read(tmp_path, list(PLAIN), "(+     0.000298) ")) == told(read(tmp_path, list(PLAIN)))


def test_the_current_directory_is_known_where_constants_have_their_number_too(tmp_path: Path) -> None:
    verbose = [line.replace("AT_FDCWD</w>", "-100 /* AT_FDCWD */</w>") for line in PLAIN]
    assert told(read(tmp_path, verbose)) == told(read(tmp_path, list(PLAIN)))


def test_a_child_of_a_log_with_names_beside_numbers_is_read(tmp_path: Path) -> None:
    clone = "clone(child_stack=NULL, flags=0x1200000 /* CLONE_CHILD_CLEARTID */|17 /* SIGCHLD */) = 101"
    assert len(read(tmp_path, [*PLAIN[:3], clone, *PLAIN[3:]]).processes) == 2


def test_counts_behind_the_calls_are_no_damage(tmp_path: Path) -> None:
    counts = (
        "% time     seconds  usecs/call     calls    errors syscall\n"
        "------ ----------- ----------- --------- --------- ----------------\n"
        " 48.19    0.011283        3761         3           wait4\n"
        "  0.00    0.000000           0         1           statx\n"
        "100.00    0.025788          16      1551       213 total\n"
    )
    path = tmp_path / "log"
    plain = read(tmp_path, list(PLAIN))
    path.write_text(path.read_text() + counts)
    assert told(read_strace(path)) == told(plain)


def test_a_process_that_called_exit_group_has_ended_where_q_leaves_its_end_out(tmp_path: Path) -> None:
    tables = read(tmp_path, list(PLAIN[:-1]))
    assert [(row.end, row.status) for row in tables.processes] == [("exit", 3)]
    assert tables.warnings == ()


@pytest.mark.parametrize(
    "line",
    [
        'openat(-100</w>, "g", 0x80000) = 4</w/g>',
        "openat(0xffffff9c, 0x7ffe3e1f3, 0x80000) = 4</w/g>",
        "read(0x3, 0x7ffe3e1f3, 0x340) = 832",
        "clone(child_stack=NULL, flags=0x1200000|17, child_tidptr=0x7f80) = 101",
    ],
)
def test_a_log_with_numbers_in_place_of_names_is_refused_for_that(tmp_path: Path, line: str) -> None:
    with pytest.raises(UsageError, match="numbers in place of names"):
        read(tmp_path, [*PLAIN[:3], line, *PLAIN[3:]])


def test_a_summary_is_refused_as_one(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(
        "% time     seconds  usecs/call     calls    errors syscall\n"
        "------ ----------- ----------- --------- --------- ----------------\n"
        " 48.19    0.011283        3761         3           wait4\n"
    )
    with pytest.raises(UsageError, match="their counts"):
        read_strace(tmp_path / "log")
