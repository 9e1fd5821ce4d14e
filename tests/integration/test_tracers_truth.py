"""Our own tracers and the truth: each sees what a program says that it did, or says what it cannot see."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from leadline.tracing import bpf, preload
from trace_truth import (
    compiled_c,
    compiled_go,
    compiled_rust,
    differences,
    in_system_calls,
    plain_names,
    printed,
    under_leadline,
    within,
)

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

SCENARIOS = (
    *("data", "opens", "descriptors", "names", "directory", "sizes", "copies", "buffered", "asynchronous"),
    *("libaio", "threads", "forks", "spawns", "replaced", "killed"),
)
VARIANTS = {
    "plain": (),
    "fortified": ("-D_FORTIFY_SOURCE=2",),
    "large": ("-D_FILE_OFFSET_BITS=64",),
}


def require(via: str) -> None:
    """Skip with the tracer's own reason where it cannot work."""
    if via == "bpf":
        reason = bpf.unavailable()
    else:
        reason = None if preload.LIBRARY.is_file() else f"{preload.LIBRARY} was not built"
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="module", params=VARIANTS)
def in_c(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled_c(tmp_path_factory.mktemp(request.param), *VARIANTS[request.param])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_library_sees_every_function_and_byte_of_a_program(
    in_c: Path, scenario: str, place: Path
) -> None:
    require("preload")
    said, tables = under_leadline([str(in_c), scenario], place, "preload")
    truth = printed(said)
    seen = within(tables, place)
    found = differences(
        truth.renamed(plain_names(truth.calls), plain_names(truth.everywhere)),
        seen.renamed(plain_names(seen.calls), plain_names(seen.everywhere)),
        fileless=True,
    )
    assert found == []


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_kernel_programs_see_every_call_and_byte_of_a_program(
    tmp_path: Path, scenario: str, place: Path
) -> None:
    require("bpf")
    said, tables = under_leadline([str(compiled_c(tmp_path, "-static")), scenario], place, "bpf")
    truth, seen = in_system_calls(printed(said)), within(tables, place)
    found = differences(truth, seen, fileless=True)
    if any("io_submit" in note for note in seen.notes):  # it says that it does not know these bytes
        found = [words for words in found if not words.startswith("bytes_")]
    assert found == []


def test_the_kernel_programs_see_what_goes_through_a_ring(tmp_path: Path, place: Path) -> None:
    require("bpf")
    said, tables = under_leadline([str(compiled_c(tmp_path)), "ring"], place, "bpf")
    seen = within(tables, place)
    assert (seen.bytes_read, seen.bytes_written) == printed(said).ring
    assert (seen.calls["io_uring:read"], seen.calls["io_uring:write"]) == (3, 3)


def test_the_library_says_that_it_cannot_see_what_goes_through_a_ring(tmp_path: Path, place: Path) -> None:
    require("preload")
    _, tables = under_leadline([str(compiled_c(tmp_path)), "ring"], place, "preload")
    assert "io_uring" in within(tables, place).notes


def test_a_static_program_in_go_is_followed_in_the_kernel(tmp_path: Path, place: Path) -> None:
    require("bpf")
    if shutil.which("go") is None:
        pytest.skip("no go")
    said, tables = under_leadline([str(compiled_go(tmp_path))], place, "auto")
    assert tables.mode == "bpf"
    assert differences(in_system_calls(printed(said)), within(tables, place), fileless=True) == []


def test_a_program_in_rust_agrees(tmp_path: Path, place: Path) -> None:
    require("preload")
    if shutil.which("rustc") is None:
        pytest.skip("no rustc")
    said, tables = under_leadline([str(compiled_rust(tmp_path))], place, "preload")
    truth, seen = printed(said), within(tables, place)
    seen = seen.renamed(plain_names(seen.calls), plain_names(seen.everywhere))
    assert differences(truth, seen, fileless=True) == []
