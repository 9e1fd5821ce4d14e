"""Whole programs with leadline's tracer and without: how much longer a user waits for what is traced.

All of their files are in memory, where storage hides nothing of what the tracer adds. Beside it stands
the floor, `floors/trace_shim_programs.c`: a library that only passes these programs' calls on and reads
the clock twice.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cost import Places
from ratios import Spread, spread
from tables import judge

FILES, FILE_BYTES = 5_000, 4096
ARRAY_BYTES, BLOCK_BYTES = 256 << 20, 64 << 10
GOAL = 1.03
ROUNDS, ROUNDS_MIN = 41, 6
LIMIT_S = 20.0
PROGRAM_LIMIT_S = 120.0
SIDES = ("alone", "floor", "traced")
Environment = Callable[[str, Path], dict[str, str]]
READER = """
import sys, numpy
with open(sys.argv[1], "rb", buffering=0) as file:
    total = 0
    while len(block := numpy.fromfile(file, numpy.uint8, int(sys.argv[2]))):
        total += int(block.sum(dtype=numpy.uint64))
"""


@dataclass(frozen=True)
class Program:
    """A program to trace, and what it writes, which is removed before each run."""

    name: str
    command: tuple[str, ...]
    output: Path


@dataclass(frozen=True)
class Run:
    """What one run took; CPU time is that of all its processes."""

    elapsed_s: float
    cpu_s: float


Round = dict[str, Run]


def table(places: Places, environment: Environment) -> list[str]:
    """A row for each program that is installed; `environment` is that of a side, with its logs."""
    lines = [
        "### Whole programs",
        "",
        "Time with counters and histograms over that without a tracer, in turns, all files in memory;",
        f"at most {LIMIT_S:.0f} s a program. The floor is a library that passes the same calls on and reads",
        f"the clock twice. The goal is at most {GOAL} of the floor's elapsed time.",
        "",
        "| program | rounds | alone, ms | floor / alone | traced / alone | traced / floor "
        "| CPU: floor / alone | CPU: traced / alone | CPU: traced / floor | verdict |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    place = places.memory / "programs"
    place.mkdir()
    for program, missing in _programs(place):
        row = f"| {program.name} | not measured: {missing} | | | | | | | | |" if missing else None
        lines.append(row or _row(program, places, environment))
    shutil.rmtree(place)
    return [*lines, ""]


def _programs(place: Path) -> list[tuple[Program, str | None]]:
    """Each with the reason why it cannot be measured here, if there is one."""
    tree, repository, array = place / "tree", place / "repository", place / "array"
    _small_files(tree)
    with array.open("wb") as file:
        file.truncate(ARRAY_BYTES)
    tar = Program(
        f"tar of {FILES:,} files of {FILE_BYTES} B",
        ("tar", "-cf", str(place / "tar"), "-C", str(tree), "."),
        place / "tar",
    )
    clone = Program(
        f"git clone of {FILES:,} files",
        ("git", "clone", "-q", "--no-hardlinks", str(repository), str(place / "clone")),
        place / "clone",
    )
    source = ("-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25:duration=4")
    video = str(place / "video.mkv")
    film = Program(
        "ffmpeg, 100 pictures to MPEG-4",
        ("ffmpeg", "-nostdin", "-v", "error", *source, "-c:v", "mpeg4", "-y", video),
        Path(video),
    )
    size = f"{ARRAY_BYTES >> 20} MiB in blocks of {BLOCK_BYTES >> 10} KiB"
    reader = Program(
        f"numpy reading {size}",
        (sys.executable, "-c", READER, str(array), str(BLOCK_BYTES)),
        place / "none",
    )
    if _absent(clone) is None:
        _repository(tree, repository)
    numpy = None if importlib.util.find_spec("numpy") else "numpy is not installed"
    return [*((program, _absent(program)) for program in (tar, clone, film)), (reader, numpy)]


def _absent(program: Program) -> str | None:
    name = program.command[0]
    return None if shutil.which(name) else f"{name} is not installed"


def _small_files(tree: Path) -> None:
    for number in range(FILES):
        path = tree / f"{number // 100:02}" / f"{number:05}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(4, "little") * (FILE_BYTES // 4))


def _repository(tree: Path, repository: Path) -> None:
    git = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0")
    _run((*git, "init", "-q", str(repository)), dict(os.environ))
    shutil.copytree(tree, repository, dirs_exist_ok=True)
    for words in (("add", "."), ("commit", "-q", "-m", "files")):
        _run((*git, "-C", str(repository), *words), dict(os.environ))


def _row(program: Program, places: Places, environment: Environment) -> str:
    rounds = _rounds(program, places, environment)

    def ratio(side: str, to: str, what: Callable[[Run], float]) -> Spread:
        return spread([what(one[side]) / what(one[to]) for one in rounds])

    elapsed, cpu = (lambda run: run.elapsed_s), (lambda run: run.cpu_s)
    over_floor = ratio("traced", "floor", elapsed)
    cells = [
        program.name,
        str(len(rounds)),
        f"{spread([one['alone'].elapsed_s * 1e3 for one in rounds]).median:.0f}",
        ratio("floor", "alone", elapsed).words(3),
        ratio("traced", "alone", elapsed).words(3),
        over_floor.words(3),
        ratio("floor", "alone", cpu).words(3),
        ratio("traced", "alone", cpu).words(3),
        ratio("traced", "floor", cpu).words(3),
        judge(over_floor, GOAL) + _each_call(program, rounds, over_floor),
    ]
    return f"| {' | '.join(cells)} |"


def _each_call(program: Program, rounds: Sequence[Round], over_floor: Spread) -> str:
    """What a system call takes longer than with the floor, where the goal is not met; "" without strace."""
    if over_floor.high <= GOAL or shutil.which("strace") is None:
        return ""
    with tempfile.NamedTemporaryFile("r") as counted:
        _clear(program)
        _run(("strace", "-f", "-c", "-o", counted.name, *program.command), dict(os.environ))
        (total,) = (line.split() for line in counted.read().splitlines() if line.endswith("total"))
    calls = int(total[3])
    added_s = spread([one["traced"].cpu_s - one["floor"].cpu_s for one in rounds]).median
    return f": {calls:,} system calls, each {added_s / calls * 1e9:.0f} ns of CPU above the floor"


def _rounds(program: Program, places: Places, environment: Environment) -> list[Round]:
    """All sides, another one first each time, until the time is over."""
    begun, rounds = time.monotonic(), list[Round]()
    logs = places.memory / "logs"
    _once(program, dict(os.environ))  # what the first run alone waits for
    while len(rounds) < places.rounds(ROUNDS):
        first = len(rounds) % len(SIDES)
        found = {}
        for side in (*SIDES[first:], *SIDES[:first]):
            shutil.rmtree(logs, ignore_errors=True)
            logs.mkdir()
            found[side] = _once(program, environment(side, logs))
        rounds.append(found)
        if len(rounds) >= ROUNDS_MIN and time.monotonic() - begun > LIMIT_S:
            break
    return rounds


def _clear(program: Program) -> None:
    if program.output.is_dir():
        shutil.rmtree(program.output)
    else:
        program.output.unlink(missing_ok=True)


def _once(program: Program, environment: dict[str, str]) -> Run:
    _clear(program)
    cpu_s, begun = _children_cpu_s(), time.perf_counter()
    _run(program.command, environment)
    elapsed_s = time.perf_counter() - begun
    return Run(elapsed_s, _children_cpu_s() - cpu_s)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(command: Sequence[str], environment: dict[str, str]) -> None:
    # Waiting with a timeout looks in steps of up to 50 ms, which would be the figure: a timer ends it.
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        watch = threading.Timer(PROGRAM_LIMIT_S, process.kill)
        watch.start()
        try:
            if process.wait() != 0:
                raise RuntimeError(f"{command[0]} ended with {process.returncode}")
        finally:
            watch.cancel()
