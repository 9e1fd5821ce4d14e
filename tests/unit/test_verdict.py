"""Which codes fire on what was measured, and what intervals allow one to say."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from builders import MIB, cell, cluster_state, facts, trial_row

from leadline.analysis.cells import CellTable
from leadline.analysis.metrics import Measured
from leadline.analysis.statistics.drift import Shift, TrialShift
from leadline.analysis.statistics.means import Estimate
from leadline.study.work import SteadyState
from leadline.verdict.cells import judge
from leadline.verdict.codes.case import Case
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.comparisons.comparisons import compare_beside
from leadline.verdict.comparisons.deciding import outcome_of
from leadline.verdict.messages import statements
from leadline.verdict.model import Validity, worst


def check(
    *rows: dict[str, Any],
    job: dict[str, Any] | None = None,
    target: dict[str, Any] | None = None,
    blocks: int | None = None,
    limit: int | None = None,
) -> Validity:
    rows = rows * 3 if len(rows) == 1 else rows  # enough blocks, all alike
    trials = tuple(trial_row(trial=f"t{i:04d}", block=i, **row) for i, row in enumerate(rows, start=1))
    case = Case(
        cell=cell(**(job or {})),
        facts=facts(**(target or {})),
        trials=trials,
        blocks_planned=len(rows) if blocks is None else blocks,
        memory_bytes=1 << 34,
        not_run_reason=None,
        max_rate_bytes_per_s=limit,
    )
    return judge(case)


def codes(validity: Validity) -> dict[str, str]:
    return {code.code: code.state for code in validity.codes}


def test_a_sound_trial_is_valid() -> None:
    assert check({}).state == "VALID"


@pytest.mark.parametrize(("device", "state"), [(96, None), (80, "DOUBTFUL"), (20, "INVALID"), (0, "INVALID")])
def test_reads_that_did_not_come_from_the_device_are_cached(device: int, state: str | None) -> None:
    assert codes(check({"device_read_bytes": device * MIB})).get("cached_reads") == state


def test_wire_bytes_decide_before_device_bytes() -> None:
    assert "cached_reads" not in codes(check({"wire_received_bytes": 101 * MIB, "device_read_bytes": 0}))


def test_what_osds_answer_from_memory_is_doubtful() -> None:
    row = {"device_read_bytes": None, "wire_received_bytes": 101 * MIB, "osd_read_bytes": 100 * MIB}
    assert codes(check({**row, "store_read_bytes": 2 * MIB})) == {"cached_reads": "DOUBTFUL"}
    assert check({**row, "store_read_bytes": 90 * MIB}).state == "VALID"


def test_the_smaller_count_near_this_host_decides() -> None:
    """A loopback interface counts what OSDs send each other, too."""
    row = {"wire_received_bytes": 300 * MIB, "osd_read_bytes": 10 * MIB, "store_read_bytes": 10 * MIB}
    assert codes(check(row)) == {"cached_reads": "INVALID"}


def test_buffered_reads_of_unknown_origin_are_doubtful() -> None:
    assert codes(check({"device_read_bytes": None}, job={"direct": False})) == {"origin_unknown": "DOUBTFUL"}


def test_a_missing_counter_is_not_a_cached_read() -> None:
    assert check({"device_read_bytes": None}).state == "VALID"


def test_a_target_in_memory_says_so_once() -> None:
    found = codes(check({"device_read_bytes": 0}, target={"in_memory": True, "file_system": "tmpfs"}))
    assert found == {"memory_target": "DOUBTFUL"}


@pytest.mark.parametrize(
    ("seconds", "operations", "state"),
    [(2.0, 30, None), (2.0, 29, "DOUBTFUL"), (0.8, 1000, "DOUBTFUL"), (0.05, 1000, "INVALID")],
)
def test_too_short(seconds: float, operations: int, state: str | None) -> None:
    found = check({"measured_ns": int(seconds * 1e9), "read_operations": operations})
    assert codes(found).get("too_short") == state


def test_a_short_job_that_moved_all_its_bytes_is_not_invalid_and_says_how_precise_it_is() -> None:
    short = {"measured_ns": 50_000_000, "read_operations": 1000}
    found = check(short, {**short, "measured_ns": 60_000_000}, job={"time_based": False, "runtime_ns": 0})
    (code,) = [one for one in found.codes if one.code == "too_short"]
    assert code.state == "DOUBTFUL"
    assert code.evidence == (
        "the job moved all its bytes in 0.05 s; the rates of its 2 blocks differ by up to 18 % of their mean"
    )


def test_one_short_block_alone_does_not_claim_a_precision() -> None:
    short = {"measured_ns": 50_000_000, "read_operations": 1000}
    found = check(short, {"state": "error", "error": "x"}, job={"time_based": False})
    (code,) = [one for one in found.codes if one.code == "too_short"]
    assert "one block does not show how precise its rate is" in code.evidence


def test_an_error_makes_the_cell_invalid_and_is_quoted() -> None:
    bad = {"state": "error", "error": "read of f at offset 8: Input/output error (io)"}
    found = check({}, {}, {}, bad)
    assert codes(found) == {"errors": "INVALID"}
    assert "Input/output error" in found.codes[0].evidence


def test_a_failed_verification_has_a_code_of_its_own() -> None:
    found = check({"state": "error", "error": "read of f at offset 8: checksum differs (verify)"})
    assert codes(found)["verification_failed"] == "INVALID"


def test_unwritten_blocks() -> None:
    assert codes(check({"unwritten_blocks": 3})) == {"unwritten_blocks": "INVALID"}


def test_a_saturated_generator() -> None:
    assert codes(check({"busy_share_max": 0.99})) == {"generator_saturated": "DOUBTFUL"}
    late = json.dumps({"pacer": {"own_late_ns_mean": 2e6}})
    assert codes(check({"summary": late})) == {"generator_saturated": "DOUBTFUL"}


def test_the_null_target_measures_the_generator_itself() -> None:
    assert (
        check({"busy_share_max": 1.0, "device_read_bytes": None}, target={"access": "null"}).state == "VALID"
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"pgs": {"active+clean": 31, "active+undersized+degraded": 1}}, "cluster_not_clean"),
        ({"osds_up": 3}, "cluster_not_clean"),
        ({"pgs": {"active+clean+scrubbing": 32}, "scrubbing": 32}, "scrub_or_recovery"),
        ({"recovering": True}, "scrub_or_recovery"),
        ({"used_share": 0.86}, "nearly_full"),
    ],
)
def test_the_clusters_state_is_judged(change: dict[str, Any], code: str) -> None:
    assert code in codes(check({"end_state": cluster_state(**change)}))


def test_a_clean_cluster_fires_nothing() -> None:
    assert check({"start_state": cluster_state(), "end_state": cluster_state()}).state == "VALID"


def test_buffered_writes_that_stayed_in_memory() -> None:
    row = {
        "read_operations": 0,
        "total_read_bytes": 0,
        "write_operations": 100,
        "total_write_bytes": 100 * MIB,
        "device_written_bytes": 10 * MIB,
    }
    assert codes(check(row, job={"rw": "write", "direct": False})) == {"buffered_writes": "DOUBTFUL"}


def test_a_rate_at_the_studys_limit_is_throttled() -> None:
    assert codes(check({}, limit=52 * MIB)) == {"throttled": "DOUBTFUL"}
    assert check({}, limit=60 * MIB).state == "VALID"


def test_throttling_and_steal() -> None:
    assert codes(check({"cgroup_throttled": 3})) == {"throttled": "DOUBTFUL"}
    assert codes(check({"cpu_steal_share": 0.06})) == {"noisy_host": "DOUBTFUL"}


def test_a_cell_without_trials_was_not_run() -> None:
    assert check(blocks=3).state == "NOT_RUN"


def test_missing_blocks_are_said() -> None:
    assert codes(check({}, blocks=5)) == {"incomplete": "DOUBTFUL"}


def test_fewer_than_three_blocks_say_little() -> None:
    assert codes(check({}, {})) == {"few_blocks": "DOUBTFUL"}


def test_the_worst_code_comes_first_and_decides() -> None:
    found = check({"unwritten_blocks": 1, "busy_share_max": 1.0})
    assert (found.state, found.codes[0].code) == ("INVALID", "unwritten_blocks")


def test_every_code_of_the_list_is_complete() -> None:
    for kind in catalogue().values():
        assert kind.title, kind.name
        assert kind.means.endswith(".")
        assert kind.remedy.endswith((".", "DIR"))


@pytest.mark.parametrize(
    ("low", "high", "higher_is_better", "outcome"),
    [
        (1.1, 1.3, True, "faster"),
        (1.1, 1.3, False, "slower"),
        (0.7, 0.9, True, "slower"),
        (0.7, 0.9, False, "faster"),
        (0.98, 1.03, True, "same"),
        (0.9, 1.2, True, "undecided"),
        (1.01, 1.2, True, "faster"),
    ],
)
def test_an_interval_decides_the_outcome(
    low: float, high: float, higher_is_better: bool, outcome: str
) -> None:
    assert outcome_of(Estimate(1.0, low, high, 6), higher_is_better, 0.05) == outcome


def test_without_an_interval_nothing_is_decided() -> None:
    assert outcome_of(Estimate(2.0, None, None, 1), True, 0.05) == "undecided"
    assert outcome_of(None, True, 0.05) == "undecided"


def test_jobs_that_did_not_start_together_are_doubtful() -> None:
    assert "clock_skew" not in codes(check({"start_skew_ns": 99_000_000}))
    assert codes(check({"start_skew_ns": 101_000_000}))["clock_skew"] == "DOUBTFUL"


def test_a_steady_state_that_was_asked_for_and_not_reached_is_doubtful() -> None:
    asked = replace(cell(), steady=SteadyState())
    good = {"steady": True, "steady_range": 0.1, "steady_slope": 0.0}
    bad = {"steady": False, "steady_range": 0.4, "steady_slope": 0.3}
    for rows, fires in (([good, good, good], False), ([good, bad, good], True)):
        trials = tuple(trial_row(trial=f"t{i:04d}", block=i, **row) for i, row in enumerate(rows, start=1))
        found = codes(judge(Case(asked, facts(), trials, 3, 1 << 34, None)))
        assert ("no_steady_state" in found) is fires
    unseen = trial_row(steady=False)
    found = judge(Case(asked, facts(), (unseen,), 1, 1 << 34, None))
    assert any("too short" in code.evidence for code in found.codes)


@pytest.mark.parametrize(
    ("p_values", "after", "fires"),
    [
        ((0.001, 0.005, 0.3), 80.0, True),
        ((0.001, 0.3), 80.0, True),
        ((0.001, 0.3, 0.3), 80.0, False),
        ((0.001, 0.001, 0.001), 95.0, False),
        ((0.02, 0.02, 0.02), 50.0, False),
    ],
)
def test_a_level_that_shifts_in_half_of_the_trials_by_a_tenth_is_doubtful(
    p_values: tuple[float, ...], after: float, fires: bool
) -> None:
    trials = tuple(trial_row(trial=f"t{i}", block=i) for i in range(len(p_values)))
    shifts = {f"t{i}": TrialShift(1.5, Shift(9, 100.0, after, p)) for i, p in enumerate(p_values)}
    found = judge(Case(cell(), facts(), trials, len(trials), 1 << 34, None, shifts=shifts))
    assert ("level_shift" in codes(found)) is fires
    if fires:
        evidence = next(code.evidence for code in found.codes if code.code == "level_shift")
        assert "of 3 trials; t0: 100" in evidence or "of 2 trials; t0: 100" in evidence
        assert "until 1.5 s, 80" in evidence


def test_the_bytes_of_jobs_that_ran_together_are_held_against_what_all_of_them_read() -> None:
    half = {"total_read_bytes": 50 * MIB, "device_read_bytes": 100 * MIB, "group_read_bytes": 200 * MIB}
    words = json.dumps({"group": "counted for all 2 jobs", "wire_received_bytes": "no network"})
    found = check({**half, "group_written_bytes": 0, "reasons": words})
    evidence = next(code.evidence for code in found.codes if code.code == "cached_reads")
    assert "50 % from a cache" in evidence
    assert "all 2 jobs" in evidence


def test_a_job_beside_others_is_compared_with_the_same_job_alone() -> None:
    alone, other = cell("a.small"), cell("a.big", bs=1 << 20)
    beside = replace(cell("a.both.small"), group="a.both", order="together")
    after = replace(cell("a.seq.small"), group="a.seq", order="sequence")
    tables = {
        one.id: CellTable(one.id, (), {b: Measured({"iops": value * (1 + b / 1000)}, {}) for b in range(6)})
        for one, value in ((alone, 1000.0), (beside, 250.0), (after, 1000.0), (other, 9.0))
    }
    cells = (alone, other, beside, after)
    found = compare_beside(cells, tables, dict.fromkeys(tables, "VALID"), ["iops"], 0.05)
    assert [(c.work, c.base, c.other, c.verdict) for c in found] == [
        ("small", "a.small", "a.both.small", "slower")
    ]
    assert found[0].ratio == pytest.approx(0.25)
    said = statements((), (), (), True, found)
    assert "operations per second 4.0x lower" in said[0].text
    assert "compared with a.small alone" in said[0].text


def test_what_stands_for_an_invalid_figure_and_one_that_was_not_run_says_invalid() -> None:
    """Else the figure would be shown without the word."""
    assert worst(["NOT_RUN", "INVALID", "DOUBTFUL"]) == "INVALID"
    assert worst(["VALID", "NOT_RUN", "DOUBTFUL"]) == "NOT_RUN"
    assert worst([]) == "VALID"
