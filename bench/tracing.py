"""What tracing costs: time added to a call in a tight loop on tmpfs, beside the least that a tracer can do.

The least is `floors/trace_shim.c`: two readings of the same clock and one count, around the real call. All
figures are CPU time, which other load on the machine changes less than elapsed time; sides run in turns.
Whole programs (`traced_programs`) follow.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

import traced_programs
from cost import Places
from figures import counted, of_one
from leadline.tracing.sources import preload
from ratios import spread
from tables import judge

BARE = Path(__file__).resolve().parent.parent / "target" / "bench"
CALLS = 60_000
MEMORY_BYTES = 64 << 20
SEGMENTS_BYTES = 64 << 20
OPERATIONS = ("pread", "pwrite", "lseek", "stat")
SIDES = ("bare", "shim", "counters", "segments")
GOALS = {"counters": {"pread": 1.25, "stat": 1.25}, "segments": {}}
GOAL_ELSE = {"counters": 1.3, "segments": 1.8}
THREADS, THREADS_GOAL = 8, 1.2  # what the tracer adds to a call of eight threads on one file, over one's


@dataclass(frozen=True)
class Loop:
    """One call in a loop, by some threads on one file."""

    operation: str
    threads: int


def tracing(places: Places) -> list[str]:
    """The section of results.md."""
    rounds = places.rounds(61)
    lines = [
        "## Cost of tracing",
        "",
        "CPU time added to each call by the shim and by leadline's tracer, in ns, and the tracer's over the",
        f"shim's with its interval; {rounds} rounds of {CALLS} calls of 64 bytes. Threads all use one file.",
        "",
        "| call | threads | bare | shim adds | tracer adds | with segments | tracer / shim | with segments |",
        "|---|---|---|---|---|---|---|---|",
    ]
    added = {}
    for loop in (*(Loop(operation, 1) for operation in OPERATIONS), Loop("pread", THREADS)):
        row, added[loop] = _row(loop, rounds, places.memory)
        lines.append(row)
    several, one = added[Loop("pread", THREADS)], statistics.median(added[Loop("pread", 1)])
    growth = spread([value / one for value in several])
    words = (
        f"What the tracer adds to a call of {THREADS} threads on one file, over one's: {growth.words(2)};"
        f" at most {THREADS_GOAL:g}: {judge(growth, THREADS_GOAL)}."
    )
    words += f" {_instructions(places.memory)}"
    programs = traced_programs.table(places, _program_environment)
    return [*lines, "", words, "", *programs]


def _row(loop: Loop, rounds: int, memory: Path) -> tuple[str, list[float]]:
    samples = [_round(loop, number, memory) for number in range(rounds)]
    added = {side: [sample[side] - sample["bare"] for sample in samples] for side in SIDES[1:]}
    shim_ns = statistics.median(added["shim"])
    cells = [loop.operation, str(loop.threads), f"{statistics.median(s['bare'] for s in samples):.0f}"]
    cells += [f"{statistics.median(added[side]):.1f}" for side in SIDES[1:]]
    for side, limits in GOALS.items():
        limit = limits.get(loop.operation, GOAL_ELSE[side])
        # The shim's own difference may be near 0 in a disturbed round: its median over all rounds divides.
        ratio = spread([value / shim_ns for value in added[side]])
        cells.append(ratio.words(2) + ("" if loop.threads > 1 else f"; {limit:g}: {judge(ratio, limit)}"))
    return "| " + " | ".join(cells) + " |", added["counters"]


def _instructions(memory: Path) -> str:
    """Why a call costs more than the shim's: what either does for it, beside the kernel."""
    if shutil.which("valgrind") is None:
        return "Instructions of a call were not counted: valgrind is missing (Debian: valgrind)."
    said = []
    for operation in OPERATIONS:
        found = {side: _of_a_call(operation, side, memory) for side in SIDES}
        more = (f"{found[side] - found['bare']:.0f}" for side in SIDES[1:])
        said.append(f"{operation} {', '.join(more)}")
    return (
        "Instructions that shim, tracer and tracer with segments add to a call, by `valgrind"
        f" --tool=callgrind` from a short and a long run: {'; '.join(said)}. The shim adds one number to"
        " one; the tracer finds the file of the descriptor or path, counts call, bytes, and what is"
        " sequential, and fills a histogram."
    )


def _of_a_call(operation: str, side: str, memory: Path) -> float:
    logs = memory / "logs"

    def of_calls(calls: int) -> int:
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir()
        command = [str(BARE / "trace_loop"), operation, str(memory / "file"), str(calls), "1"]
        return counted(command, _environment(side, logs))

    return of_one(2_000, 12_000, of_calls)


def _round(loop: Loop, number: int, memory: Path) -> dict[str, float]:
    """All sides once, another one first in each round."""
    first = number % len(SIDES)
    return {side: _once(loop, side, memory) for side in (*SIDES[first:], *SIDES[:first])}


def _once(loop: Loop, side: str, memory: Path) -> float:
    logs = memory / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    command = [BARE / "trace_loop", loop.operation, memory / "file", CALLS // loop.threads, loop.threads]
    run = subprocess.run(
        [str(word) for word in command],
        env=_environment(side, logs),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return float(run.stdout)


def _program_environment(side: str, logs: Path) -> dict[str, str]:
    if side == "floor":
        return {**os.environ, "LD_PRELOAD": str(BARE / "trace_shim_programs.so")}
    return _environment("bare" if side == "alone" else "counters", logs)


def _environment(side: str, logs: Path) -> dict[str, str]:
    inherited = dict(os.environ)
    if side == "bare":
        return inherited
    if side == "shim":
        return {**inherited, "LD_PRELOAD": str(BARE / "trace_shim.so")}
    segments = SEGMENTS_BYTES if side == "segments" else None
    return preload.environment(logs, segments_bytes=segments, memory_bytes=MEMORY_BYTES, inherited=inherited)
