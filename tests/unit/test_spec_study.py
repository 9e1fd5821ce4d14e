"""Studies: each bad input gives one SpecError with file, line, key and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.errors import ResultError, SpecError
from leadline.study.kinds import JOB_OPTIONS
from leadline.study.library import builtin_names, builtin_text, load_study
from leadline.study.overrides import apply_overrides
from leadline.study.study import Study, deciding_works, expand, parse_study
from leadline.study.yaml_source import read_study

HEAD = "format: leadline.study/1\n"
GOOD = HEAD + "workloads:\n  one:\n    rw: randread\n"


def study_of(text: str) -> Study:
    return parse_study(read_study(text, "my.yaml", {}), "my")


def names(study: Study) -> list[str]:
    return [work.name for work in expand(study)]


def test_the_smallest_study() -> None:
    study = study_of(GOOD)
    assert (study.name, study.blocks, study.seed, names(study)) == ("my", 3, 1, ["one"])


def test_a_work_that_decides_does_so_in_all_its_levels() -> None:
    text = GOOD + "  two: {rw: read}\nfactors: {bs: [4k, 1M]}\nlabel: '{work}_{bs}'\n"
    assert deciding_works(study_of(text + "compare: {decides: [one, two_1m]}\n")) == {
        "one_4k",
        "one_1m",
        "two_1m",
    }
    assert deciding_works(study_of(text)) == frozenset()


def test_a_replay_has_no_work_that_could_be_expanded_and_decides_nothing() -> None:
    study = Study.from_json({"format": "leadline.study/1", "name": "replay", "workloads": {"replay": {}}})
    assert deciding_works(study) == frozenset()


def test_factors_are_crossed_with_works_and_named_by_the_label() -> None:
    study = study_of(GOOD + "factors: {bs: [4k, 1M], iodepth: [1, 8]}\nlabel: '{rw}_{bs}_q{iodepth}'\n")
    works = expand(study)
    assert [work.name for work in works] == [
        "randread_4k_q1",
        "randread_4k_q8",
        "randread_1m_q1",
        "randread_1m_q8",
    ]
    assert works[3].factors == {"bs": "1m", "iodepth": 8}
    assert works[3].options.bs == 1024**2


def test_without_a_label_factors_name_themselves() -> None:
    assert names(study_of(GOOD + "factors: {bs: [64KiB], iodepth: [8], direct: [true, false]}\n")) == [
        "one_64k_iodepth8_direct",
        "one_64k_iodepth8_buffered",
    ]


def test_factors_hold_over_works_and_works_over_defaults() -> None:
    text = (
        HEAD + "defaults: {bs: 4k, numjobs: 2}\nworks: {one: {rw: read, bs: 8k}}\nfactors: {numjobs: [3]}\n"
    )
    options = expand(study_of(text))[0].options
    assert (options.bs, options.numjobs) == (8192, 3)


def test_a_study_is_stored_and_read_back() -> None:
    text = (
        GOOD + "defaults: {runtime: 1500ms, size: 64M, rate: 1M/s}\nlimits: {max_rate: 9M, reserve: 12.5%}\n"
    )
    study = study_of(text + "compare: {margin: 3%}\nobserve: {interval: 100ms}\nfactors: {bs: [4k]}\n")
    assert study.compare.margin == pytest.approx(0.03)
    assert Study.from_json(study.as_json()) == study


def test_a_stored_study_that_is_damaged_is_a_result_error() -> None:
    with pytest.raises(ResultError):
        Study.from_json({"format": "leadline.study/2"})


@pytest.mark.parametrize("name", builtin_names())
def test_built_in_studies_are_valid(name: str) -> None:
    assert expand(load_study(name, {}))
    assert "\t" not in builtin_text(name)


@pytest.mark.parametrize(
    ("text", "line", "key", "message", "remedy"),
    [
        ("a: 1\n", 1, "format", "missing", "format: leadline.study/1"),
        ("- a\n", 1, "", "mapping", "leadline studies"),
        ("format: leadline.study/9\nworks: {}\n", 1, "format", "leadline.study/9", "version"),
        (HEAD, 1, "workloads", "missing", "workloads"),
        (HEAD + "workloads: {}\n", 2, "workloads", "at least 1 item", ""),
        (HEAD + "workloads: 3\n", 2, "workloads", "", ""),
        (HEAD + "workloads:\n  one: 3\n", 3, "workloads.one", "a mapping is needed here, not 3", ""),
        (HEAD + "workloads:\n  one:\n", 3, "workloads.one", "no value", ""),
        (
            HEAD + "workloads:\n  a.b: {rw: read}\n",
            3,
            "workloads.a.b",
            "no name of a workload",
            "randread_4k",
        ),
        (GOOD + "    blocksize: 4k\n", 5, "workloads.one.blocksize", "unknown key", "did you mean bs?"),
        (GOOD + "    iodeph: 4\n", 5, "workloads.one.iodeph", "unknown key", "did you mean iodepth?"),
        (GOOD + "blokcs: 4\n", 5, "blokcs", "unknown key", "did you mean blocks?"),
        (GOOD + "    bs: 4q\n", 5, "workloads.one.bs", "'4q' is not a size", "64KiB"),
        (GOOD + "    bs: [4k]\n", 5, "workloads.one.bs", "is not a size", "64KiB"),
        (GOOD + "    runtime: 1:30\n", 5, "workloads.one.runtime", "'1:30' is not a time", "1m30s"),
        (GOOD + "    direct: yes\n", 5, "workloads.one.direct", "'yes'", "true, false or auto"),
        (GOOD + "    iodepth: 0\n", 5, "workloads.one.iodepth", "out of range", "from 1"),
        (GOOD + "    iodepth: 2.5\n", 5, "workloads.one.iodepth", "not a whole number", "from 1"),
        (GOOD + "    iodepth: true\n", 5, "workloads.one.iodepth", "not a whole number", "from 1"),
        (GOOD + "    engine: psycn\n", 5, "workloads.one.engine", "'psycn'", "did you mean psync?"),
        (GOOD + "    rate_iops: 10k\n", 5, "workloads.one.rate_iops", "'10k'", "2000"),
        (HEAD + "workloads:\n  one:\n    rw: raed\n", 4, "workloads.one.rw", "'raed'", "did you mean read?"),
        (HEAD + "workloads:\n  one:\n    bs: 4k\n", 3, "workloads.one.rw", "has no kind of load", "add rw"),
        (GOOD + "    rwmixread: 30\n", 5, "workloads.one.rwmixread", "means nothing", "randrw"),
        (GOOD + "    fsync: 1\n", 5, "workloads.one.fsync", "writes nothing", "leave it out"),
        (GOOD + "    overwrite: true\n", 5, "workloads.one.overwrite", "writes nothing", "leave it out"),
        (GOOD + "    time_based: true\n", 5, "workloads.one.time_based", "needs a runtime", "30s"),
        (GOOD + "    ramp_time: 1s\n", 5, "workloads.one.ramp_time", "needs time_based", "runtime"),
        (GOOD + "    rate: 1M\n    rate_iops: 5\n", 6, "workloads.one.rate_iops", "both", "keep one"),
        (GOOD + "    arrival: poisson\n", 5, "workloads.one.arrival", "without rate", "leave it out"),
        (GOOD + "    engine: psync\n    iodepth: 4\n", 6, "workloads.one.iodepth", "psync", "numjobs: 4"),
        (GOOD + "    engine: mmap\n    direct: true\n", 6, "workloads.one.direct", "page cache", "psync"),
        (GOOD + "    bs: 1M\n    size: 4k\n", 6, "workloads.one.size", "does not hold", "at least 1m"),
        (GOOD + "    bs: 1M\n    size: 2.5M\n", 6, "workloads.one.size", "not a multiple", "2m or 3m"),
        (GOOD + "    nrfiles: 3\n    size: 16k\n", 6, "workloads.one.size", "times nrfiles", "12k or 24k"),
        (GOOD + "    bs: 100\n", 5, "workloads.one.bs", "not a block size", "4k"),
        (GOOD + "defaults:\n  rwmixread: 30\n", 6, "defaults.rwmixread", "means nothing", "randrw"),
        (GOOD + "factors:\n  bs: [4k, 4q]\n", 6, "factors.bs.1", "'4q' is not a size", "64KiB"),
        (GOOD + "factors:\n  bs:\n    - 4k\n    - 4KiB\n", 8, "factors.bs.1", "given twice", "keep one"),
        (GOOD + "factors:\n  bs: []\n", 6, "factors.bs", "no level", "[a, b, c]"),
        (GOOD + "factors:\n  bs: 4k\n", 6, "factors.bs", "a list is needed", "[a, b, c]"),
        (GOOD + "factors:\n  bss: [4k]\n", 6, "factors.bss", "no option", "did you mean bs?"),
        (GOOD + "factors:\n  rwmixread: [1, 2]\n", 6, "factors.rwmixread", "means nothing", "randrw"),
        (GOOD + "  two: {rw: read}\nlabel: same\n", 6, "label", "two workloads", "{workload}"),
        (GOOD + "label: '{rw}_{worklod}'\n", 5, "label", "unknown", "did you mean workload?"),
        (GOOD + "label: '{rw}/{work}'\n", 5, "label", "no name of a workload", "{workload}"),
        (GOOD + "label: '{work.x}'\n", 5, "label", "no name of a workload", "{workload}"),
        (GOOD + "label: '{bs}'\n", 5, "label", "workload one has no bs", "add bs"),
        (GOOD + "blocks: many\n", 5, "blocks", "not a whole number", "from 1"),
        (GOOD + "compare:\n  margin: 5\n", 6, "compare.margin", "not a percentage", "5%"),
        (GOOD + "targets: {a: /x}\ncompare:\n  base: b\n", 7, "compare.base", "no target", "known are a"),
        (GOOD + "compare:\n  decides: [two]\n", 6, "compare.decides", "'two' is no work", "known are one"),
        (GOOD + "targets:\n  A: /x\n", 6, "targets.A", "no name of a target", "a-z"),
        (
            GOOD + "targets:\n  a: s3://bucket\n",
            6,
            "targets.a",
            "endpoint= is missing",
            "leadline engines s3",
        ),
        (GOOD + "targets:\n  a: gopher://x\n", 6, "targets.a", "no scheme", "null://"),
        (GOOD + "observe:\n  interval: 1ms\n", 6, "observe.interval", "out of range", "100ms"),
        (GOOD + "limits:\n  reserve: 120%\n", 6, "limits.reserve", "not a percentage", "5%"),
        (GOOD + "limits:\n  max_rate: 0\n", 6, "limits.max_rate", "rate of 0", "100M"),
        (GOOD + "limits:\n  max_rat: 1M\n", 6, "limits.max_rat", "unknown key", "max_rate"),
        (
            GOOD + f"factors: {{seed: [1]}}\nabout: {JOB_OPTIONS[0]}\n",
            5,
            "factors.seed",
            "no option",
            "known",
        ),
    ],
)
def test_what_is_wrong_is_named(text: str, line: int, key: str, message: str, remedy: str) -> None:
    with pytest.raises(SpecError) as caught:
        study_of(text)
    error = caught.value
    assert (error.source, error.line, error.key) == ("my.yaml", line, key)
    assert message in error.message
    assert error.remedy
    assert remedy in error.remedy


def test_too_many_works_are_refused() -> None:
    levels = list(range(1, 65))
    with pytest.raises(SpecError, match="more than 2000 workloads"):
        study_of(GOOD + f"factors: {{iodepth: {levels}, numjobs: {levels}}}\n")


def test_files_are_found_by_path(tmp_path: Path) -> None:
    path = tmp_path / "My Study!.yaml"
    path.write_text(GOOD)
    assert load_study(str(path), {}).name == "my-study"


@pytest.mark.parametrize(
    ("name", "message"),
    [("qick", "did you mean quick?"), ("/nowhere/x.yaml", "no such file"), ("/", "is a directory")],
)
def test_a_study_that_is_not_there(name: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_study(name, {})
    assert message in str(caught.value)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(SpecError, match="not UTF-8"):
        load_study(str(path), {})


OLD = HEAD + "works:\n  one: {rw: randread, bs: 4k}\nlabel: '{work}_{bs}'\n"


def test_the_old_names_of_keys_are_still_read_and_today_s_are_written() -> None:
    document = apply_overrides(read_study(OLD, "my.yaml", {}), ["works.one.bs=8k", "blocks=2"], {})
    study = parse_study(document, "my")
    assert [work.name for work in expand(study)] == ["one_8k"]
    assert "works" not in study.as_json()
    stored = {("works" if key == "workloads" else key): value for key, value in study.as_json().items()}
    assert Study.from_json(stored) == study


def test_an_error_below_an_old_key_has_its_line() -> None:
    with pytest.raises(SpecError) as found:
        parse_study(read_study(HEAD + "works:\n  one:\n    rw: raed\n", "my.yaml", {}), "my")
    assert (found.value.line, found.value.key) == (4, "workloads.one.rw")


def test_a_key_under_its_old_and_its_new_name_is_refused() -> None:
    with pytest.raises(SpecError, match="the key is given twice") as found:
        read_study(GOOD + "works:\n  two: {rw: read}\n", "my.yaml", {})
    assert (found.value.line, found.value.key) == (5, "workloads")
