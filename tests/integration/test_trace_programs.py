"""Real programs under `leadline trace`: their calls are strace's, and their bytes those that the kernel sums.

The tracer in the kernel has to agree exactly. The preloaded library sees functions of the C library: what the
loader and the C library do for themselves is missing; each such call has its reason in `residue.yaml`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from library_truth import (
    FUNCTIONS,
    Calls,
    Seen,
    calls_of_strace,
    differences_by_path,
    functions_called,
    opened_inside,
    seen_by_functions,
)
from strace_callers import strace_callers
from strace_counts import strace_counts

from leadline import _core
from leadline.store.reader import open_result
from leadline.tracing.sources import bpf, preload
from leadline.tracing.store import read_trace
from support import command_line
from trace_truth import PROGRAMS

PYTHON = os.path.realpath(sys.executable)
MOMENT = "2026-01-01T00:00:00Z"
# What the launcher adds, with values of the same lengths.
LAUNCHED = {"LEADLINE_COPY": "0", "LEADLINE_TRACE": "0123456789abcdef"}

# Each begins by removing what it makes, so that every run does the same.
COMMANDS = {
    "tar": "rm -rf out a.tar; tar cf a.tar files; mkdir out; tar xf a.tar -C out",
    # A file as young as the index would be read again, or not: its time is long ago.
    "git": "rm -rf a b; git init -q a; seq 9 > a/f; touch -d @1000000000 a/f; "
    "git -C a add .; git -C a commit -qm 1; git clone -q a b",
    "sqlite3": "rm -f d.db; sqlite3 d.db 'create table t(a); insert into t values (1), (2); select * from t'",
    "python3": f"{PYTHON} -I -S -c 'print(len(open(\"files/7\").read()))'",
    "ffmpeg": "ffmpeg -v error -y -threads 1 -f lavfi -i testsrc=d=0.2:s=64x64 -threads 1 o.mkv",
}
# The kernel reads the first bytes of each program and of its interpreter, and counts them for the process.
EXEC_READS_MAX_BYTES = 8192
# Of the loader and the C library, which the preloaded library does not see: headers, name services, locales.
LOADER_READS_MAX_BYTES = 65_536


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    (path / "files").mkdir(parents=True)
    for number in range(40):
        (path / "files" / str(number)).write_bytes(bytes(10_000 * number))
    return path


def require(via: str, program: str) -> None:
    reason = bpf.unavailable() if via == "bpf" else None
    if via == "preload" and not preload.LIBRARY.is_file():
        reason = f"{preload.LIBRARY} was not built"
    if reason is None and shutil.which(program) is None:
        reason = f"{program} is not installed"
    if reason is not None:
        pytest.skip(reason)


def surroundings(place: Path) -> dict[str, str]:
    """An environment in which a command does the same every time, under whatever runs it."""
    config = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "gc.auto", "GIT_CONFIG_VALUE_0": "0"}
    people = {f"GIT_{who}_{what}": "n@e" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    dates = {"GIT_AUTHOR_DATE": MOMENT, "GIT_COMMITTER_DATE": MOMENT}
    fixed = {"PATH": os.environ["PATH"], "HOME": str(place), "PWD": str(place), "PYTHONHASHSEED": "0"}
    return {**fixed, **config, **people, **dates}


def recorded(command: list[str], place: Path, via: str, *options: str) -> Path:
    """Where the trace of a command is kept."""
    out = place.with_name(via)
    subprocess.run(
        command_line("trace", "--via", via, *options, "-o", str(out), "--", *command),
        cwd=place,
        env=surroundings(place),
        check=True,
        capture_output=True,
        timeout=120,
    )
    return out


def traced(command: list[str], place: Path, via: str) -> dict[str, Any]:
    """The trace that `leadline show --json` prints of a command."""
    out = recorded(command, place, via)
    shown = subprocess.run(
        command_line("show", str(out), "--json"), capture_output=True, text=True, timeout=60, check=False
    )
    found: dict[str, Any] = json.loads(shown.stdout)["trace"]
    return found


def both(program: str, place: Path) -> tuple[Counter[str], dict[str, Any]]:
    """What strace counts of a program, and what the kernel's tracer counts of it."""
    require("bpf", program)
    require("bpf", "strace")
    command = ["/bin/sh", "-c", f"({COMMANDS[program]}) </dev/null >/dev/null 2>&1"]
    # What only a first run does, such as making a cache, is done for both.
    subprocess.run(command, cwd=place, env=surroundings(place), check=True)
    trace = traced(command, place, "bpf")
    truth = strace_counts(
        command,
        place.with_name("log"),
        counted=frozenset(_core.bpf_calls()),
        directory=place,
        # The launcher's own variables: a shell that finds another environment may do something else.
        environment={**surroundings(place), **LAUNCHED},
    )
    assert sum(truth.values()) > 50
    return truth, trace


@pytest.mark.parametrize("program", COMMANDS)
def test_the_kernel_programs_count_exactly_what_strace_counts(program: str, place: Path) -> None:
    truth, trace = both(program, place)
    assert Counter(trace["totals"]["calls"]) == truth


@pytest.fixture(params=COMMANDS)
def of_library(
    request: pytest.FixtureRequest, place: Path
) -> tuple[Calls, Calls, Counter[tuple[str, str, bool]]]:
    """What strace saw of a program, what of that failed, and the functions that the library counted."""
    program = request.param
    require("preload", program)
    require("preload", "strace")
    command = ["/bin/sh", "-c", f"({COMMANDS[program]}) </dev/null >/dev/null 2>&1"]
    subprocess.run(command, cwd=place, env=surroundings(place), check=True)
    recorded(command, place, "preload", "--segments")
    told = strace_callers(command, place.with_name("log"), place, {**surroundings(place), **LAUNCHED})
    truth, failed = calls_of_strace(told, place.with_name("own"))
    tables = read_trace(open_result(place.with_name("preload")))
    return truth, failed, functions_called(tables)


def test_the_library_sees_what_strace_sees_by_call_and_path_but_what_a_rule_names(
    of_library: tuple[Calls, Calls, Counter[tuple[str, str, bool]]],
) -> None:
    truth, failed, called = of_library
    assert sum(truth.values()) > 50
    assert differences_by_path(truth, failed, seen_by_functions(called)) == []
    # The comparison can fail: a tracer that records nothing, and one that is blind to a single function.
    assert len(differences_by_path(truth, failed, Seen())) > 10
    inside = opened_inside(truth - seen_by_functions(called).certain, failed)  # of these not all need be seen
    for blind in {name for name, path, _ in called if FUNCTIONS[name]["calls"] and path not in inside}:
        rest = {key: count for key, count in called.items() if key[0] != blind}
        assert differences_by_path(truth, failed, seen_by_functions(rest)) != [], blind


@pytest.mark.parametrize("via", ["preload", "bpf"])
@pytest.mark.parametrize("program", ["tar", "python3"])
def test_bytes_are_those_that_the_kernel_sums(program: str, via: str, place: Path) -> None:
    require(via, program)
    script = "open('o', 'wb').write(open('files/39', 'rb').read() * 9)"
    command = {"tar": ["tar", "cf", "a.tar", "files"], "python3": [PYTHON, "-I", "-S", "-c", script]}[program]
    sums = place.with_name("sums")
    wrapper = [PYTHON, "-I", "-S", str(PROGRAMS / "kernel_counts.py"), str(sums)]
    trace = traced([*wrapper, *command], place, via)

    kernel = {
        name: int(value) for name, value in (line.split(": ") for line in sums.read_text().splitlines())
    }
    own = [row for row in trace["processes"] if row["process"] > 0]
    unseen = kernel["rchar"] - sum(row["bytes_read"] for row in own)
    assert kernel["wchar"] > 1_000_000
    assert kernel["wchar"] == sum(row["bytes_written"] for row in own)
    assert 0 <= unseen <= EXEC_READS_MAX_BYTES + (LOADER_READS_MAX_BYTES if via == "preload" else 0)


@pytest.mark.parametrize("via", ["preload", "bpf"])
def test_a_file_that_was_made_without_a_name_is_not_its_directory(via: str, place: Path) -> None:
    require(via, "python3")
    script = "import os; os.write(os.open('files', os.O_TMPFILE | os.O_RDWR), b'x' * 5000)"
    trace = traced([PYTHON, "-I", "-S", "-c", script], place, via)

    written = {row["path"]: row["bytes_written"] for row in trace["files"] if row["bytes_written"]}
    assert list(written.values()) == [5000]
    (path,) = written
    assert re.fullmatch(rf"{re.escape(str(place))}/files/#\d+", path)
