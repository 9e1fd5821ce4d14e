"""Compositions, steady states and searches: how they are written, expanded and refused."""

from __future__ import annotations

import pytest

from leadline.errors import SpecError
from leadline.study.overrides import apply_overrides
from leadline.study.study import Study, Work, expand, parse_study
from leadline.study.yaml_source import read_study

HEAD = "format: leadline.study/1\ndefaults: {size: 4M, time_based: true, runtime: 2s}\n"
BOTH = (
    HEAD
    + """workloads:
  both:
    ramp_time: 1s
    jobs:
      stream: {rw: read, bs: 1M, iodepth: 4}
      small: {rw: randread, rate_iops: 200}
"""
)


def study_of(text: str, *sets: str) -> Study:
    return parse_study(apply_overrides(read_study(text, "s.yaml", {}), sets, {}), "s")


def works_of(text: str, *sets: str) -> dict[str, Work]:
    return {work.name: work for work in expand(study_of(text, *sets))}


def test_each_job_of_a_composition_becomes_a_work_of_its_own() -> None:
    works = works_of(BOTH)
    assert set(works) == {"both.stream", "both.small"}
    assert {(w.group, w.order, w.base) for w in works.values()} == {("both", "together", "both")}
    assert works["both.stream"].options.bs == 1 << 20
    assert works["both.small"].options.rate_iops == 200


def test_what_is_written_beside_jobs_holds_for_all_of_them_and_defaults_below_it() -> None:
    for work in works_of(BOTH).values():
        assert (work.options.ramp_time, work.options.runtime) == (10**9, 2 * 10**9)


def test_factors_hold_over_every_job() -> None:
    works = works_of(BOTH + "factors: {iodepth: [1, 2]}\n")
    assert set(works) == {f"both_iodepth{n}.{job}" for n in (1, 2) for job in ("stream", "small")}
    assert works["both_iodepth2.stream"].options.iodepth == 2


def test_overrides_reach_works_their_jobs_and_their_parts() -> None:
    assert {w.options.size for w in works_of(BOTH, "size=8M").values()} == {8 << 20}
    assert {w.options.iodepth for w in works_of(BOTH, "iodepth=2").values()} == {2}
    assert works_of(BOTH, "workloads.both.jobs.small.bs=8k")["both.small"].options.bs == 8192
    assert works_of(BOTH, "workloads.both.order=sequence")["both.small"].order == "sequence"
    text = HEAD + "workloads: {a: {rw: read, search: {bound: 20ms}}}\n"
    searched = works_of(text, "workloads.a.search.trials=5")["a"].search
    assert searched is not None
    assert searched.trials == 5
    with pytest.raises(SpecError, match="no job of workload both"):
        works_of(BOTH, "workloads.both.jobs.smal.bs=8k")


def test_a_study_with_all_of_it_reads_back_from_the_manifest() -> None:
    text = HEAD + (
        "workloads:\n"
        "  a: {rw: read, steady_state: {window: 200ms, windows: 4, range: 12.5%, slope: 3%}}\n"
        "  b: {rw: read, search: {latency: p99.9, bound: 20ms, high: 5000}}\n"
        "  c: {order: sequence, jobs: {x: {rw: write}, y: {rw: read}}}\n"
    )
    study = study_of(text)
    assert Study.from_json(study.as_json()) == study
    search = study.workloads["b"].search
    assert search is not None
    assert (search.metric, search.percentile) == ("rate_at_p99.9_20ms", 99.9)


@pytest.mark.parametrize(
    ("works", "key", "words"),
    [
        ("a: {jobs: {x: {rw: read}}}", "workloads.a.jobs", "two or more"),
        ("a: {jobs: {}}", "workloads.a.jobs", "two or more"),
        ("a: {jobs: [x, y]}", "workloads.a.jobs", "mapping"),
        ("a: {jobs: {'x.y': {rw: read}, z: {rw: read}}}", "workloads.a.jobs.x.y", "no name of a job"),
        ("a: {jobs: {x: {rw: raed}, y: {rw: read}}}", "workloads.a.jobs.x.rw", "not one of them"),
        ("a: {jobs: {x: {rw: read, bz: 1}, y: {rw: read}}}", "workloads.a.jobs.x.bz", "unknown key"),
        ("a: {jobs: {x: {rw: read}, y: {bs: 4k}}}", "workloads.a.jobs.y.rw", "has no kind of load"),
        ("a: {rw: read, order: sequence}", "workloads.a.order", "without jobs"),
        (
            "a: {order: stonewall, jobs: {x: {rw: read}, y: {rw: read}}}",
            "workloads.a.order",
            "not one of them",
        ),
        (
            "a: {jobs: {x: {rw: read, runtime: 3s}, y: {rw: read}}}",
            "workloads.a.runtime",
            "measured together",
        ),
        (
            "a: {time_based: false, jobs: {x: {rw: read}, y: {rw: read}}}",
            "workloads.a.time_based",
            "for a time",
        ),
        (
            "a: {steady_state: {}, jobs: {x: {rw: read}, y: {rw: read}}}",
            "workloads.a.steady_state",
            "one job",
        ),
        (
            "a: {search: {bound: 1s}, jobs: {x: {rw: read}, y: {rw: read}}}",
            "workloads.a.search",
            "one job",
        ),
        ("a: {rw: read, steady_state: {window: 1ms}}", "workloads.a.steady_state.window", "out of range"),
        ("a: {rw: read, steady_state: {windows: 2}}", "workloads.a.steady_state.windows", "out of range"),
        ("a: {rw: read, steady_state: {range: 20}}", "workloads.a.steady_state.range", "percentage"),
        ("a: {rw: read, steady_state: {slop: 1%}}", "workloads.a.steady_state.slop", "unknown key"),
        ("a: {rw: read, steady_state: {}, runtime: 4s}", "workloads.a.runtime", "do not fit"),
        ("a: {rw: read, time_based: false, steady_state: {}}", "workloads.a.steady_state", "for a time"),
        ("a: {rw: read, search: {}}", "workloads.a.search.bound", "missing"),
        ("a: {rw: read, search: {bound: 0}}", "workloads.a.search.bound", "under 0"),
        ("a: {rw: read, search: {bound: soon}}", "workloads.a.search.bound", "soon"),
        ("a: {rw: read, search: {bound: 1s, latency: p98}}", "workloads.a.search.latency", "not one of them"),
        ("a: {rw: read, search: {bound: 1s, low: 0}}", "workloads.a.search.low", "0"),
        ("a: {rw: read, search: {bound: 1s, low: 9, high: 8}}", "workloads.a.search", "between low"),
        ("a: {rw: read, search: {bound: 1s, trials: 1}}", "workloads.a.search.trials", "out of range"),
        ("a: {rw: read, rate_iops: 5, search: {bound: 1s}}", "workloads.a.rate_iops", "finds the rate"),
        ("a: {rw: read, time_based: false, search: {bound: 1s}}", "workloads.a.search", "for a time"),
        (
            "a: {rw: read, runtime: 9s, steady_state: {}, search: {bound: 1s}}",
            "workloads.a.steady_state",
            "own trials",
        ),
    ],
)
def test_each_bad_value_gives_one_error_at_its_place(works: str, key: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        study_of(HEAD + "workloads:\n  " + works + "\n")
    error = caught.value
    assert error.key == key or (
        key == "workloads.a.runtime" and error.key in (key, "workloads.a.jobs.x.runtime", "defaults.runtime")
    )
    assert words in error.message
    assert error.remedy


def test_an_unknown_key_is_answered_with_the_keys_of_its_own_section() -> None:
    with pytest.raises(SpecError) as caught:
        study_of(HEAD + "workloads: {a: {rw: read, search: {bond: 1s}}}\n")
    assert "did you mean bound?" in caught.value.remedy


def test_arrival_means_something_beside_a_search() -> None:
    assert works_of(HEAD + "workloads: {a: {rw: read, arrival: poisson, search: {bound: 1s}}}\n")


VARIED = (
    HEAD
    + """workloads:
  plain: {rw: read}
  backup: {rw: write, bs: 64k, varies: []}
  deep: {rw: read, bs: 8k, varies: [iodepth]}
factors: {bs: [4k, 16k], iodepth: [1, 2]}
"""
)


def test_a_work_may_vary_fewer_factors_than_the_study() -> None:
    works = works_of(VARIED)
    assert len([one for one in works.values() if one.base == "plain"]) == 4
    assert works["backup"].factors == {}
    assert works["backup"].options.bs == 64 << 10
    assert {"deep_iodepth1", "deep_iodepth2"} <= works.keys()
    assert study_of(VARIED).from_json(study_of(VARIED).as_json()) == study_of(VARIED)


def test_what_a_work_does_not_vary_may_be_set() -> None:
    assert works_of(VARIED, "workloads.backup.bs=32k")["backup"].options.bs == 32 << 10
    with pytest.raises(SpecError, match="bs is a factor"):
        study_of(VARIED, "workloads.plain.bs=32k")


@pytest.mark.parametrize(
    ("varies", "words"),
    [("[bz]", "did you mean bs?"), ("7", "a list is needed"), ("[7]", "a text is needed")],
)
def test_what_a_work_varies_is_a_factor(varies: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        study_of(VARIED.replace("[iodepth]}", f"{varies}}}"))
    assert words in f"{caught.value}{caught.value.remedy}"
    assert caught.value.line == 6
