"""Realistic findings of several sizes for the report's tests, made from a seed: nothing is measured here.

`python tests/findings_examples.py typical OUT.html` writes one as a page to look at.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

from leadline.verdict.model import (
    Cell,
    CellShown,
    Chain,
    ChainPlace,
    Code,
    Comparison,
    Curve,
    FaultSpan,
    Findings,
    Line,
    Origin,
    Quantity,
    State,
    Statement,
    TargetView,
    TrialView,
    Validity,
)
from leadline.verdict.sections.section import AskedFigure, NextStep, StudyAnswer
from leadline.workloads.io.judge import leading_rates

MIB = 2**20
PERCENTILES = (0, 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 99.999, 100)
HOSTILE = (
    "</script><script>alert(1)</script>\"'\n<img src=http://evil.example/x onerror=alert(2)>"
    "\u202e&amp;{{7*7}}[red]*b*|`c`\x1b[31m"
)

TARGETS = {
    "local": TargetView(
        "local", "/var/tmp/bench", "local", "ext4 on vda", {"options": "rw,relatime", "free": "41 GiB"}
    ),
    "replicated": TargetView(
        "replicated",
        "/mnt/lab/replicated",
        "ceph-fuse",
        "CephFS through ceph-fuse, pool data (3 replicas)",
        {"pool": "cephfs.data", "object size": "4 MiB"},
    ),
    "ec21": TargetView(
        "ec21",
        "/mnt/lab/ec",
        "ceph-fuse",
        "CephFS through ceph-fuse, pool ec (erasure coded 2+1)",
        {"pool": "cephfs.ec"},
    ),
    "kernel": TargetView(
        "kernel", "/mnt/cephfs", "ceph-kernel", "CephFS through the kernel client, pool data (3 replicas)", {}
    ),
}
# Seconds per operation of 4 KiB, and the ceiling of bandwidth: only to look plausible.
_SPEEDS = {"local": (90e-6, 1900 * MIB), "replicated": (900e-6, 420 * MIB), "ec21": (1700e-6, 260 * MIB)}
_SPEEDS["kernel"] = (550e-6, 900 * MIB)
_COPIES = {"local": 1.0, "replicated": 3.0, "ec21": 1.5, "kernel": 3.0}

CODES: dict[str, Code] = {
    "cached_reads": Code(
        "cached_reads",
        "INVALID",
        "Reads came from a cache",
        "11.9 GiB delivered, 0.2 GiB came from the device and the wire",
        "Read a data set larger than the memory, use direct I/O, or run with --drop-caches.",
    ),
    "too_short": Code(
        "too_short",
        "DOUBTFUL",
        "Too short",
        "2.0 s measured, 31 operations in the shortest trial",
        "Raise runtime to at least 30 s.",
    ),
    "generator_saturated": Code(
        "generator_saturated",
        "DOUBTFUL",
        "The load generator was saturated",
        "the busiest thread used 97 % of its core",
        "Spread the load over more threads (numjobs) or more hosts.",
    ),
    "errors": Code(
        "errors",
        "NOT_RUN",
        "The trial ended with an error",
        "write to data.0.0 at offset 12582912: ENOSPC, no space left on device",
        "Free space on the target or lower size.",
    ),
}


def job(rw: str, bs: int, iodepth: int = 16) -> dict[str, object]:
    """A job in fio's words, with every default."""
    return {
        "rw": rw,
        "rwmixread": 70 if rw == "randrw" else 50,
        "bs": bs,
        "size": 1024 * MIB,
        "nrfiles": 1,
        "numjobs": 4,
        "iodepth": iodepth,
        "engine": "io_uring",
        "direct": True,
        "overwrite": False,
        "fsync": 0,
        "time_based": True,
        "runtime_ns": 30_000_000_000,
        "ramp_time_ns": 2_000_000_000,
        "end_fsync": False,
        "rate_bytes_per_s": None,
        "rate_iops": None,
        "arrival": "constant",
        "verify": False,
        "incompressible": True,
        "sqthread_poll": False,
    }


def _quantity(chance: random.Random, value: float, unit: str, blocks: int, noise: float = 0.02) -> Quantity:
    values = [value * chance.gauss(1, noise) for _ in range(blocks)]
    mean = statistics.fmean(values)
    if blocks < 2:
        return Quantity(mean, unit, blocks=blocks)
    half = 2.5 * statistics.stdev(values) / math.sqrt(blocks)
    return Quantity(mean, unit, mean - half, mean + half, blocks)


def _curve(chance: random.Random, direction: str, mean_ns: float, operations: int) -> Curve:
    width = 0.3 + 0.15 * chance.random()
    middle = mean_ns / math.exp(width**2 / 2)
    points = []
    for percentile in PERCENTILES:
        share = min(max(percentile / 100, 1 / operations), 1 - 1 / operations)
        score = statistics.NormalDist().inv_cdf(share)
        stretched = score + 0.25 * max(0.0, score - 1) ** 1.6
        points.append((float(percentile), round(middle * math.exp(width * stretched))))
    return Curve(direction, "total", operations, tuple(points))


def _line(chance: random.Random, trial: str, block: int, rate: float) -> Line:
    points = []
    for second in range(32):
        level = rate * (0.4 + 0.3 * second if second < 2 else 1) * chance.gauss(1, 0.06)
        points.append((second + 0.5, max(level, 0.0)))
    return Line(trial, block, "bandwidth", "B/s", tuple(points), measured_from_s=2.0)


def _chain(direction: Literal["read", "write"], remote: bool, amplified: float) -> Chain:
    """Half of what is read comes out of caches; what is written gets to the end."""
    reads = [("page_cache", "page cache", 0.4), ("client_cache", "client's cache", 0.1)]
    end = ("store", "OSDs' stores") if remote else ("device", "device")
    before = reads if direction == "read" else []
    places = [ChainPlace(name, words, share, MIB, share) for name, words, share in before]
    rest = 1.0 - sum(share for _, _, share in before)
    model = amplified if direction == "write" else None
    places.append(ChainPlace(*end, rest, MIB, 1.02 * amplified, model))
    acknowledged = "by the model" if direction == "write" else None
    return Chain(direction, MIB, tuple(places), acknowledged)


def cell(
    target: str, work: str, rw: str, bs: int, *, blocks: int = 3, factors: dict[str, object] | None = None
) -> Cell:
    """A valid cell whose numbers follow from its names."""
    chance = random.Random(f"{target} {work}")  # noqa: S311  (no secret)
    seconds, ceiling = _SPEEDS.get(target, (500e-6, 500 * MIB))
    slower = 1.6 if "write" in rw else 1.0
    iops = min(16 / seconds / slower, ceiling / slower / bs)
    mean_ns = 64 / iops * 1e9
    operations = max(2, int(iops * 30 * blocks))
    directions = ["read", "write"] if rw == "randrw" else ["write" if "write" in rw else "read"]
    curves = tuple(
        _curve(chance, way, mean_ns * (1.4 if way == "write" else 1), operations) for way in directions
    )
    points = dict(curves[0].points)
    trials, lines = [], []
    for block in range(1, blocks + 1):
        trial = f"t{chance.randrange(10_000):04d}"
        rate = iops * bs * chance.gauss(1, 0.02)
        values = {"bandwidth": rate, "iops": rate / bs, "measured_s": 30.0, "bytes": rate * 30}
        trials.append(TrialView(trial, block, chance.randrange(1, 90), "complete", None, values))
        lines.append(_line(chance, trial, block, rate))
    amplified = _COPIES.get(target, 1.0) if "write" in rw else 1.0
    remote = target != "local"
    metrics = {
        "bandwidth": _quantity(chance, iops * bs, "B/s", blocks),
        "iops": _quantity(chance, iops, "1/s", blocks),
        "latency_mean": _quantity(chance, mean_ns, "ns", blocks, 0.03),
        "latency_p50": _quantity(chance, points[50.0], "ns", blocks, 0.02),
        "latency_p99": _quantity(chance, points[99.0], "ns", blocks, 0.08),
        "cpu_share": _quantity(chance, 0.21, "1", blocks, 0.1),
    }
    if len(directions) > 1:
        for name in [name for name in metrics if name.startswith("latency")]:
            metrics[f"read_{name}"] = metrics[f"write_{name}"] = metrics.pop(name)
    origin = Origin(
        1.0,
        1.012 if remote else 0.0,
        None if remote else 1.003,
        amplified * 1.02 if remote else None,
        {"device_bytes": "not observable: the device is on another host"},
    )
    return Cell(
        id=f"{target}.{work}",
        target=target,
        work=work,
        chains=tuple(_chain(way, remote, amplified) for way in directions),
        factors=factors or {},
        job=job(rw, bs)
        | ({"engine": "psync"} if remote else {})
        | {"notes": ["size: a sixteenth of memory"]},
        metrics=metrics,
        shown=CellShown(leading_rates(bs), tuple(directions)),
        validity=Validity("VALID"),
        trials=tuple(trials),
        curves=curves,
        lines=tuple(lines),
        origin=origin,
    )


def judged(item: Cell, *names: str) -> Cell:
    """`item` with these codes fired; a cell that could not be run loses its numbers."""
    codes = tuple(CODES[name] for name in names)
    ranks: tuple[State, ...] = ("VALID", "DOUBTFUL", "NOT_RUN", "INVALID")
    state = max((code.state for code in codes), key=ranks.index, default="VALID")
    item = replace(item, validity=Validity(state, codes))
    if state != "NOT_RUN":
        return item
    missing = {
        name: Quantity(None, each.unit, reason="the trial ended with ENOSPC")
        for name, each in item.metrics.items()
    }
    failed = tuple(
        replace(trial, state="error", error=CODES["errors"].evidence, values={}) for trial in item.trials
    )
    return replace(item, metrics=missing, trials=failed, curves=(), lines=(), origin=None, chains=())


def compare(cells: tuple[Cell, ...], base: str) -> tuple[Comparison, ...]:
    """Every other target against `base`, in bandwidth and p99 latency."""
    by_place = {(item.target, item.work): item for item in cells}
    found = []
    for item in cells:
        other = by_place.get((base, item.work))
        if item.target == base or other is None:
            continue
        for metric in ("bandwidth", "latency_p99"):
            name = metric if metric in item.metrics else f"read_{metric}"
            ours, theirs = item.metrics[name].value, other.metrics[name].value
            if ours is None or theirs is None:
                found.append(
                    Comparison(item.work, metric, base, item.target, None, None, None, 0, "undecided")
                )
                continue
            ratio = ours / theirs
            better = ratio > 1 if metric == "bandwidth" else ratio < 1
            verdict = "same" if abs(ratio - 1) < 0.03 else "faster" if better else "slower"
            note = "3 blocks: the interval rests on the normal distribution of the logarithm"
            found.append(
                Comparison(
                    item.work,
                    metric,
                    base,
                    item.target,
                    ratio,
                    ratio * 0.96,
                    ratio * 1.04,
                    3,
                    verdict,
                    0.05,
                    note,
                )
            )
    return tuple(found)


def _findings(title: str, about: str, targets: list[str], cells: tuple[Cell, ...], state: State) -> Findings:
    return Findings(
        id="20261120T221500-3f9a",
        kind="study",
        title=title,
        about=about,
        created="2026-11-20T22:15:00Z",
        state=state,
        targets=tuple(TARGETS[name] for name in targets),
        cells=cells,
        comparisons=compare(cells, targets[0]),
        statements=(),
        host={
            "host": "node-17",
            "processor": "AMD EPYC 7543P, 2 cores of a virtual machine",
            "memory": "7.8 GiB",
            "kernel": "Linux 6.1.0-40-amd64",
            "distribution": "Debian GNU/Linux 12",
        },
        cluster={
            "release": "ceph 16.2.15 pacific",
            "health": "HEALTH_OK",
            "OSDs": "4 up, 4 in",
            "pools": "data, ec, meta",
        },
        itself={
            "observers": "1.3 % of one core",
            "null engine": "2,100,000 IOPS",
            "worker": "io_uring, 4 threads",
        },
        study={"name": "render", "blocks": 3, "seed": 42, "works": sorted({item.work for item in cells})},
        reproduce=(
            "leadline run render --target local=/var/tmp/bench --target replicated=/mnt/lab/replicated"
            " --target ec21=/mnt/lab/ec --blocks 3 --seed 42 --out R",
            "leadline report R --format html -o report.html",
        ),
        version="0.1.0",
    )


def answered(found: Findings) -> Findings:
    """With the answer to a question: the bandwidth of every cell, and how it compares."""
    base = found.targets[0].name
    compared = {(one.work, one.other): one for one in found.comparisons if one.metric == "bandwidth"}
    figures = tuple(
        AskedFigure(
            one.work,
            one.target,
            one.id,
            "bandwidth",
            one.metrics["bandwidth"],
            one.validity.state,
            compared.get((one.work, one.target)),
        )
        for one in found.cells
    )
    steps = (
        NextStep("to detect a factor of 2 in most inconclusive comparisons: run it with --blocks 6", 840.0),
    )
    answer = StudyAnswer("Which target is the fastest?", f"{base} is.", figures, base, steps=steps)
    return replace(found, answer=answer)


def small() -> Findings:
    """One target, two cells, one block: the least that a study gives."""
    cells = (
        cell("local", "seqread_1m", "read", MIB, blocks=1),
        cell("local", "randread_4k", "randread", 4096, blocks=1),
    )
    found = _findings("Quick look at /var/tmp", "How fast is this directory?", ["local"], cells, "VALID")
    words = "local reads 1.86 GiB/s in large blocks and 178,000 times a second in small ones."
    return answered(replace(found, statements=(Statement("headline", words, says="example"),), cluster={}))


def typical() -> Findings:
    """Three targets, five works, codes of every severity."""
    works = [
        ("seqread_1m", "read", MIB),
        ("seqwrite_1m", "write", MIB),
        ("randread_4k", "randread", 4096),
        ("randwrite_4k", "randwrite", 4096),
        ("randrw_64k", "randrw", 65536),
    ]
    names = ["local", "replicated", "ec21"]
    flags = {
        ("replicated", "seqread_1m"): "cached_reads",
        ("ec21", "randwrite_4k"): "too_short",
        ("local", "randread_4k"): "generator_saturated",
        ("ec21", "randrw_64k"): "errors",
    }
    cells = []
    for work, rw, bs in works:
        for name in names:
            flag = flags.get((name, work))
            item = cell(name, work, rw, bs, factors={"bs": bs, "rw": rw})
            cells.append(judged(item, flag) if flag else item)
    found = _findings(
        "CephFS against a local disk, replicated and erasure coded",
        "What does CephFS through ceph-fuse deliver for a render farm, against the local disk, and what does"
        " erasure coding cost against three replicas?",
        names,
        tuple(cells),
        "INVALID",
    )
    statements = (
        Statement(
            "headline",
            "CephFS with 3 replicas writes large files at 0.22 of the local disk's speed;"
            " erasure coding 2+1 at 0.13.",
            ("seqwrite_1m, 3 blocks paired", "95 % interval 0.21 to 0.23"),
            says="example",
        ),
        Statement(
            "finding",
            "Small random reads wait 10 to 19 times as long on CephFS.",
            ("randread_4k, mean latency",),
            says="example",
        ),
        Statement("finding", "Erasure coding halves small random writes against 3 replicas.", says="example"),
        Statement(
            "caution",
            "One cell is INVALID: reads of replicated.seqread_1m came from a cache.",
            says="example",
        ),
    )
    return answered(replace(found, statements=statements))


def large() -> Findings:
    """Four targets, fifteen works: sixty cells."""
    sizes = {"4k": 4096, "64k": 65536, "1m": MIB}
    ways = ["read", "write", "randread", "randwrite", "randrw"]
    names = ["local", "replicated", "ec21", "kernel"]
    cells = tuple(
        cell(name, f"{way}_{label}", way, size, factors={"bs": size, "rw": way})
        for label, size in sizes.items()
        for way in ways
        for name in names
    )
    cells = (judged(cells[0], "too_short"), *cells[1:])
    found = _findings(
        "Block sizes and patterns on four targets", "Where does each target lead?", names, cells, "DOUBTFUL"
    )
    words = Statement("headline", "The kernel client leads ceph-fuse in every work.", says="example")
    return answered(replace(found, statements=(words,)))


def hostile() -> Findings:
    """The typical result with an attack in every text that comes from outside."""
    found = typical()
    bad = tuple(
        replace(
            item,
            id=f"{item.target}{HOSTILE}.{item.work}{HOSTILE}",
            target=item.target + HOSTILE,
            work=item.work + HOSTILE,
            factors={HOSTILE: HOSTILE},
            job=item.job | {HOSTILE: HOSTILE},
            metrics=item.metrics | {HOSTILE: Quantity(None, HOSTILE, reason=HOSTILE)},
            validity=replace(
                item.validity,
                codes=tuple(
                    replace(code, title=HOSTILE, evidence=HOSTILE, remedy=HOSTILE)
                    for code in item.validity.codes
                ),
            ),
            trials=tuple(replace(trial, error=HOSTILE) for trial in item.trials),
        )
        for item in found.cells
    )
    facts = {HOSTILE: HOSTILE}
    asked = found.answer
    assert asked is not None
    answer = replace(
        asked,
        question=HOSTILE,
        text=HOSTILE,
        against=HOSTILE,
        figures=tuple(
            replace(one, work=one.work + HOSTILE, target=one.target + HOSTILE) for one in asked.figures
        ),
        steps=(NextStep(HOSTILE),),
    )
    return replace(
        found,
        answer=answer,
        title="=HYPERLINK(1)" + HOSTILE,
        about=HOSTILE,
        cells=bad,
        targets=tuple(
            TargetView(view.name + HOSTILE, "/mnt/" + HOSTILE, view.access, HOSTILE, facts)
            for view in found.targets
        ),
        comparisons=tuple(
            replace(item, work=item.work + HOSTILE, base=item.base + HOSTILE, other=item.other + HOSTILE)
            for item in found.comparisons
        ),
        statements=(Statement("headline", HOSTILE, (HOSTILE,), says="example"),),
        host=facts,
        cluster=facts,
        itself=facts,
        study=facts,
        reproduce=(HOSTILE,),
    )


def empty() -> Findings:
    """A study in which nothing could be run."""
    cells = (judged(cell("local", "seqread_1m", "read", MIB), "errors"),)
    found = _findings("Nothing ran", "", ["local"], cells, "NOT_RUN")
    return replace(
        found, complete=False, comparisons=(), cluster={}, host={}, itself={}, study={}, reproduce=()
    )


def faulted() -> Findings:
    """The typical one on a lab, each trial under one fault and in part under another."""
    findings = typical()
    cells = [
        replace(
            cell,
            lines=tuple(
                replace(line, faults=(FaultSpan("link of host1 at 100 Mbit/s", 0.0, 31.5), short))
                for line in cell.lines
            ),
        )
        for cell in findings.cells
        for short in [FaultSpan("osd.0 stopped (SIGSTOP)", 12.5, 17.0)]
    ]
    return replace(findings, cells=tuple(cells))


EXAMPLES = {
    "small": small,
    "faulted": faulted,
    "typical": typical,
    "large": large,
    "hostile": hostile,
    "empty": empty,
}

if __name__ == "__main__":
    from leadline.report import render

    Path(sys.argv[2]).write_text(
        render(EXAMPLES[sys.argv[1]](), sys.argv[2].rsplit(".", 1)[-1]), encoding="utf-8"
    )
