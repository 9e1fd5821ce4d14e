"""The finer options of a data job: fio's notation is read, each contradiction gives one clear SpecError."""

from __future__ import annotations

import pytest
from test_spec_study import study_of

from leadline.errors import SpecError
from leadline.study.kind.interface import Surroundings
from leadline.study.kind.options import parse_bssplit
from leadline.study.kinds import JobOptions, resolve
from leadline.study.study import Study, expand
from leadline.study.target import Target, TargetFacts
from leadline.workloads.io.job import Job
from leadline.workloads.io.planner import IoPlanned

MIB = 1 << 20


def options_of(text: str) -> JobOptions:
    return expand(study_of(f"format: leadline.study/1\nworks:\n  one: {{{text}}}\n"))[0].options


def job_of(text: str, max_rate: int | None = None) -> Job:
    around = Surroundings(8 << 30, 512 * MIB, max_rate, {})
    facts = TargetFacts(access="local", file_system="ext4", words="ext4 on vda", mount_point="/x")
    found = resolve("one", options_of(text), Target("a", "/x"), facts, around).job
    assert isinstance(found, Job)
    return found


def refusal(text: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        options_of(text)
    return caught.value


def test_a_split_is_read_as_fio_reads_it() -> None:
    split = parse_bssplit("4k/60:64k/40")
    assert split.read == split.write == ((4096, 60), (65536, 40))
    assert parse_bssplit("4k/50:8k/:16k").read == ((4096, 50), (8192, 25), (16384, 25))
    both = parse_bssplit("4k,64k/10:1m/90")
    assert (both.read, both.write) == (((4096, 100),), ((65536, 10), (MIB, 90)))
    assert parse_bssplit(both.as_text()) == both


def test_several_sizes_reach_the_engine_with_the_smallest_as_bs() -> None:
    job = job_of("rw: randrw, rwmixread: 75, bs: '4k,64k', size: 1M")
    assert (job.bs, job.largest_bs, job.mean_bs) == (4096, 65536, 0.75 * 4096 + 0.25 * 65536)
    assert job_of("rw: read, bssplit: 4k/60:64k/40, size: 1M").bssplit == parse_bssplit("4k/60:64k/40")


def test_sizes_are_stored_and_read_back() -> None:
    study = study_of(
        "format: leadline.study/1\nworks:\n  a: {rw: rw, bs: '4k,64k', thinktime: 5ms}\n"
        "  b: {rw: read, bssplit: 4k/60:64k/40, random_distribution: map}\n".replace(
            ", random_distribution: map", ""
        )
    )
    assert Study.from_json(study.as_json()) == study


def test_sizes_can_be_levels_of_a_factor() -> None:
    text = "format: leadline.study/1\nworks: {a: {rw: randrw}}\nfactors: {bs: [4k, '4k,64k']}\n"
    works = expand(study_of(text))
    assert [(work.name, work.factors["bs"]) for work in works] == [("a_4k", "4k"), ("a_4k-64k", "4k,64k")]


def test_a_shared_file_is_laid_out_once_and_as_large_as_all_parts() -> None:
    shared = IoPlanned().layout(job_of("rw: read, bs: 4k, size: 1M, numjobs: 4, shared: strided"))
    alone = IoPlanned().layout(job_of("rw: read, bs: 4k, size: 4M"))
    assert shared == alone
    assert shared is not None
    assert shared.total_bytes == 4 * MIB


def test_files_of_other_content_are_never_shared() -> None:
    contents = (
        "bs: 4k",
        "buffer_compress_percentage: 30",
        "buffer_compress_percentage: 60",
        "dedupe_percentage: 30",
        "dedupe_percentage: 30, bs: 8k",
        "incompressible: false",
    )
    layouts = [IoPlanned().layout(job_of(f"rw: read, size: 1M, {content}")) for content in contents]
    assert len({layout.key for layout in layouts if layout}) == len(contents)


def test_percentages_make_data_compressible() -> None:
    assert not job_of("rw: write, size: 1M, dedupe_percentage: 5").incompressible
    assert job_of("rw: write, size: 1M, dedupe_percentage: 0").incompressible


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("rw: read, bs: 4k, bssplit: 4k/100", "bssplit", "leave one"),
        ("rw: read, bssplit: 4k/60:8k/30", "bssplit", "add up to 90"),
        ("rw: read, bssplit: 4k/60:8k/60", "bssplit", "add up to 120"),
        ("rw: read, bssplit: 4k/50:4k/50", "bssplit", "twice"),
        ("rw: read, bssplit: 4k/x", "bssplit", "size/percent"),
        ("rw: read, bssplit: '4k,8k,16k'", "bssplit", "more than reads and writes"),
        ("rw: read, bssplit: 4k/50:6k/50", "bssplit", "multiple"),
        ("rw: read, bssplit: '4k,8k'", "bssplit", "one direction"),
        ("rw: read, bs: '4k,8k'", "bs", "one direction"),
        ("rw: rw, bs: '4k,8k,16k'", "bs", "nor two"),
        ("rw: rw, bs: '4k,8k', size: 12k", "size", "multiple of all sizes"),
        ("rw: read, fdatasync: 4", "fdatasync", "writes nothing"),
        ("rw: write, fdatasync: 4, fsync: 4", "fdatasync", "keep one"),
        ("rw: write, thinktime: 5ms, rate: 1M", "thinktime", "pace"),
        ("rw: write, thinktime_blocks: 4", "thinktime_blocks", "without thinktime"),
        ("rw: write, thinktime: soon", "thinktime", "not a time"),
        ("rw: read, size: 1M, offset: 1M", "offset", "leaves no block"),
        ("rw: read, size: 1M, offset: 2M", "offset", "leaves no block"),
        ("rw: read, size: 1M, offset_increment: 512k, numjobs: 3", "offset_increment", "leaves no block"),
        ("rw: read, offset: 100", "offset", "no multiple"),
        ("rw: read, random_distribution: random", "random_distribution", "sequential"),
        ("rw: read, bssplit: 4k/50:8k/50, one_map: true", "one_map", "random operations"),
        ("rw: randread, bs: 4k, one_map: true", "one_map", "several sizes"),
        ("rw: randread, bssplit: 4k/50:8k/50, percentage_random: 5, one_map: true", "one_map", "random op"),
        (
            "rw: randread, bssplit: 4k/50:8k/50, random_distribution: random, one_map: true",
            "one_map",
            "repeats",
        ),
        ("rw: randread, random_distribution: 'zipf:0'", "random_distribution", "no distribution"),
        ("rw: randread, random_distribution: 'pareto:2'", "random_distribution", "no distribution"),
        ("rw: randread, random_distribution: normal", "random_distribution", "no distribution"),
        ("rw: write, dedupe_percentage: 30, incompressible: true", "dedupe_percentage", "already"),
        ("rw: write, buffer_compress_percentage: 101", "buffer_compress_percentage", "out of range"),
        ("rw: write, shared: strided, nrfiles: 2", "nrfiles", "one file"),
        ("rw: write, shared: strided, bssplit: 4k/50:8k/50", "bssplit", "one size"),
        ("rw: write, shared: segmented, offset: 4k", "offset", "already"),
        ("rw: write, shared: mine", "shared", "segmented"),
        ("rw: rw, verify: true", "verify", "randrw"),
        ("rw: read, verify: true, bs: 512", "verify", "4k"),
        ("rw: randrw, verify: true, random_distribution: random", "verify", "repeat"),
        ("rw: randread, norandommap: true", "norandommap", "random_distribution"),
    ],
)
def test_each_contradiction_names_its_key_and_the_remedy(text: str, key: str, words: str) -> None:
    error = refusal(text)
    assert str(error.key or "").endswith(key)
    assert words in f"{error.message} {error.remedy}"


def test_pauses_and_a_cap_of_the_rate_contradict_each_other() -> None:
    with pytest.raises(SpecError, match="max_rate"):
        job_of("rw: write, size: 1M, thinktime: 1ms", max_rate=1000)


def test_an_offset_is_checked_against_an_automatic_size_too() -> None:
    with pytest.raises(SpecError, match="leaves no block"):
        job_of("rw: read, offset: 600M")
