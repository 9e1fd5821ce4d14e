"""What the tracer in the kernel adds to a call, beside what bpftrace adds for a count and a histogram."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from cost import Places
from leadline.tracing.sources.bpf import Session, unavailable
from ratios import spread
from sides import BARE, pinned
from tables import judge

CALLS = {
    "pread": "pread64",
    "pwrite": "pwrite64",
    "lseek": "lseek",
    "stat": "newfstatat",
    "stat of 1,000 paths in turn": "newfstatat",
}
PATHS = 1000
COUNT = 500_000
LIMIT = 0.6
MEMORY_BYTES, SEGMENTS_BYTES = 64 << 20, 64 << 20
ATTACH_LIMIT_S = 30.0
# As one would write it: the clock at the start by thread, a count and a histogram at the end.
PROGRAM = (
    "tracepoint:syscalls:sys_enter_{name} {{ @start[tid] = nsecs; }} "
    "tracepoint:syscalls:sys_exit_{name} /@start[tid]/ "
    "{{ @calls = count(); @latency = hist(nsecs - @start[tid]); delete(@start[tid]); }}"
)


def bpf(places: Places) -> list[str]:
    """Added time per call, on tmpfs, for the calls that the preloaded tracer is measured with too."""
    lines = [
        "## Tracing in the kernel",
        "",
        f"CPU time that a call takes longer, in ns, in a loop of {COUNT:,} on tmpfs. The goal is for",
        f"counters and histograms: at most {LIMIT} of what bpftrace adds for a count and a histogram of it.",
        "",
    ]
    why_not = unavailable() or _without_bpftrace()
    if why_not:
        return [*lines, f"Not measured: {why_not}", ""]
    lines += [
        "| call | alone | leadline | with segments | bpftrace | leadline / bpftrace | verdict |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    file = places.memory / "traced"
    file.write_bytes(bytes(4096))
    for number in range(PATHS):
        file.with_name(f"traced.{number}").touch()
    return [*lines, *(_row(places, call, file) for call in CALLS), ""]


def _without_bpftrace() -> str | None:
    if shutil.which("bpftrace") is None:
        return "bpftrace is not installed"
    if not Path("/sys/kernel/tracing/events").is_dir():
        return "bpftrace needs tracefs: mount -t tracefs nodev /sys/kernel/tracing"
    return None


def _row(places: Places, call: str, file: Path) -> str:
    many = [str(PATHS)] if "paths" in call else []
    command = [str(BARE / "call_loop"), call.split(maxsplit=1)[0], str(file), str(COUNT), *many]

    def alone() -> float:
        return pinned(command, places.cpu)[0].cpu_ns / COUNT

    sides: list[Callable[[], float]] = [
        alone,
        lambda: _ours(alone, None),
        lambda: _ours(alone, SEGMENTS_BYTES),
        lambda: _bpftrace(alone, CALLS[call]),
    ]
    rounds = []
    for turn in range(places.rounds(11)):
        order = [(turn + step) % len(sides) for step in range(len(sides))]
        taken = {which: sides[which]() for which in order}
        rounds.append([taken[which] for which in range(len(sides))])
    added = [[round_[side] - round_[0] for round_ in rounds] for side in (1, 2, 3)]
    ratio = spread([ours / theirs for ours, theirs in zip(added[0], added[2], strict=True)])
    shown = [spread([round_[0] for round_ in rounds]), *map(spread, added)]
    words = " | ".join(one.words(0) for one in shown)
    return f"| {call} | {words} | {ratio.words(2)} | {judge(ratio, LIMIT)} |"


def _ours(alone: Callable[[], float], segments_bytes: int | None) -> float:
    with Session(segments_bytes=segments_bytes, memory_bytes=MEMORY_BYTES) as session:
        # What this process starts is followed, and this process itself.
        session.follow(os.getpid())
        return alone()


def _bpftrace(alone: Callable[[], float], name: str) -> float:
    program = PROGRAM.format(name=name)
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
