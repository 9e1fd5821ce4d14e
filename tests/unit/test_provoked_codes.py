"""Every validity code that the program can find names a test that makes it fire for real."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from leadline.verdict.codes.catalogue import catalogue

TESTS = Path(__file__).parents[1]


def provoked() -> Iterator[tuple[str, str]]:
    """(code, test) for each `@pytest.mark.provokes(…)` in the tests."""
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for code in _codes(node.decorator_list):
                    yield code, f"{path.relative_to(TESTS)}::{node.name}"


def _codes(decorators: list[ast.expr]) -> Iterator[str]:
    for mark in decorators:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.provokes":
            yield from (argument.value for argument in mark.args if isinstance(argument, ast.Constant))


def test_every_code_with_a_trigger_has_a_test_that_provokes_it() -> None:
    with_trigger = {name for name, kind in catalogue().items() if kind.since}
    assert with_trigger - {code for code, _ in provoked()} == set()


def test_no_test_claims_to_provoke_what_is_no_code() -> None:
    assert {code for code, _ in provoked()} <= catalogue().keys()
