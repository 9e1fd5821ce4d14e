"""Whether leadline and fio say the same of the same file, options and depth: pairs, one after the other."""

from __future__ import annotations

from collections.abc import Callable

from cost import DIRECT_BYTES, Places
from ratios import Spread, bandwidth, interleaved, ratio
from sides import SECOND_NS, Sample, Side, fio, lay_out, leadline

DEPTH = 16
FIGURES: tuple[Callable[[Sample], float], ...] = (
    bandwidth,
    lambda sample: sample.operations / sample.elapsed_ns,
    lambda sample: sample.p50_ns,
    lambda sample: sample.p99_ns,
)


def accuracy(places: Places) -> list[str]:
    """A row for each of psync and io_uring, direct and buffered, read and write."""
    lay_out(places.disk, size=DIRECT_BYTES)
    lines = [
        "## Accuracy: leadline / fio",
        "",
        "Random 4 KiB on one file, a second each, in turns; io_uring with iodepth 16. Each figure is the",
        "median of the pairs' ratios, with its interval; **bold** where the interval leaves 1 out. Latencies",
        "are total latencies (fio's `lat`). fio's histogram has steps of up to 1.6 %, leadline's of 0.1 %.",
        "Before each run the file is synced and dropped from the cache, and fio is told not to do so itself:",
        "it would again after each pass, within its run time and outside its latencies.",
        "",
        "| engine, way | direction | bandwidth | IOPS | median latency | p99 latency |",
        "|---|---|---|---|---|---|",
    ]
    shown = []
    for engine in ("psync", "io_uring"):
        for direct in (True, False):
            for rw in ("randread", "randwrite"):
                sides = _pair(places, engine, direct, rw)
                rounds = interleaved(sides, places.rounds(7), places.disk / "data.0.0")
                cells = [_words(ratio(rounds, 0, 1, figure)) for figure in FIGURES]
                way = "direct" if direct else "buffered"
                lines.append(f"| {engine}, {way} | {rw.removeprefix('rand')} | {' | '.join(cells)} |")
                shown += [side.command for side in sides]
    return [*lines, "", "Commands:", "", *[f"    {command}" for command in shown], ""]


def _pair(places: Places, engine: str, direct: bool, rw: str) -> list[Side]:
    common = {
        "rw": rw,
        "bs": 4096,
        "size": DIRECT_BYTES,
        "iodepth": DEPTH if engine == "io_uring" else 1,
    }
    changes = {"engine": engine, "direct": direct, "overwrite": rw == "randwrite"}
    timed = {"time_based": True, "runtime_ns": SECOND_NS}
    path = places.disk / "data.0.0"
    theirs = {"filename": path, "ioengine": engine, "direct": int(direct), "invalidate": 0}
    theirs |= {"time_based": 1, "runtime": "1s"}
    return [
        leadline(places.cpu, places.disk, latencies=True, **common, **changes, **timed),
        fio(places.cpu, **common, **theirs),
    ]


def _words(found: Spread) -> str:
    words = found.words(2)
    return words if found.low <= 1 <= found.high else f"**{words}**"
