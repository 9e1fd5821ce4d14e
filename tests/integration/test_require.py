"""Requirements from the command line: read before anything runs, stored with the result, in every report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support import Command, show

STUDY = """format: leadline.study/1
blocks: 3
limits: {reserve: 1M}
defaults: {bs: 4k, size: 64M, time_based: true, runtime: 2s, ramp_time: 100ms, rate_iops: 2000}
works: {paced: {rw: randread}, written: {rw: randwrite}}
"""
ASKED = """format: leadline.requirements/1
title: What is promised
document: A paper
requirements:
  slow: {from: section 5, target: a, metric: iops, at_least: 1}
  fast: {from: section 6, target: a, work: paced, metric: iops, at_least: 1e12}
  both:
    work: paced
    figures: [{metric: iops, at_most: 1e12}, {metric: latency_max, at_most: 900 s}]
  elsewhere: {work: tree, metric: create_iops, at_least: 5}
"""


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    path = tmp_path / "asked.yaml"
    path.write_text(ASKED)
    return path


@pytest.fixture
def paced(tmp_path: Path) -> Path:
    path = tmp_path / "paced.yaml"
    path.write_text(STUDY)
    return path


def judged(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in document["requirements"]["judged"]}


def exit_code(document: dict[str, Any], *, allowed: bool = False) -> int:
    """What the verdicts and the state of a result make of it."""
    verdicts = [one["verdict"] for one in judged(document).values()]
    if "not met" in verdicts:
        return 4
    if document["state"] in ("INVALID", "NOT_RUN"):
        return 3
    return 5 if "undecided" in verdicts and not allowed else 0


def test_a_run_is_held_against_its_requirements_and_stores_them(
    leadline: Command, paced: Path, asked: Path, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    words = ("--target", f"a={target}", "--no-ceph", "--out", str(out), "--require", str(asked))
    done = leadline("run", str(paced), *words)
    document = show(leadline, out)  # without the file: they are in the result
    found = judged(document)
    assert list(found) == ["slow", "fast", "both", "elsewhere"]
    assert done.returncode == exit_code(document), done.stderr
    assert "requirement elsewhere: no cell of this study is called *.tree" in done.stderr
    assert f"Of 4 requirements {sum(one['verdict'] == 'met' for one in found.values())} met" in done.stdout
    usable = {cell["id"]: cell["validity"]["state"] == "VALID" for cell in document["cells"]}
    # A doubt that cannot change a verdict leaves it as it is.
    assert found["slow"]["verdict"] in (["met"] if all(usable.values()) else ["met", "undecided"])
    assert found["fast"]["verdict"] in (["not met"] if usable["a.paced"] else ["not met", "undecided"])
    assert found["both"]["verdict"] in (["met"] if usable["a.paced"] else ["met", "undecided"])
    assert found["elsewhere"]["why"] == "no cell is called *.tree"
    assert ("requirement NOT MET: fast" in done.stderr) == (found["fast"]["verdict"] == "not met")
    for form in ("html", "md", "csv", "json", "openmetrics"):
        made = leadline("report", str(out), "--format", form)
        assert made.returncode == 0, made.stderr
        assert "elsewhere" in made.stdout, form
    assert "What is promised" in leadline("show", str(out), "--all").stdout


def test_a_stored_result_is_held_against_others_than_the_run_was(
    leadline: Command, paced: Path, asked: Path, target: Path, tmp_path: Path
) -> None:
    out, other = tmp_path / "r", tmp_path / "other.yaml"
    other.write_text(
        "format: leadline.requirements/1\n"
        "requirements: {any: {work: paced, metric: iops, at_least: 1, cells: one}}\n"
    )
    leadline("run", str(paced), "--target", f"a={target}", "--no-ceph", "-o", str(out))
    assert "requirements" not in show(leadline, out)
    held = leadline("show", str(out), "--json", "--require", str(other))
    document = json.loads(held.stdout)
    assert list(judged(document)) == ["any"]
    assert held.returncode == exit_code(document)
    allowed = leadline("show", str(out), "--json", "--require", str(asked), "--allow-undecided")
    assert allowed.returncode == exit_code(json.loads(allowed.stdout), allowed=True)
    page = leadline("report", str(out), "--require", str(asked), "--format", "md").stdout
    assert "From: A paper" in page
    assert "requirements" not in show(leadline, out)  # a report changes nothing in a result


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            ASKED.replace("metric: iops, at_least: 1}", "metric: iopz, at_least: 1}"),
            "line 5: requirements.slow.metric",
        ),
        (
            ASKED.replace("target: a", "target: b").replace("work: paced", "work: gone"),
            "no cell of this study",
        ),
        ("- [", "not valid YAML"),
        ("", "the file is empty"),
    ],
)
def test_what_cannot_be_read_or_met_ends_a_run_before_anything_is_measured(
    leadline: Command, paced: Path, target: Path, tmp_path: Path, text: str, says: str
) -> None:
    path, out = tmp_path / "asked.yaml", tmp_path / "r"
    path.write_text(text)
    done = leadline("run", str(paced), "--target", f"a={target}", "-o", str(out), "--require", str(path))
    assert done.returncode == 2
    assert says in done.stderr, done.stderr
    assert not out.exists()
    assert list(target.iterdir()) == []


def test_resuming_takes_no_other_requirements(leadline: Command, asked: Path, tmp_path: Path) -> None:
    done = leadline("run", "--resume", str(tmp_path), "--require", str(asked))
    assert done.returncode == 2
    assert "--resume goes on with a result as it was planned" in done.stderr


def test_requirements_are_of_studies(leadline: Command, asked: Path, tmp_path: Path) -> None:
    out = tmp_path / "t"
    assert leadline("trace", "-o", str(out), "--", "true").returncode == 0
    done = leadline("show", str(out), "--require", str(asked))
    assert done.returncode == 2
    assert "requirements are held against results of studies" in done.stderr


def test_a_requirement_in_a_line_is_shown_with_what_was_measured(
    leadline: Command, paced: Path, target: Path, tmp_path: Path
) -> None:
    out, easy, hard = tmp_path / "r", "a.paced.iops >= 1", "a.paced.iops <= 0.001"
    refused = leadline("run", str(paced), "--target", f"a={target}", "--require", "a.paced.iops > 1")
    assert refused.returncode == 2
    assert "> is none of >= and <=" in refused.stderr
    words = ("--target", f"a={target}", "--no-ceph", "--out", str(out), "--require", easy, "--require", hard)
    done = leadline("run", str(paced), *words)
    found = judged(show(leadline, out))
    assert list(found) == [easy, hard]
    marks = {"met": "\u2713", "not met": "\u2717", "undecided": "?"}
    for name, one in found.items():
        line = next(line for line in done.stderr.splitlines() if f": {name}: " in line)
        assert line.startswith(marks[one["verdict"]])
        assert line.partition(f"{name}: ")[2][:1].isdigit()
    assert done.returncode == exit_code(show(leadline, out))
