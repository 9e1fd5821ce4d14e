"""What tracing costs: time added to a call in a tight loop on tmpfs, beside the least that a tracer can do.

The least is `floors/trace_shim.c`: two readings of the same clock and one count, around the real call; in the
kernel it is what bpftrace adds for a count and a histogram. All figures are CPU time, which other load on the
machine changes less than elapsed time; sides run in turns. Of whole programs, with all of their files in
memory, it is how much longer a user waits, beside `floors/trace_shim_programs.c`, which passes their calls on
and reads the clock twice.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from cost import counted, of_one
from harness import Spread, command, in_turns, spread, table
from leadline.tracing.sources import preload
from leadline.tracing.sources.bpf import Session, unavailable
from sides import BARE, Places, pinned

CALLS = 60_000
MEMORY_BYTES = 64 << 20
SEGMENTS_BYTES = 64 << 20
OPERATIONS = ("pread", "pwrite", "lseek", "stat")
LOOP_SIDES = ("bare", "shim", "counters", "segments")
GOALS = {"counters": {"pread": 1.25, "stat": 1.25}, "segments": {}}
GOAL_ELSE = {"counters": 1.3, "segments": 1.8}
THREADS, THREADS_GOAL = 8, 1.2  # what the tracer adds to a call of eight threads on one file, over one's
KERNEL_CALLS = {
    "pread": "pread64",
    "pwrite": "pwrite64",
    "lseek": "lseek",
    "stat": "newfstatat",
    "stat of 1,000 paths in turn": "newfstatat",
}
PATHS = 1000
COUNT = 500_000
KERNEL_GOAL = 0.6
ATTACH_LIMIT_S = 30.0
# As one would write it: the clock at the start by thread, a count and a histogram at the end.
BPFTRACE = (
    "tracepoint:syscalls:sys_enter_{name} {{ @start[tid] = nsecs; }} "
    "tracepoint:syscalls:sys_exit_{name} /@start[tid]/ "
    "{{ @calls = count(); @latency = hist(nsecs - @start[tid]); delete(@start[tid]); }}"
)
FILES, FILE_BYTES = 5_000, 4096
ARRAY_BYTES, BLOCK_BYTES = 256 << 20, 64 << 10
PROGRAM_GOAL = 1.03
ROUNDS, ROUNDS_MIN = 41, 6
LIMIT_S = 20.0
PROGRAM_LIMIT_S = 120.0
SIDES = ("alone", "floor", "traced")
READER = """
import sys, numpy
with open(sys.argv[1], "rb", buffering=0) as file:
    total = 0
    while len(block := numpy.fromfile(file, numpy.uint8, int(sys.argv[2]))):
        total += int(block.sum(dtype=numpy.uint64))
"""


@dataclass(frozen=True)
class Loop:
    """One call in a loop, by some threads on one file."""

    operation: str
    threads: int


def tracing(places: Places) -> Iterator[str]:
    """The section of results.md."""
    rounds = places.rounds(61)
    added: dict[Loop, list[float]] = {}
    rows = []
    for loop in (*(Loop(operation, 1) for operation in OPERATIONS), Loop("pread", THREADS)):
        cells, added[loop] = _loop(loop, rounds, places.memory)
        rows.append(cells)
    yield from ["## Cost of tracing", ""]
    yield "CPU time added to each call by the shim and by leadline's tracer, in ns, and the tracer's over the"
    yield f"shim's with its interval; {rounds} rounds of {CALLS} calls of 64 bytes. Threads all use one file."
    headings = (
        "call | threads | bare | shim adds | tracer adds | with segments | tracer / shim | with segments"
    )
    yield from ["", *table(headings, rows), ""]
    one = median(added[Loop("pread", 1)])
    growth = spread(value / one for value in added[Loop("pread", THREADS)])
    yield (
        f"What the tracer adds to a call of {THREADS} threads on one file, over one's: {growth.words(2)};"
        f" at most {THREADS_GOAL:g}: {growth.judged(THREADS_GOAL)}. {_instructions(places.memory)}"
    )
    yield from ["", *_whole_programs(places)]


def _loop(loop: Loop, rounds: int, memory: Path) -> tuple[list[str], list[float]]:
    samples = in_turns([partial(_once, loop, side, memory) for side in LOOP_SIDES], rounds)
    bare, *others = zip(*samples, strict=True)
    added = {
        side: [value - alone for value, alone in zip(own, bare, strict=True)]
        for side, own in zip(LOOP_SIDES[1:], others, strict=True)
    }
    shim_ns = median(added["shim"])
    cells = [loop.operation, str(loop.threads), f"{median(bare):.0f}"]
    cells += [f"{median(own):.1f}" for own in added.values()]
    for side, limits in GOALS.items():
        limit = limits.get(loop.operation, GOAL_ELSE[side])
        # The shim's own difference may be near 0 in a disturbed round: its median over all rounds divides.
        ratio = spread(value / shim_ns for value in added[side])
        cells.append(ratio.words(2) + ("" if loop.threads > 1 else f"; {limit:g}: {ratio.judged(limit)}"))
    return cells, added["counters"]


def _instructions(memory: Path) -> str:
    """Why a call costs more than the shim's: what either does for it, beside the kernel."""
    if shutil.which("valgrind") is None:
        return "Instructions of a call were not counted: valgrind is missing (Debian: valgrind)."

    def of_calls(operation: str, side: str, calls: int) -> int:
        words = [BARE / "trace_loop", operation, memory / "file", str(calls), "1"]
        return counted(words, _environment(side, _logs(memory)))

    said = []
    for operation in OPERATIONS:
        bare, *found = (of_one(2_000, 12_000, partial(of_calls, operation, side)) for side in LOOP_SIDES)
        said.append(f"{operation} {', '.join(f'{one - bare:.0f}' for one in found)}")
    return (
        "Instructions that shim, tracer and tracer with segments add to a call, by `valgrind"
        f" --tool=callgrind` from a short and a long run: {'; '.join(said)}. The shim adds one number to"
        " one; the tracer finds the file of the descriptor or path, counts call, bytes, and what is"
        " sequential, and fills a histogram."
    )


def _once(loop: Loop, side: str, memory: Path) -> float:
    counts = (str(CALLS // loop.threads), str(loop.threads))
    words = (BARE / "trace_loop", loop.operation, memory / "file", *counts)
    return float(command(*words, env=_environment(side, _logs(memory))))


def _logs(memory: Path) -> Path:
    """An empty directory for what a tracer writes."""
    logs = memory / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    return logs


def _environment(side: str, logs: Path) -> dict[str, str]:
    inherited = dict(os.environ)
    shims = {"shim": "trace_shim.so", "floor": "trace_shim_programs.so"}
    if side in ("bare", "alone"):
        return inherited
    if side in shims:
        return {**inherited, "LD_PRELOAD": str(BARE / shims[side])}
    segments = SEGMENTS_BYTES if side == "segments" else None
    return preload.environment(logs, segments_bytes=segments, memory_bytes=MEMORY_BYTES, inherited=inherited)


# -- whole programs ------------------------------------------------------------------------------------


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


def _whole_programs(places: Places) -> Iterator[str]:
    """A row for each program that is installed."""
    yield from ["### Whole programs", ""]
    yield "Time with counters and histograms over that without a tracer, in turns, all files in memory;"
    yield f"at most {LIMIT_S:.0f} s a program. The floor is a library that passes the same calls on and reads"
    yield f"the clock twice. The goal is at most {PROGRAM_GOAL} of the floor's elapsed time."
    yield ""
    place = places.memory / "programs"
    place.mkdir()
    headings = "program | >rounds | >alone, ms | >floor / alone | >traced / alone | >traced / floor"
    headings += " | >CPU: floor / alone | >CPU: traced / alone | >CPU: traced / floor | verdict"
    empty = [""] * (headings.count("|") - 1)
    yield from table(
        headings,
        (
            (program.name, f"not measured: {missing}", *empty) if missing else _program(program, places)
            for program, missing in _programs(place)
        ),
    )
    yield ""
    shutil.rmtree(place)


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


def _program(program: Program, places: Places) -> Sequence[str]:
    rounds = _rounds(program, places)

    def ratio(side: str, to: str, what: str) -> Spread:
        return spread(getattr(one[side], what) / getattr(one[to], what) for one in rounds)

    over_floor = ratio("traced", "floor", "elapsed_s")
    pairs = (("floor", "alone"), ("traced", "alone"), ("traced", "floor"))
    return (
        program.name,
        str(len(rounds)),
        f"{median(one['alone'].elapsed_s * 1e3 for one in rounds):.0f}",
        *(ratio(*pair, what).words(3) for what in ("elapsed_s", "cpu_s") for pair in pairs),
        over_floor.judged(PROGRAM_GOAL) + _each_call(program, rounds, over_floor),
    )


def _each_call(program: Program, rounds: Sequence[dict[str, Run]], over_floor: Spread) -> str:
    """What a system call takes longer than with the floor, where the goal is not met; "" without strace."""
    if over_floor.high <= PROGRAM_GOAL or shutil.which("strace") is None:
        return ""
    with tempfile.NamedTemporaryFile("r") as counted:
        _clear(program)
        _run(("strace", "-f", "-c", "-o", counted.name, *program.command), dict(os.environ))
        (total,) = (line.split() for line in counted.read().splitlines() if line.endswith("total"))
    calls = int(total[3])
    added_s = spread([one["traced"].cpu_s - one["floor"].cpu_s for one in rounds]).median
    return f": {calls:,} system calls, each {added_s / calls * 1e9:.0f} ns of CPU above the floor"


def _rounds(program: Program, places: Places) -> list[dict[str, Run]]:
    """All sides, another one first each time, until the time is over."""
    begun, rounds = time.monotonic(), list[dict[str, Run]]()
    _timed(program, dict(os.environ))  # what the first run alone waits for
    while len(rounds) < places.rounds(ROUNDS):
        first = len(rounds) % len(SIDES)
        order = (*SIDES[first:], *SIDES[:first])
        rounds.append({side: _timed(program, _environment(side, _logs(places.memory))) for side in order})
        if len(rounds) >= ROUNDS_MIN and time.monotonic() - begun > LIMIT_S:
            break
    return rounds


def _clear(program: Program) -> None:
    if program.output.is_dir():
        shutil.rmtree(program.output)
    else:
        program.output.unlink(missing_ok=True)


def _timed(program: Program, environment: dict[str, str]) -> Run:
    _clear(program)
    cpu_s, begun = _children_s(), time.perf_counter()
    _run(program.command, environment)
    elapsed_s = time.perf_counter() - begun
    return Run(elapsed_s, _children_s() - cpu_s)


def _children_s() -> float:
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


# -- in the kernel -------------------------------------------------------------------------------------


def bpf(places: Places) -> Iterator[str]:
    """Added time per call, on tmpfs, for the calls that the preloaded tracer is measured with too."""
    yield from ["## Tracing in the kernel", ""]
    yield f"CPU time that a call takes longer, in ns, in a loop of {COUNT:,} on tmpfs. The goal is for"
    yield f"counters and histograms: at most {KERNEL_GOAL} of what bpftrace adds for a count and a histogram."
    yield ""
    if why_not := unavailable() or _without_bpftrace():
        yield from [f"Not measured: {why_not}", ""]
        return
    file = places.memory / "traced"
    file.write_bytes(bytes(4096))
    for number in range(PATHS):
        file.with_name(f"traced.{number}").touch()
    headings = "call | >alone | >leadline | >with segments | >bpftrace | >leadline / bpftrace | verdict"
    yield from [*table(headings, (_kernel_call(places, call, file) for call in KERNEL_CALLS)), ""]


def _without_bpftrace() -> str | None:
    if shutil.which("bpftrace") is None:
        return "bpftrace is not installed"
    if not Path("/sys/kernel/tracing/events").is_dir():
        return "bpftrace needs tracefs: mount -t tracefs nodev /sys/kernel/tracing"
    return None


def _kernel_call(places: Places, call: str, file: Path) -> Sequence[str]:
    many = [str(PATHS)] if "paths" in call else []
    words = [BARE / "call_loop", call.split(maxsplit=1)[0], file, str(COUNT), *many]

    def alone() -> float:
        return pinned(words, places.cpu)[0].cpu_ns / COUNT

    sides: list[Callable[[], float]] = [
        alone,
        lambda: _ours(alone, None),
        lambda: _ours(alone, SEGMENTS_BYTES),
        lambda: _bpftrace(alone, KERNEL_CALLS[call]),
    ]
    rounds = in_turns(sides, places.rounds(11))
    added = [[one[side] - one[0] for one in rounds] for side in (1, 2, 3)]
    ratio = spread(ours / theirs for ours, theirs in zip(added[0], added[2], strict=True))
    shown = [spread(one[0] for one in rounds), *map(spread, added)]
    return call, *(one.words(0) for one in shown), ratio.words(2), ratio.judged(KERNEL_GOAL)


def _ours(alone: Callable[[], float], segments_bytes: int | None) -> float:
    with Session(segments_bytes=segments_bytes, memory_bytes=MEMORY_BYTES) as session:
        # What this process starts is followed, and this process itself.
        session.follow(os.getpid())
        return alone()


def _bpftrace(alone: Callable[[], float], name: str) -> float:
    program = BPFTRACE.format(name=name)
    tracer = subprocess.Popen(
        ["bpftrace", "-q", "-e", f'BEGIN {{ printf("ready\\n"); }} {program}'],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        _wait_until_attached(tracer)
        return alone()
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.communicate(timeout=ATTACH_LIMIT_S)


def _wait_until_attached(tracer: subprocess.Popen[str]) -> None:
    """bpftrace says BEGIN before it attaches the rest: both its programs must be held by events."""
    deadline = time.monotonic() + ATTACH_LIMIT_S
    while time.monotonic() < deadline:
        if tracer.poll() is not None:
            raise RuntimeError("bpftrace ended before it traced")
        links = _opened(tracer.pid)
        if sum("perf_event" in link for link in links) >= 2 + (os.cpu_count() or 1):
            return
        time.sleep(0.05)
    raise RuntimeError("bpftrace did not attach its programs")


def _opened(pid: int) -> list[str]:
    """What its descriptors are; one that it closes meanwhile is none."""
    found = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(str(path.readlink()))
    return found
