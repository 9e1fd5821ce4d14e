"""What many hosts cost the parent: a thousand simulated ones, and 64 real Dask workers on this machine.

    python bench/many_hosts.py                   # both, into bench/results.md; some minutes
    python bench/many_hosts.py --only simulated --hosts 100 --trials 2 --print

Simulated: each host's tables are written as a session on it writes them (a trial of a minute, an interval a
second); joining, storing, reading and reporting is the product's own code, each step in a process of its own,
so that its largest memory is its own. Workers: `dask worker` processes, each a host of the study.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import PROGRAM, ROOT, command, made, put, table

if TYPE_CHECKING:
    from leadline.store.journal import Event

SECONDS, SAMPLED = 60, 40  # of a trial; samples of a host in each of them
MIB = 1 << 20
RUNTIME_S = 2
NOTHING = f"""
format: leadline.study/1
blocks: 5
works:
  randread_4k: {{rw: randread, bs: 4k, size: 64M, time_based: true, runtime: {RUNTIME_S}s, rate_iops: 20}}
"""
_STEP_WORDS = {"join": "join and store", "report": "read, judge and report"}


def main() -> int:
    """Each section that was asked for; one that cannot be made says why."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", choices=("simulated", "workers"))
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--workers", type=int, nargs="+", default=[4, 16, 64])
    parser.add_argument("--print", action="store_true", help="print the sections, and write nothing")
    parser.add_argument("--step", choices=("hosts", *_STEP_WORDS), help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.step:
        return one_step(asked)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # workers are ended by unwinding
    sections: dict[str, Callable[[], Iterator[str]]] = {
        "simulated": lambda: simulated(asked.hosts, asked.trials),
        "workers": lambda: workers(asked.workers),
    }
    for name, section in sections.items():
        if asked.only in (None, name):
            lines = list(section())
            if asked.print:
                print("\n".join(lines))
            else:
                put(f"many hosts {name}", lines)
    return 0


# -- a thousand hosts that are not there ---------------------------------------------------------------


def simulated(hosts: int, trials: int) -> Iterator[str]:
    """What a trial and a study cost, step by step."""
    with tempfile.TemporaryDirectory(prefix="many-hosts-") as text:
        directory = Path(text)
        found = {}
        for count in dict.fromkeys((1, trials)):
            _step("hosts", directory, hosts, count)
            found[count] = {name: _step(name, directory, hosts, count) for name in _STEP_WORDS}
    yield from [f"## {hosts:,} hosts, simulated", "", made(), ""]
    yield (
        f"Each host's tables are those of a trial of {SECONDS} s: {SECONDS} intervals by three clocks, and"
        f" {SAMPLED} samples a second. Goal: the parent's memory under 1 GiB."
    )
    rows = [
        (
            f"{_STEP_WORDS[name]} {count} trial{'s' if count > 1 else ''}",
            f"{step['seconds']:.1f} s",
            f"{step['cpu_s']:.1f} s",
            f"{step['cpu_s'] / count:.2f} s",
            *(f"{step[what] / MIB:,.0f} MiB" for what in ("memory", "bytes")),
        )
        for count, steps in found.items()
        for name, step in steps.items()
    ]
    headings = " | time | CPU time | CPU time a trial | largest memory | result on disk"
    parts = (f"{name} {took:.1f} s" for name, took in found[trials]["report"]["parts"].items())
    yield from ["", *table(headings, rows), "", f"Of reading and reporting: {', '.join(parts)}."]


def _step(name: str, directory: Path, hosts: int, trials: int) -> dict[str, Any]:
    words = ("--step", name, "--directory", directory, "--hosts", str(hosts), "--trials", str(trials))
    answer = command(sys.executable, Path(__file__), *words, timeout=3600)
    found: dict[str, Any] = json.loads(answer)
    print(name, trials, answer.strip(), file=sys.stderr, flush=True)
    return found


def one_step(asked: argparse.Namespace) -> int:
    """A step in this process; its cost as JSON."""
    sys.path[:0] = [str(ROOT / "tests" / "unit")]
    steps = {"hosts": write_hosts, "join": join_all, "report": report_all}
    begun, before_s = time.monotonic(), time.process_time()
    parts = steps[asked.step](asked.directory, asked.hosts, asked.trials)
    seconds, cpu_s = time.monotonic() - begun, time.process_time() - before_s
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    result = asked.directory / f"result-{asked.trials}"
    size = sum(path.stat().st_size for path in result.rglob("*") if path.is_file())
    print(json.dumps({"seconds": seconds, "cpu_s": cpu_s, "memory": memory, "bytes": size, "parts": parts}))
    return 0


def write_hosts(directory: Path, hosts: int, _trials: int) -> dict[str, float]:
    """Each host's latency and series as files, as the parent has fetched them."""
    import numpy as np
    import pyarrow.parquet as pq
    from host_studies import made_host

    from leadline.store.tables import LatencyRow, SeriesRow, to_arrow

    if (directory / "hosts").exists():
        return {}
    (directory / "hosts").mkdir()
    kept = []
    for seed in range(25):  # so many that compression across hosts finds little
        chance = np.random.default_rng(seed)
        latency_ns = [int(value) for value in chance.lognormal(14, 1, 400)]
        one = made_host("x", 100 * MIB, seconds=SECONDS, latency_ns=latency_ns, samples=SAMPLED)
        clocks = [
            LatencyRow(**{**vars(row), "clock": clock})
            for row in one.latency
            for clock in ("submission", "completion", "total")
        ]
        series = [
            row if row.source == "engine" else SeriesRow(**{**vars(row), "value": float(chance.random())})
            for row in one.series
        ]
        kept.append((to_arrow(clocks, LatencyRow), to_arrow(series, SeriesRow)))
    for number in range(hosts):
        latency, series = kept[number % len(kept)]
        for name, rows in (("latency", latency), ("series", series)):
            pq.write_table(rows, directory / "hosts" / f"{number}-{name}.parquet", compression="zstd")
    return {}


def join_all(directory: Path, hosts: int, trials: int) -> dict[str, float]:
    """What the parent does with a study's trials once their tables are on its disk."""
    import random

    from host_studies import GOOD_CLOCK, SHARED, START, STUDY, S, names, row_of_host

    from leadline.hosts.join import joined_and_kept
    from leadline.hosts.model import HostTrial
    from leadline.plan.make import Host, make_plan
    from leadline.store.by_host import StoredRows
    from leadline.store.tables import LatencyRow, SeriesRow
    from leadline.store.writer import create_result
    from leadline.study.study import parse_study
    from leadline.study.target import Target
    from leadline.study.yaml_source import read_study

    blocks = max(trials // 2, 1)
    study = parse_study(read_study(STUDY.replace("BLOCKS", str(blocks)), "made", {}))
    plan = make_plan(study, {"shared": Target("shared", "/shared")}, {"shared": SHARED}, Host(16 << 30), 1)
    manifest = {
        "kind": "study", "id": "0badcafe", "version": "0.1", "created": "2026-01-01T00:00:00+00:00",
        "plan": plan.as_json(), "study": study.as_json(), "targets": {"shared": SHARED.as_json()},
        "options": {}, "host": {}, "command": ["leadline", "run"],
    }  # fmt: skip
    writer = create_result(directory / f"result-{trials}", manifest, time.time_ns)
    writer.journal("run_started")
    chance = random.Random(1)  # noqa: S311 - data of a bench
    tables = directory / "hosts"
    for trial in plan.trials[:trials]:
        parts = []
        for number, name in enumerate(names(hosts)):
            rate = 100 * MIB * chance.lognormvariate(0, 0.03) * (0.7 if number == 17 else 1.0)
            row = row_of_host(plan, trial, rate, SECONDS, START + round(chance.expovariate(1e-6)))
            stored = [
                StoredRows(tables / f"{number}-{kind}.parquet", row_type)
                for kind, row_type in (("latency", LatencyRow), ("series", SeriesRow))
            ]
            parts.append(HostTrial(name, row, stored[0], stored[1], GOOD_CLOCK))
        writer.write_trial(*joined_and_kept(writer.path, parts, f"a-{trial.id}"))
    writer.journal("study_finished", failed=[], not_run={})
    writer.close()
    return {"seconds of a trial": S / 1e9}


def report_all(directory: Path, _hosts: int, trials: int) -> dict[str, float]:
    """The page, and the first screen's findings: how long each took."""
    from leadline.report import render
    from leadline.store.by_host import read_by_host
    from leadline.store.reader import open_result
    from leadline.verdict.findings import build_findings

    clock, parts = time.monotonic, {}
    begun = clock()
    result = open_result(directory / f"result-{trials}")
    rows = read_by_host(result)
    parts["the hosts' tables"] = clock() - begun
    assert rows
    begun = clock()
    findings = build_findings(result)
    parts["all findings"] = clock() - begun
    begun = clock()
    page = render(findings, "html")
    parts["the page"] = clock() - begun
    begun = clock()
    render(findings, "json")
    parts["JSON"] = clock() - begun
    slow = {one.says for one in findings.statements}
    assert trials < 6 or ("host_slower" in slow and "node0018" in page), "the slow host was not named"
    return parts


# -- workers of Dask -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class OnWorkers:
    """What a study on so many workers took; seconds, milliseconds and bytes."""

    count: int
    cost_s: float
    skews_ms: list[float]
    error_ms: float
    memory: int
    seconds: float
    complete: int
    trials: int


def workers(counts: Sequence[int]) -> Iterator[str]:
    """A study of the engine without storage on so many workers of this machine, each a host."""
    found = [_on_workers(count) for count in counts]
    yield from [f"## {max(counts)} Dask workers", "", made(), ""]
    yield (
        "`dask worker` processes on loopback, each a host of the study with processes of its own;"
        f" {found[0].trials} trials of {RUNTIME_S} s without storage (`null://`), 20 operations a second in"
        f" all. All hosts share the {os.cpu_count()} CPUs of this machine, which real ones would not: what"
        " each starts for a trial takes as long as the CPU time of all of them."
    )
    rows: dict[str, tuple[Callable[[OnWorkers], str], str]] = {
        f"fixed cost of a trial, beside its {RUNTIME_S} s": (lambda one: f"{one.cost_s:.2f} s", "1 s"),
        "start skew, median (largest)": (
            lambda one: f"{statistics.median(one.skews_ms):.2f} ms ({max(one.skews_ms):.2f} ms)",
            "5 ms",
        ),
        "clocks are known to, largest": (lambda one: f"{one.error_ms:.2f} ms", ""),
        "the parent's largest memory": (lambda one: f"{one.memory / MIB:,.0f} MiB", "1 GiB"),
        "the whole study, hosts looked at and cleaned up": (lambda one: f"{one.seconds:.0f} s", ""),
        "trials complete": (lambda one: f"{one.complete} of {one.trials}", "all"),
    }
    headings = f"hosts | {' | '.join(str(one.count) for one in found)} | goal"
    cells = ((name, *map(shown, found), goal) for name, (shown, goal) in rows.items())
    yield from ["", *table(headings, cells)]


def _on_workers(count: int) -> OnWorkers:
    from dask_workers import DaskWorkers
    from leadline.store.reader import open_result

    with tempfile.TemporaryDirectory(prefix="many-hosts-") as text:
        directory = Path(text)
        study = directory / "study.yaml"
        study.write_text(NOTHING)
        with DaskWorkers(directory, [f"host{number:02}" for number in range(count)]) as crew:
            seconds, memory = run_on(crew.address, count, study, directory / "result")
        result = open_result(directory / "result")
        rows = result.trials()
    return OnWorkers(
        count,
        statistics.median(costs_s(result.events)),
        [(row.start_skew_ns or 0) / 1e6 for row in rows],
        max((row.clock_error_ns or 0) / 1e6 for row in rows),
        memory,
        seconds,
        sum(row.state == "complete" for row in rows),
        len(rows),
    )


def run_on(address: str, count: int, study: Path, out: Path) -> tuple[float, int]:
    """Seconds and the largest memory of the command, in bytes."""
    words = ["run", str(study), "--target", "nothing=null://", "-o", str(out), "--scheduler", address]
    words += ["--plain-tcp", "--workers", str(count), "--same-machine"]
    begun = time.monotonic()
    child = os.posix_spawn(sys.executable, [*PROGRAM, *words], os.environ)
    _, status, usage = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 3):
        raise SystemExit(f"the study ended with {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - begun, usage.ru_maxrss * 1024


def costs_s(events: Iterable[Event]) -> list[float]:
    """From one trial's start to the next one's (or to its end), less what it measured."""
    marks = [event.t_ns / 1e9 for event in events if event.event == "trial_started"]
    ends = [event.t_ns / 1e9 for event in events if event.event.startswith("trial") and event.finished]
    return [after - before - RUNTIME_S for before, after in zip(marks, [*marks[1:], ends[-1]], strict=True)]


if __name__ == "__main__":
    sys.exit(main())
