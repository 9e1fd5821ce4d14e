"""What holds for all tests: signals as on a terminal, and which of them run when (levels.toml)."""

from __future__ import annotations

import functools
import os
import signal
import time
import tomllib
from pathlib import Path

import pytest

# A shell starts what runs in its background with SIGINT ignored, nohup what it runs with SIGHUP, and children
# inherit that; but many tests are about what these do.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

LEVELS = Path(__file__).with_name("levels.toml")


def rows_of(level: str) -> set[str]:
    """The tests, cases and files that a level names."""
    return {test for row in tomllib.loads(LEVELS.read_text())[level] for test in row["tests"]}


def is_named(node: str, rows: set[str]) -> bool:
    """Whether a row names this test (`FILE::TEST[CASE]`), all its cases (`FILE::TEST`), or its file."""
    return not rows.isdisjoint((node, node.partition("[")[0], node.partition("::")[0]))


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    levels = {level: rows_of(level) for level in ("nightly", "slow")}
    for item in items:
        for level, rows in levels.items():
            if is_named(item.nodeid, rows):
                item.add_marker(level)


SPARE = 0.5  # of the processors: less leaves none to a program with two threads
WAIT_S, SAMPLE_S = 60.0, 0.5


def spare_share() -> float:
    """Of the time of all processors, the part that nobody used over a short while."""

    def read() -> tuple[int, int]:
        ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return sum(ticks), ticks[3] + ticks[4]  # idle, and idle while a disk is waited for

    before = read()
    time.sleep(SAMPLE_S)
    after = read()
    return (after[1] - before[1]) / max(1, after[0] - before[0])


@functools.cache
def why_busy() -> str:
    """Why tests that need spare processors cannot run: others use them for a minute; "" where they can."""
    end = time.monotonic() + WAIT_S
    shares = [spare_share()]
    while shares[-1] < SPARE and time.monotonic() < end:
        shares.append(spare_share())
    if shares[-1] >= SPARE:
        return ""
    return (
        f"NOT RUN: other programs left at most {max(shares):.0%} of {os.cpu_count()} processors for"
        f" {WAIT_S:.0f} s; on a quiet machine: make test PHASES=quiet"
    )


@pytest.hookimpl(tryfirst=True)  # before fixtures, which measure
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What holds only where processors are to spare would prove nothing where they are not."""
    if item.get_closest_marker("processors") and (why := why_busy()):
        pytest.skip(why)
