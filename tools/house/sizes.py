"""The house stays small enough to be read: lines of a file and of a function.

A module is one idea, and a package has as many as it has ideas: a bound on their number only made fragments.
`python tools/house/sizes.py [ROOT]` prints every breach and exits with 1 where there is one. Functions of
Rust are held by clippy (`clippy.toml`).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70


def _sources(root: Path) -> Iterator[Path]:
    yield from sorted((root / "python" / "leadline").rglob("*.py"))
    for source in sorted((root / "crates").glob("*/src")):
        yield from sorted(source.rglob("*.rs"))


def _long_files(root: Path) -> Iterator[str]:
    for path in _sources(root):
        lines = len(path.read_text().splitlines())
        if lines > FILE_LINES_MAX:
            yield f"{path.relative_to(root)}: {lines} lines, more than {FILE_LINES_MAX}"


def _long_functions(root: Path) -> Iterator[str]:
    for path in _sources(root):
        if path.suffix != ".py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                place = f"{path.relative_to(root)}:{node.lineno}"
                yield f"{place}: {node.name} has {lines} lines, more than {FUNCTION_LINES_MAX}"


def breaches(root: Path) -> list[str]:
    """One line for each, with the place first."""
    return [*_long_files(root), *_long_functions(root)]


def main(arguments: list[str]) -> int:
    """The exit code: 1 where something has outgrown its room."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2]
    found = breaches(root)
    for line in found:
        sys.stdout.write(f"{line}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
