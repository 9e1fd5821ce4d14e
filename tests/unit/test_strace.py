"""Logs of strace, line by line, whole and damaged: what is in them is counted, what is not is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import clock
from hypothesis import example, given
from hypothesis import strategies as st

from leadline.errors import UsageError
from leadline.store.reader import open_result
from leadline.tracing.paths import STREAM
from leadline.tracing.sources.strace import read_strace
from leadline.tracing.sources.strace_lines import (
    Begun,
    Call,
    Ended,
    Resumed,
    event,
    head,
    split,
    text,
)
from leadline.tracing.store import create_trace_result
from leadline.tracing.tables import TraceTables
from leadline.verdict.findings import build_findings
from leadline.verdict.model import Findings

START = 1_700_000_000


class Log:
    """Writes a log of process 100, one microsecond from call to call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: list[str] = []
        self.call('execve("/bin/subject", ["subject"], 0x1 /* 1 var */) = 0')
        self.call('openat(AT_FDCWD</w>, "f", O_RDWR|O_CREAT|O_TRUNC, 0644) = 3</w/f>')

    def call(self, words: str, pid: int = 100, duration: str = " <0.000010>") -> Log:
        self._lines.append(f"{pid} {START}.{len(self._lines):06d} {words}{duration}")
        return self

    def line(self, words: str, pid: int = 100) -> Log:
        return self.call(words, pid, "")

    def read(self, end: bool = True) -> TraceTables:
        if end:
            self.line("brk(NULL) = 0x1000 <0.000001>").line("+++ exited with 0 +++")
        self.path.write_text("\n".join(self._lines) + "\n")
        return read_strace(self.path)

    def file(self, path: str = "/w/f") -> dict[str, Any]:
        return next(row for row in self.read().files.to_pylist() if row["path"] == path)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "log")


def test_a_line_says_whose_it_is_and_when() -> None:
    for line, thread, nanoseconds, style in (
        ("12 1700000000.000001 x", 12, START * 10**9 + 1000, "unix"),
        ("[pid    12] 1700000000.000001 x", 12, START * 10**9 + 1000, "unix"),
        ("1700000000.000000001 x", None, START * 10**9 + 1, "unix"),
        ("12 01:02:03.5 x", 12, 3723 * 10**9 + 5 * 10**8, "clock"),
        ("12      0.000012 x", 12, None, "relative"),
        ("12 x", 12, None, "none"),
        ("12<a b> 1700000000.000001 x", 12, START * 10**9 + 1000, "unix"),  # -Y
        ("[pid    12<a>] x", 12, None, "none"),
        ("12 1700000000.000001 [ 257] [00007fcd428c6ad7] x", 12, START * 10**9 + 1000, "unix"),  # -n, -i
        ("12 1700000000.000001 [????????????????] x", 12, START * 10**9 + 1000, "unix"),
        ("12<a> [   1] x", 12, None, "none"),
    ):
        stamp, body = head(line)
        assert (stamp.thread, stamp.time_ns, stamp.style, body) == (thread, nanoseconds, style, "x")


def test_a_link_belongs_to_the_name_that_it_makes_as_the_tracers_say_it(log: Log) -> None:
    log.call('link("f", "new") = 0').call('linkat(AT_FDCWD</w>, "f", AT_FDCWD</w>, "newer", 0) = 0')
    links = {row["path"]: row["links"] for row in log.read().files.to_pylist()}
    assert links == {"/w/f": 0, "/w/new": 1, "/w/newer": 1}


def test_what_looks_like_a_result_inside_a_string_is_none() -> None:
    found = event(r'write(1</w/f>, "a) = 5 <0.1>\"", 14) = 3 <0.000012>')
    assert found == Call("write", r'1</w/f>, "a) = 5 <0.1>\"", 14', 3, None, None, 12_000)


def test_a_cut_string_that_looks_like_a_result_is_no_call() -> None:
    assert event('write(3</w/f>, "a) = 5 or so') is None
    assert event('write(3</w/f>, "a) = 5", <unfinished ...>') == Begun("write", '3</w/f>, "a) = 5",')


def test_comments_after_a_result_are_passed_over() -> None:
    for words in (
        "fcntl(3, F_GETFL) = 0x8002 (flags O_RDWR|O_LARGEFILE) <0.000001>",
        "fork() = 7 /* 8 in strace's PID NS */ <0.000001>",
        "read(3, 0x1, 5) = -1 EAGAIN (Resource temporarily unavailable) <0.000001>",
    ):
        found = event(words)
        assert isinstance(found, Call)
        assert found.duration_ns == 1000


def test_results_have_paths_errors_and_no_value() -> None:
    opened = event(r'openat(AT_FDCWD, "x", O_RDONLY) = 3</w/a\76b> <0.000001>')
    assert isinstance(opened, Call)
    assert (opened.result, opened.path) == (3, r"/w/a\76b")
    failed = event('open("x", O_RDONLY) = -1 ENOENT (No such file or directory)')
    assert isinstance(failed, Call)
    assert (failed.result, failed.error, failed.duration_ns) == (-1, "ENOENT", None)
    gone = event("exit_group(0) = ?")
    assert isinstance(gone, Call)
    assert gone.result is None


def test_interrupted_calls_and_ends_are_told_apart() -> None:
    assert event("read(3</w/f>,  <unfinished ...>") == Begun("read", "3</w/f>,")
    assert event('<... read resumed>"x", 1) = 1') == Resumed("read", '"x", 1) = 1')
    assert event("+++ exited with 3 +++") == Ended(code=3)
    assert event("+++ killed by SIGSEGV (core dumped) +++") == Ended(signal="SIGSEGV")
    assert event("+++ superseded by execve in pid 7 +++") == Ended(superseded_by=7)
    assert event("no line of strace") is None


def test_arguments_split_at_their_own_commas() -> None:
    assert split(r'3</a,b>, [{iov_base="x, \"y", iov_len=2}], 1') == [
        "3</a,b>",
        r'[{iov_base="x, \"y", iov_len=2}]',
        "1",
    ]
    assert text(r'"\303\251\n"') == "é\n"
    assert text(r'"\377"') == r"\xff"
    assert text('"cut"...') is None


def test_sizes_order_and_switches_follow_darshan(log: Log) -> None:
    log.call('write(3</w/f>, "x"..., 100) = 100').call('write(3</w/f>, "x"..., 101) = 101')
    log.call('pwrite64(3</w/f>, "x"..., 50, 4096) = 50').call('pwrite64(3</w/f>, "x"..., 10, 0) = 10')
    log.call('pread64(3</w/f>, "x"..., 4096, 0) = 1000').call('pread64(3</w/f>, "x"..., 9, 1000) = 9')
    row = log.file()
    expected = {
        **{"OPENS": 1, "WRITES": 4, "READS": 2, "BYTES_WRITTEN": 261, "BYTES_READ": 1009},
        **{"SIZE_WRITE_0_100": 3, "SIZE_WRITE_100_1K": 1, "SIZE_READ_100_1K": 1, "SIZE_READ_0_100": 1},
        **{"CONSEC_WRITES": 1, "SEQ_WRITES": 2, "CONSEC_READS": 1, "SEQ_READS": 1, "RW_SWITCHES": 1},
        **{"MAX_BYTE_WRITTEN": 4145, "MAX_BYTE_READ": 1008, "FILE_NOT_ALIGNED": 2, "rewritten_bytes": 10},
    }
    assert {name: row[name] for name in expected} == expected
    assert row["MEM_NOT_ALIGNED"] is None


def test_time_that_two_threads_spent_at_once_counts_once_in_a_file_and_twice_in_a_process(log: Log) -> None:
    log.call("clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}, 88) = 101")
    log.call('pread64(3</w/f>, "x"..., 10, 0) = 10', duration=" <0.001000>")
    log.call('pread64(3</w/f>, "x"..., 10, 0) = 10', 101, " <0.001000>")
    log.line("+++ exited with 0 +++", 101)
    tables = log.read()
    row = next(row for row in tables.files.to_pylist() if row["path"] == "/w/f")
    assert row["F_READ_TIME"] == pytest.approx(0.001001)
    assert json.loads(tables.processes[0].seconds)["read"] == pytest.approx(0.002)
    assert tables.processes[0].threads == 2


def test_duplicates_share_one_offset_and_seeks_move_it(log: Log) -> None:
    log.call('write(3</w/f>, "x"..., 500) = 500').call("dup(3</w/f>) = 4</w/f>")
    log.call("lseek(4</w/f>, 100, SEEK_SET) = 100").call('read(3</w/f>, "x"..., 50) = 50')
    segments = log.read().segments
    assert segments is not None
    reads = [row for row in segments.to_pylist() if row["call"] == "read"]
    assert reads[0]["offset"] == 100


def test_an_offset_that_nobody_told_is_null_and_so_is_what_follows_from_it(log: Log) -> None:
    log.call('read(9</w/other>, "x"..., 50) = 50')
    row = log.file("/w/other")
    assert (row["BYTES_READ"], row["SEQ_READS"], row["MAX_BYTE_READ"]) == (50, None, None)


def test_a_child_appears_before_its_clone_returned(log: Log) -> None:
    log.line("vfork( <unfinished ...>").call('execve("/bin/child", ["child"], 0x1) = 0', 101)
    log.line("<... vfork resumed>) = 101 <0.000200>")
    log.call("brk(NULL) = 0x1", 101).line("+++ killed by SIGTERM +++", 101)
    rows = log.read().processes
    assert [(row.pid, row.parent, row.end, row.status) for row in rows] == [
        (100, None, "exit", 0),
        (101, 0, "exec", None),
        (101, 0, "signal", 15),
    ]
    assert rows[2].executable == "/bin/child"


def test_a_child_and_its_own_child_are_over_before_the_clone_returned(log: Log) -> None:
    log.line("fork( <unfinished ...>").call("set_robust_list(0x7f, 24) = 0", 101)
    log.call("fork() = 102", 101).call("set_robust_list(0x7f, 24) = 0", 102)
    log.line("+++ exited with 0 +++", 102).line("+++ exited with 0 +++", 101)
    tables = log.line("<... fork resumed>) = 101 <0.000200>").read()
    rows = tables.processes
    assert [(row.pid, row.parent, row.end) for row in rows] == [
        (100, None, "exit"),
        (101, 0, "exit"),
        (102, 1, "exit"),
    ]
    assert tables.warnings == ()


def test_an_exec_in_a_thread_takes_the_place_of_the_process(log: Log) -> None:
    log.call("clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}, 88) = 101")
    log.line('execve("/bin/next", ["next"], 0x1 <unfinished ...>', 101)
    log.line("+++ superseded by execve in pid 101 +++").line("<... execve resumed>) = 0 <0.000100>")
    rows = log.read().processes
    assert [(row.pid, row.end) for row in rows] == [(100, "exec"), (100, "exit")]


def test_pipes_and_terminals_are_no_files(log: Log) -> None:
    log.call('write(1</dev/pts/0>, "x", 7) = 7').call('read(5<pipe:[1]>, "x", 9) = 9')
    tables = log.read()
    assert (tables.processes[0].bytes_read, tables.processes[0].bytes_written) == (0, 0)
    assert tables.extra["not_files"]["bytes_read"] == 9
    assert tables.extra["not_files"]["bytes_written"] == 7


def test_without_durations_times_are_null_and_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(
        f'7 {START}.1 execve("/bin/x", ["x"], 0x1) = 0\n'
        f'7 {START}.2 openat(AT_FDCWD</w>, "f", O_RDONLY) = 3</w/f>\n'
        f'7 {START}.3 read(3</w/f>, "x", 5) = 5\n'
        f"7 {START}.4 brk(NULL) = 0x1\n"
        f"7 {START}.5 +++ exited with 0 +++\n"
    )
    tables = read_strace(path)
    row = tables.files.to_pylist()[0]
    assert (row["BYTES_READ"], row["F_READ_TIME"], row["F_READ_START_TIMESTAMP"]) == (5, None, 0.2)
    assert tables.segments is None
    assert set(json.loads(tables.processes[0].seconds).values()) == {None}
    assert any("-T" in doubt for doubt in tables.extra["time_doubts"])


def test_without_times_counts_remain_and_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(
        'execve("/bin/x", ["x"], 0x1) = 0\nopenat(AT_FDCWD, "/w/f", O_RDONLY) = 3\nbrk(NULL) = 0x1\n'
        'read(3, "x", 5) = 5\n+++ exited with 0 +++\n'
    )
    tables = read_strace(path)
    assert tables.files.to_pylist()[0]["BYTES_READ"] == 5
    assert tables.files.to_pylist()[0]["F_OPEN_START_TIMESTAMP"] is None
    assert any("-ttt" in doubt for doubt in tables.extra["time_doubts"])


_CALLS = (
    'execve("/bin/subject", ["subject"], 0x1 /* 1 var */) = 0 <0.000100>',
    'openat(AT_FDCWD</w>, "f", O_WRONLY|O_CREAT, 0644) = 3</w/f> <0.000020>',
    'write(3</w/f>, "x"..., 4096) = 4096 <0.000010>',
    "brk(NULL) = 0x1000 <0.000001>",
    "+++ exited with 0 +++",
)


@pytest.mark.parametrize("options", ["", "k", "i", "n", "Y", "kinY"])
def test_options_that_add_words_to_each_line_change_no_count(tmp_path: Path, options: str) -> None:
    lines = []
    for place, words in enumerate(_CALLS):
        pid = "100<subject>" if "Y" in options else "100"
        number = "[ 257] " if "n" in options else ""
        caller = "[00007f0000001000] " if "i" in options else ""
        lines.append(f"{pid} {START}.{place:06d} {number}{caller}{words}")
        if "k" in options:
            lines.append(" > /usr/lib/libc.so.6(open64+0x5) [0x100]")
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    found = read_strace(tmp_path / "log")
    (row,) = found.files.to_pylist()
    assert (row["path"], row["OPENS"], row["BYTES_WRITTEN"]) == ("/w/f", 1, 4096)
    assert [process.pid for process in found.processes] == [100]
    assert found.extra["wall_s"] is not None
    assert not [words for words in found.warnings if "read" in words or "missing" in words]


def test_what_a_filter_left_out_is_null(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(f'7 {START}.1 openat(AT_FDCWD</w>, "f", O_RDONLY) = 3</w/f> <0.000010>\n')
    tables = read_strace(path)
    row = tables.files.to_pylist()[0]
    assert (row["OPENS"], row["READS"], row["BYTES_WRITTEN"], row["STATS"]) == (1, None, None, None)
    assert any("filtered" in warning for warning in tables.warnings)


def test_a_cut_log_counts_what_is_there_and_says_that_it_was_cut(log: Log) -> None:
    log.call('write(3</w/f>, "x", 5) = 5').call("brk(NULL) = 0x1")
    log.read(end=False)
    whole = log.path.read_text()
    log.path.write_text(whole + f'100 {START}.9 write(3</w/f>, "x", 100) = 10')
    tables = read_strace(log.path)
    assert tables.processes[0].bytes_written == 5
    assert (tables.processes[0].end, tables.processes[0].ended_ns) == ("last seen", 12_000)
    assert any("was cut" in warning for warning in tables.warnings)
    assert any("could not be read" in warning for warning in tables.warnings)


def test_output_of_the_program_among_the_lines_is_said(log: Log) -> None:
    log.line("").path.touch()
    log.call('write(3</w/f>, "x", 5) = 5')
    log.read()
    log.path.write_text(log.path.read_text() + "hello from the program\n")
    assert any("hello from the program" in warning for warning in read_strace(log.path).warnings)


def test_halves_of_calls_are_not_counted_and_said(log: Log) -> None:
    log.line('<... read resumed>"x", 5) = 5 <0.000010>').line("read(3</w/f>,  <unfinished ...>")
    tables = log.read()
    assert tables.processes[0].bytes_read == 0
    assert tables.extra["lost"] == {"lines": 0, "halves of calls": 1, "unfinished calls": 1}


def test_files_of_one_process_each_are_read_together(tmp_path: Path) -> None:
    (tmp_path / "log.7").write_text(
        f'{START}.100000 execve("/bin/x", ["x"], 0x1) = 0 <0.000010>\n'
        f'{START}.200000 openat(AT_FDCWD</w>, "f", O_RDWR) = 3</w/f> <0.000010>\n'
        f"{START}.300000 fork() = 8 <0.000010>\n{START}.900000 +++ exited with 0 +++\n"
    )
    (tmp_path / "log.8").write_text(
        f'{START}.400000 read(3</w/f>, "x", 5) = 5 <0.000010>\n{START}.500000 brk(NULL) = 0x1 <0.000010>\n'
        f"{START}.600000 +++ exited with 4 +++\n"
    )
    rows = read_strace(tmp_path / "log").processes
    assert [(row.pid, row.parent, row.status, row.bytes_read) for row in rows] == [
        (7, None, 0, 0),
        (8, 0, 4, 5),
    ]


@pytest.mark.parametrize("content", ["", "\n\n", "% time     seconds\n100.00 0.1 read\n", "\x00\xff" * 500])
def test_what_is_no_log_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "log"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(UsageError, match="is no log of strace"):
        read_strace(path)


def test_relative_times_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("7      0.000012 brk(NULL) = 0x1\n")
    with pytest.raises(UsageError, match="relative"):
        read_strace(path)


def test_a_log_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no"):
        read_strace(tmp_path / "absent")
    with pytest.raises(UsageError, match="directory"):
        read_strace(tmp_path)


_PIECES = st.sampled_from(
    [
        *(
            "7 ",
            "8 ",
            "[pid 9] ",
            f"{START}.5 ",
            "01:02:03 ",
            "read(",
            "write(3</w/f>, ",
            'openat(AT_FDCWD, "x"',
        ),
        *(
            "io_submit(0x1, 1, [{aio_data=0x1, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3",
            "<unfinished ...>",
        ),
        *(
            "<... read resumed>",
            ") = 5",
            ") = -1 EIO (x)",
            " <0.000010>",
            "+++ exited with 1 +++",
            "fork() = 8",
        ),
        *(
            'execve("/b", ["b"',
            "\\377",
            '"',
            "[",
            "{",
            "<",
            ">",
            ", ",
            "=",
            "?",
            "0x",
            "99999999999999999999",
        ),
        *(
            "lseek(3, -1, SEEK_END",
            "close_range(0, 4294967295, 0",
            "dup2(3, 4",
            "mmap(NULL, 5, PROT_READ, 1, 3, 0",
        ),
        *("splice(3, [1], 4, NULL, 5, 0", "pread64(3</w/f>, ", "+++ superseded by execve in pid 8 +++", "\n"),
    ]
)


@example(['openat(AT_FDCWD, "x"fork() = 8', ""])
@given(st.lists(st.lists(_PIECES | st.text(max_size=5), max_size=8).map("".join), max_size=30))
def test_whatever_a_log_holds_the_tables_keep_their_contract(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "log"
    start = f'7 {START}.1 openat(AT_FDCWD</w>, "f", O_RDWR) = 3</w/f> <0.000010>\n'
    body = "\n".join(lines)
    path.write_text(start * (3 * body.count("\n") + 4) + body, encoding="utf-8", errors="replace")
    tables = read_strace(path)
    moved = [row["BYTES_READ"] or 0 for row in tables.files.to_pylist()]
    assert sum(moved) == sum(row.bytes_read for row in tables.processes)
    assert all(row.parent is None or row.parent < row.process for row in tables.processes)
    assert tables.segments is None or min(tables.segments["start_ns"].to_pylist(), default=0) >= 0


def findings_of(content: TraceTables, path: Path) -> Findings:
    create_trace_result(path, {"t0001": content}, title="log", details={}, now_ns=clock())
    return build_findings(open_result(path), with_charts=False)


def of_reads(path: Path, read_us: int, count: int = 2000, reference_us: int = 40) -> TraceTables:
    """Small reads in a row, each as long, and after every tenth a call that has nothing to do."""
    calls = [('openat(AT_FDCWD</w>, "f", O_RDONLY) = 3</w/f>', 10)]
    for number in range(count):
        calls.append(('read(3</w/f>, "x"..., 512) = 512', read_us))
        if number % 10 == 0 and reference_us:
            calls.append(("getpid() = 100", reference_us))
    lines, now_us = [], 0
    for words, took_us in calls:
        lines.append(f"100 {START + now_us // 10**6}.{now_us % 10**6:06d} {words} <{took_us / 1e6:.6f}>")
        now_us += took_us + 50
    lines.append(f"100 {START + now_us // 10**6}.{now_us % 10**6:06d} +++ exited with 0 +++")
    path.write_text("\n".join(lines) + "\n")
    return read_strace(path)


@pytest.mark.provokes("inexact_times")
def test_what_strace_itself_costs_is_no_finding(tmp_path: Path) -> None:
    content = of_reads(tmp_path / "log", read_us=40)
    findings = findings_of(content, tmp_path / "r")
    metrics = findings.cells[0].metrics
    assert content.extra["call_cost_s"] == pytest.approx(40e-6, rel=0.02)
    assert [one.text for one in findings.statements if one.says == "rule_small_reads"] == []
    assert metrics["read_share"].value == pytest.approx(0, abs=1e-6)
    assert [code.code for code in findings.cells[0].validity.codes] == ["inexact_times"]
    assert metrics["compute_share"].value is None


def test_what_storage_took_beyond_strace_is_still_found(tmp_path: Path) -> None:
    content = of_reads(tmp_path / "log", read_us=5000)
    findings = findings_of(content, tmp_path / "r")
    assert any(one.says == "rule_small_reads" for one in findings.statements)
    row = next(row for row in content.files.to_pylist() if row["path"] == "/w/f")
    assert row["F_READ_TIME"] == pytest.approx(2000 * (5000 - 40) * 1e-6, rel=1e-3)


def test_without_calls_that_tell_straces_cost_no_time_is_claimed(tmp_path: Path) -> None:
    findings = findings_of(of_reads(tmp_path / "log", read_us=5000, reference_us=0), tmp_path / "r")
    assert findings.cells[0].metrics["read_share"].value is None
    assert findings.cells[0].metrics["io_time"].value is None
    said = {one.says: one.text for one in findings.statements}
    assert "is unknown" in said["trace_time"]
    assert "its cost is not known" in said["rule_small_reads"]


def test_a_fifo_is_known_by_what_calls_say_of_it(log: Log) -> None:
    log.call('mknodat(AT_FDCWD</w>, "q", S_IFIFO|0666) = 0')
    log.call('openat(AT_FDCWD</w>, "q", O_RDONLY) = 4</w/q>', duration=" <0.900000>")
    content = log.read()
    modules = {row["path"]: row["module"] for row in content.files.to_pylist()}
    assert modules == {"/w/f": "POSIX", "/w/q": STREAM}
    assert json.loads(content.processes[0].seconds)["meta"] < 0.001


PLAIN = (
    'openat(AT_FDCWD, "/w/f", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3 <0.000020>',
    'write(3</w/f>, "x", 4096) = 4096 <0.000010>',
    "close(3</w/f>) = 0 <0.000005>",
    "exit_group(0) = ?",
    "+++ exited with 0 +++",
)
# What each option of strace adds to a line, as strace 6.1 writes it.
ADDED = {
    "-i": lambda time, line: f"100 {time} [00007f0000001000] {line}",
    "-n": lambda time, line: f"100 {time} [ 257] {line}",
    "-n -i": lambda time, line: f"100 {time} [ 257] [????????????????] {line}",
    "-Y": lambda time, line: f"100<python3> {time} {line}",
    "-k": lambda time, line: f"100 {time} {line}\n > /usr/lib/libc.so.6(write+0x5) [0x200]\n > [stack]",
}


@pytest.mark.parametrize("options", ADDED)
def test_a_log_with_more_columns_says_the_same(tmp_path: Path, options: str) -> None:
    def read(name: str, written: Callable[[str, str], str]) -> tuple[object, ...]:
        lines = [written(f"{START}.{place:06}", line) for place, line in enumerate(PLAIN, 1)]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        found = read_strace(tmp_path / name)
        return found.processes, found.files.to_pylist(), found.warnings, found.extra["wall_s"]

    plain = read("plain", lambda time, line: f"100 {time} {line}")
    assert read("more", ADDED[options]) == plain
    assert plain[1][0]["BYTES_WRITTEN"] == 4096  # type: ignore[index]
    assert plain[2] == ()


def test_a_log_without_times_has_no_run_time_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("".join(f"100 {line}\n" for line in PLAIN))
    tables = read_strace(tmp_path / "log")
    assert [row.ended_ns for row in tables.processes] == [None]
    create_trace_result(tmp_path / "r", {"t0001": tables}, title="log", details={}, now_ns=clock())
    findings = build_findings(open_result(tmp_path / "r"), with_charts=False)
    run_time = findings.cells[0].metrics["run_time"]
    assert (run_time.value, run_time.reason) == (None, "the log has no times: strace ran without -ttt")
    heads = [one.text for one in findings.statements if one.says == "trace_time"]
    assert " for " not in heads[0].partition(";")[0]
    assert [code.code for code in findings.cells[0].validity.codes] == ["inexact_times"]
