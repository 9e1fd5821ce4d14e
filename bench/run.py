"""`make bench`: what leadline costs and whether it agrees with fio, written to bench/results.md.

leadline's side of every cost is `target/release/examples/trial`, the engine in a process of its own without
Python; starts and memory are those of the whole program.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import accuracy
import bpf
import cost
import engine_cpu
import figures
import many_hosts
import metadata
import quiet
import reports
import scaling
import tests_took
import tracing
import turnover
import verified

HERE = Path(__file__).resolve().parent
SECTIONS: tuple[Callable[[cost.Places], list[str]], ...] = (
    cost.small_io,
    cost.sequential,
    cost.data,
    verified.verified,
    metadata.metadata,
    figures.start,
    turnover.turnover,
    figures.memory,
    figures.instructions,
    tracing.tracing,
    accuracy.accuracy,
    bpf.bpf,
    engine_cpu.engine_cpu,
    reports.reports,
    scaling.scaling,
    tests_took.tests_took,
)
QUIET_LIMIT_S, BETWEEN_LIMIT_S = 600.0, 60.0
ABOUT = """# What leadline costs, and whether it agrees with fio

Written by `make bench` in one run. Sides run in turns (A B C, B C A, …), and a figure is the median with its
95 % interval (by order statistics; all values where there are fewer than six). "met" and "missed" are said
only where the whole interval lies on that side of the goal, "undecided" otherwise, with what was measured of
both sides in the same run: their own code and the kernel's, context switches, and the system calls of a run
of each under strace. CPU time is user and system time of a process; leadline's side is a trial without Python
(`crates/engine/examples/trial.rs`). `bare` is a loop in `bench/floors` that does the I/O and nothing else.
leadline and fio record the total latency of every I/O; fio runs with its own defaults otherwise, and `fio,
tuned` with its switches for less work. Many hosts and job files, at the end, are by `make many-hosts-bench`
and `make fio-bench`.
"""


def main() -> None:
    """Measure, write, and leave no file behind."""
    options = read_options()
    begun = time.monotonic()
    disk = Path(tempfile.mkdtemp(prefix="leadline-bench-", dir=options.directory))
    memory = Path(tempfile.mkdtemp(prefix="leadline-bench-", dir="/dev/shm"))
    places = cost.Places(disk, memory, max(os.sched_getaffinity(0)), options.quick)
    try:
        before_all, seen = quiet.ticks(), _wait(QUIET_LIMIT_S, options.quick)
        lines = [ABOUT, *figures.machine(places), f"The machine was {seen}.", ""]
        for section in SECTIONS:
            if options.only and section.__name__ not in options.only:
                continue
            seen = _wait(BETWEEN_LIMIT_S, options.quick)
            print(
                f"{time.monotonic() - begun:4.0f} s  {section.__name__}: {seen}", file=sys.stderr, flush=True
            )
            before = quiet.ticks()
            lines += _of(section, places)
            lines += [f"*The machine before: {seen}. Meanwhile: {_noise(before)}.*", ""]
        lines.append(f"Over the whole run: {_noise(before_all)}.")
        lines.append(f"It took {time.monotonic() - begun:.0f} s.")
        text = "\n".join(lines).replace(str(disk), "DISK").replace(str(memory), "MEMORY")
        others = many_hosts.kept(options.output)
        options.output.write_text(f"{text}\n\n{others}" if others else f"{text}\n")
    finally:
        shutil.rmtree(disk)
        shutil.rmtree(memory)


def _of(section: Callable[[cost.Places], list[str]], places: cost.Places) -> list[str]:
    """A section's lines; where it fails the reason, as all that was measured before it would be lost."""
    try:
        return section(places)
    except Exception as error:
        traceback.print_exc()
        words = " ".join(f"{type(error).__name__}: {error}".split())
        again = f"python bench/run.py --only {section.__name__}"
        return ["", f"## {section.__name__}", "", f"NOT_RUN: it failed ({words}); alone: `{again}`.", ""]


def _wait(limit_s: float, is_quick: bool) -> str:
    return "not waited for" if is_quick else quiet.wait_until_quiet(limit_s)


def _noise(before: quiet.Ticks) -> str:
    """Of the processors since then; a lab's daemons and the kernel's own threads are among the others."""
    return quiet.between(before, quiet.ticks()).words()


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds: two minutes in all")
    parser.add_argument(
        "--directory", type=Path, default=HERE.parent / "target", help="on a disk; 1 GiB free"
    )
    parser.add_argument("--output", type=Path, default=HERE / "results.md")
    names = [section.__name__ for section in SECTIONS]
    parser.add_argument("--only", action="append", choices=names, help="this table; may be repeated")
    return parser.parse_args()


if __name__ == "__main__":
    main()
