"""Results of studies made by chance, stored as a run stores them, of which the truth is known.

Nothing is measured: rates, times and counters are drawn, faults are put in, and every table is written by the
product's own store, so that what is said of them goes the whole way from files to sentences.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from application_examples import account, application
from builders import cell, latency_row, trial_row
from pipeline_examples import action, pipeline, stage_row
from trace_tables import file_row, files_table, process

from leadline import _core
from leadline.faults import Fault, TrialFault
from leadline.plan.make import Host, make_plan
from leadline.plan.model import Plan, PlannedCell, Trial
from leadline.store.own import Acks, StageRow, write_acks, write_stages
from leadline.store.reader import GUEST
from leadline.store.tables import LatencyRow, TrialRow
from leadline.store.writer import create_result
from leadline.study.study import Study, parse_study
from leadline.study.target import CephAccess, LeftOut, Target, TargetFacts
from leadline.study.yaml_source import read_study
from leadline.tracing.store import write_tables
from leadline.tracing.tables import TraceTables
from leadline.workloads.coherence.job import LAGS, LOCKS, QUESTIONS
from leadline.workloads.pipeline.job import Stage

MIB = 1 << 20
S = 1_000_000_000
LOCAL = TargetFacts("local", "ext4", "ext4 on vda", "/x", free_bytes=1 << 40, direct_io=True)
CEPH = replace(
    LOCAL,
    access="ceph-fuse",
    file_system="fuse.ceph-fuse",
    words="CephFS by ceph-fuse",
    ceph=CephAccess(size=3, protection="replicated", lab=True),
)
LIBRARY = replace(CEPH, access="libcephfs", words="CephFS by libcephfs", mount_point="")


@dataclass
class Made:
    """A study and what came of it, before it is stored."""

    study: Study
    plan: Plan
    facts: Mapping[str, TargetFacts]
    rows: list[TrialRow] = field(default_factory=list)
    latency: dict[str, list[LatencyRow]] = field(default_factory=dict)
    stages: dict[str, list[StageRow]] = field(default_factory=dict)
    traces: dict[str, TraceTables] = field(default_factory=dict)
    acks: dict[str, Acks] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    trial_s: float = 2.0  # from its start until it is stored
    ended: bool = True
    guest: Made | None = None
    added: list[list[str]] = field(default_factory=list)  # blocks, by their cells


def store(made: Made, path: Path) -> Path:
    """The result directory."""
    now = [1_700_000_000 * S]
    manifest = {
        "kind": "study",
        "id": "0badcafe",
        "version": "0.1",
        "created": "2026-01-01T00:00:00+00:00",
        "plan": made.plan.as_json(),
        "study": made.study.as_json(),
        "targets": {name: one.as_json() for name, one in made.facts.items()},
        "options": {},
        "host": {"kernel": "6.1"},
        "command": ["leadline", "run"],
        **made.details,
    }
    writer = create_result(path, manifest, lambda: now[0])
    writer.journal("run_started")
    begun: list[int] = []
    for row in made.rows:
        if made.added and row.block > made.plan.blocks + len(begun):
            begun.append(row.block)
            writer.journal("block_added", cells=made.added[len(begun) - 1])
        writer.journal("trial_started", trial=row.trial)
        now[0] += round(made.trial_s * S)
        if row.trial in made.stages:
            write_stages(path, row.trial, made.stages[row.trial])
        if row.trial in made.acks:
            write_acks(path, row.trial, made.acks[row.trial])
        if row.trial in made.traces:
            write_tables(path, row.trial, made.traces[row.trial])
        writer.write_trial(row, made.latency.get(row.trial, []), [])
    if made.ended:
        writer.journal("study_finished", failed=[], not_run={})
    writer.close()
    if made.guest:
        store(made.guest, path / GUEST)
    return path


def study_of(text: str) -> Study:
    return parse_study(read_study(f"format: leadline.study/1\n{text}", "made", {}))


def targets_of(chance: random.Random, least: int = 1) -> dict[str, TargetFacts]:
    every = {"local": LOCAL, "mount": CEPH, "library": LIBRARY}
    names = chance.sample(list(every), chance.randint(least, 3))
    return {name: every[name] for name in names}


def planned_of(study: Study, facts: Mapping[str, TargetFacts], chance: random.Random) -> Plan:
    targets = {name: Target(name, f"cephfs:///{name}" if name == "library" else f"/{name}") for name in facts}
    return make_plan(study, targets, facts, Host(16 << 30), chance.randint(1, 99))


def row_of(plan: Plan, trial: Trial, chance: random.Random, **changes: Any) -> TrialRow:
    own = plan.cell(trial.cell)
    return trial_row(
        trial=trial.id,
        cell=trial.cell,
        target=trial.target,
        work=own.work,
        block=trial.block,
        order=trial.order,
        job=json.dumps(own.job.as_json()),
        factors=json.dumps(own.factors),
        state="error" if chance.random() < 0.03 else "complete",
        cpu_busy_share=chance.choice([0.2, 0.3, 0.99]),
        reasons="{}",
        **changes,
    )


def scatter(chance: random.Random) -> Callable[[], float]:
    """Factors around 1, as much apart as this result is noisy; some of them drift or lie far off."""
    sigma = chance.choice([0.005, 0.02, 0.1, 0.5])
    far = chance.random() < 0.2
    return lambda: chance.lognormvariate(0, sigma) * (3.0 if far and chance.random() < 0.1 else 1.0)


def spans(chance: random.Random, made: Made) -> Made:
    made.trial_s = chance.choice([2.0, 2.0, 9.0, 60.0])
    made.ended = chance.random() < 0.85
    if not made.ended:
        del made.rows[chance.randint(1, len(made.rows)) :]
    return made


IO = """
name: made
title: A made study
about: Which is faster?
compare: {table: TABLE, margin: 5%}
works:
  randread_4k: &small {rw: randread, bs: 4k, iodepth: 4, size: 64M, time_based: true, runtime: 2s}
  seqwrite_1m: &stream {rw: write, bs: 1M, iodepth: 4, size: 64M, time_based: true, runtime: 2s}
  both: {order: together, jobs: {stream: *stream, small: *small}}
  bounded:
    rw: randread
    bs: 4k
    iodepth: 4
    size: 64M
    time_based: true
    runtime: 2s
    search: {latency: p99, bound: 5ms, low: 100, high: 10000, trials: 3}
  tree: {operations: [create, stat], files: 1000}
blocks: BLOCKS
"""


def random_io(chance: random.Random, *, guest: bool = True) -> Made:
    """Reads, writes, two jobs at once and names of files, on one to three targets."""
    facts = targets_of(chance)
    text = IO.replace("BLOCKS", str(chance.choice([1, 2, 3, 6])))
    text = text.replace("TABLE", chance.choice(["true", "false"]))
    if chance.random() < 0.5:  # then the question is another
        text = "\n".join(line for line in text.splitlines() if "together" not in line)
    study = study_of(text)
    plan = planned_of(study, facts, chance)
    if chance.random() < 0.3:
        left = LeftOut("gone", None, "nothing is mounted there"), LeftOut("local", "tree", "it cannot")
        plan = replace(plan, left_out=left[: chance.randint(1, 2)])
    noise, made = scatter(chance), Made(study, plan, facts)
    trends = {one.id: chance.choice([0.0, 0.0, 0.0, 0.05]) for one in plan.cells}
    base = {one.id: 10 ** chance.uniform(6, 9) for one in plan.cells}
    cached = {one.id: chance.choice([0.0, 0.0, 0.5, 1.0]) for one in plan.cells}
    for trial in plan.trials:
        rate = base[trial.cell] * noise() * (1 + trends[trial.cell] * trial.block)
        row = _io_row(plan, trial, chance, rate, cached[trial.cell])
        if plan.cell(trial.cell).search:
            row = _probe(row, trial, chance)
        made.rows.append(row)
        made.latency[trial.id] = _latencies(plan.cell(trial.cell), row, rate)
    if chance.random() < 0.2:
        made.details["replay"] = _replayed(chance)
    if guest and len(facts) > 1 and chance.random() < 0.3:
        made.guest = random_io(chance, guest=False)
    return _under_faults(spans(chance, made))


def _under_faults(made: Made) -> Made:
    """Some trials, or all of them, under up to six faults of a lab; in a row as they run."""
    chance = random.Random(f"faults {made.plan.seed}")  # noqa: S311 - of its own: it moves no other draw
    asked, last = chance.random() < 0.5, len(made.rows) - 1
    found: dict[str, list[Any]] = {row.trial: [] for row in made.rows}
    for number in range(chance.choice([0, 0, 1, 2, 6])):
        first = chance.choice([0, chance.randint(0, last)])
        fault = Fault(str(number), "osd-stopped", f"osd.{number % 5}", f"osd.{number % 5} stopped", 1.0)
        for row in made.rows[first : chance.choice([last, chance.randint(first, last)]) + 1]:
            found[row.trial].append(TrialFault(fault, chance.random() < 0.8).as_json())
    made.rows = [
        replace(row, faults=json.dumps(found[row.trial]), under_fault=asked or row.block > 1)
        if any(found.values())
        else row
        for row in made.rows
    ]
    return made


def _replayed(chance: random.Random) -> dict[str, Any]:
    calls, moved = chance.randint(1, 10**6), chance.choice([0, 10**9])
    skipped = [{"call": "ioctl", "calls": 3, "bytes": 0, "reason": "it has no meaning here"}]
    done = {"calls": calls, "calls_replayed": calls - 3, "bytes": moved, "bytes_replayed": moved // 3}
    coverage = {**done, "skipped": skipped if chance.random() < 0.5 else []}
    return {"title": "tar", "pace": "recorded", "threads": chance.choice([1, 4]), "coverage": coverage}


def _io_row(plan: Plan, trial: Trial, chance: random.Random, rate: float, cached: float) -> TrialRow:
    job = plan.cell(trial.cell).job
    if job.kind == "metadata":
        phases = {
            name: {"operations": 1000, "bytes": 0, "elapsed_ns": round(1e14 / rate)}
            for name in job.operations
        }
        none = {"read_bytes": 0, "read_operations": 0, "total_read_bytes": 0, "device_read_bytes": 0}
        return row_of(plan, trial, chance, summary=json.dumps({"directions": phases}), **none)
    count = round(2 * rate)
    behind = round(count * (1 - cached) * chance.choice([1.0, 1.0, 30.0]))
    ceph = plan.cell(trial.cell).target != "local"
    words = "write" if job.rw == "write" else "read"
    other = "read" if words == "write" else "write"
    values: dict[str, Any] = {
        f"{words}_bytes": count,
        f"{words}_operations": max(1, count // job.bs),
        f"total_{words}_bytes": count,
        f"{other}_bytes": 0,
        f"{other}_operations": 0,
        f"total_{other}_bytes": 0,
        "device_read_bytes": 0,
        "device_written_bytes": 0,
    }
    place = {"read": "read_bytes", "write": "written_bytes"}[words]
    if ceph:
        values |= {f"osd_{place}": behind, f"store_{place}": 3 * behind}
        values |= {"wire_sent_bytes": behind, "wire_received_bytes": behind}
    else:
        values[f"device_{place}"] = behind
    return row_of(plan, trial, chance, **values)


def _probe(row: TrialRow, trial: Trial, chance: random.Random) -> TrialRow:
    """A trial of a search, which was asked for a rate and did it or less."""
    rate = (10000.0, 3000.0, 1000.0)[(trial.probe or 1) - 1]
    done = round(2 * rate * chance.choice([1.0, 1.0, 0.7]))
    job = {**json.loads(row.job), "rate_iops": rate}
    return replace(
        row, job=json.dumps(job), read_operations=done, read_bytes=4096 * done, total_read_bytes=4096 * done
    )


def _latencies(own: PlannedCell, row: TrialRow, rate: float) -> list[LatencyRow]:
    if own.search:
        blob = _core.histogram_of([1_000_000 if row.read_operations % 2000 == 0 else 9_000_000] * 100)
        return [
            latency_row(trial=row.trial, clock=clock, operations=row.read_operations, histogram=blob)
            for clock in ("total", "intended")
        ]
    if own.kind != "metadata":
        return []
    blob = _core.histogram_merge([])
    return [
        latency_row(trial=row.trial, direction=name, operations=1000, mean_ns=1e12 / rate, histogram=blob)
        for name in own.job.operations
    ]


def random_coherence(chance: random.Random) -> Made:
    """What one way sees of another's changes."""
    options = f"questions: [{', '.join(QUESTIONS)}], repetitions: 3, give_up: 10s"
    study = study_of(f"name: made\nworks:\n  look: {{{options}}}\nblocks: {chance.choice([1, 3, 5])}\n")
    facts = targets_of(chance, least=2)
    plan = planned_of(study, facts, chance)
    if chance.random() < 0.3:
        plan = replace(plan, left_out=(LeftOut("disk", None, "no other target leads to the same files"),))
    made = Made(study, plan, facts)
    kinds = {one.id: chance.choice(["prompt", "late", "never", "mixed"]) for one in plan.cells}
    for trial in plan.trials:
        answers = {name: _answer(name, kinds[trial.cell], chance) for name in QUESTIONS}
        made.rows.append(row_of(plan, trial, chance, summary=json.dumps({"coherence": answers})))
    return spans(chance, made)


def _answer(question: str, kind: str, chance: random.Random) -> dict[str, Any]:
    if chance.random() < 0.05:
        return {"reason": "it cannot"}
    if question in LOCKS:
        return {"asked": 4, "honoured": 4 if kind == "prompt" else chance.choice([0, 2, 4])}
    if question in LAGS:
        own = chance.choice(["prompt", "late", "never"]) if kind == "mixed" else kind
        if own == "never":
            return {"lags_ns": [], "unseen": 1}
        low, high = (1e5, 5e6) if own == "prompt" else (2e8, 9e9)
        return {"lags_ns": [round(chance.uniform(low, high)) for _ in range(3)], "unseen": 0}
    wrong = 0 if kind == "prompt" else chance.choice([0, 3])
    return {"blocks": 8, "wrong": [wrong, 0], "bytes_per_s": [chance.uniform(1e6, 1e8)]}


def _by_hand(
    study: Study, cells: Sequence[PlannedCell], facts: Mapping[str, TargetFacts], chance: random.Random
) -> Plan:
    """A plan of cells whose kind of work would look at the host before it is planned."""
    trials = [
        Trial(f"t{order:04}", order, block, own.id, own.target, chance.randint(0, 99))
        for order, (block, own) in enumerate(
            ((block, own) for block in range(1, study.blocks + 1) for own in cells), start=1
        )
    ]
    targets = tuple(Target(name, f"/{name}") for name in facts)
    return Plan("made", "A made study", "", 1, study.blocks, targets, tuple(cells), tuple(trials), 9.0, {})


def random_copies(chance: random.Random) -> Made:
    """A program, one to eight copies of it at once, traced or not."""
    facts = targets_of(chance)
    study = study_of(f"name: made\nworks:\n  run: {{rw: read}}\nblocks: {chance.choice([1, 2, 3, 6])}\n")
    counts = chance.choice([(1,), (1, 2), (1, 2, 4, 8)])
    trace = chance.choice(["preload", "off"])
    cells = []
    for target in facts:
        for count in counts:
            own = replace(cell(f"{target}.run_{count}"), factors={"copies": count}, layout=None)
            cells.append(replace(own, job=application(copies=count, trace=trace)))
    made = Made(study, _by_hand(study, cells, facts, chance), facts)
    noise, cpus = scatter(chance), chance.choice([2, 4])
    compute, shared = chance.uniform(1, 50), chance.choice([0.01, 1.0, 5.0])
    slower = {target: chance.choice([1.0, 1.0, 2.0]) for target in facts}
    apart = {target: chance.choice([1, 1, 2]) for target in facts}
    for trial in made.plan.trials:
        count = int(made.plan.cell(trial.cell).factors["copies"])
        whole_s = (compute * max(1, count / cpus) + min(count, cpus) * shared) * slower[trial.target]
        times = [whole_s * noise() for _ in range(count)]
        copies = [
            account(number, each, read_bytes=40 * MIB * apart[trial.target], cpu_user_ns=round(compute * 9e8))
            for number, each in enumerate(times, start=1)
        ]
        summary: dict[str, Any] = {"copies": copies, "cpus": cpus}
        lot = chance.random()
        if trace == "preload":
            if lot < 0.05:
                summary["trace_error"] = "the tracer could not be loaded"
            else:
                made.traces[trial.id] = _copies_traced(times, chance)
                summary |= {"trace_lost": 7} if lot < 0.1 else {}
        if lot > 0.95:
            summary["left_running"] = 2
        made.rows.append(
            row_of(
                made.plan,
                trial,
                chance,
                measured_ns=round(max(times) * S),
                cpu_user_ns=sum(one["cpu_user_ns"] for one in copies),
                cpu_system_ns=0,
                summary=json.dumps(summary),
            )
        )
    return spans(chance, made)


def _copies_traced(times: Sequence[float], chance: random.Random) -> TraceTables:
    processes, files = [], []
    for number, each in enumerate(times, start=1):
        read_s = each * (0.25 + chance.uniform(0, 0.6))
        seconds = {"read": read_s, "write": each * 0.05, "meta": 0.0, "sync": 0.0}
        processes.append(
            process(
                number,
                copy=number,
                ended_ns=round(each * S),
                seconds=seconds,
                bytes_read=28 * MIB,
                bytes_written=2 * MIB,
            )
        )
        files.append(
            file_row(
                number,
                copy=number,
                process=number,
                READS=28,
                WRITES=2,
                BYTES_READ=28 * MIB,
                BYTES_WRITTEN=2 * MIB,
                F_READ_TIME=read_s,
                F_WRITE_TIME=each * 0.05,
            )
        )
    copies = [
        {"copy": n, "wall_s": each, "end": "exit", "status": 0} for n, each in enumerate(times, start=1)
    ]
    extra = {"wall_s": max(times), "copies": copies}
    return TraceTables("preload", tuple(processes), files_table(files), extra=extra)


STAGES = ("download", "ingest", "encode", "publish")


def random_pipeline(chance: random.Random) -> Made:
    """A film on its way through the steps of a media platform, on one to three targets."""
    facts = targets_of(chance)
    study = study_of(f"name: made\nworks:\n  media: {{rw: read}}\nblocks: {chance.choice([1, 3, 6])}\n")
    names = STAGES[: chance.randint(2, 4)]
    steps = tuple(
        Stage(stage=name, actions=(action(),), inputs=("source",), output=None, width=None) for name in names
    )
    job = pipeline(*names, pipeline=steps)
    cells = [replace(cell(f"{target}.media"), job=job, layout=None) for target in facts]
    made = Made(study, _by_hand(study, cells, facts, chance), facts)
    noise = scatter(chance)
    base = {
        (t, n): chance.choice([0.02, 1.0, 30.0, 200.0]) * (3 if t == "mount" else 1)
        for t in facts
        for n in names
    }
    io = {n: chance.choice([0.01, 0.5, 0.95]) for n in names}
    cpus = {n: chance.choice([0.1, 1.0, 1.9]) for n in names}
    for trial in made.plan.trials:
        made.stages[trial.id] = rows = []
        begin_s = 0.0
        for place, name in enumerate(names, start=1):
            took_s = base[trial.target, name] * noise()
            rows.append(_stage(trial.id, place, name, begin_s, took_s, (io[name], cpus[name]), chance))
            begin_s += took_s + chance.choice([0.001, 0.001, 0.001, 0.3 * took_s + 9])
            if rows[-1].state != "complete":
                break
        failed = rows[-1].state != "complete"
        summary = {
            "copies": [account(1, begin_s)],
            "stages": [{"client": 1, "stage": row.stage, "seconds": row.seconds} for row in rows],
        }
        row = row_of(made.plan, trial, chance, summary=json.dumps(summary))
        made.rows.append(
            replace(row, state="error" if failed else "complete", error="it broke" if failed else None)
        )
    return spans(chance, made)


def _stage(
    trial: str,
    place: int,
    name: str,
    begin_s: float,
    took_s: float,
    kind: tuple[float, float],
    chance: random.Random,
) -> StageRow:
    io, cpus = kind
    lot = chance.random()
    details: list[dict[str, Any]] = []
    if name == "publish" and lot < 0.3:
        details.append({"how": "copy", "why": "links cross devices"})
    digest = chance.choice(["aa", "aa", "aa", "bb"])
    details.append({"bytes": 1000, "digest": digest})
    return stage_row(
        trial,
        place,
        name,
        begin_s,
        begin_s + took_s,
        read_s=took_s * io / 2,
        write_s=took_s * io / 2,
        cpu_user_ns=round(took_s * cpus * S),
        passes=chance.choice([1.0, 1.0, 2.4]),
        enlarges=name == "encode" and lot < 0.2,
        host_busy_share=chance.choice([0.1, 0.5, 0.97]),
        details=json.dumps(details),
        state="error" if lot > 0.985 else "complete",
        error="it broke" if lot > 0.985 else None,
    )


STUDIES: Mapping[str, Callable[[random.Random], Made]] = {
    "io": random_io,
    "coherence": random_coherence,
    "copies": random_copies,
    "pipeline": random_pipeline,
}
