"""Programs run traced as they run natively: the results, errnos and end of every case are the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from built import PROGRAM, built
from leadline.tracing.sources import preload

SOURCES = Path(__file__).resolve().parent.parent / "programs" / "conformance"
# Enough that nothing but a loss of cases goes unnoticed.
CASES_LEAST = 400

Run = Callable[..., subprocess.CompletedProcess[str]]


def compiled() -> Path:
    """The program of all cases. It does wrong on purpose, which compilers see."""
    sources = sorted(SOURCES.glob("*.c"))
    command = ["gcc", "-O1", "-w", "-U_FORTIFY_SOURCE", "-pthread", *map(str, sources), "-o", PROGRAM]
    return built("conformance", [*sources, SOURCES / "conformance.h"], command)


@pytest.fixture(scope="session")
def conformance() -> Path:
    """The program, compiled."""
    return compiled()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a command in a directory of its own, natively or traced."""
    tmp_path.chmod(0o755)

    def run(
        *command: object, traced: bool, segments_bytes: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        work = tmp_path / ("traced" if traced else "native")
        logs = tmp_path / "logs"
        for directory in (work, logs):
            directory.mkdir(exist_ok=True)
        environment: Mapping[str, str] = os.environ
        if traced:
            environment = preload.environment(
                logs, segments_bytes=segments_bytes, memory_bytes=64 << 20, inherited=os.environ
            )
        return subprocess.run(
            [str(word) for word in command],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="latin-1",
            timeout=300,
            check=False,
        )

    return run


def cases(output: str) -> dict[str, list[str]]:
    """What each case said, its end last."""
    said: dict[str, list[str]] = {}
    for line in output.splitlines():
        if line.startswith("== "):
            name = line.removeprefix("== ")
            said[name] = []
        else:
            said[name].append(line)
    return said


def test_every_case_ends_and_says_traced_what_it_does_natively(run: Run, conformance: Path) -> None:
    native = cases(run(conformance, traced=False).stdout)
    traced = cases(run(conformance, traced=True, segments_bytes=16 << 20).stdout)
    assert len(native) >= CASES_LEAST
    differing = {name: (said, traced.get(name)) for name, said in native.items() if traced.get(name) != said}
    assert not differing


def test_spawns_with_an_environment_of_their_own_do_not_make_the_program_grow(
    run: Run, conformance: Path
) -> None:
    ended = run(conformance, "as", "spawns", 500, "/bin/true", traced=True)
    assert (ended.returncode, ended.stdout.strip()) == (0, "0")


POOL = """
import multiprocessing, sys
def work(number):
    with open("/dev/null") as null:
        null.read()
    return number * number
if __name__ == "__main__":
    for way in ("fork", "spawn"):
        with multiprocessing.get_context(way).Pool(2) as pool:
            print(way, sum(pool.map(work, range(50))))
"""

HELLO = '#include <stdio.h>\nint main(void) { return !puts("hello"); }\n'


def test_a_pool_of_processes_works(run: Run, tmp_path: Path) -> None:
    program = tmp_path / "pool.py"
    program.write_text(POOL)
    ended = run(sys.executable, "-S", program, traced=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "fork 40425\nspawn 40425\n", "")


def test_a_compiler_works(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "hello.c"
    source.write_text(HELLO)
    assert run("gcc", "-O2", "-pipe", "-save-temps", source, "-o", "hello", traced=True).returncode == 0
    assert run("./hello", traced=True).stdout == "hello\n"
