"""The table of which tests run when names tests that are there, with a reason each."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEVELS = tomllib.loads((ROOT / "tests" / "levels.toml").read_text())
ROWS = [row for rows in LEVELS.values() for row in rows]


def functions(file: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)}


def test_each_row_names_tests_that_are_there_and_says_why() -> None:
    lost = []
    for name in (name for row in ROWS for name in row["tests"]):
        path, _, test = name.partition("::")
        file = ROOT / path
        if not file.is_file() or (test and test.partition("[")[0] not in functions(file)):
            lost.append(name)
    assert not lost, f"no such test: {lost}"
    assert all(len(row["why"].split()) > 5 for row in ROWS)


def test_no_test_is_named_twice() -> None:
    for rows in LEVELS.values():
        names = [name for row in rows for name in row["tests"]]
        assert len(names) == len(set(names))


def test_a_row_names_a_file_a_test_or_a_case(pytestconfig: pytest.Config) -> None:
    (conftest,) = (
        plugin
        for plugin in pytestconfig.pluginmanager.get_plugins()
        if getattr(plugin, "__file__", "") == str(ROOT / "tests" / "conftest.py")
    )
    case = "tests/unit/test_a.py::test_b[c::d]"
    for rows in ({"tests/unit/test_a.py"}, {"tests/unit/test_a.py::test_b"}, {case}):
        assert conftest.is_named(case, rows)
    assert not conftest.is_named(case, {"tests/unit/test_a.py::test_b[e]", "tests/unit/test_a"})
