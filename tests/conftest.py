"""What holds for all tests: signals as on a terminal, and which of them run when (levels.toml)."""

from __future__ import annotations

import signal
import tomllib
from pathlib import Path

import pytest

# A shell starts what runs in its background with SIGINT ignored, and children inherit that; but many tests
# are about what SIGINT does.
signal.signal(signal.SIGINT, signal.default_int_handler)

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
