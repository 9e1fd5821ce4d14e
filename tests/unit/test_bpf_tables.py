"""From what the tracer in the kernel gave to its tables: nothing is lost, added or moved on the way."""

from __future__ import annotations

import pytest

from leadline.tracing.sources.bpf import tables
from leadline.tracing.tables import TraceTables
from recorded_bpf import SCENARIOS, recorded
from trace_truth import Counts, differences, in_system_calls, printed, within


def read(scenario: str, **lost: int) -> tuple[Counts, Counts, TraceTables]:
    """The truth, what the tables say of its directory, and the tables."""
    said, place, found = recorded(scenario)
    made = tables(found | {"lost": {**found["lost"], **lost}}, with_segments=True)
    return in_system_calls(printed(said)), within(made, place), made


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_call_and_byte_of_a_program_is_in_the_tables(scenario: str) -> None:
    truth, seen, _ = read(scenario)
    assert differences(truth, seen, fileless=True) == []


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_sums_of_processes_are_those_of_the_programs(scenario: str) -> None:
    truth, _, made = read(scenario)
    _, place, _ = recorded(scenario)
    others = [row for row in made.files.to_pylist() if not row["path"].startswith(f"{place}/")]
    read_elsewhere = sum(row["BYTES_READ"] for row in others)
    written_elsewhere = sum(row["BYTES_WRITTEN"] for row in others)
    assert sum(row.bytes_read for row in made.processes) == truth.bytes_read + read_elsewhere
    assert sum(row.bytes_written for row in made.processes) == truth.bytes_written + written_elsewhere


def test_what_found_no_room_is_said() -> None:
    *_, made = read("data", segments=3, names=1)
    assert made.warnings == (
        "3 calls that found no room in the list of calls",
        "1 files whose path could not be read",
    )
