"""Kinds of work: every table has each of them, and a stored job of any version finds its kind again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from application_examples import application
from builders import cell, job
from pipeline_examples import pipeline
from transfer_traces import transfer_job

from leadline import workloads
from leadline.errors import ResultError
from leadline.imported.job import ImportedJob
from leadline.plan.make import order_trials
from leadline.plan.model import Plan
from leadline.run.kinds import CONDUCTED, conducted, handed
from leadline.study.kind.interface import AnyJob
from leadline.study.kinds import ASKED, JOB_OPTIONS, PLANNED, planned, stored_kind
from leadline.study.target import Target
from leadline.workloads.coherence.job import CoherenceJob
from leadline.workloads.metadata.job import MetadataJob
from leadline.workloads.replay.job import ReplayJob

JOBS: tuple[AnyJob, ...] = (
    job(),
    MetadataJob(
        operations=("create", "stat"),
        files=10,
        branch=1,
        depth=0,
        private=True,
        file_size=0,
        bs=4096,
        numjobs=1,
        time_based=False,
        runtime_ns=0,
    ),
    application(),
    CoherenceJob(
        questions=("name",),
        reader="b",
        repetitions=1,
        give_up_ns=1,
        poll_ns=1,
        file_bytes=1,
        shared_block_bytes=1,
        shared_blocks=1,
    ),
    pipeline("ingest"),
    ReplayJob(
        script="replay.script",
        pace="fast",
        numjobs=1,
        calls=1,
        calls_of_trace=1,
        read_bytes=1,
        write_bytes=0,
        bytes_of_trace=1,
        files=1,
        layout_bytes=1,
        cold_bytes=1,
        runtime_ns=1,
    ),
    transfer_job(),
    ImportedJob(program="fio", rw="read", numjobs=1, engine="psync", direct=True, reads=True, writes=False),
)
KINDS = pytest.mark.parametrize("one", JOBS, ids=lambda one: one.kind)


def _plan(one: AnyJob) -> Plan:
    own = replace(cell("a.work"), job=one, layout=None)
    trials = order_trials([own], 1, 1)
    return Plan("s", "", "", 1, 1, (Target("a", "/x"),), (own,), trials, 1.0, {"a": 0})


def test_every_folder_of_a_kind_is_in_both_tables() -> None:
    folders = {path.parent.name for path in Path(workloads.__path__[0]).glob("*/__init__.py")}
    assert set(PLANNED) == set(CONDUCTED) == folders == {one.kind for one in JOBS}
    assert {one.kind: one.engine_format for one in JOBS} == {k: line[0] for k, line in CONDUCTED.items()}
    assert len({face.told_by for face in PLANNED.values()}) == len(PLANNED)


def test_an_option_of_several_kinds_is_the_same_in_each() -> None:
    for option in JOB_OPTIONS:
        fields = [own.model_fields[option] for own in ASKED.values() if option in own.model_fields]
        assert all(repr(field) == repr(fields[0]) for field in fields), option


@KINDS
def test_a_job_finds_its_faces_and_a_worker_finds_them_by_its_format(one: AnyJob) -> None:
    assert planned(one).kind == conducted(one).kind == one.kind
    assert handed({"format": one.engine_format}) is conducted(one)


@KINDS
def test_a_stored_cell_says_its_kind_and_one_that_does_not_is_told_by_its_job(one: AnyJob) -> None:
    plan = _plan(one)
    stored = json.loads(json.dumps(plan.as_json()))
    assert stored["cells"][0]["kind"] == one.kind
    assert Plan.from_json(stored) == plan
    del stored["cells"][0]["kind"]
    assert stored_kind(stored["cells"][0]) == one.kind
    assert Plan.from_json(stored) == plan


def test_a_kind_of_a_newer_version_is_refused_with_words() -> None:
    stored = _plan(job()).as_json()
    stored["cells"][0]["kind"] = "telepathy"
    with pytest.raises(ResultError, match="telepathy"):
        Plan.from_json(stored)
