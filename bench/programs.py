"""`make programs-bench`: whether leadline concludes what is so of programs whose bottleneck is known.

    python bench/programs.py run [--darshan LIB]   # bench/programs.jsonl; goes on there
    python bench/programs.py judge                 # bench/programs.md, from it alone

Each program of `program_cases.py` runs on a FUSE mount whose reads and writes take a known time, once under
each tracer: preload, BPF, strace and, if LIB is given, Darshan. LIB is `libdarshan.so`, configured with
`--without-mpi --with-log-path-by-env=DARSHAN_LOGDIR`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

import slow_fuse  # noqa: E402 - it is beside the tests
from program_cases import CASES, OF_THE_HOST, ProgramCase  # noqa: E402

RUNS, PAGE = HERE / "programs.jsonl", HERE / "programs.md"
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
how it is made (`bench/program_cases.py`, `bench/floors/bottlenecks.c`), on a FUSE mount whose reads and
writes take a known time. leadline traces it, and its first finding is held against what is so.

- **right**: the first finding names the bottleneck, and no finding is false.
- **silent**: no finding names it, and none is false.
- **false**: a finding is said that is not so of the program. A wait for a CPU is counted as neither, as other
  programs ran on the host.
- strace and Darshan record no CPU time, so only file calls can be named: the other programs are *silent* by
  right there, and are counted apart.
- Darshan itself records no file that `tar` reads, and no rename of a file that was not opened.
"""


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
    """The programs in C."""
    found = directory / "bottlenecks"
    source = HERE / "floors" / "bottlenecks.c"
    subprocess.run(["cc", "-O2", "-o", str(found), str(source), "-lpthread"], check=True)
    make_library(directory)
    return found


def make_library(directory: Path) -> None:
    """A library that is mostly data, and a program that touches all of it."""
    size = 8 << 20
    source, main = directory / "library.c", directory / "loads.c"
    source.write_text(f"char table[{size}] = {{1}};\n")
    main.write_text(
        f"extern char table[{size}];\nint main(void) {{ int sum = 0;"
        f" for (long at = 0; at < {size}; at += 262144) sum += table[at]; return sum == 0; }}\n"
    )
    library, loads = directory / "libtable.so", directory / "loads"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    subprocess.run(["cc", "-o", str(loads), str(main), f"-L{directory}", "-ltable"], check=True)


def words_of(case: ProgramCase, places: dict[str, str]) -> list[str]:
    """The command, with its places filled in."""
    return [word.format(**places) for word in case.words]


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


def concluded(tables: Any, path: Path) -> dict[str, Any]:
    """What leadline says of it: its headline, and the rules that it names, the costliest first."""
    from leadline.store.reader import open_result
    from leadline.tracing.findings import trace_views
    from leadline.tracing.messages import said, time_words
    from leadline.tracing.store import create_trace_result

    create_trace_result(path, {"t0001": tables}, title="p", details={}, now_ns=time.time_ns)
    (view,) = trace_views(open_result(path), with_charts=False)
    return {"text": time_words(view), "rules": [item.rule for item in said(view)]}


def run_one(
    case: ProgramCase, via: str, program: Path, fuse: Path, port: int, darshan: Path | None
) -> dict[str, Any]:
    """One program under one tracer."""
    directory = Path(tempfile.mkdtemp(prefix="programs-"))
    try:
        with slow_fuse.mounted(fuse, directory, believed_s=60, cached=case.cached) as mount:
            make_files(case, mount.backing)
            if case.library:
                shutil.copy(program.parent / "libtable.so", mount.backing)
            mount.rules(read_ms=case.read_ms, write_ms=case.write_ms)
            places = {
                "mount": str(mount.path),
                "program": str(program),
                "loads": str(program.parent / "loads"),
                "python": sys.executable,
                "port": str(port),
            }
            logs = directory / "logs"
            logs.mkdir()
            tables = traced(via, words_of(case, places), logs, darshan)
        return {"case": case.name, "via": via, **concluded(tables, directory / "r")}
    finally:
        shutil.rmtree(directory)


def run(only: str | None, darshan: Path | None) -> None:
    """Every case that `programs.jsonl` has not yet."""
    if why_not := slow_fuse.missing():
        raise SystemExit(f"the slow mount cannot be made: {why_not}")
    known = {(one["case"], one["via"]) for one in lines()}
    vias = [via for via in VIAS if darshan or via != "darshan"]
    quiet = os.open(os.devnull, os.O_WRONLY)
    kept = os.dup(1)
    with tempfile.TemporaryDirectory() as place, answering() as port, RUNS.open("a") as out:
        program, fuse = compiled(Path(place)), slow_fuse.build()
        for case in CASES:
            for via in vias:
                if (case.name, via) in known or (only and only not in case.name):
                    continue
                os.dup2(quiet, 1)  # what programs print is nothing of ours
                try:
                    found = run_one(case, via, program, fuse, port, darshan)
                finally:
                    os.dup2(kept, 1)
                out.write(json.dumps(found) + "\n")
                out.flush()
                print(case.name, via, verdict(case, found), found["rules"], flush=True)


def lines() -> list[dict[str, Any]]:
    """What was run."""
    return [json.loads(line) for line in RUNS.read_text().splitlines()] if RUNS.exists() else []


def verdict(case: ProgramCase, found: dict[str, Any]) -> str:
    """`right`, `silent` or `false`."""
    named = found["rules"]
    # Darshan has a log of each process, and leadline takes those of one command line for its copies.
    if found["via"] == "darshan":
        named = ["imbalance_processes" if rule == "imbalance_copies" else rule for rule in named]
    rules = [rule for rule in named if rule in case.right or rule not in OF_THE_HOST]
    if any(rule not in case.right | case.also for rule in rules):
        return "false"
    return "right" if rules and rules[0] in case.right else "silent"


def judge() -> None:
    """Write the page from the runs alone."""
    by_case = {(one["case"], one["via"]): one for one in lines()}
    rows = ["| program | what it does | " + " | ".join(VIAS) + " |", "|---|---|" + "---|" * len(VIAS)]
    counts: dict[tuple[str, str], int] = {}
    for case in CASES:
        cells = []
        for via in VIAS:
            found = by_case.get((case.name, via))
            word = "not run" if found is None else verdict(case, found)
            if word == "silent" and via in _WITHOUT_CPU_TIME and not case.right & _SHOWN_WITHOUT_CPU_TIME:
                word = "silent by right"
            counts[via, word] = counts.get((via, word), 0) + 1
            named = ", ".join(found["rules"]) if found and word == "false" else ""
            cells.append(f"{word}: {named}" if named else word)
        rows.append(f"| `{case.name}` | {case.does} | " + " | ".join(cells) + " |")
    totals = [
        f"- {via}: "
        + ", ".join(f"{count} {word}" for (one, word), count in sorted(counts.items()) if one == via)
        + f", of {len(CASES)} programs"
        for via in VIAS
    ]
    PAGE.write_text("\n".join([_HEAD, *totals, "", *rows, ""]))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=("run", "judge"))
    parser.add_argument("--only", help="programs whose name has this in it")
    parser.add_argument("--darshan", type=Path, help="libdarshan.so, built without MPI")
    asked = parser.parse_args()
    if asked.darshan and not asked.darshan.is_file():
        parser.error(f"--darshan names no library: {asked.darshan}")
    if asked.what == "run":
        run(asked.only, asked.darshan)
    else:
        judge()


if __name__ == "__main__":
    main()
