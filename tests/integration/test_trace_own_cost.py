"""What the tracer itself takes is measured as the program runs, and is in no share."""

from __future__ import annotations

import sys
from pathlib import Path

from leadline.tracing.figures import shares
from support import Command
from trace_truth import under_leadline

CALLS = 100_000


def test_the_time_of_recording_is_known_and_taken_out(leadline: Command, place: Path) -> None:
    (place / "file").write_bytes(bytes(4096))
    loop = f"import os; f = os.open('file', 0)\nfor _ in range({CALLS}): os.lseek(f, 0, 0)"
    _, tables = under_leadline(leadline, [sys.executable, "-I", "-S", "-c", loop], place, "preload")
    (row,) = tables.processes
    assert row.ended_ns is not None
    assert row.tracer_ns is not None
    # Two readings of the clock at least, and less than the run.
    assert CALLS < row.tracer_ns < row.ended_ns - row.started_ns
    whole = shares(tables, None).whole
    assert whole.base_s * 1e9 <= row.ended_ns - row.started_ns - row.tracer_ns + 1e3
