"""Every function that the preloaded library takes the place of has a subject that calls it by its own symbol.

The subjects say what they did under the symbols' names; the library has to count the same, and the tracer in
the kernel the system calls behind them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from asynchronous_subject import WITH_HEADERS, subject

from built import PROGRAM, built
from leadline import _core
from leadline.tracing.sources import bpf, preload
from leadline.workloads.replay.script import vocabulary
from support import Command
from trace_truth import (
    PROGRAMS,
    compiled_c,
    differences,
    in_system_calls,
    plain_names,
    printed,
    under_leadline,
    within,
)

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

# What no subject calls by this name, and why.
UNCALLED = {
    **dict.fromkeys(("aio_read64", "aio_write64", "aio_return64", "lio_listio64"), "off_t has 64 bits here"),
    **dict.fromkeys(("aio_fsync", "aio_fsync64"), "counted, its figures are held by no subject"),
    **dict.fromkeys(("io_uring_queue_init_params", "io_uring_queue_mmap"), "only marks, as queue_init does"),
}
# Calls that are in a list of functions but have no function of their own in the C library.
WITHOUT_SYMBOL = frozenset({"io_uring_setup", "io_uring_enter", "io_uring_register"})
# Calls of streams, in older logs only: what streams move is recorded where the C library moves it.
RETIRED = frozenset(vocabulary()["buffered"]) | frozenset(
    ["fclose", "fflush", "ungetc", "fseek", "fseeko", "fseeko64", "fsetpos", "fsetpos64", "rewind"]
)


def streams(*flags: str) -> Path:
    """The subject of streams."""
    # Optimized, headers and the compiler make other functions of some: getline becomes __getdelim.
    return compiled_c("-O0", "-fno-builtin", *flags, subject="streams")


def files(*flags: str) -> Path:
    """The subject of files and directories, with the function that only newer C libraries have."""
    source = PROGRAMS / "newer.c"
    if "-static" in flags:
        return compiled_c(*flags, str(source), subject="symbols")
    made = ["gcc", "-O2", "-shared", "-fPIC", "-o", PROGRAM, str(source)]
    newer = built("libnewer.so", [source], made)
    linked = ("-Wl,--no-as-needed", str(newer), f"-Wl,-rpath,{newer.parent}")
    return compiled_c(*flags, *linked, subject="symbols")


def programs(*flags: str) -> Path:
    """The subject of programs that begin others."""
    return compiled_c(*flags, subject="programs")


def calls_by_name(*flags: str) -> Path:
    """The subject of the functions that most programs call."""
    source = PROGRAMS.parent / "trace_calls.c"
    warnings = ("-O1", "-Wall", "-U_FORTIFY_SOURCE", "-pthread")
    return built("trace_calls", [source], ["gcc", *warnings, *flags, str(source), "-o", PROGRAM])


def old(*flags: str) -> Path:
    """The subject that was linked long ago."""
    return compiled_c(*flags, subject="old")


SUBJECTS = {"streams": streams, "files": files}  # of the functions of streams: test_streams.py
SYMBOLS = {**SUBJECTS, "programs": programs, "calls_by_name": calls_by_name, "old": old}


def test_the_library_counts_every_function_under_its_own_symbol(leadline: Command, place: Path) -> None:
    assert preload.LIBRARY.is_file(), "the build makes it: where it is missing nothing is traced"
    said, tables = under_leadline(leadline, [str(files())], place, "preload")
    assert differences(printed(said), within(tables, place), fileless=True) == []


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_kernel_programs_see_the_system_calls_behind_them(
    leadline: Command, subject: str, place: Path
) -> None:
    if (reason := bpf.unavailable()) is not None:
        pytest.skip(reason)
    said, tables = under_leadline(leadline, [str(SUBJECTS[subject]("-static"))], place, "bpf")
    counted = printed(said)
    plain = counted.renamed(plain_names(counted.calls), counted.everywhere)
    found = differences(in_system_calls(plain), within(tables, place), fileless=True)
    if subject == "streams":  # the C library reads ahead, and again after a seek
        found = [words for words in found if not words.startswith("bytes_read")]
    assert found == []


@pytest.mark.parametrize("via", ["preload", "bpf"])
def test_a_program_is_followed_however_it_begins_and_ends(leadline: Command, via: str, place: Path) -> None:
    if via == "bpf" and (reason := bpf.unavailable()) is not None:
        pytest.skip(reason)
    said, tables = under_leadline(leadline, [str(programs())], place, via)
    own = json.loads(said.splitlines()[0])
    written = {row["path"]: row["BYTES_WRITTEN"] for row in tables.files.to_pylist()}
    assert {way: written.get(str(place / way)) for way in own["ways"]} == dict.fromkeys(own["ways"], 64)
    ends = Counter((row.end, row.status) for row in tables.processes)
    assert {code: ends["exit", code] for code in own["codes"]} == dict.fromkeys(own["codes"], 1)
    assert ends["exit", 0] == len(own["ways"]) + 1
    truth = printed(said) if via == "preload" else in_system_calls(printed(said))
    assert differences(truth, within(tables, place), fileless=True) == []


def symbols_wanted(program: Path) -> frozenset[str]:
    """Functions that a program asks the loader for."""
    return _symbols(program, "--undefined-only")


def _symbols(program: Path, which: str) -> frozenset[str]:
    listed = subprocess.run(["nm", "-D", which, str(program)], check=True, capture_output=True, text=True)
    return frozenset(line.split()[-1].partition("@")[0] for line in listed.stdout.splitlines())


def taken_by_the_library() -> frozenset[str]:
    """What it puts its own in the place of."""
    exported = _symbols(preload.LIBRARY, "--defined-only")
    return frozenset(name for name in exported if not name.startswith("leadline_"))


def named_by(subject: str, place: Path) -> frozenset[str]:
    """Functions that a subject calls by their symbols, by its own account where it has one for them."""
    program = SYMBOLS[subject]()
    wanted = symbols_wanted(program)
    done = subprocess.run([str(program)], cwd=place, capture_output=True, text=True, timeout=60, check=False)
    counted = dict(json.loads(done.stdout.splitlines()[-1])["calls"])
    return wanted & (frozenset(counted) | (wanted - frozenset(_core.traced_calls())))


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
@WITH_HEADERS
def test_no_function_is_taken_that_no_subject_calls(tmp_path: Path) -> None:
    named = set()
    for name in SYMBOLS:
        place = tmp_path / name
        place.mkdir()
        named |= named_by(name, place)
    named |= symbols_wanted(Path(subject("posix")[0]))  # its figures are held in test_asynchronous.py
    missing = taken_by_the_library() - named
    assert sorted(missing - UNCALLED.keys()) == []
    assert sorted(UNCALLED.keys() - missing) == [], "they have a subject now"


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
def test_every_function_of_the_list_is_taken() -> None:
    requests = {name for name in _core.traced_calls() if ":" in name}  # of asynchronous interfaces
    assert frozenset(_core.traced_calls()) - taken_by_the_library() - requests == WITHOUT_SYMBOL | RETIRED
