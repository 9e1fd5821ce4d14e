"""How a run of a test may end: with 0, or with 3 for what the test names with its reason, and nothing else.

`leadline run` ends with 3 where a cell is INVALID or was not run. What only casts doubt on a cell (few
blocks, other load, a noisy host: a busy machine brings them at any time) changes no exit code.
"""

from __future__ import annotations

import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from leadline.store.reader import open_result
from leadline.verdict.findings import build_findings
from support import UNUSABLE, Process

EXIT_FAILED, EXIT_USAGE, EXIT_INVALID = 1, 2, 3


@dataclass(frozen=True)
class Expected:
    """A validity code that may make a cell of a test unusable, and why it may be there or not."""

    code: str
    why: str


CACHED = Expected("cached_reads", "the page cache has small files that were just written, or lost them again")
SERVED = Expected("cached_reads", "a server's memory has small files that were just written, or lost them")
MOVING = Expected("cluster_not_clean", "an OSD was taken away, and placement groups are mended meanwhile")
WRONG = Expected("errors", "what the test is about")
LEFT_OUT = Expected("not_run", "a work or a target that cannot be, in a study that goes on where possible")
BRIEF = Expected("too_short", "a job of so few operations ends within a tenth of a second, or not")


def assert_measured(done: subprocess.CompletedProcess[str] | Process, out: Path, *expected: Expected) -> None:
    """A run to its end: its exit code is what its result says, and only `expected` makes cells unusable."""
    found = build_findings(open_result(out), with_charts=False)
    said = done.stderr if isinstance(done, subprocess.CompletedProcess) else ""
    unusable = {
        code.code: f"{cell.id}: {code.evidence}"
        for cell in found.cells
        for code in cell.validity.codes
        if code.state in UNUSABLE
    }
    if found.state in UNUSABLE and not unusable:
        unusable["not_run"] = "a target was left out"
    unexpected = unusable.keys() - {one.code for one in expected}
    assert not unexpected, f"{ {code: unusable[code] for code in unexpected} }\n{said}"
    assert done.returncode == (EXIT_INVALID if found.state in UNUSABLE else 0), said


def assert_went_on(done: subprocess.CompletedProcess[str], out: Path, *expected: Expected) -> None:
    """A run that was resumed: to its end, or refused since there was nothing left to do."""
    if done.returncode == EXIT_USAGE:
        assert "is complete" in done.stderr, done.stderr
    else:
        assert_measured(done, out, *expected)


def assert_killed_or_went_on(done: subprocess.CompletedProcess[str], out: Path, *expected: Expected) -> None:
    """The same of one that was to be killed at an event, which may not come before its end."""
    if done.returncode != -signal.SIGKILL:
        assert_went_on(done, out, *expected)
