"""--set: where a value goes, and what is said when it cannot."""

from __future__ import annotations

import pytest

from leadline.errors import SpecError
from leadline.study.library import load_study
from leadline.study.study import expand


def test_an_option_is_set_in_every_work() -> None:
    study = load_study("quick", {}, ["size=64M", "runtime=2s"])
    assert {(work.options.size, work.options.runtime) for work in expand(study)} == {
        (64 * 1024**2, 2_000_000_000)
    }


def test_an_option_of_one_work() -> None:
    study = load_study("quick", {}, ["workloads.seqread_1m.bs=2M"])
    assert study.workloads["seqread_1m"].bs == 2 * 1024**2
    assert study.workloads["seqwrite_1m"].bs == 1024**2


def test_a_factor_keeps_the_one_level_that_is_set() -> None:
    assert len(expand(load_study("render", {}, ["bs=4k"]))) == 5 + 2  # a backup has a size of its own
    assert len(expand(load_study("render", {}, ["factors.bs=[4k,64k]"]))) == 10 + 2


def test_later_overrides_win_and_top_level_scalars_are_taken() -> None:
    study = load_study("quick", {}, ["blocks=2", "blocks=4", "title=Mine: all", "limits.reserve=1G"])
    assert (study.blocks, study.title, study.limits.reserve) == (4, "Mine: all", "1g")


def test_a_label_is_text_though_it_has_braces() -> None:
    assert load_study("render", {}, ["label={work}-{bs}"]).label == "{work}-{bs}"


def test_the_engine_null_can_be_set() -> None:
    assert load_study("quick", {}, ["engine=null"]).workloads["seqread_1m"].engine == "null"


def test_variables_are_taken_from_the_environment() -> None:
    assert load_study("quick", {"N": "7"}, ["blocks=${N}"]).blocks == 7


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("sise=4k", "unknown key", "did you mean size?"),
        ("ioengine=psync", "unknown key", "did you mean engine?"),
        ("workloads.seqraed_1m.bs=4k", "no workload of the study", "did you mean seqread_1m?"),
        ("workloads.seqread_1m.bz=4k", "unknown key", "did you mean bs?"),
        ("workloads.seqread_1m=4k", "unknown key", "workloads.NAME.OPTION"),
        ("limits.reserv=1", "unknown key", "did you mean reserve?"),
        ("foo.bar=1", "unknown key", "workloads.NAME.OPTION"),
        ("targets.a=/x", "not set this way", "--target"),
        ("bs=[4k,8k]", "makes a factor", "factors.bs"),
        ("bs", "no KEY=VALUE", "size=64M"),
        ("bs=", "no value", "size=64M"),
        ("=4k", "no KEY=VALUE", "size=64M"),
        ("bs=4q", "'4q' is not a size", "64KiB"),
        ("bs=[4k", "not valid YAML", "quotes"),
        ("blocks=${NOWHERE}", "NOWHERE is not set", "export"),
        ("format=x", "unknown key", ""),
    ],
)
def test_a_wrong_override_is_named(text: str, message: str, remedy: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_study("quick", {}, [text])
    assert caught.value.source == f"--set {text}"
    assert message in caught.value.message
    assert remedy in caught.value.remedy


def test_an_override_under_a_factor_would_have_no_effect_and_is_refused() -> None:
    with pytest.raises(SpecError, match="overrides workloads"):
        load_study("render", {}, ["workloads.read.bs=4k"])
