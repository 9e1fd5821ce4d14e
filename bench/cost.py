"""What leadline costs: CPU per I/O and per GiB, data, verification, metadata, starts, memory, instructions.

Each function is a section of results.md (bench/run.py), beside fio and the least that the same costs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from harness import HERE, PROGRAM, ROOT, Spread, command, exponent, in_turns, scratch, spread, table
from sides import (
    BARE,
    CACHED_BYTES,
    DIRECT_BYTES,
    LIMIT_S,
    METADATA,
    MIB,
    SECOND_NS,
    TRIAL,
    TUNED,
    Goal,
    Places,
    Row,
    Side,
    bandwidth,
    bare,
    commands,
    cpu_per_gib_ms,
    cpu_per_operation_ns,
    fio,
    interleaved,
    job,
    lay_out,
    leadline,
    measured,
    metadata_job,
    metadata_trial,
    pinned,
    ratio,
    section,
    timed,
    without_start,
    write_job,
)

# In a core's second cache, beside it, and beyond all caches: what a read costs by itself differs by four.
CACHED_READ_BYTES = (MIB, 4 * MIB, 256 * MIB)
BARE_CACHED_READS, BARE_DIRECT_READS, BARE_EMPTY = 2_000_000, 100_000, 10_000_000
COUNTED = 10_000  # under strace
LENGTHS_S = (1.2, 0.2)
SMALL_NOTES = f"""\
Each figure is what a long run costs more than a short one, so that start and end are out of it:
{LENGTHS_S[0]:g} and {LENGTHS_S[1]:g} s, and a bare loop's operations and a tenth of them.
`bare` hands over and takes back in batches; on no storage it is a ring of operations that do nothing.
`fio, tuned` tells no latencies."""
SEQUENTIAL_NOTES = """\
`fio` writes the same buffers over and over, changing a few words of each; `fio, new data` makes
new data for each write, as leadline does. Direct I/O is io_uring with iodepth 4, buffered I/O
plain calls; writes go over a file that is there, and buffered ones end with fsync."""
# Rounds of rows near their goals: the interval of 7 is all of them, that of 15 their middle half.
DECIDING = 15
STUDY = """format: leadline.study/1
limits: {reserve: 1M}
defaults: {size: 4M, runtime: 200ms, time_based: true, rw: randread}
works:
  psync: {engine: psync, direct: false}
  ring: {engine: io_uring, direct: true, iodepth: 32}
blocks: BLOCKS
"""
START_LIMIT_MS, TURNOVER_LIMIT_MS = 50.0, 80.0
MEMORY_LIMIT_MIB = 50.0
FILES, PASSES, METADATA_NS, METADATA_GOAL = 10_000, 5, 500_000_000, 0.95
SCALED_S = (0.6, 0.1)
JOBS, DEPTHS, GROWN_FILES = (1, 4, 16, 64), (1, 8, 64, 256), (1_000, 10_000, 100_000, 1_000_000)
TESTS_TOOK, TESTS_LIMIT_MIN = ROOT / "target" / "test-logs" / "all.json", 16.0


def small_io(places: Places) -> Iterator[str]:
    """4 KiB random reads: direct through io_uring, cached through plain calls; and no storage at all."""
    rows = [_direct(places, 128), _direct(places, 32)]
    rows += [_cached(places, file_bytes) for file_bytes in CACHED_READ_BYTES]
    rows.append(_null(places))
    yield from section("CPU time per I/O", "ns of CPU per I/O", rows, SMALL_NOTES)


def _timed_fio(places: Places, name: str, **options: Any) -> Side:
    """fio, long less short."""
    lengths = (f"{seconds * 1000:.0f}ms" for seconds in LENGTHS_S)
    return without_start(*(fio(places.cpu, name, **options, time_based=1, runtime=one) for one in lengths))


def _counted(places: Places, program: str, path: object, operations: int, *before: object) -> Side:
    """A bare loop, long less short; `before` its count stand block size and depth."""
    counts = (operations, operations // 10, COUNTED)
    loops = (
        bare(program, places.cpu, path, 4096, *before, count, operations=count, block_bytes=4096)
        for count in counts
    )
    return without_start(*loops)


def _direct(places: Places, depth: int) -> Row:
    path = places.disk / "data.0.0"
    if not path.exists():
        lay_out(places.disk, size=DIRECT_BYTES)
    common = {"rw": "randread", "bs": 4096, "iodepth": depth, "size": DIRECT_BYTES}
    theirs = {**common, "filename": path, "ioengine": "io_uring", "direct": 1, "invalidate": 0}
    sides = [
        timed(places.cpu, places.disk, LENGTHS_S, **common, engine="io_uring", direct=True),
        _counted(places, "uring_loop", path, BARE_DIRECT_READS, depth),
        _timed_fio(places, "fio", **theirs),
        _timed_fio(places, "fio, tuned", **theirs, **TUNED, **_batches(depth), fixedbufs=1, registerfiles=1),
    ]
    goals = [Goal("leadline / bare", 0, 1, 1.05), Goal("leadline / fio", 0, 2, 0.65)]
    what = f"4 KiB random read, O_DIRECT, iodepth {depth}"
    return Row(what, sides, cpu_per_operation_ns, goals, places.rounds(DECIDING), path)


def _batches(depth: int) -> dict[str, int]:
    return {"iodepth_batch_submit": depth // 2, "iodepth_batch_complete_max": depth}


def _cached(places: Places, file_bytes: int) -> Row:
    directory = places.memory / f"cached-{file_bytes}"
    directory.mkdir()
    path = lay_out(directory, size=file_bytes)
    theirs = {"filename": path, "rw": "randread", "bs": 4096, "ioengine": "psync", "size": file_bytes}
    sides = [
        timed(places.cpu, directory, LENGTHS_S, size=file_bytes),
        _counted(places, "pread_loop", path, BARE_CACHED_READS),
        _timed_fio(places, "fio", **theirs),
        _timed_fio(places, "fio, tuned", **theirs, **TUNED),
    ]
    goals = [Goal("leadline - bare", 0, 1, 50.0, difference=True)]
    what = f"4 KiB random read, tmpfs, plain calls, file of {file_bytes // MIB} MiB"
    return Row(what, sides, cpu_per_operation_ns, goals, places.rounds(DECIDING))


def _null(places: Places) -> Row:
    theirs = {"rw": "randread", "bs": 4096, "ioengine": "null", "iodepth": 32, "size": CACHED_BYTES}
    sides = [
        timed(places.cpu, places.memory, LENGTHS_S, engine="null", size=CACHED_BYTES, iodepth=32),
        _timed_fio(places, "fio", **theirs),
        _timed_fio(places, "fio, tuned", **theirs, **TUNED, **_batches(32)),
        _counted(places, "uring_loop", "-", BARE_EMPTY, 32),
    ]
    goals = [Goal("leadline", 0, None, 25.0)]
    return Row("no storage (null), iodepth 32", sides, cpu_per_operation_ns, goals, places.rounds(DECIDING))


def sequential(places: Places) -> Iterator[str]:
    """1 MiB and 4 MiB, read and write, direct and buffered: CPU per GiB, and bandwidth."""
    ways = [(rw, block, direct) for direct in (True, False) for rw in ("read", "write") for block in (1, 4)]
    rows = [_sequential(places, rw, block * MIB, direct) for rw, block, direct in ways]
    yield from ["## Sequential I/O", ""]
    yield "| work | side | ms of CPU per GiB | compared | at most | goal | bandwidth, leadline / fio |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        (first, *found), rounds = measured(row)
        speed = ratio(rounds, 0, 1, bandwidth)
        yield f"{first} {speed.words()}{'' if speed.low >= 0.95 else ', **interval below 0.95**'} |"
        yield from (f"{line} |" for line in found)
    yield from ["", *SEQUENTIAL_NOTES.splitlines(), "", *commands(rows)]


def _sequential(places: Places, rw: str, block_bytes: int, direct: bool) -> Row:
    path = places.disk / "data.0.0"
    common = {"rw": rw, "bs": block_bytes, "size": DIRECT_BYTES, "iodepth": 4 if direct else 1}
    writes = rw == "write"
    own = {"engine": "io_uring" if direct else "psync", "direct": direct, "overwrite": writes}
    theirs = {"ioengine": own["engine"], "direct": int(direct), "filename": path, "invalidate": 0}
    if writes and not direct:
        own["end_fsync"], theirs["end_fsync"] = True, 1
    sides = [leadline(places.cpu, places.disk, **common, **own), fio(places.cpu, **common, **theirs)]
    goals = [Goal("leadline / fio", 0, 1, 1.0)]
    if writes:
        sides.append(fio(places.cpu, "fio, new data", **common, **theirs, refill_buffers=1))
        goals.append(Goal("leadline / fio, new data", 0, 2, 1.0))
    what = f"{rw} {block_bytes // MIB} MiB, {'direct' if direct else 'buffered'}"
    return Row(what, sides, cpu_per_gib_ms, goals, places.rounds(7), path)


def data(places: Places) -> Iterator[str]:
    """Making and verifying data against a memset of the same buffers, and a copy into them."""
    yield from ["## Data", ""]
    yield "Incompressible data made and verified, against a memset of the same buffers, by turns. `copied`"
    yield "are blocks copied from a pool of 16 KiB: the least that data can cost which is not one word."
    yield ""
    headings = (
        "buffers | memset | made / memset | goal | copied / memset | made / copied | verified / memset | goal"
    )
    yield from table(headings, (_data(places, size) for size in (64 << 10, MIB, 4 * MIB, 32 * MIB)))
    yield from ["", "Command:", "", "    pattern_cost BYTES ROUNDS", ""]


def _data(places: Places, buffer_bytes: int) -> Sequence[str]:
    words = [TRIAL.with_name("pattern_cost"), str(buffer_bytes), "9" if places.quick else "21"]
    rounds = [json.loads(line) for line in pinned(words, places.cpu)[1].splitlines()][
        1:
    ]  # the first warms up

    def over(of: str, to: str) -> Spread:
        return spread(one[of] / one[to] for one in rounds)

    made, verified = over("fill_ns", "memset_ns"), over("verify_ns", "memset_ns")
    copied, over_copied = over("copy_ns", "memset_ns"), over("fill_ns", "copy_ns")
    speed, limit = (
        median(buffer_bytes / one["memset_ns"] for one in rounds),
        1.3 if buffer_bytes == 32 * MIB else 1.5,
    )
    return (
        f"{buffer_bytes >> 10} KiB",
        f"{speed:.1f} GB/s",
        made.words(2),
        f"{limit:g}: {made.judged(limit)}",
        copied.words(2),
        over_copied.words(2),
        verified.words(2),
        f"3: {verified.judged(3)}",
    )


def verified(places: Places) -> Iterator[str]:
    """What verification costs a trial that writes: with and without it, on memory and on the disk."""
    direct = {"rw": "write", "bs": MIB, "iodepth": 4, "engine": "io_uring", "direct": True}
    rows = [
        _writes(places, places.memory, "randwrite 4 KiB, tmpfs", {"rw": "randwrite", "bs": 4096}),
        _writes(places, places.memory, "write 1 MiB, tmpfs", {"rw": "write", "bs": MIB}),
        _writes(places, places.disk, "write 1 MiB, O_DIRECT, iodepth 4", direct),
    ]
    note = "Reading back, after the trial, is apart: it costs what reading all that was written costs."
    yield from section("Verified writes", "ns of CPU per write", rows, after=note)


def _writes(places: Places, parent: Path, what: str, asked: dict[str, Any]) -> Row:
    sides = []
    for name in ("verified", "unverified"):
        directory = parent / f"{name}-{asked['rw']}-{asked['bs']}"
        directory.mkdir()
        shape = {**asked, "size": 256 * MIB, "overwrite": True}
        shape |= {"verify": True, "ledger": str(directory / "ledger")} if name == "verified" else {}
        lay_out(directory, **shape)
        sides.append(replace(leadline(places.cpu, directory, **shape), name=name))
    return Row(
        what, sides, cpu_per_operation_ns, [Goal("verified / unverified", 0, 1, 1.15)], places.rounds(15)
    )


# -- metadata, and how costs grow ----------------------------------------------------------------------

Phases = dict[str, tuple[float, float]]  # by operation: how many of them a second, and a second of CPU


def metadata(places: Places) -> Iterator[str]:
    """Empty files on tmpfs, created, looked at and removed, beside a bare loop of the same calls."""
    floor = places.memory / "floor"
    command("cc", "-O2", "-o", floor, HERE / "floors" / "metadata.c")
    sides = (lambda: _metadata(places), lambda: _metadata_floor(places, floor))
    rounds = in_turns(sides, places.rounds(41))
    yield from ["## Metadata", ""]
    yield f"{FILES:,} empty files on tmpfs: leadline over a bare loop of the same calls in C, by CPU time."
    yield ""
    headings = "operation | >leadline 1/s | >bare loop 1/s | >CPU ratio | interval | >elapsed | >goal | met"
    yield from [*table(headings, (_metadata_row(name, rounds) for name in METADATA)), ""]


def _metadata(places: Places) -> Phases:
    write_job(places.memory, metadata_job(places.memory, FILES, time_based=True, runtime_ns=METADATA_NS))
    _, out = pinned([TRIAL, "run", places.memory / "job.json", places.memory / "record"], places.cpu)
    (places.memory / "files.0").rmdir()
    found = json.loads(out.strip().splitlines()[-1])["directions"]
    return {name: _rates(p["operations"], p["elapsed_ns"], p["cpu_ns"]) for name, p in found.items()}


def _metadata_floor(places: Places, floor: Path) -> Phases:
    with scratch("bare", places.memory) as directory:
        _, out = pinned([floor, directory, str(FILES), str(PASSES)], places.cpu)
    lines = (line.split() for line in out.splitlines())
    return {name: _rates(FILES * PASSES, int(elapsed), int(on_cpu)) for name, elapsed, on_cpu in lines}


def _rates(operations: int, elapsed_ns: int, cpu_ns: int) -> tuple[float, float]:
    return operations * 1e9 / elapsed_ns, operations * 1e9 / cpu_ns


def _metadata_row(name: str, rounds: Sequence[tuple[Phases, ...]]) -> Sequence[object]:
    of_cpu = spread(ours[name][1] / bare_loop[name][1] for ours, bare_loop in rounds)
    elapsed = median(ours[name][0] / bare_loop[name][0] for ours, bare_loop in rounds)
    rates = (f"{median(one[side][name][0] for one in rounds):,.0f}" for side in (0, 1))
    is_met, is_missed = of_cpu.low >= METADATA_GOAL, of_cpu.high < METADATA_GOAL
    met = "met" if is_met else "**missed**" if is_missed else "undecided"
    interval = f"{of_cpu.low:.3f} to {of_cpu.high:.3f}"
    return name, *rates, f"{of_cpu.median:.3f}", interval, f"{elapsed:.3f}", METADATA_GOAL, met


def scaling(places: Places) -> Iterator[str]:
    """Whether costs grow as is said: all runs are on one processor, long less short, and in turns."""

    def trial(**changes: Any) -> Side:
        lay_out(places.memory, size=CACHED_BYTES, **changes)
        return timed(places.cpu, places.memory, SCALED_S, size=CACHED_BYTES, **changes)

    rows: dict[str, tuple[Sequence[int], Callable[[int], Side]]] = {
        "jobs, no storage": (JOBS, lambda count: trial(engine="null", numjobs=count)),
        "operations in flight, no storage": (DEPTHS, lambda count: trial(engine="null", iodepth=count)),
        "jobs, 4 KiB reads of a file on tmpfs each": (JOBS, lambda count: trial(numjobs=count)),
        "files made, looked at and removed on tmpfs": (
            GROWN_FILES[: 3 if places.quick else None],
            lambda count: metadata_trial(places.cpu, places.memory, count),
        ),
    }
    yield from ["## How costs grow", ""]
    yield "CPU time of an operation, and the exponent by which it grows with the number (a line through the"
    yield from ["logarithms of the medians, by least squares); 0 is no growth.", ""]
    cells = (_grown(places, what, *how) for what, how in rows.items())
    yield from [*table("with | of | ns of CPU per operation | >exponent", cells), ""]


def _grown(places: Places, what: str, counts: Sequence[int], side: Callable[[int], Side]) -> Sequence[str]:
    rounds = interleaved([side(count) for count in counts], places.rounds(6))
    costs = [spread(map(cpu_per_operation_ns, column)) for column in zip(*rounds, strict=True)]
    shown = ", ".join(f"{count:,}: {cost.words(0)}" for count, cost in zip(counts, costs, strict=True))
    return what, f"{len(counts)} sizes", shown, f"{exponent(counts, [one.median for one in costs]):.2f}"


# -- whole programs ------------------------------------------------------------------------------------


def program_environment() -> dict[str, str]:
    """As installed programs have it: modules are compiled once, not at each start."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def measured_study(study: str, targets: dict[str, Path], place: Path) -> Path:
    """The result of a real run of a study."""
    (place / "study.yaml").write_text(study)
    words = [word for name, path in targets.items() for word in ("--target", f"{name}={path}")]
    subprocess.run(
        [*PROGRAM, "run", place / "study.yaml", *words, "--out", place / "result", "--quiet"],
        timeout=LIMIT_S,
        check=False,  # 3 says that a cell is doubtful, which is no matter here
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=program_environment(),
    )
    return place / "result"


def start(places: Places) -> Iterator[str]:
    """From `trial_started` to the engine's start, and from one trial to the next, in a study."""
    starts, steps = _moments(places)
    whole, *parts = (spread(column) for column in zip(*steps, strict=True))
    found = spread(starts)
    names = (
        "to `trial_finished`: the mark after it, the worker's end, three tables, synced",
        "from there to `trial_started`: the next worker, the mark before it",
        "from there to the start: the job is opened, the clock calibrated",
    )
    yield from ["## Start of a trial inside a study", ""]
    yield "From the journal's `trial_started` to the start that the engine noted, psync and io_uring,"
    yield f"200 ms each: {found.words(1)} ms, at most {START_LIMIT_MS:g}: {found.judged(START_LIMIT_MS)}."
    yield from ["", "## From one trial's end to the next one's start", ""]
    yield "The same study, its files laid out before the first trial; from the end of one measured interval"
    yield from [f"to the start of the next, {len(steps)} times.", ""]
    judged = whole.judged(TURNOVER_LIMIT_MS)
    rows = [("end to start", whole.words(1), f"{TURNOVER_LIMIT_MS:g}", judged)]
    rows += [(name, part.words(1), "", "") for name, part in zip(names, parts, strict=True)]
    yield from table(" | ms | at most | goal", rows)
    yield from ["", "Command:", "", "    leadline run study.yaml --target disk=DIRECTORY", ""]


def _moments(places: Places) -> tuple[list[float], list[tuple[float, ...]]]:
    """In ms: how long each start took, and of each pair of trials the whole between them and its parts."""
    from leadline.store.reader import open_result

    with tempfile.TemporaryDirectory() as place:
        study = STUDY.replace("BLOCKS", "5" if places.quick else "20")
        result = open_result(measured_study(study, {"disk": places.disk}, Path(place)))
        trials = result.trials()
        at = {(one.event, one.details.get("trial")): one.t_ns for one in result.events}
    asked = {one.trial: at["trial_started", one.trial] for one in trials}
    starts = [(one.started_unix_ns - asked[one.trial]) / 1e6 for one in trials]
    steps = []
    for before, after in pairwise(trials):
        end_ns = before.started_unix_ns + before.ramp_ns + before.measured_ns
        moments = (end_ns, at["trial_finished", before.trial], asked[after.trial], after.started_unix_ns)
        parts = [(late - early) / 1e6 for early, late in pairwise(moments)]
        steps.append((sum(parts), *parts))
    return starts, steps


def memory(places: Places) -> Iterator[str]:
    """The peak of a worker process, Python included, beyond the buffers, for a short and a long trial."""
    works: dict[str, dict[str, Any]] = {
        "null, iodepth 32": {"engine": "null", "iodepth": 32},
        "psync, tmpfs": {},
        "psync, 4 numjobs, open loop": {"numjobs": 4, "rate_iops": 2000.0},
    }
    rows = []
    for name, changes in works.items():
        lay_out(places.memory, **{"size": CACHED_BYTES, **changes})
        for runtime_s in (1, 3) if places.quick else (1, 20):
            peak = _peak_mib(places, runtime_s, changes)
            verdict = "met" if peak <= MEMORY_LIMIT_MIB else "**missed**"
            rows.append((name, f"{runtime_s} s", f"{peak:.1f}", f"{MEMORY_LIMIT_MIB:g}", verdict))
    yield from ["## Memory", ""]
    yield from ["Peak resident memory of a worker process (VmHWM, Python included), less the buffers.", ""]
    yield from [*table("trial | run time | MiB | at most | goal", rows), ""]


def _peak_mib(places: Places, runtime_s: int, changes: dict[str, Any]) -> float:
    from leadline.run.child import Worker

    lasting = {"size": CACHED_BYTES, "time_based": True, "runtime_ns": runtime_s * SECOND_NS}
    value = job(places.memory, **lasting, **changes)
    with Worker() as worker:
        answer = worker.call("trial", LIMIT_S, job=value, record=str(places.memory / "trial.llrec"))
        if answer.outcome != "done":
            raise RuntimeError(answer.message)
        status = Path(f"/proc/{worker.pid}/status").read_text()
    peak_kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    return peak_kib / 1024 - value["bs"] * value["iodepth"] * value["numjobs"] / 2**20


def instructions(places: Places) -> Iterator[str]:
    """User-mode instructions per operation: the slope between a short and a long run under callgrind."""
    yield from ["## Instructions per operation", ""]
    if shutil.which("valgrind") is None:
        yield from ["Not counted: valgrind is missing (Debian: valgrind).", ""]
        return
    yield "User mode, counted by `valgrind --tool=callgrind`, from the difference of a short and a long run:"
    yield from ["the same from run to run, whatever the machine is doing.", ""]

    def of_trial(changes: dict[str, Any], blocks: int) -> int:
        lay_out(places.memory, size=blocks * 4096)
        write_job(places.memory, job(places.memory, size=blocks * 4096, **changes))
        return counted([TRIAL, "run", places.memory / "job.json", places.memory / "trial.llrec"])

    loop = [BARE / "pread_loop", lay_out(places.memory, size=CACHED_BYTES), "4096"]
    sides: dict[str, Callable[[int], int]] = {
        "leadline, null, iodepth 32": partial(of_trial, {"engine": "null", "iodepth": 32}),
        "leadline, psync, tmpfs": partial(of_trial, {}),
        "bare pread loop, tmpfs": lambda count: counted([*loop, str(count)]),
    }
    rows = ((name, f"{of_one(20_000, 120_000, cost):.0f}") for name, cost in sides.items())
    yield from [*table("side | instructions", rows), ""]


def of_one(few: int, many: int, cost: Callable[[int], int]) -> float:
    """What one more operation costs, by a short and a long run: start and end are the same in both."""
    return (cost(many) - cost(few)) / (many - few)


def counted(words: Sequence[str | Path], environment: dict[str, str] | None = None) -> int:
    """User-mode instructions of a command, by callgrind; with another environment than this one's."""
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run(
        [*tool, *words], check=True, capture_output=True, text=True, timeout=LIMIT_S, env=environment
    )
    (line,) = [line for line in done.stderr.splitlines() if "Collected :" in line]
    return int(line.split(":")[1])


def tests_took(_places: Places) -> Iterator[str]:
    """How long all tests took when they last ran as a whole: read from what they wrote, not run again."""
    yield from ["## All tests", ""]
    if not TESTS_TOOK.exists():
        yield "NOT_RUN: no whole run of `make test` is on record here; run it, then `make bench`."
        yield ""
        return
    found = json.loads(TESTS_TOOK.read_text())
    minutes = found["seconds"] / 60
    verdict = "met" if minutes <= TESTS_LIMIT_MIN else f"**missed** by {minutes - TESTS_LIMIT_MIN:.0f}"
    phases = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in found["phases"].items())
    yield f"`make test` took {minutes:.0f} min on {found['at']}, at most {TESTS_LIMIT_MIN:g}: {verdict}; it"
    yield f"has no interval; {found['cpu_s']:.0f} s of CPU on {found['processors']} processors."
    yield from [f"Phases, some beside each other: {phases}.", ""]
