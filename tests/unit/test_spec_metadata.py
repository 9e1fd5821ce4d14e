"""Works of metadata operations: what is read, what it becomes, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_spec_vocabulary import options_of, refusal

from leadline.errors import SpecError
from leadline.run.workspace import Place
from leadline.study.kind.interface import Surroundings
from leadline.study.kinds import resolve, stored_job
from leadline.study.target import Target, TargetFacts
from leadline.workloads.metadata.job import MetadataJob
from leadline.workloads.metadata.planner import MetadataPlanned

LOCAL = TargetFacts(access="local", file_system="ext4", words="ext4 on vda", mount_point="/x")


def job_of(text: str, facts: TargetFacts = LOCAL, url: str = "/x") -> MetadataJob:
    around = Surroundings(8 << 30, 1 << 29, None, {})
    found = resolve("one", options_of(text), Target("a", url), facts, around).job
    assert isinstance(found, MetadataJob)
    return found


def test_what_is_not_said_is_explicit_in_the_job() -> None:
    job = job_of("operations: [create, stat]")
    assert (job.files, job.branch, job.depth, job.private, job.numjobs) == (1000, 1, 0, True, 1)
    assert stored_job({"job": job.as_json()}) == job


def test_a_pass_counts_every_operation_of_every_job() -> None:
    job = job_of("operations: [create, readdir], files: 10, branch: 3, depth: 1, numjobs: 2")
    assert job.pass_operations == 2 * 10 + 2 * 4
    shared = job_of(
        "operations: [create, readdir], files: 10, branch: 3, depth: 1, numjobs: 2, private: false"
    )
    assert shared.pass_operations == 2 * 10 + 4


def test_only_the_first_byte_needs_files_laid_out() -> None:
    assert MetadataPlanned().layout(job_of("operations: [create, stat]")) is None
    layout = MetadataPlanned().layout(
        job_of("operations: [first_byte], files: 5, file_size: 64k, numjobs: 2")
    )
    assert layout is not None
    assert (layout.numjobs, layout.nrfiles, layout.file_bytes) == (2, 5, 65536)


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("operations: []", "operations", "no operation"),
        ("operations: [erase]", "operations", "not one of them"),
        ("operations: create", "operations", "list"),
        ("operations: [create], rw: read", "rw", "two workloads"),
        ("operations: [create], size: 1M", "size", "means nothing with operations"),
        ("operations: [create], iodepth: 4", "iodepth", "means nothing with operations"),
        ("operations: [create], bs: 4k", "bs", "first_byte"),
        ("operations: [create], direct: true", "direct", "first_byte"),
        ("rw: read, files: 10", "files", "without operations"),
        ("rw: read, file_size: 10", "file_size", "without operations"),
        ("operations: [stat, stat]", "operations", "twice"),
        ("operations: [stat, create]", "operations", "there already"),
        ("operations: [create, unlink, stat]", "operations", "after unlink"),
        ("operations: [rmdir, mkdir, rmdir]", "operations", "twice"),
        ("operations: [create], branch: 4", "branch", "without depth"),
        ("operations: [create], branch: 100, depth: 9", "depth", "directories"),
        ("operations: [create], time_based: true", "time_based", "runtime"),
        ("operations: [create], runtime: 5s", "runtime", "time_based"),
        ("operations: [create], file_size: 2g", "file_size", "at most 1g"),
        ("operations: [create, first_byte], file_size: 4k", "operations", "alone"),
        ("operations: [first_byte]", "file_size", "needs files with data"),
        ("operations: [first_byte], file_size: 2k", "bs", "at most file_size"),
        ("operations: [first_byte], file_size: 4k, private: false", "private", "side by side"),
        ("operations: [first_byte], file_size: 4k, files: 1000000, numjobs: 8", "files", "fewer"),
    ],
)
def test_each_contradiction_names_its_key_and_the_remedy(text: str, key: str, words: str) -> None:
    error = refusal(text)
    assert f".{key}" in str(error.key)
    assert words in f"{error.message} {error.remedy}"


def test_the_first_byte_goes_past_the_page_cache_where_it_can() -> None:
    text = "operations: [first_byte], file_size: 64k"
    assert job_of(text, replace(LOCAL, direct_io=True)).direct
    assert not job_of(text, replace(LOCAL, direct_io=True, in_memory=True)).direct
    assert not job_of(f"{text}, direct: false", replace(LOCAL, direct_io=True)).direct


def test_a_target_without_files_is_refused() -> None:
    with pytest.raises(SpecError, match="no files"):
        job_of("operations: [create]", TargetFacts(access="null", file_system="null", words="null"))


def test_where_a_library_reaches_the_storage_operations_are_those_of_its_scheme() -> None:
    facts = TargetFacts(access="libcephfs", file_system="cephfs", words="CephFS through libcephfs")
    assert job_of("operations: [mkdir, rename]", facts, "cephfs:///a").operations == ("mkdir", "rename")


@pytest.mark.parametrize(("operation", "lacking"), [("rename", "rename"), ("rmdir", "rmdir")])
def test_an_operation_that_a_protocol_lacks_is_named(operation: str, lacking: str) -> None:
    facts = TargetFacts(access="rados", file_system="rados", words="pool data")
    with pytest.raises(SpecError, match=f"rados:// has no {lacking}; it has"):
        job_of(f"operations: [{operation}]", facts, "rados://data")


def test_files_of_a_library_are_laid_out_by_its_engine() -> None:
    assert Place("/x").engine == "psync"
    assert Place("/x", "cephfs:///a").engine == "libcephfs"
