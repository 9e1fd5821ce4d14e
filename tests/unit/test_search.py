"""The search for a rate: it finds the edge of a target whose latency is known, and counts what held."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import cell, job, latency_row, trial_row
from core_jobs import run

from leadline import _core
from leadline.analysis.cells import cell_metrics, tabulate
from leadline.analysis.search import Stored, next_rate, read_probe
from leadline.plan.model import Trial
from leadline.run.executor import Probes
from leadline.study.work import Search
from leadline.verdict.kinds import measure_of

SECOND = 10**9


def search(**values: Any) -> Search:
    return Search.model_validate({"bound": "20ms", **values})


@pytest.fixture(scope="module")
def blob(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A real histogram, of latencies far below a millisecond."""
    return fast_histogram(tmp_path_factory.mktemp("h"))


def fast_histogram(directory: Path) -> bytes:
    _, record = run(directory, engine="null")
    found: bytes = record["intervals"][0]["histograms"]["total"]
    return found


def probe(
    number: int, rate: float | None, *, share: float = 1.0, blob: bytes | None, **changes: Any
) -> Stored:
    asked = rate if rate is not None else 10_000.0
    row = trial_row(
        trial=f"t{number:04d}",
        measured_ns=SECOND,
        read_operations=int(asked * share),
        read_bytes=int(asked * share) * 4096,
        job=json.dumps(job(rate_iops=rate).as_json()),
        **changes,
    )
    rows = [latency_row(trial=row.trial, clock="intended", histogram=blob)] if blob else []
    return row, rows


def climb(edge: float, asked: Search, capacity: float, blob: bytes, probes: int) -> list[Stored]:
    """A target that holds any rate up to `edge` and loses operations beyond it."""
    found: list[Stored] = []
    for number in range(1, probes + 1):
        rate = next_rate(asked, found)
        if rate is None:
            found.append(probe(number, None, share=capacity / 10_000, blob=None))
        else:
            found.append(probe(number, rate, share=1.0 if rate <= edge else 0.9, blob=blob))
    return found


@pytest.mark.parametrize("edge", [150.0, 900.0, 7_000.0, 48_000.0])
def test_bisection_comes_close_to_the_edge_from_below(edge: float, blob: bytes) -> None:
    asked = search()
    found = climb(edge, asked, 50_000.0, blob, 12)
    held = [p.rate for p in (read_probe(asked, *one) for one in found) if p.held and p.rate]
    assert 0.98 * edge <= max(held) <= edge


def test_a_given_highest_rate_is_tried_first_and_is_enough_where_it_holds(blob: bytes) -> None:
    asked = search(high=4000)
    assert next_rate(asked, []) == 4000
    found = climb(9_999.0, asked, 0.0, blob, 3)
    assert {read_probe(asked, *one).rate for one in found} == {4000}


def test_where_none_held_the_last_probe_is_the_lowest_rate(blob: bytes) -> None:
    asked = search(trials=4)
    assert [read_probe(asked, *one).rate for one in climb(1.0, asked, 50_000.0, blob, 4)][-1] == asked.low
    assert [read_probe(asked, *one).rate for one in climb(9_000.0, asked, 50_000.0, blob, 4)][-1] != asked.low


def test_the_mean_can_be_bounded_too() -> None:
    few_late = _core.histogram_of([1_000_000] * 90 + [60_000_000] * 10)  # p50 1 ms, mean 6.9 ms, p95 60 ms
    held = {
        name: read_probe(search(bound="5ms", latency=name), *probe(1, 1000.0, blob=few_late)).held
        for name in ("p50", "mean", "p95")
    }
    assert held == {"p50": True, "mean": False, "p95": False}
    assert read_probe(search(bound="10ms", latency="mean"), *probe(1, 1000.0, blob=few_late)).held


def test_no_rate_that_was_not_kept_and_no_failed_trial_counts_as_held(blob: bytes) -> None:
    asked = search()
    assert read_probe(asked, *probe(1, 1000.0, share=0.99, blob=blob)).held
    assert not read_probe(asked, *probe(1, 1000.0, share=0.97, blob=blob)).held
    assert not read_probe(asked, *probe(1, 1000.0, blob=blob, state="error")).held
    assert not read_probe(asked, *probe(1, 1000.0, blob=None)).held
    assert not read_probe(search(bound="1ns"), *probe(1, 1000.0, blob=blob)).held


def table(found: list[Stored], asked: Search) -> Any:
    rows = [row for row, _ in found]
    latency = {row.trial: own for row, own in found}
    return tabulate(rows, latency, measure_of([replace(cell(), search=asked)]), {"a.randread_4k": asked})[
        "a.randread_4k"
    ]


def test_a_blocks_figures_are_those_of_its_highest_rate_that_held(blob: bytes) -> None:
    asked = search(trials=8)
    found = climb(900.0, asked, 50_000.0, blob, 8)
    made = table(found, asked)
    best = made.by_block[1].values["rate_at_p99_20ms"]
    assert made.by_block[1].values["iops"] == pytest.approx(best, rel=0.01)
    assert [trial.trial for trial in made.good] == list(made.counted)
    assert len(made.trials) == len(made.probes) == 8
    metric = cell_metrics(made)["rate_at_p99_20ms"]
    assert metric.estimate is not None
    assert metric.estimate.value == pytest.approx(best)


def test_a_block_whose_probes_are_not_all_stored_does_not_count(blob: bytes) -> None:
    asked = search(trials=8)
    assert table(climb(900.0, asked, 50_000.0, blob, 7), asked).by_block == {}


def test_where_nothing_held_the_metric_says_what_was_seen(blob: bytes) -> None:
    asked = search(trials=4)
    metric = cell_metrics(table(climb(1.0, asked, 50_000.0, blob, 4), asked))["rate_at_p99_20ms"]
    assert metric.estimate is None
    assert "not even the lowest rate" in str(metric.reason)


def test_a_probe_is_run_with_the_rate_that_the_pilot_says_and_no_other_limit(tmp_path: Path) -> None:
    planned = replace(cell(rate_bytes_per_s=1 << 20), search=search())
    seen: list[int] = []

    def pilot(_search: Search, probes: Any) -> float | None:
        seen.append(len(probes))
        return 123.0 if probes else None

    probes = Probes(tmp_path, [planned], pilot)
    trial = Trial("t0001", 1, 1, planned.id, "a", 7, probe=1)
    assert probes.with_rate(trial, planned) == planned
    probes.add(trial_row(), [])
    paced = probes.with_rate(trial, planned)
    assert (paced.job.rate_iops, paced.job.rate_bytes_per_s) == (123.0, None)
    other_block = Trial("t0009", 9, 2, planned.id, "a", 7, probe=1)
    assert probes.with_rate(other_block, planned) == planned
    assert seen == [0, 1, 0]


def test_the_histogram_of_these_tests_is_a_fast_one(blob: bytes) -> None:
    assert _core.histogram_percentiles(blob, [99.0])[0] < 20_000_000
