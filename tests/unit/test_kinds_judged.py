"""Every kind of work has its face towards verdicts, and says of its metrics what they are."""

from __future__ import annotations

from importlib import resources

from builders import cell

from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.interface import OwnCells
from leadline.verdict.kinds import known_metrics, metric_kind
from leadline.workloads.io.judge import verified_section
from leadline.workloads.judge import KINDS


def test_every_folder_of_a_kind_of_work_has_a_line() -> None:
    folders = {item.name for item in resources.files("leadline.workloads").iterdir() if item.is_dir()}
    assert {kind.kind for kind in KINDS} == {name for name in folders if not name.startswith("_")}


def test_a_kind_is_exempt_of_codes_that_there_are() -> None:
    for kind in KINDS:
        assert kind.exempt <= catalogue().keys(), kind.kind


def test_a_metric_means_one_thing_whichever_kind_has_it() -> None:
    for kind in KINDS:
        for name, own in kind.metric_kinds.items():
            assert metric_kind(name) == own


def test_every_known_metric_has_a_unit() -> None:
    assert all(metric_kind(name).unit for name in known_metrics())


def test_what_was_to_be_verified_and_never_ran_has_no_row() -> None:
    own = OwnCells({}, (cell(verify=True),), (), {}, (), (), None)
    assert verified_section(own) is None
