"""`make bench`: what leadline costs and whether it agrees with fio, written to bench/results.md.

leadline's side of every cost is `target/release/examples/trial`, the engine in a process of its own without
Python; starts and memory are those of the whole program.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import accuracy
import cost
import engine_cpu
import reports
import tracing
from harness import RESULTS, ROOT, command, put_there
from sides import Places

SECTIONS: tuple[Callable[[Places], Iterator[str]], ...] = (
    cost.small_io,
    cost.sequential,
    cost.data,
    cost.verified,
    cost.metadata,
    cost.start,
    cost.memory,
    cost.instructions,
    tracing.tracing,
    accuracy.accuracy,
    tracing.bpf,
    engine_cpu.engine_cpu,
    reports.reports,
    cost.scaling,
    cost.tests_took,
)
BUSY_MAX, STEAL_MAX = 0.05, 0.01  # shares of all processors
LOOK_S, LOOKS = 2.0, 3  # quiet for so many looks on end
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
    places = Places(disk, memory, max(os.sched_getaffinity(0)), options.quick)
    try:
        before_all, seen = ticks(), _wait(QUIET_LIMIT_S, options.quick)
        lines = [ABOUT, *machine(places), f"The machine was {seen}.", ""]
        for section in SECTIONS:
            if options.only and section.__name__ not in options.only:
                continue
            seen = _wait(BETWEEN_LIMIT_S, options.quick)
            print(
                f"{time.monotonic() - begun:4.0f} s  {section.__name__}: {seen}", file=sys.stderr, flush=True
            )
            before = ticks()
            lines += _of(section, places)
            lines += [f"*The machine before: {seen}. Meanwhile: {_noise(before)}.*", ""]
        lines.append(f"Over the whole run: {_noise(before_all)}.")
        lines.append(f"It took {time.monotonic() - begun:.0f} s.")
        text = "\n".join(lines).replace(str(disk), "DISK").replace(str(memory), "MEMORY")
        others = put_there(options.output)
        options.output.write_text(f"{text}\n\n{others}" if others else f"{text}\n")
    finally:
        shutil.rmtree(disk)
        shutil.rmtree(memory)


def _of(section: Callable[[Places], Iterator[str]], places: Places) -> list[str]:
    """A section's lines; where it fails the reason, as all that was measured before it would be lost."""
    try:
        return list(section(places))
    except Exception as error:
        traceback.print_exc()
        words = " ".join(f"{type(error).__name__}: {error}".split())
        again = f"python bench/run.py --only {section.__name__}"
        return ["", f"## {section.__name__}", "", f"NOT_RUN: it failed ({words}); alone: `{again}`.", ""]


def _wait(limit_s: float, is_quick: bool) -> str:
    return "not waited for" if is_quick else wait_until_quiet(limit_s)


def _noise(before: Ticks) -> str:
    """Of the processors since then; a lab's daemons and the kernel's own threads are among the others."""
    return between(before, ticks()).words()


@dataclass(frozen=True)
class Ticks:
    """What processors did since they were started, in seconds; `own` is of this program and its children."""

    all_s: float
    idle_s: float
    steal_s: float
    own_s: float


def ticks() -> Ticks:
    """From /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal (proc(5))."""
    values = [int(word) / os.sysconf("SC_CLK_TCK") for word in Path("/proc/stat").read_text().split()[1:9]]
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own_s = sum(usage.ru_utime + usage.ru_stime for usage in own)
    return Ticks(sum(values), values[3] + values[4], values[7], own_s)


@dataclass(frozen=True)
class Noise:
    """Shares of all processors: what others used, and what the hypervisor gave to other machines."""

    others: float
    steal: float

    def words(self) -> str:
        """For a sentence."""
        return f"{self.others:.1%} used by others, {self.steal:.1%} stolen by the hypervisor"

    @property
    def is_low(self) -> bool:
        """Whether it may be measured beside it."""
        return self.others <= BUSY_MAX and self.steal <= STEAL_MAX


def between(before: Ticks, after: Ticks) -> Noise:
    """What went on beside this program; children that were not waited for yet count as others."""
    all_s = max(after.all_s - before.all_s, 1e-9)
    busy_s = all_s - (after.idle_s - before.idle_s) - (after.steal_s - before.steal_s)
    others_s = max(busy_s - (after.own_s - before.own_s), 0.0)
    return Noise(others_s / all_s, (after.steal_s - before.steal_s) / all_s)


def wait_until_quiet(limit_s: float) -> str:
    """Return when nothing else ran for some looks on end, or the limit is over; what was seen, in words."""
    begun, quiet = time.monotonic(), 0
    while True:
        before = ticks()
        time.sleep(LOOK_S)
        seen = between(before, ticks())
        quiet = quiet + 1 if seen.is_low else 0
        waited = time.monotonic() - begun
        if quiet == LOOKS:
            return f"quiet after {waited:.0f} s: {seen.words()}"
        if waited > limit_s:
            return f"**not quiet within {limit_s:.0f} s**: {seen.words()}"


def machine(places: Places) -> list[str]:
    """What it was measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    named = (line.split(":")[1].strip() for line in lines if "model name" in line)
    model = next(named, "unknown processor")
    kernel = Path("/proc/sys/kernel/osrelease").read_text().strip()
    threads = json.loads(command("lscpu", "--json"))["lscpu"]
    count = next(one["data"] for one in threads if one["field"] == "CPU(s):")
    mount = command("findmnt", "--noheadings", "--output", "FSTYPE,SOURCE", "--target", places.disk)
    disk, version = " on ".join(mount.split()[:2]), command("fio", "--version").strip()
    load = Path("/proc/loadavg").read_text().split()[0]
    return [
        f"Machine: {model}, {count} CPUs, Linux {kernel}; files on {disk} and tmpfs; {version}, Debian's.",
        f"Everything ran on CPU {places.cpu} (`taskset`). Load average when it began: {load}.",
    ]


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds: two minutes in all")
    parser.add_argument("--directory", type=Path, default=ROOT / "target", help="on a disk; 1 GiB free")
    parser.add_argument("--output", type=Path, default=RESULTS)
    names = [section.__name__ for section in SECTIONS]
    parser.add_argument("--only", action="append", choices=names, help="this table; may be repeated")
    return parser.parse_args()


if __name__ == "__main__":
    main()
