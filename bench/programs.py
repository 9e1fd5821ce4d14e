"""`make programs-bench`: whether leadline concludes what is so of programs whose bottleneck is known.

    python bench/programs.py run [--darshan LIB]   # bench/programs.jsonl; goes on there
    python bench/programs.py judge                 # bench/programs.md, from it alone

Each program of `cases/programs.yaml` runs on a FUSE mount whose reads and writes take a known time, once
under each tracer: preload, BPF, strace and, if LIB is given, Darshan. LIB is `libdarshan.so`, configured with
`--without-mpi --with-log-path-by-env=DARSHAN_LOGDIR`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import HERE, Row, bench, cases, command, scratch, table
from slow_fuse import build, missing, mounted

VIAS = ("preload", "bpf", "strace", "darshan")
ANSWER_S = 0.02
_BOUNDS_BYTES = 64 << 20
# What logs without CPU time can show.
_WITHOUT_CPU_TIME = ("strace", "darshan")
_SHOWN_WITHOUT_CPU_TIME = frozenset(
    ("mostly_reads", "mostly_writes", "mostly_metadata", "small_reads", "small_writes", "random_reads")
) | {"many_small_files", "imbalance_processes", "library_cost"}
_HEAD = """# Conclusions about programs whose bottleneck is known

Written by `make programs-bench` from `bench/programs.jsonl`. Each program spends its time on one thing, by
how it is made (`bench/cases/programs.yaml`, `bench/floors/bottlenecks.c`), on a FUSE mount whose reads and
writes take a known time. leadline traces it, and its first finding is held against what is so.

- **right**: the first finding names the bottleneck, and no finding is false.
- **silent**: no finding names it, and none is false.
- **false**: a finding is said that is not so of the program. A wait for a CPU is counted as neither, as other
  programs ran on the host.
- strace and Darshan record no CPU time, so only file calls can be named: the other programs are *silent* by
  right there, and are counted apart.
- Darshan itself records no file that `tar` reads, and no rename of a file that was not opened.
"""


# True of any program on a host that others use.
OF_THE_HOST = frozenset({"waiting_for_cpus"})


@dataclass(frozen=True)
class ProgramCase:
    """A program, what it does on the slow mount, and what is true of it (see cases/programs.yaml)."""

    name: str
    does: str
    words: Sequence[str]
    right: Sequence[str]
    also: Sequence[str] = ()
    read_ms: float = 20
    write_ms: float = 20
    files: Sequence[tuple[str, int, int]] = ()  # name with {} for its number, how many, bytes
    cached: bool = False
    library: bool = False  # one of 8 MiB, beside its files

    @property
    def seen_without_cpu_time(self) -> bool:
        """Whether logs without CPU time can show what is right of it."""
        return bool(_SHOWN_WITHOUT_CPU_TIME.intersection(self.right))


CASES = [ProgramCase(**one) for one in cases("programs")]


@contextmanager
def answering() -> Iterator[int]:
    """A server on the loopback that answers each byte after ANSWER_S; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    while client.recv(1):
                        time.sleep(ANSWER_S)
                        client.send(b"!")

        threading.Thread(target=serve, daemon=True).start()
        yield int(server.getsockname()[1])


def compiled(directory: Path) -> Path:
    """The programs in C, a library that is mostly data, and a program that touches all of it."""
    found, size = directory / "bottlenecks", 8 << 20
    source, main = directory / "library.c", directory / "loads.c"
    source.write_text(f"char table[{size}] = {{1}};\n")
    main.write_text(
        f"extern char table[{size}];\nint main(void) {{ int sum = 0;"
        f" for (long at = 0; at < {size}; at += 262144) sum += table[at]; return sum == 0; }}\n"
    )
    command("cc", "-O2", "-o", found, HERE / "floors" / "bottlenecks.c", "-lpthread")
    command("cc", "-shared", "-fPIC", "-o", directory / "libtable.so", source)
    command("cc", "-o", directory / "loads", main, f"-L{directory}", "-ltable")
    return found


def make_files(case: ProgramCase, backing: Path) -> None:
    """What the program reads, made behind the mount, at once."""
    for name, count, size in case.files:
        for number in range(count):
            text = b"x = 1\n" * (size // 6 + 1) if name.endswith(".py") else os.urandom(size)
            (backing / name.format(number)).write_bytes(text[:size] if not name.endswith(".py") else text)


def logged_by_darshan(library: Path, words: list[str], directory: Path) -> list[Path]:
    """The logs of one run, one for each process that touched a file."""
    logs = directory / "darshan"
    logs.mkdir()
    switches = {"LD_PRELOAD": str(library), "DARSHAN_ENABLE_NONMPI": "1", "DARSHAN_LOGDIR": str(logs)}
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **switches})
    return sorted(logs.glob("*.darshan"))


def traced(via: str, words: list[str], directory: Path, darshan: Path | None) -> Any:
    """The tables of one run; `darshan` is its library, needed for that tracer only."""
    from leadline.tracing.sources.darshan_tables import read_darshan
    from leadline.tracing.sources.launch import resolve, run_traced
    from leadline.tracing.sources.sources import Bounds, BpfSource, PreloadSource
    from leadline.tracing.sources.strace import read_strace

    if via == "strace":
        log = directory / "log"
        strace = ["strace", "-f", "-ttt", "-T", "-y", "-o", str(log), *words]
        subprocess.run(strace, check=True, stdout=subprocess.DEVNULL)
        return read_strace(log)
    if darshan and via == "darshan":
        return read_darshan(logged_by_darshan(darshan, words, directory))
    bounds = Bounds(None, _BOUNDS_BYTES)
    with PreloadSource(directory, bounds) if via == "preload" else BpfSource(bounds) as source:
        done = run_traced(words, resolve(words[0]), source)
    if done.ends[0].status:
        raise SystemExit(f"{words}: ended with {done.ends[0]}")
    return done.tables


def concluded(tables: Any, path: Path) -> Row:
    """What leadline says of it: its headline, and the rules that it names, the costliest first."""
    from leadline.store.reader import open_result
    from leadline.tracing.findings import trace_views
    from leadline.tracing.messages import said, time_words
    from leadline.tracing.store import create_trace_result

    create_trace_result(path, {"t0001": tables}, title="p", details={}, now_ns=time.time_ns)
    (view,) = trace_views(open_result(path), with_charts=False)
    return {"text": time_words(view), "rules": [item.rule for item in said(view)]}


def run_one(case: ProgramCase, via: str, program: Path, fuse: Path, port: int, darshan: Path | None) -> Row:
    """One program under one tracer."""
    with scratch("programs", "/tmp") as directory:
        with mounted(fuse, directory, believed_s=60, cached=case.cached) as mount:
            make_files(case, mount.backing)
            if case.library:
                shutil.copy(program.parent / "libtable.so", mount.backing)
            mount.rules(read_ms=case.read_ms, write_ms=case.write_ms)
            places = {
                "mount": mount.path,
                "program": program,
                "loads": program.parent / "loads",
                "port": port,
            }
            words = [word.format(python=sys.executable, **places) for word in case.words]
            logs = directory / "logs"
            logs.mkdir()
            tables = traced(via, words, logs, darshan)
        return {"case": case.name, "via": via, **concluded(tables, directory / "r")}


def run(asked: argparse.Namespace) -> None:
    """Every case that `programs.jsonl` has not yet."""
    if why_not := missing():
        raise SystemExit(f"the slow mount cannot be made: {why_not}")
    if asked.darshan and not asked.darshan.is_file():
        raise SystemExit(f"--darshan names no library: {asked.darshan}")
    runs, quiet, printed = asked.lines, os.open(os.devnull, os.O_WRONLY), os.dup(1)
    known = runs.done("case", "via")
    vias = [via for via in VIAS if asked.darshan or via != "darshan"]
    left = [(case, via) for case in CASES for via in vias if asked.only in case.name]
    with scratch("programs", "/tmp") as place, answering() as port:
        program, fuse = compiled(place), build()
        for case, via in left:
            if (case.name, via) in known:
                continue
            os.dup2(quiet, 1)  # what programs print is nothing of ours
            try:
                found = run_one(case, via, program, fuse, port, asked.darshan)
            finally:
                os.dup2(printed, 1)
            runs.keep(found)
            print(case.name, via, verdict(case, found), found["rules"], flush=True)


def verdict(case: ProgramCase, found: Row) -> str:
    """`right`, `silent` or `false`."""
    named = found["rules"]
    # Darshan has a log of each process, and leadline takes those of one command line for its copies.
    if found["via"] == "darshan":
        named = ["imbalance_processes" if rule == "imbalance_copies" else rule for rule in named]
    rules = [rule for rule in named if rule in case.right or rule not in OF_THE_HOST]
    if any(rule not in {*case.right, *case.also} for rule in rules):
        return "false"
    return "right" if rules and rules[0] in case.right else "silent"


def page(rows: Sequence[Row]) -> Iterator[str]:
    """Counts by tracer, and each program."""
    by_case = {(one["case"], one["via"]): one for one in rows}
    words: dict[tuple[str, str], str] = {}
    for case in CASES:
        for via in VIAS:
            found = by_case.get((case.name, via))
            word = "not run" if found is None else verdict(case, found)
            if word == "silent" and via in _WITHOUT_CPU_TIME and not case.seen_without_cpu_time:
                word = "silent by right"
            words[case.name, via] = word
    yield _HEAD
    for via in VIAS:
        counts = sorted(Counter(words[case.name, via] for case in CASES).items())
        told = ", ".join(f"{count} {word}" for word, count in counts)
        yield f"- {via}: {told}, of {len(CASES)} programs"
    yield ""

    def cell(name: str, via: str) -> str:
        word = words[name, via]
        return f"{word}: {', '.join(by_case[name, via]['rules'])}" if word == "false" else word

    shown = ((f"`{case.name}`", case.does, *(cell(case.name, via) for via in VIAS)) for case in CASES)
    yield from table(f"program | what it does | {' | '.join(VIAS)}", shown)


OPTIONS: dict[str, dict[str, Any]] = {
    "--only": {"default": "", "help": "programs whose name has this in it"},
    "--darshan": {"type": Path, "help": "libdarshan.so, built without MPI"},
}

if __name__ == "__main__":
    bench("programs", __doc__, run, page, OPTIONS)
