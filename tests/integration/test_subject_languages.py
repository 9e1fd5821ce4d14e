"""A subject in every language: what it says of its calls and bytes is what strace and both tracers see."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from built import PROGRAM, built
from leadline.tracing.sources import bpf, preload
from support import Command
from trace_truth import (
    PROGRAMS,
    compiled_rust,
    differences,
    in_system_calls,
    plain_names,
    printed,
    under_leadline,
    under_strace,
    within,
)


def compiled_cpp() -> Path:
    """The subject in C++."""
    source = PROGRAMS / "subject.cpp"
    warnings = ("-Wall", "-Wextra", "-Werror")
    command = ["g++", "-O2", "-std=c++17", *warnings, "-o", PROGRAM, str(source), "-lpthread"]
    return built("subject_cpp", [source], command)


@dataclass(frozen=True)
class Language:
    """What it needs, how its subject is started, and whether that knows its calls beside its bytes."""

    needs: str
    command: Callable[[], Sequence[str | Path]]
    knows_calls: bool = True


_PYTHON = (sys.executable, "-S", PROGRAMS / "subject.py")
LANGUAGES = {
    "c++": Language("g++", lambda: [compiled_cpp()]),
    "rust": Language("rustc", lambda: [compiled_rust()]),
    "python": Language(sys.executable, lambda: [*_PYTHON]),
    "python copy": Language(sys.executable, lambda: [*_PYTHON, "copy"], knows_calls=False),
    "shell": Language("sh", lambda: ["sh", PROGRAMS / "subject.sh"], knows_calls=False),
}


def require(via: str) -> None:
    """Skip with the tracer's own reason where it cannot work."""
    if via == "preload":
        assert preload.LIBRARY.is_file(), "the build makes it: where it is missing nothing is traced"
    elif via == "bpf" and (reason := bpf.unavailable()) is not None:
        pytest.skip(reason)
    elif via == "strace" and shutil.which("strace") is None:
        pytest.skip("no strace")


@pytest.mark.parametrize("via", ["strace", "preload", "bpf"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_of_any_language_agrees(leadline: Command, language: str, via: str, place: Path) -> None:
    require(via)
    chosen = LANGUAGES[language]
    if shutil.which(chosen.needs) is None:
        pytest.skip(f"no {chosen.needs}")
    command = [str(word) for word in chosen.command()]
    if via == "strace":
        said, tables = under_strace(command, place)
    else:
        said, tables = under_leadline(leadline, command, place, via)
    truth, seen = printed(said), within(tables, place)
    if via == "preload":
        seen = seen.renamed(plain_names(seen.calls), plain_names(seen.everywhere))
        calls = truth.calls  # of `fclose` the library sees the `close` in it
        calls["close"] += calls.pop("fclose", 0)
    else:
        truth = in_system_calls(truth)
    found = differences(truth, seen, fileless=True)
    assert [words for words in found if chosen.knows_calls or words.startswith("bytes_")] == []


@pytest.mark.parametrize("via", ["strace", "preload", "bpf"])
def test_reads_that_bring_nothing_are_counted_and_no_others(leadline: Command, via: str, place: Path) -> None:
    require(via)
    data = place / "data"
    data.write_bytes(b"x" * 100)
    code = (
        f"import os; f = os.open({str(data)!r}, os.O_RDONLY)\n"
        "for size in (60, 60, 60, 60, 60): os.read(f, size)\n"  # 60, 40, and nothing three times
        "os.pread(f, 1, 99); os.pread(f, 1, 100)"
    )
    command = [sys.executable, "-S", "-c", code]
    _, tables = (
        under_strace(command, place) if via == "strace" else under_leadline(leadline, command, place, via)
    )
    (row,) = (row for row in tables.files.to_pylist() if row["path"] == str(data))
    assert (row["READS"], row["BYTES_READ"], row["empty_reads"]) == (7, 101, 4)
