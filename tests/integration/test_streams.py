"""Streams of the C library: what they move counts where it reaches the kernel, as strace and files say."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from leadline.tracing.sources import preload
from support import Command
from trace_truth import (
    Counts,
    compiled_c,
    differences,
    in_system_calls,
    plain_names,
    under_leadline,
    under_strace,
    within,
)

pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc"),
    pytest.mark.skipif(shutil.which("strace") is None, reason="no strace (Debian: strace)"),
]

WRITTEN = (
    "printf",
    "__printf_chk",
    "vprintf",
    "__vprintf_chk",
    "puts",
    "putchar",
    "putchar_unlocked",
    "wprintf",
)
MESSAGES = ("perror", "warn")
READ = ("getchar", "getchar_unlocked", "scanf", "isoc99_scanf", "fgets", "fgetws", "getline")
# The system calls that streams make with a descriptor.
MOVING = ("read", "write", "lseek", "newfstatat", "close")


def standard() -> str:
    """The subject, compiled."""
    return str(compiled_c(subject="standard"))


def moving(counts: Counts) -> Counts:
    """Without the calls that are no stream's."""
    return counts.renamed(Counter({name: counts.calls[name] for name in MOVING}), counts.everywhere)


def beside_strace(leadline: Command, command: Sequence[str], place: Path) -> tuple[list[str], Counts]:
    """How the library's account of a command differs from strace's, and the library's."""
    assert preload.LIBRARY.is_file(), "the build makes it: where it is missing nothing is traced"
    kernel, own = place / "kernel", place / "own"
    for directory in (kernel, own):
        directory.mkdir()
        for file in place.iterdir():
            if file.is_file():
                shutil.copy(file, directory)
    truth = within(under_strace(command, kernel)[1], kernel)
    seen = within(under_leadline(leadline, command, own, "preload")[1], own)
    seen = seen.renamed(plain_names(seen.calls), seen.everywhere)
    return differences(moving(truth), moving(in_system_calls(seen))), seen


def state(leadline: Command, place: Path) -> list[str]:
    """The codes of the trace that was made in a place."""
    shown = json.loads(leadline("show", "--json", str(place / "own.preload")).stdout)
    return [code["code"] for cell in shown["cells"] for code in cell["validity"]["codes"]]


@pytest.mark.parametrize("way", WRITTEN)
def test_every_way_to_standard_output_is_counted_in_bytes_and_calls(
    leadline: Command, way: str, place: Path
) -> None:
    command = ["sh", "-c", f"exec {standard()} write {way} > out"]
    found, seen = beside_strace(leadline, command, place)
    assert found == []
    assert seen.bytes_written == (place / "own" / "out").stat().st_size > 60_000
    assert state(leadline, place) == []


@pytest.mark.parametrize("way", MESSAGES)
def test_messages_of_the_c_library_itself_are_counted(leadline: Command, way: str, place: Path) -> None:
    found, seen = beside_strace(leadline, ["sh", "-c", f"exec {standard()} write {way} 2> out"], place)
    assert [
        words for words in found if not words.startswith("close")
    ] == []  # perror duplicates standard error
    assert seen.bytes_written == (place / "own" / "out").stat().st_size > 60_000


@pytest.mark.parametrize("way", READ)
def test_every_way_from_standard_input_is_counted_in_bytes_and_calls(
    leadline: Command, way: str, place: Path
) -> None:
    (place / "in").write_text("".join(f"{number} of some words\n" for number in range(4_000)))
    found, seen = beside_strace(leadline, ["sh", "-c", f"exec {standard()} read {way} < in"], place)
    assert found == []
    assert seen.bytes_read == (place / "in").stat().st_size
    assert state(leadline, place) == []


def test_processes_that_share_one_descriptor_or_append_to_one_file_count_what_each_writes(
    leadline: Command, place: Path
) -> None:
    one = f"{standard()} write printf"
    script = f"({one} & {one} & wait) > shared; {one} >> appended & {one} >> appended; wait"
    found, seen = beside_strace(leadline, ["sh", "-c", script], place)
    assert found == []
    sizes = [(place / "own" / name).stat().st_size for name in ("shared", "appended")]
    assert seen.bytes_written == sum(sizes) > 240_000


@pytest.mark.parametrize("subject", ["streams", "buffered", "reopened"])
def test_the_functions_of_streams_make_the_calls_that_strace_sees(
    leadline: Command, subject: str, place: Path
) -> None:
    if subject == "streams":
        # Optimized, headers and the compiler make other functions of some: getline becomes __getdelim.
        command = [str(compiled_c("-O0", "-fno-builtin", subject="streams"))]
    else:
        command = [str(compiled_c()), subject]
    found, _ = beside_strace(leadline, command, place)
    assert found == []
    assert state(leadline, place) == []


def test_what_stays_in_a_buffer_is_no_access_and_takes_no_time(leadline: Command, place: Path) -> None:
    """4,000 calls, some dozen writes: the rest is the program's."""
    own = place / "own"
    own.mkdir()
    command = ["sh", "-c", f"exec {standard()} write fwrite > out"]
    _, tables = under_leadline(leadline, command, own, "preload")
    rows = [row for row in tables.files.to_pylist() if row["path"] == str(own / "out") and row["WRITES"]]
    (row,) = rows
    size = (own / "out").stat().st_size
    assert (row["BYTES_WRITTEN"], row["WRITES"]) == (size, -(-size // 4096))
    assert row["SIZE_WRITE_0_100"] == 0
    written = sum(latency.operations for latency in tables.latency if latency.kind == "write")
    assert written == row["WRITES"]
