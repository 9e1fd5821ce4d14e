"""Our own tracers and the truth: each sees what a program says that it did, or says what it cannot see."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from leadline.tracing.sources import bpf, preload
from support import Command
from trace_truth import (
    compiled_c,
    compiled_go,
    differences,
    disagreements,
    in_system_calls,
    plain_names,
    printed,
    under_leadline,
    within,
)

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

SCENARIOS = (
    *("data", "opens", "descriptors", "names", "directory", "sizes", "copies", "buffered", "asynchronous"),
    *("reopened", "lists", "libaio", "threads", "forks", "spawns", "replaced", "killed"),
)
# Their calls are inside the C library: test_streams.py
OF_STREAMS = ("buffered", "reopened")
# Variants of symbols that a compiler chooses: shown by the scenarios that have most of them.
VARIANTS = {"fortified": ("-D_FORTIFY_SOURCE=2",), "large": ("-D_FILE_OFFSET_BITS=64",)}
VARIED = ("data", "names", "sizes")


def require(via: str) -> None:
    """Skip with the tracer's own reason where it cannot work."""
    if via == "preload":
        assert preload.LIBRARY.is_file(), "the build makes it: where it is missing nothing is traced"
    elif (reason := bpf.unavailable()) is not None:
        pytest.skip(reason)


def library_differences(leadline: Command, program: Path, scenario: str, place: Path) -> list[str]:
    """Functions and bytes that do not agree, whatever variant of a symbol was called."""
    said, tables = under_leadline(leadline, [str(program), scenario], place, "preload")
    truth, seen = printed(said), within(tables, place)
    seen.calls.pop("aio_return", None)  # where the library learns what aio_read and aio_write moved
    found = differences(
        truth.renamed(plain_names(truth.calls), truth.everywhere),
        seen.renamed(plain_names(seen.calls), plain_names(seen.everywhere)),
        fileless=True,
    )
    return found + disagreements(tables)


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name not in OF_STREAMS])
def test_the_library_sees_every_function_and_byte_of_a_program(
    leadline: Command, scenario: str, place: Path
) -> None:
    require("preload")
    assert library_differences(leadline, compiled_c(), scenario, place) == []


@pytest.mark.parametrize("scenario", VARIED)
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_library_sees_the_variants_of_a_symbol(
    leadline: Command, variant: str, scenario: str, place: Path
) -> None:
    require("preload")
    assert library_differences(leadline, compiled_c(*VARIANTS[variant]), scenario, place) == []


def test_the_library_sees_the_functions_of_programs_linked_long_ago(leadline: Command, place: Path) -> None:
    require("preload")
    said, tables = under_leadline(leadline, [str(compiled_c(subject="old"))], place, "preload")
    truth, seen = printed(said), within(tables, place)
    assert differences(truth, seen, fileless=True) == []
    stats = sum(row["STATS"] for row in tables.files.to_pylist() if row["path"] == str(place / "file"))
    assert stats == sum(count for name, count in truth.calls.items() if "xstat" in name) - 1  # one failed


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_kernel_programs_see_every_call_and_byte_of_a_program(
    leadline: Command, scenario: str, place: Path
) -> None:
    require("bpf")
    said, tables = under_leadline(leadline, [str(compiled_c("-static")), scenario], place, "bpf")
    truth, seen = in_system_calls(printed(said)), within(tables, place)
    found = differences(truth, seen, fileless=True)
    if any("io_submit" in note for note in seen.notes):  # it says that it does not know these bytes
        found = [words for words in found if not words.startswith("bytes_")]
    assert found == []


def test_the_kernel_programs_see_what_goes_through_a_ring(leadline: Command, place: Path) -> None:
    require("bpf")
    said, tables = under_leadline(leadline, [str(compiled_c()), "ring"], place, "bpf")
    seen = within(tables, place)
    assert (seen.bytes_read, seen.bytes_written) == printed(said).ring
    assert (seen.calls["io_uring:read"], seen.calls["io_uring:write"]) == (3, 3)


def test_the_library_says_that_it_cannot_see_what_goes_through_a_ring(leadline: Command, place: Path) -> None:
    require("preload")
    _, tables = under_leadline(leadline, [str(compiled_c()), "ring"], place, "preload")
    assert "io_uring" in within(tables, place).notes


def test_a_static_program_in_go_is_followed_in_the_kernel(leadline: Command, place: Path) -> None:
    require("bpf")
    if shutil.which("go") is None:
        pytest.skip("no go")
    said, tables = under_leadline(leadline, [str(compiled_go())], place, "auto")
    assert tables.mode == "bpf"
    assert differences(in_system_calls(printed(said)), within(tables, place), fileless=True) == []
