"""From the engine's record to rows, where the record is short, empty or cut off."""

from __future__ import annotations

from typing import Any

from builders import cell

from leadline.observe.reading import Mark, delta
from leadline.plan.model import Trial
from leadline.run.child import Answer
from leadline.run.rows import build_series_rows, build_trial_row, trial_error, trial_state

TRIAL = Trial("t0001", 1, 1, "a.randread_4k", "a", 7)
NOTHING = delta(Mark("s", 0, {}), Mark("e", 1, {}))


def interval(start_ns: int, end_ns: int, **changes: Any) -> dict[str, Any]:
    values = {
        "index": 0,
        "start_ns": start_ns,
        "end_ns": end_ns,
        "direction": "read",
        "bytes": 4096,
        "operations": 1,
        "measured": True,
        "in_flight_mean": 1.0,
        "late_ns_max": 0,
        "histograms": {},
    }
    return {**values, **changes}


def record(*intervals: dict[str, Any]) -> dict[str, Any]:
    return {"header": None, "intervals": list(intervals), "summary": None, "truncated": True}


def test_an_interval_of_no_length_has_no_rate() -> None:
    assert build_series_rows("t0001", record(interval(5, 5)), [], 0) == []


def test_the_stub_at_the_end_has_no_rate_of_its_own() -> None:
    rows = build_series_rows("t0001", record(interval(0, 10**9), interval(10**9, 10**9 + 10**7)), [], 0)
    assert {row.t_ns for row in rows} == {10**9}


def test_a_lost_worker_keeps_the_intervals_it_wrote() -> None:
    found = record(
        interval(0, 10**9, measured=False), interval(10**9, 2 * 10**9), interval(2 * 10**9, 3 * 10**9)
    )
    answer = Answer("died", message="the worker process 5 ended by signal SIGKILL")
    row = build_trial_row(TRIAL, cell(), answer, found, NOTHING, caches_dropped=False)
    assert (row.state, row.error) == ("error", "the worker process 5 ended by signal SIGKILL")
    assert (row.read_bytes, row.total_read_bytes) == (2 * 4096, 3 * 4096)
    assert (row.ramp_ns, row.measured_ns) == (10**9, 2 * 10**9)
    assert row.device_read_bytes is None


def test_a_hung_engine_names_process_and_threads() -> None:
    answer = Answer("done", value={"state": "deadline", "error": None, "stuck_threads": [12, 13]}, pid=11)
    assert trial_state(answer) == "hung"
    assert "process 11 (threads 12, 13) is stuck" in (trial_error(answer) or "")


def test_an_engine_error_names_file_and_offset() -> None:
    error = {
        "kind": "io",
        "operation": "read",
        "file": "f",
        "offset": 8192,
        "errno": 5,
        "message": "Input/output error",
    }
    words = "read of f at offset 8192: Input/output error"
    for message in ("Input/output error", words):  # the engine's own says where, and is not doubled
        answer = Answer("done", value={"state": "error", "error": error | {"message": message}}, pid=11)
        assert trial_error(answer) == f"{words} (io)"
