"""A trial that ends when it is steady, and a search for a rate: for real, and resumed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline.store.reader import open_result
from leadline.store.tables import TrialRow
from measured import CACHED, assert_measured
from support import Command, Start, show

SECOND = 10**9


@pytest.fixture
def write_study(tmp_path: Path) -> Callable[[str], Path]:
    def write(works: str) -> Path:
        path = tmp_path / "s.yaml"
        path.write_text(
            "format: leadline.study/1\nblocks: 2\nlimits: {reserve: 1M}\n"
            "defaults: {size: 4M, time_based: true, engine: psync, direct: false}\n"
            f"works: {{{works}}}\n"
        )
        return path

    return write


def test_a_trial_ends_once_it_is_steady_and_only_the_steady_part_counts(
    leadline: Command, write_study: Callable[[str], Path], target: Path, tmp_path: Path
) -> None:
    # an open loop keeps its rate, and so is steady by construction
    study = write_study(
        "paced: {rw: randread, bs: 4k, rate_iops: 200, runtime: 60s, ramp_time: 500ms,"
        " steady_state: {window: 500ms, windows: 3}}"
    )
    done = leadline("run", str(study), "--target", f"a={target}", "--out", str(tmp_path / "r"))
    assert_measured(done, tmp_path / "r", CACHED)
    result = open_result(tmp_path / "r")
    latency = result.latency()
    for trial in result.trials():
        assert (trial.state, trial.steady) == ("complete", True)
        assert trial.last_done_ns < 50 * SECOND
        assert trial.measured_ns == 3 * SECOND // 2
        assert (trial.ramp_ns - SECOND // 2) % (SECOND // 2) == 0
        assert trial.read_operations == trial.read_bytes // 4096 < trial.total_read_bytes // 4096
        whole = next(
            x for x in latency if x.trial == trial.trial and x.interval < 0 and x.clock == "intended"
        )
        assert (whole.start_ns, whole.end_ns) == (trial.ramp_ns, trial.ramp_ns + trial.measured_ns)
        assert whole.operations == trial.read_operations
    values = json.loads(leadline("report", str(tmp_path / "r"), "--format", "json").stdout)
    assert values["cells"][0]["metrics"]["iops"]["value"] == pytest.approx(200, rel=0.2)
    assert not [c for c in values["cells"][0]["validity"]["codes"] if c["code"] == "no_steady_state"]


@pytest.mark.provokes("no_steady_state")
def test_where_nothing_is_steady_the_whole_runtime_goes_by_and_a_code_says_so(
    leadline: Command, write_study: Callable[[str], Path], target: Path, tmp_path: Path
) -> None:
    study = write_study(
        "loose: {rw: randread, bs: 4k, runtime: 1500ms,"
        " steady_state: {window: 100ms, windows: 10, range: 0.001%, slope: 0.001%}}"
    )
    leadline("run", str(study), "--target", f"a={target}", "--out", str(tmp_path / "r"))
    for trial in open_result(tmp_path / "r").trials():
        assert trial.steady is False
        assert trial.last_done_ns >= 3 * SECOND // 2
        # The last ten whole windows; a trial that was held up lasts for longer, and they are later. The last
        # one ends with the last operation: what is counted and its time are of the same intervals.
        assert SECOND <= trial.measured_ns < 11 * SECOND // 10
        assert trial.ramp_ns + trial.measured_ns <= trial.last_done_ns
        assert trial.ramp_ns >= SECOND // 2
        assert 0 <= trial.last_done_ns - trial.ramp_ns - SECOND < 2 * SECOND // 10
    cell = show(leadline, tmp_path / "r")["cells"][0]
    assert "no_steady_state" in {code["code"] for code in cell["validity"]["codes"]}


SEARCH = "paced: {rw: randread, bs: 4k, runtime: 300ms, search: {bound: 10s, low: 50, high: 400, trials: 3}}"


def rates(trials: list[TrialRow]) -> list[tuple[int, float | None]]:
    return [(t.block, json.loads(t.job)["rate_iops"]) for t in trials]


def test_a_search_finds_a_rate_in_each_block(
    leadline: Command, write_study: Callable[[str], Path], target: Path, tmp_path: Path
) -> None:
    study = write_study(SEARCH.replace("high: 400, ", ""))
    done = leadline("run", str(study), "--target", f"a={target}", "--out", str(tmp_path / "r"))
    assert_measured(done, tmp_path / "r", CACHED)
    trials = open_result(tmp_path / "r").trials()
    for block in (1, 2):
        own = [rate for b, rate in rates(trials) if b == block]
        assert own[0] is None  # as fast as it goes: the highest rate there is
        assert None not in own[1:]
    cell = show(leadline, tmp_path / "r")["cells"][0]
    found = cell["metrics"]["rate_at_p99_10s"]
    assert found["unit"] == "1/s"
    if found["value"] is not None:
        assert found["low"] <= found["value"] <= found["high"]
        assert found["blocks"] == 2
    for form in ("html", "md", "csv", "json", "fio"):
        made = leadline("report", str(tmp_path / "r"), "--format", form)
        assert made.returncode == 0, made.stderr


def test_a_bound_of_the_command_line_searches_each_work_and_says_what_it_keeps(
    leadline: Command, write_study: Callable[[str], Path], target: Path, tmp_path: Path
) -> None:
    study = write_study(
        "reads: {rw: randread, bs: 4k, runtime: 300ms}, mixed: {rw: randrw, bs: 4k, runtime: 300ms}"
    )
    few = ("--set", "works.reads.search.trials=2", "--set", "works.mixed.search.trials=3")
    words = ("run", str(study), "--target", f"a={target}", *few)
    done = leadline(*words, "--bound", "p50=10s", "--out", str(tmp_path / "r"))
    assert_measured(done, tmp_path / "r", CACHED)
    found = show(leadline, tmp_path / "r")["searches"]["parts"]
    assert [table["title"] for table in found] == ["Highest rate with p50 <= 10s"]
    assert {row["keys"][0] for row in found[0]["rows"]} == {"reads", "mixed"}
    for row in found[0]["rows"]:
        rate, _, free, _ = row["values"]
        assert free["value"] is not None  # the first probe of each block has no rate
        assert rate["value"] is None or rate["low"] <= rate["value"] <= rate["high"]


def test_a_bound_that_nothing_keeps_is_said_with_what_was_seen_at_the_lowest_rate(
    leadline: Command, write_study: Callable[[str], Path], target: Path, tmp_path: Path
) -> None:
    study = write_study("reads: {rw: randread, bs: 4k, runtime: 300ms}")
    words = ("run", str(study), "--target", f"a={target}", "--set", "works.reads.search.trials=3")
    done = leadline(*words, "--bound", "mean=1ns", "--out", str(tmp_path / "r"))
    assert_measured(done, tmp_path / "r", CACHED)
    assert "Highest rate with mean <= 1ns: a.reads no tested rate." in done.stdout
    assert "No answer: the 1 cell has no value to use. a.reads: not even the lowest" in done.stdout
    lowest = [rate for block, rate in rates(open_result(tmp_path / "r").trials()) if block == 1]
    assert lowest[-1] == 100
    words = show(leadline, tmp_path / "r")["cells"][0]["metrics"]["rate_at_mean_1ns"]["reason"]
    assert words.startswith("not even the lowest rate tried was held: at 100 per second mean was ")


def test_a_resumed_search_goes_on_from_its_stored_probes(
    start: Start, leadline: Command, write_study: Callable[[str], Path], target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    study = write_study(SEARCH.replace("trials: 3", "trials: 4"))
    process = start("run", str(study), "--target", f"a={target}", "--out", str(out), "--quiet")
    end = time.monotonic() + 30
    while not (out / "trials" / "t0002.parquet").exists() and time.monotonic() < end:
        time.sleep(0.02)
    process.kill()
    process.wait()
    before = rates(open_result(out).trials())
    assert before[0] == (1, 400.0)
    assert_measured(leadline("run", "--resume", str(out)), out, CACHED)
    trials = open_result(out).trials()
    assert [t.trial for t in trials] == [f"t{n:04d}" for n in range(1, 9)]
    assert rates(trials)[: len(before)] == before
    assert list(target.iterdir()) == []
