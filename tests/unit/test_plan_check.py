"""What plans also runs: the engine takes every job of a plan; what it refuses is refused with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline import _core, units
from leadline.errors import SpecError, UsageError
from leadline.plan.make import Host, make_plan
from leadline.plan.model import PlannedCell
from leadline.study.study import parse_study
from leadline.study.target import Target, TargetFacts
from leadline.study.yaml_source import read_study

ROOM = TargetFacts(
    access="local",
    file_system="ext4",
    words="ext4",
    mount_point="/",
    source="/dev/vda1",
    direct_io=True,
    total_bytes=1 << 62,
    free_bytes=1 << 61,
)
NULL = TargetFacts(access="null", file_system="null", words="no storage")


def cells(options: dict[str, Any], facts: TargetFacts = ROOM) -> tuple[PlannedCell, ...]:
    """The plan of a study of one work."""
    text = json.dumps({"format": "leadline.study/1", "works": {"one": options}})
    target = Target("a", "null://" if facts is NULL else "/a")
    study = parse_study(read_study(text, "t", {}))
    return make_plan(study, {"a": target}, {"a": facts}, Host(16 * units.GIB), 1).cells


@pytest.mark.parametrize(
    ("options", "key", "words"),
    [
        ({"rw": "read", "bs": "1g", "size": "1g"}, "bs", "1073741824 must be from 1 to 268435456"),
        (
            {"rw": "read", "size": "16g", "nrfiles": 65536, "numjobs": 17},
            "nrfiles",
            "nrfiles x numjobs is 1114112",
        ),
        ({"rw": "read", "size": "4e", "numjobs": 1024}, "size", "beyond what files can hold"),
        (
            {"rw": "read", "bssplit": "4k/50:512m/50", "size": "1g"},
            "bssplit",
            "must be at most 268435456",
        ),
    ],
)
def test_what_the_engine_refuses_is_refused_at_plan_time(
    options: dict[str, Any], key: str, words: str
) -> None:
    with pytest.raises(SpecError) as refused:
        cells(options)
    error = refused.value
    assert error.key == key
    assert words in error.message
    assert "workload one on target a" in error.message
    assert error.remedy


def test_the_largest_block_that_runs_is_planned() -> None:
    (cell,) = cells({"rw": "read", "bs": "256m", "size": "1g"})
    assert cell.job.as_json()["bs"] == 256 * units.MIB


def test_the_engine_is_not_asked_about_what_it_does_not_run() -> None:
    kinds = ("job", "metadata", "replay", "transfer")
    assert _core.job_formats() == [f"leadline.{kind}/1" for kind in kinds]
    with pytest.raises(ValueError, match="the job is not valid"):
        _core.check_job('{"format": "leadline.application/1"}')


def near(*bounds: int) -> st.SearchStrategy[int]:
    """Numbers at bounds, and beside them."""
    return st.builds(lambda bound, by: max(0, bound + by), st.sampled_from(bounds), st.integers(-1, 1))


TRANSFERS = st.fixed_dictionaries(
    {"rw": st.sampled_from(["read", "write", "randread", "randwrite", "rw", "randrw"])},
    optional={
        "bs": near(1, 512, 4096, 256 << 20, 1 << 30),
        "size": near(1, 4096, 1 << 30, 1 << 40, (1 << 63) - 1),
        "nrfiles": near(1, 1024, 65_536),
        "numjobs": near(1, 16, 1024),
        "iodepth": near(1, 64, 4096),
        "engine": st.sampled_from(["auto", "io_uring", "psync", "mmap"]),
        "direct": st.booleans(),
        "overwrite": st.booleans(),
        "verify": st.booleans(),
        "fsync": near(0, 1, 2**31 - 1),
        "fdatasync": near(0, 1, 2**31 - 1),
        "time_based": st.booleans(),
        "runtime": st.sampled_from(["0", "1ns", "1s", "365d"]),
        "ramp_time": st.sampled_from(["0", "1ns", "365d"]),
        "rate": near(1, (1 << 63) - 1),
        "rate_iops": st.sampled_from([1e-9, 1.0, 1e9]),
        "thinktime": st.sampled_from(["0", "1s", "365d"]),
        "thinktime_blocks": near(1, 2**31 - 1),
        "offset": near(0, 4096, (1 << 63) - 1),
        "offset_increment": near(0, 4096, (1 << 63) - 1),
        "random_distribution": st.sampled_from(["map", "random", "zipf:1.2", "pareto:0.5"]),
        "shared": st.sampled_from(["none", "segmented", "strided"]),
        "bssplit": st.sampled_from(["4k/60:64k/40", "4k/50:512m/50", "1/1:3/99", "512/100,1m/100"]),
        "buffer_compress_percentage": near(0, 100),
        "dedupe_percentage": near(0, 100),
        "incompressible": st.booleans(),
        "rwmixread": near(0, 50, 100),
        "sqthread_poll": st.booleans(),
        "iodepth_batch": near(1, 2**31 - 1),
    },
)
METADATA = st.fixed_dictionaries(
    {
        "operations": st.lists(
            st.sampled_from(["create", "open", "stat", "readdir", "rename", "unlink", "mkdir", "first_byte"]),
            min_size=1,
            max_size=4,
        )
    },
    optional={
        "files": near(1, 1 << 20, 10**9),
        "branch": near(1, 2, 10_000),
        "depth": near(0, 1, 20, 100),
        "private": st.booleans(),
        "file_size": near(0, 4096, 1 << 30, (1 << 63) - 1),
        "bs": near(1, 4096, 1 << 30),
        "numjobs": near(1, 1024),
        "time_based": st.booleans(),
        "runtime": st.sampled_from(["0", "1s", "365d"]),
    },
)


@settings(max_examples=200)
@given(st.one_of(TRANSFERS, METADATA), st.sampled_from([ROOM, NULL]))
def test_every_job_of_a_plan_is_taken_as_a_run_hands_it_over(
    options: dict[str, Any], facts: TargetFacts
) -> None:
    try:
        planned = cells(options, facts)
    except UsageError:
        return
    around = {"directory": "/a/leadline-x", "prefix": "p", "seed": 2**64 - 1, "parent_pid": 1}
    times = {"interval_ns": 100_000_000, "deadline_ns": 2**63 - 1}
    for cell in planned:
        own = {"format": cell.job.engine_format, "trial": "t0001", "generation": 1, **around, **times}
        _core.check_job(json.dumps({**own, **cell.job.as_json()}))
