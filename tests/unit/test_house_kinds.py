"""The rule that nobody outside `workloads/` tells kinds of work apart: it sees each way to do so."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


def _rule() -> ModuleType:
    path = Path(__file__).parents[2] / "tools" / "house" / "kinds.py"
    spec = importlib.util.spec_from_file_location("house_kinds", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RULE = _rule()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1\nif isinstance(job, Job):\n    pass", "isinstance"),
        ("y = [\n    isinstance(cell.job, A | B)]", "isinstance"),
        ("x = 0\nfound = 'command' in cell.job", "key"),
        ("x = 0\nfound = 'script' not in job", "key"),
        ("x = 0\nfound = cell.kind == anything", "kind"),
        ("x = 0\nfound = thing.kind in ('pipeline', 'io')", "kind"),
        ("x = 0\nfound = job['format'] == JOB", "format"),
        ("x = 0\nfound = job.get('format') != JOB", "format"),
    ],
)
def test_each_way_to_tell_kinds_apart_is_a_breach(source: str, words: str) -> None:
    ((line, said),) = RULE.breaches(source)
    assert line == 2
    assert words in said


@pytest.mark.parametrize(
    "source",
    ["token.kind == 'number'", "isinstance(jobs, dict)", "'a' in places", "planned(job).seconds(job)"],
)
def test_what_only_looks_alike_is_none(source: str) -> None:
    assert list(RULE.breaches(source)) == []


def test_a_kind_that_imports_another_is_a_breach_but_for_a_pipeline_that_is_made_of_applications() -> None:
    source = "import json\nfrom leadline.workloads.application.job import ApplicationJob\n"
    assert list(RULE.other_kinds(source, "io")) == [(2, "io imports application")]
    assert list(RULE.other_kinds("from leadline.workloads import io", "replay")) == [(1, "replay imports io")]
    assert list(RULE.other_kinds(source, "pipeline")) == []
    assert list(RULE.other_kinds(source, "application")) == []


def test_the_kinds_are_the_folders_and_only_they_may_tell_themselves_apart(tmp_path: Path) -> None:
    assert {"io", "metadata", "application", "pipeline", "coherence", "replay"} <= RULE.KINDS
    for name in ("run", "workloads"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.py").write_text("isinstance(job, Job)\n")
    found = RULE.look(tmp_path)
    assert len(found) == 1
    assert f"{Path('run') / 'one.py'}:1:" in found[0]


def test_study_plan_and_run_ask_faces() -> None:
    for room in ("study", "plan", "run", "cli"):
        assert RULE.look(RULE.PACKAGE / room) == []
