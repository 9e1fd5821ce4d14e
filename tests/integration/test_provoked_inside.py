"""Validity codes provoked beneath the command line: by recorded counters, and by a worker that is held up."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest
from builders import cell, facts, trial_row
from core_jobs import SECOND_NS, job

from leadline import _core
from leadline.observe.host.reader import HostReader
from leadline.observe.reading import Mark, Request, delta
from leadline.plan.model import Trial
from leadline.run.child import Answer, Worker
from leadline.run.group import CommonStart, Halt, Member, join_rows, run_jobs
from leadline.run.rows import build_trial_row, read_engine_record
from leadline.store.tables import TrialRow
from leadline.verdict.cells import judge
from leadline.verdict.codes.case import Case

STAT = """cpu  {user} 0 2000 80000 100 0 0 {steal} 0 0
cpu0 {user} 0 2000 80000 100 0 0 {steal} 0 0
intr 0
"""


def codes(*trials: TrialRow) -> dict[str, str]:
    """What one cell with these trials is judged to be."""
    case = Case(cell(), facts(), trials, len(trials), 1 << 34, None)
    return {code.code: code.state for code in judge(case).codes}


@pytest.mark.provokes("noisy_host")
def test_steal_in_a_recorded_proc_stat(tmp_path: Path) -> None:
    """A hypervisor that gives a tenth of the time to others while a trial runs."""
    (tmp_path / "stat").write_text(STAT.format(user=1000, steal=50))
    reader = HostReader({"a": facts()}, proc=tmp_path)
    marks = []
    for moment, text in (("start", None), ("end", STAT.format(user=1180, steal=70))):
        if text is not None:
            (tmp_path / "stat").write_text(text)
        found = reader.counters(Request("a", None))
        marks.append(Mark(moment, len(marks), found.values, found.reasons, found.sources))
    change = delta(*marks)
    assert change.cpu_steal_share == pytest.approx(0.1)
    assert codes(trial_row(cpu_steal_share=change.cpu_steal_share))["noisy_host"] == "DOUBTFUL"


@pytest.mark.provokes("clock_skew")
def test_a_job_that_begins_later_than_the_one_beside_it(tmp_path: Path) -> None:
    """One worker is stopped once both are told when to begin, and goes on after the other began."""
    halt = Halt(lambda: False)
    with Worker() as punctual, Worker() as late:
        members = [
            _member(tmp_path, f"t000{i}", worker) for i, worker in enumerate((punctual, late), start=1)
        ]

        def call(member: Member, start: CommonStart | None) -> Answer:
            assert start is not None

            def come() -> int | None:
                start_ns = start.come()
                if member.worker is late:
                    os.kill(late.pid, signal.SIGSTOP)
                    threading.Timer(0.5, os.kill, (late.pid, signal.SIGCONT)).start()
                return start_ns

            record = str(tmp_path / f"{member.trial.id}.llrec")
            return member.worker.call("trial", 60, come=come, job=member.job, record=record, meets=True)

        answers = run_jobs(members, call, halt, 30)
    nothing = delta(Mark("s", 0, {}), Mark("e", 1, {}))
    rows = [
        build_trial_row(
            member.trial,
            member.cell,
            answer,
            read_engine_record(tmp_path / f"{member.trial.id}.llrec"),
            nothing,
            caches_dropped=False,
        )
        for member, answer in zip(members, answers, strict=True)
    ]
    assert {row.state for row in rows} == {"complete"}, [row.error for row in rows]
    assert codes(join_rows(rows)[0])["clock_skew"] == "DOUBTFUL"


def _member(directory: Path, name: str, worker: Worker) -> Member:
    text = job(directory, trial=name, prefix=name, time_based=True, runtime_ns=SECOND_NS // 2)
    _core.layout(text)
    trial = Trial(name, 1, int(name[-1]), "a.randread_4k", "a", 7)
    return Member(trial, cell(), worker, json.loads(text), shown=False)
