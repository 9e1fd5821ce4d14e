"""CPU per I/O and per GiB: leadline beside fio and beside the least that the same I/O costs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ratios import bandwidth, cpu_per_gib_ms, cpu_per_operation_ns, ratio, spread
from sides import TRIAL, Side, bare, fio, lay_out, leadline, pinned, timed, without_start
from tables import Goal, Row, commands, judge, measured

MIB = 1 << 20
DIRECT_BYTES = 512 * MIB
CACHED_BYTES = 1 * MIB
# In a core's second cache, beside it, and beyond all caches: what a read costs by itself differs by four.
CACHED_READ_BYTES = (1 * MIB, 4 * MIB, 256 * MIB)
BARE_CACHED_READS, BARE_DIRECT_READS, BARE_EMPTY = 2_000_000, 100_000, 10_000_000
COUNTED = 10_000  # under strace
LENGTHS_S = (1.2, 0.2)
# fio's own switches for less work: no latencies but the sum, no map of blocks that were read.
TUNED = {"gtod_reduce": 1, "norandommap": 1}
SMALL_NOTES = (
    "Each figure is what a long run costs more than a short one, so that start and end are out of it:",
    f"{LENGTHS_S[0]:g} and {LENGTHS_S[1]:g} s, and a bare loop's operations and a tenth of them.",
    "`bare` hands over and takes back in batches; on no storage it is a ring of operations that do nothing.",
    "`fio, tuned` tells no latencies.",
)
# Rounds of rows near their goals: the interval of 7 is all of them, that of 15 their middle half.
DECIDING = 15
HEAD = ["| work | side | {unit} | compared | at most | goal |", "|---|---|---|---|---|---|"]


@dataclass(frozen=True)
class Places:
    """Where files are made, the CPU that everything runs on, and how much is repeated."""

    disk: Path
    memory: Path
    cpu: int
    quick: bool

    def rounds(self, full: int) -> int:
        return 2 if self.quick else full


def small_io(places: Places) -> list[str]:
    """4 KiB random reads: direct through io_uring, cached through plain calls; and no storage at all."""
    rows = [_direct(places, 128), _direct(places, 32)]
    rows += [_cached(places, file_bytes) for file_bytes in CACHED_READ_BYTES]
    rows.append(_null(places))
    lines = [
        "## CPU time per I/O",
        "",
        *SMALL_NOTES,
        "",
        *[line.format(unit="ns of CPU per I/O") for line in HEAD],
    ]
    for row in rows:
        lines += measured(row)[0]
    return [*lines, "", "Commands:", "", *[f"    {command}" for command in commands(rows)], ""]


def _timed_fio(places: Places, name: str, **options: Any) -> Side:
    """fio, long less short."""
    long, short = (
        fio(places.cpu, name, **options, time_based=1, runtime=f"{seconds * 1000:.0f}ms")
        for seconds in LENGTHS_S
    )
    return without_start(long, short)


def _counted(places: Places, program: str, path: object, operations: int, *before: object) -> Side:
    """A bare loop, long less short; `before` its count stand block size and depth."""
    long, short, counted = (
        bare(program, places.cpu, path, 4096, *before, count, operations=count, block_bytes=4096)
        for count in (operations, operations // 10, COUNTED)
    )
    return without_start(long, short, counted)


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


def sequential(places: Places) -> list[str]:
    """1 MiB and 4 MiB, read and write, direct and buffered: CPU per GiB, and bandwidth."""
    rows = [
        _sequential(places, rw, block, direct)
        for direct in (True, False)
        for rw in ("read", "write")
        for block in (MIB, 4 * MIB)
    ]
    head = "| work | side | {unit} | compared | at most | goal | bandwidth, leadline / fio |"
    lines = ["## Sequential I/O", "", head.format(unit="ms of CPU per GiB"), "|---|---|---|---|---|---|---|"]
    for row in rows:
        found, rounds = measured(row)
        speed = ratio(rounds, 0, 1, bandwidth)
        lower = "" if speed.low >= 0.95 else ", **interval below 0.95**"
        found[0] += f" {speed.words()}{lower} |"
        lines += [line if index == 0 else f"{line} |" for index, line in enumerate(found)]
    notes = [
        "`fio` writes the same buffers over and over, changing a few words of each; `fio, new data` makes",
        "new data for each write, as leadline does. Direct I/O is io_uring with iodepth 4, buffered I/O",
        "plain calls; writes go over a file that is there, and buffered ones end with fsync.",
    ]
    return [*lines, "", *notes, "", "Commands:", "", *[f"    {one}" for one in commands(rows)], ""]


def _sequential(places: Places, rw: str, block_bytes: int, direct: bool) -> Row:
    path = places.disk / "data.0.0"
    common = {"rw": rw, "bs": block_bytes, "size": DIRECT_BYTES, "iodepth": 4 if direct else 1}
    writes = rw == "write"
    own = {"engine": "io_uring" if direct else "psync", "direct": direct, "overwrite": writes}
    theirs = {"ioengine": own["engine"], "direct": int(direct), "filename": path, "invalidate": 0}
    if writes and not direct:
        own["end_fsync"], theirs["end_fsync"] = True, 1
    sides: list[Side] = [
        leadline(places.cpu, places.disk, **common, **own),
        fio(places.cpu, **common, **theirs),
    ]
    goals = [Goal("leadline / fio", 0, 1, 1.0)]
    if writes:
        sides.append(fio(places.cpu, "fio, new data", **common, **theirs, refill_buffers=1))
        goals.append(Goal("leadline / fio, new data", 0, 2, 1.0))
    way = "direct" if direct else "buffered"
    what = f"{rw} {block_bytes // MIB} MiB, {way}"
    return Row(what, sides, cpu_per_gib_ms, goals, places.rounds(7), path)


def data(places: Places) -> list[str]:
    """Making and verifying data against a memset of the same buffers, and a copy into them."""
    lines = [
        "## Data",
        "",
        "Incompressible data made and verified, against a memset of the same buffers, by turns. `copied` are",
        "blocks copied from a pool of 16 KiB: the least that data can cost which is not one word throughout.",
        "",
        "| buffers | memset | made / memset | goal | copied / memset | made / copied | verified / memset "
        "| goal |",
        "|---|---|---|---|---|---|---|---|",
    ]
    program = TRIAL.with_name("pattern_cost")
    for buffer_bytes in (64 << 10, MIB, 4 * MIB, 32 * MIB):
        words = [str(program), str(buffer_bytes), "9" if places.quick else "21"]
        _, out = pinned(words, places.cpu)
        rounds = [json.loads(line) for line in out.splitlines()][1:]  # the first warms up
        made = spread([one["fill_ns"] / one["memset_ns"] for one in rounds])
        copied, over_copied = (
            spread([one[of] / one[to] for one in rounds])
            for of, to in (("copy_ns", "memset_ns"), ("fill_ns", "copy_ns"))
        )
        verified = spread([one["verify_ns"] / one["memset_ns"] for one in rounds])
        speed = spread([buffer_bytes / one["memset_ns"] for one in rounds]).median
        limit = 1.3 if buffer_bytes == 32 * MIB else 1.5
        lines.append(
            f"| {buffer_bytes >> 10} KiB | {speed:.1f} GB/s | {made.words(2)} | {limit:g}: "
            f"{judge(made, limit)} | {copied.words(2)} | {over_copied.words(2)} | {verified.words(2)} | "
            f"3: {judge(verified, 3)} |"
        )
    return [*lines, "", "Command:", "", "    pattern_cost BYTES ROUNDS", ""]
