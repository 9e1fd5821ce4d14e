"""The first screen of every built-in study, letter by letter: read each aloud, does it answer the question?

The results are made, not measured: trials of the study's own plan with rates that are known. Where a study
needs programs of the host, a result of the same kind stands for it, with the study's question.
`LEADLINE_UPDATE_SCREENS=1 pytest tests/sentences/test_screens.py` writes them anew: read the difference.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from made_studies import (
    CEPH,
    LOCAL,
    Made,
    _io_row,
    _latencies,
    planned_of,
    random_coherence,
    random_copies,
    random_pipeline,
    store,
)
from made_sweeps import random_sweeps

from leadline.report.first_screen import lines_of, screen_of
from leadline.store.reader import open_result
from leadline.study.library import builtin_names, load_study
from leadline.verdict.findings import build_findings

SCREENS = Path(__file__).parents[1] / "data" / "screens"
UPDATE = "LEADLINE_UPDATE_SCREENS" in os.environ
RATES = {"local": 4e8, "mount": 8e7}  # bytes a second: the mount is 5x slower
SLOWED = {"one_segmented": 0.9, "one_strided": 0.4, "stream_beside_small.small": 0.25}
# Of the same kind of workload, by a seed with which its targets can be compared.
ALIKE: Mapping[str, tuple[Callable[[random.Random], Made], str]] = {
    "analysis": (random_copies, "copies 1"),
    "coherence": (random_coherence, "coherence 3"),
    "media": (random_pipeline, "pipeline 0"),
    "streaming": (random_sweeps, "sweeps 0"),
}


@pytest.fixture(autouse=True)
def _not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def made(name: str) -> Made:
    """A result of the study, or of its kind with its question."""
    if name in ALIKE:
        make, seed = ALIKE[name]
        found = make(random.Random(seed))  # noqa: S311 - data of a test
        command = ("true",) if name == "analysis" else ()
        question = load_study(name, {}, command=command).question
        found.study = found.study.model_copy(update={"question": question})
        return found
    study, chance = load_study(name, {}), random.Random(name)  # noqa: S311 - data of a test
    facts = {"local": LOCAL, "mount": CEPH}
    found = Made(study, planned_of(study, facts, chance), facts)
    for trial in found.plan.trials:
        own = found.plan.cell(trial.cell)
        rate = RATES[trial.target] * SLOWED.get(own.work, 1.0) * chance.lognormvariate(0, 0.03)
        row = _io_row(found.plan, trial, chance, rate, 0.0)
        found.rows.append(replace(row, state="complete", cpu_busy_share=0.3))
        found.latency[trial.id] = _latencies(own, row, rate)
    return found


@pytest.mark.parametrize("name", builtin_names())
@pytest.mark.parametrize("width", [40, 100])
def test_the_first_screen_of_a_built_in_study(name: str, width: int, tmp_path: Path) -> None:
    findings = build_findings(open_result(store(made(name), tmp_path / "first")), with_charts=False)
    screen = screen_of(findings, width, word="first")
    assert screen is not None
    text = "".join(f"{line}\n" for line, _ in lines_of(screen, width))
    golden = SCREENS / f"{name}-{width}.txt"
    if UPDATE:
        SCREENS.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
