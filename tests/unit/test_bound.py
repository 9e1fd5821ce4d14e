"""`--bound`: which works become searches, what is refused, and the table of what was found."""

from __future__ import annotations

from typing import Any

import pytest

from leadline.errors import SpecError
from leadline.study.overrides import apply_overrides
from leadline.study.study import Study, expand, parse_study
from leadline.study.yaml_source import read_study

STUDY = """
format: leadline.study/1
defaults: {time_based: true, runtime: 2s}
workloads:
  small: {rw: randread, bs: 4k}
  searched: {rw: randread, bs: 8k, search: {latency: p50, bound: 1ms, low: 7, trials: 3}}
  tree: {operations: [create, stat], files: 100}
  two: {rw: randread, jobs: {a: {bs: 4k}, b: {bs: 8k}}}
  grid: {rw: read, sweep: {over: {bs: [4k, 64k], iodepth: [1, 2]}}}
"""


def changed(*sets: str, text: str = STUDY) -> Study:
    return parse_study(apply_overrides(read_study(text, "s.yaml", {}), sets, {}))


def test_every_work_of_one_paced_job_becomes_a_search_and_no_other() -> None:
    study = changed("--bound p99=20ms")
    found = {name: work.search for name, work in study.workloads.items()}
    assert found["small"] is not None
    assert found["small"].metric == "rate_at_p99_20ms"
    assert [name for name, search in found.items() if search] == ["small", "searched"]
    assert {work.base for work in expand(study) if work.search} == {"small", "searched"}


def test_a_work_that_is_a_search_keeps_what_the_bound_does_not_say() -> None:
    search = changed("--bound mean=4ms", "workloads.searched.search.trials=5").workloads["searched"].search
    assert search is not None
    assert (search.latency, search.bound, search.low, search.trials) == ("mean", 4_000_000, 7, 5)


@pytest.mark.parametrize(
    ("bound", "says"),
    [
        ("p99", "LATENCY=TIME"),
        ("=20ms", "no latency"),
        ("p98=20ms", "did you mean p9"),
        ("average=20ms", "did you mean mean"),
        ("p99=0", "under 0"),
        ("p99=-3ms", "not a time"),
    ],
)
def test_a_bound_that_is_none_is_refused_by_its_option(bound: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        changed(f"--bound {bound}")
    assert says in f"{caught.value.message} {caught.value.remedy}"
    assert f"--bound {bound}" in str(caught.value)


@pytest.mark.parametrize("work", ["{operations: [stat]}", "{command: [ls]}", "{transfer: write}"])
def test_a_study_without_a_rate_is_refused(work: str) -> None:
    with pytest.raises(SpecError, match="no workload of this study has a rate"):
        changed("--bound p99=20ms", text=f"format: leadline.study/1\nworks: {{a: {work}}}\n")


def test_a_rate_that_the_study_gives_contradicts_it() -> None:
    text = STUDY.replace("bs: 4k}", "bs: 4k, rate_iops: 10}")
    with pytest.raises(SpecError, match="search finds the rate itself"):
        changed("--bound p99=20ms", text=text)


def test_rw_may_stand_in_the_defaults() -> None:
    every = "{rw: read, time_based: true, runtime: 1s}"
    text = f"format: leadline.study/1\ndefaults: {every}\nworks: {{a: {{bs: 4k}}}}\n"
    found: Any = changed("--bound p50=1ms", text=text).workloads["a"].search
    assert found.latency == "p50"
