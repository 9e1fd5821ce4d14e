"""Whether leadline and fio say the same of the same file, options and depth: pairs, one after the other.

Where they do not, another side takes away what is suspected: batches, or the code of fio itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from sides import (
    DIRECT_BYTES,
    TUNED,
    Figure,
    Places,
    Rounds,
    Side,
    bandwidth,
    fio,
    interleaved,
    lay_out,
    leadline,
    ratio,
    shares,
    without_start,
)

DEPTH = 16
BATCH = DEPTH // 4  # what a study's job of that depth has when it does not say
FIGURES: tuple[Figure, ...] = (
    bandwidth,
    lambda sample: sample.operations / sample.elapsed_ns,
    lambda sample: sample.p50_ns,
    lambda sample: sample.p99_ns,
)

ABOUT = f"""\
Random 4 KiB on one file, a second each, in turns; io_uring with iodepth 16. Each figure is the median
of the rounds' ratios, with its interval; **bold** where the interval leaves 1 out. Latencies are total
latencies (fio's `lat`). fio's histogram has steps of up to 1.6 %, leadline's of 0.1 %. Before each run
the file is synced and dropped from the cache, and fio is told not to do so itself: it would again after
each pass, within its run time and outside its latencies.

The lines below a pair are experiments on why it differs. `fio, in batches` takes back all that has
ended and hands over up to {BATCH} together, as leadline does; fio by itself takes and hands over one by
one, so that an end waits for its turn to be seen. `one by one` is leadline with `iodepth_batch: 1`;
`all at once` is leadline with batches of up to {DEPTH}, its own default before this table told what
that costs. `fio, tuned` reads the clock less and tells no latencies. Buffered writes by plain calls are
a long run less a short one, without start and end: they go to memory, so that their rate is made of the
processor's time for each, which is told."""


def accuracy(places: Places) -> Iterator[str]:
    """A row for each of psync and io_uring, direct and buffered, read and write, and its experiments."""
    lay_out(places.disk, size=DIRECT_BYTES)
    yield from ["## Accuracy: leadline / fio", "", *ABOUT.splitlines(), ""]
    yield "| engine, way | direction | compared | bandwidth | IOPS | median latency | p99 latency |"
    yield "|---|---|---|---|---|---|---|"
    shown = []
    for engine, direct, rw in product(("psync", "io_uring"), (True, False), ("randread", "randwrite")):
        sides = _sides(places, engine, direct, rw)
        rounds = interleaved(sides, places.rounds(7), places.disk / "data.0.0")
        way = f"{engine}, {'direct' if direct else 'buffered'} | {rw.removeprefix('rand')}"
        for of, to in _compared(sides):
            cells = [_words(rounds, of, to, figure) for figure in FIGURES]
            pair = f"{sides[of].name} / {sides[to].name}"
            if engine == "psync" and not direct and rw == "randwrite":
                pair += f": {shares(rounds, of, to)}"
            yield f"| {way} | {pair} | {' | '.join(cells)} |"
            way = " | "
        shown += [side.command for side in sides]
    yield from ["", "Commands:", "", *(f"    {command}" for command in shown), ""]


def _compared(sides: list[Side]) -> list[tuple[int, int]]:
    """leadline over fio first; then leadline over fio's other sides, and its own other sides over fio."""
    ours = [(index, 1) for index in range(2, len(sides)) if sides[index].name.startswith("leadline")]
    theirs = [(0, index) for index in range(2, len(sides)) if sides[index].name.startswith("fio")]
    return [(0, 1), *theirs, *ours]


def _sides(places: Places, engine: str, direct: bool, rw: str) -> list[Side]:
    queued = engine == "io_uring"
    common = {"rw": rw, "bs": 4096, "size": DIRECT_BYTES, "iodepth": DEPTH if queued else 1}
    theirs = {
        "filename": places.disk / "data.0.0",
        "ioengine": engine,
        "direct": int(direct),
        "invalidate": 0,
    }

    def of_length(side: Callable[[int], Side]) -> Side:
        """A second; in memory a long run less a short one, which would warm the cache for what reads."""
        in_memory = not direct and not queued and rw == "randwrite"
        return without_start(side(1200), side(200)) if in_memory else side(1000)

    def ours(name: str, **more: Any) -> Side:
        changes = {"engine": engine, "direct": direct, "overwrite": rw == "randwrite", **common, **more}

        def side(long_ms: int) -> Side:
            timed = {"time_based": True, "runtime_ns": long_ms * 1_000_000}
            return replace(leadline(places.cpu, places.disk, latencies=True, **changes, **timed), name=name)

        return of_length(side)

    def fios(name: str, **more: Any) -> Side:
        words = {**common, **theirs, **more}
        return of_length(lambda long_ms: fio(places.cpu, name, **words, time_based=1, runtime=f"{long_ms}ms"))

    pair = [ours("leadline"), fios("fio")]
    if not queued:
        return [*pair, fios("fio, tuned", **TUNED)]
    return [
        *pair,
        fios("fio, in batches", iodepth_batch_submit=BATCH, iodepth_batch_complete_max=DEPTH),
        ours("leadline, one by one", iodepth_batch=1),
        ours("leadline, all at once", iodepth_batch=DEPTH),
    ]


def _words(rounds: Rounds, of: int, to: int, figure: Figure) -> str:
    """A side may tell no latencies."""
    told = all(figure(samples[to]) for samples in rounds)
    return ratio(rounds, of, to, figure).bold() if told else ""
