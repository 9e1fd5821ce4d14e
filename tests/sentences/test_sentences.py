"""Every sentence is true: results are made by chance, and what is said of them is worked out a second time.

`kit.py` is what a checker has, `check_*.py` are the checkers by the name of a sentence, `everywhere.py` what
holds of all, `made_*.py` make the results. A new sentence needs a name, a checker here, and a result in which
it is said: `tools/house/sentences.py` and the last test see to that.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import check_hosts  # noqa: F401 - binds its checkers
import check_lives  # noqa: F401
import check_notes  # noqa: F401
import check_pairs  # noqa: F401
import check_programs  # noqa: F401
import check_proved  # noqa: F401
import check_required  # noqa: F401
import check_scaled  # noqa: F401
import check_searched  # noqa: F401
import check_studies  # noqa: F401
import check_sweeps  # noqa: F401
import check_traces  # noqa: F401
import check_transfers  # noqa: F401
import check_unclean  # noqa: F401
import everywhere
import pytest
from check_answers import hold_answer, hold_regression
from kit import CHECKERS, Said
from made_hosts import random_hosts, random_many_slow
from made_others import OTHERS
from made_proved import random_proved, random_several
from made_required import random_required
from made_scaled import random_scaled
from made_searched import random_searched
from made_studies import STUDIES, Made, store
from made_sweeps import random_sweep, random_sweeps
from made_transfers import TRANSFERS
from made_unclean import random_unclean
from said_by import SAID_BY

from leadline.store.reader import Result, open_result
from leadline.verdict.comparisons.two_results import check_regression
from leadline.verdict.findings import build_findings


def _stored(make: Callable[[random.Random], Made], chance: random.Random, path: Path) -> Path:
    return store(make(chance), path)


# By kind of result: few that together make every sentence of their kind be said, and some more that
# `make test-all` draws besides. `make sentences` draws more of each.
SEEDS: dict[str, tuple[int, ...]] = {
    "io": (5, 9, 10, 30, 69),
    "required": (1,),
    "coherence": (3,),
    "copies": (1, 4, 9, 10),
    "pipeline": (0, 3, 66),
    "transfers": (0, 1),
    "sweep": (0, 1),
    "sweeps": (0,),
    "scaled": (0,),
    "proved": (4,),
    "searched": (0,),
    "several_proved": (3,),
    "unclean": (0,),
    "gaps": (2,),
    "environment": (0,),
    "waits": (0, 2, 3, 5, 6, 12, 14, 15, 19),
    "trace": (0, 3, 4, 10, 12, 13, 15, 29, 42),
    "workflows": (0, 3),
    "document": (0,),
    "hosts": (1,),
    "many_slow_hosts": (0,),
}
LONGER = "LEADLINE_ALL_TESTS" in os.environ
RARE = {"required": (11, 16, 27), "copies": (18,), "several_proved": (9, 10, 12)}
ALSO = {kind: (*range(8), *RARE.get(kind, ())) for kind in SEEDS if LONGER and kind != "many_slow_hosts"}
MORE = int(os.environ.get("LEADLINE_SENTENCE_SEEDS", "0"))  # of each kind, besides
MAKERS: Mapping[str, Callable[[random.Random, Path], Path]] = {
    **{kind: partial(_stored, make) for kind, make in {**STUDIES, **TRANSFERS}.items()},
    "required": partial(_stored, random_required),
    "sweep": partial(_stored, random_sweep),
    "sweeps": partial(_stored, random_sweeps),
    "scaled": partial(_stored, random_scaled),
    "proved": partial(_stored, random_proved),
    "searched": random_searched,
    "several_proved": partial(_stored, random_several),
    "unclean": partial(_stored, random_unclean),
    **OTHERS,
    "hosts": random_hosts,
    "many_slow_hosts": random_many_slow,
}


@pytest.fixture(autouse=True)
def _not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here has to outlive a loss of power, and syncing is most of what these tests would wait for."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def check(result: Result, *, explained: bool = False) -> set[str]:
    """Hold every sentence of a result; their names. `explained`: with what is said of what bounds cells."""
    findings = build_findings(result, with_charts=False, explained=explained)
    trials = result.trials() if (result.path / "trials").exists() else []
    for statement in findings.statements:
        said = Said(statement, findings, result, trials)
        everywhere.hold(said)
        CHECKERS[statement.says](said)
    hold_answer(findings, result)
    return {statement.says for statement in findings.statements}


def chance(kind: str, seed: int) -> random.Random:
    return random.Random(f"{kind} {seed}")  # noqa: S311 - data of a test


@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_said_is_so(tmp_path: Path, kind: str) -> None:
    wrong, heard = [], set()
    for seed in sorted({*SEEDS[kind], *ALSO.get(kind, ()), *range(100, 100 + MORE)}):
        path = MAKERS[kind](chance(kind, seed), tmp_path / str(seed))
        try:
            heard |= check(open_result(path), explained=kind == "scaled")
        except AssertionError as problem:
            wrong.append(f"{kind} {seed}: {problem}")
    assert not wrong, "\n".join(wrong)
    assert heard >= SAID_BY[kind], f"choose other seeds: never said {SAID_BY[kind] - heard}"


@pytest.mark.parametrize("seed", range(3))
def test_a_gate_says_of_two_results_what_their_trials_give(tmp_path: Path, seed: int) -> None:
    """Of one study run twice, the second time with other figures."""
    sides = []
    for name in ("old", "new"):
        made = STUDIES["io"](chance("io", seed))
        noise = random.Random(f"{name} {seed}")  # noqa: S311
        for place, row in enumerate(made.rows):
            factor = noise.lognormvariate(0, 0.2)
            longer = {
                "measured_ns": round(row.measured_ns * factor),
                "started_unix_ns": noise.randint(1, 10**9),
            }
            made.rows[place] = replace(row, **longer)
        made.details["id"] = f"{noise.randrange(16**8):08x}"
        result = open_result(store(made, tmp_path / name))
        findings = build_findings(result, with_charts=False)
        sides.append(Said(findings.statements[0], findings, result, result.trials()))
    found = check_regression(sides[0].result, sides[1].result, (), 0.05)
    hold_regression(found, *sides)


def test_every_sentence_is_said_by_some_kind_of_result() -> None:
    assert set().union(*SAID_BY.values()) == CHECKERS.keys()


def test_a_checker_sees_a_figure_that_is_not_so(tmp_path: Path) -> None:
    """Each number of each sentence in turn, made larger: most are bound, and the rest is known."""
    result = open_result(MAKERS["trace"](chance("trace", 0), tmp_path / "r"))
    findings = build_findings(result, with_charts=False)
    said = next(one for one in findings.statements if one.says == "trace_time")
    for place in re.finditer(r"\d+(?:\.\d+)?", said.text.partition(" (")[0]):
        text = f"{said.text[: place.start()]}{float(place[0]) * 1.7 + 3:g}{said.text[place.end() :]}"
        with pytest.raises(AssertionError):
            CHECKERS["trace_time"](Said(replace(said, text=text), findings, result, []))
