"""Standard streams that fail, and a process that lacks something: named as what they are, and no defect."""

from __future__ import annotations

import codecs
import errno
import io
import os
import resource
import subprocess
from pathlib import Path

import pytest

from leadline.cli import console
from leadline.cli.main import run_command_line
from leadline.errors import LeadlineError, ResultError, SpecError
from leadline.foreign import reading as reading_of
from leadline.study.target import parse_target
from leadline.units import NO_VALUE
from support import command_line

codecs.register_error(console.PLAIN_ERRORS, console.plain_letters)
DEFECT = ("defect", "internal error", "Traceback", "restore")


def command(*words: str, line: str) -> subprocess.CompletedProcess[str]:
    """`leadline WORDS` in a line of bash, where it is `"$@"`."""
    words = ("bash", "-c", line, "bash", *command_line(*words))
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert not any(word in done.stderr for word in DEFECT), done.stderr
    return done


def test_a_closed_standard_output_leads_nowhere_and_changes_no_exit_code() -> None:
    done = command("studies", line='"$@" >&-')
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", [("engines",), ("plan", "quick", "--target", "a=null://")])
def test_a_reader_that_left_ends_the_command_as_sigpipe_does_and_nothing_is_said(
    words: tuple[str, ...],
) -> None:
    """In plain lines and in a table, which rich prints."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command_line(*words), stdout=writing, stderr=subprocess.PIPE, timeout=120, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_standard_output_is_named() -> None:
    done = command("studies", line='"$@" >/dev/full')
    assert done.returncode == 1
    assert done.stderr.startswith("leadline: standard output cannot be written: No space left on device\n")


def test_a_closed_or_full_standard_error_changes_nothing() -> None:
    for shell in ('"$@" 2>&-', '"$@" 2>/dev/full'):
        assert command("show", "/nonexistent", line=shell).returncode == 2


def test_a_locale_that_lacks_a_letter_gets_it_in_plain_letters() -> None:
    encoding = "PYTHONUTF8=0 PYTHONIOENCODING=iso-8859-1"
    done = command("plan", "quick", "--target", "a=null://", line=f'{encoding} "$@"')
    assert done.returncode == 0
    assert "-----" in done.stdout  # the lines of a table
    text = f"±5 % {NO_VALUE} ▁█ … ü 漢"
    for name, shown in (
        ("ascii", "+-5 % - 18 ... \\xfc \\u6f22"),
        ("iso-8859-1", "±5 % - 18 ... ü \\u6f22"),
    ):
        assert text.encode(name, console.PLAIN_ERRORS).decode(name) == shown


def test_what_fails_once_leads_nowhere_from_then_on() -> None:
    number = os.open("/dev/full", os.O_WRONLY)
    try:
        out = io.TextIOWrapper(io.BufferedWriter(console.StandardStream(number, needed=True)))
        out.write("x")
        with pytest.raises(LeadlineError, match="No space left"):
            out.flush()
        out.write("y")
        out.flush()  # nor does the end of the interpreter say anything
    finally:
        os.close(number)


def test_few_descriptors_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    """In a process of its own: this one may have as many open already, and could load nothing any more."""
    done = subprocess.run(
        command_line("run", "quick", "--target", f"a={tmp_path}", "-o", str(tmp_path / "r")),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24)),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "this process may open 24 files" in done.stderr
    assert "ulimit -n" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_missing_proc_is_named_before_any_verb_begins(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("leadline.errors._PROC", "/nonexistent/")
    target, out = f"a={tmp_path}", str(tmp_path / "r")
    assert run_command_line(["run", "quick", "--target", target, "-o", out]) == 2
    assert "/proc is not mounted" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_for_the_end_of_a_run_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """Below 300 MiB a library of C++ aborts, which no exception tells."""
    place = ("--target", f"a={tmp_path}", "-o", str(tmp_path / "r"))
    done = command("run", "quick", *place, line='ulimit -v 300000; "$@"')
    assert done.returncode == 2
    assert "this process got no more memory: its limit of address space is 292 MiB" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("problem", "words", "remedy"),
    [
        (ImportError("x.so: failed to map segment from shared object"), "no more memory", "ulimit -v"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "no more memory", "ulimit -v"),
        (OSError(errno.EMFILE, "Too many open files"), "too many files are open", "ulimit -n"),
        (RuntimeError("can't start new thread"), "no more threads", "ulimit -u"),
    ],
)
def test_what_this_process_lacks_damages_no_result_and_is_no_defect(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    problem: Exception,
    words: str,
    remedy: str,
) -> None:
    with pytest.raises(ResultError) as caught, reading_of("R/x"):
        raise problem
    assert caught.value.message.startswith("R/x cannot be read: ")
    assert words in caught.value.message
    assert remedy in caught.value.remedy

    def fails(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr("click.Group.main", fails)
    assert run_command_line(["list"]) == 1
    said = capfd.readouterr().err
    assert words in said
    assert not any(word in said for word in DEFECT)


def test_a_target_whose_name_is_not_utf8_is_refused_as_that() -> None:
    with pytest.raises(SpecError, match="takes paths in UTF-8, and this one is not"):
        parse_target("a=bad\udcff")
    assert parse_target("a=/tmp/ü").url == "/tmp/ü"


def test_a_name_that_cannot_be_written_is_no_defect(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("click.Group.main", lambda *_, **__: "bad\udcff".encode())
    assert run_command_line(["list"]) == 1
    said = capfd.readouterr().err
    assert "bad\\udcff cannot be written in utf-8" in said
    assert not any(word in said for word in DEFECT)
