"""Runs the tests that a change of files touches: `make test-for FILES="python/leadline/units.py crates/bpf"`.

A test file is touched by a module of leadline that it imports, or that what it imports imports: two steps, as
three reach nearly every test. A table counts as changing the modules that read it. Tests that import little
(those of the command line) are touched by a verb's file when they contain its name. All tests are touched by
a package whose name is part of theirs. Rust is touched by crate. It is a first look, not `make test`.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "leadline"
STEPS = 2  # of imports between a changed module and what a test imports
# Tests of what every crate ends in: the extension, in which Python reaches the engine.
EXTENSION = "tests/unit/test_core_*.py"


def imported(file: Path) -> set[str]:
    """The names that a file imports anywhere, `a.b` and `a.b.c` for `from a.b import c`."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def module_of(file: Path) -> str:
    """`leadline.a.b` of python/leadline/a/b.py, `leadline.a` of its `__init__.py`."""
    parts = file.relative_to("python").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def near(modules: Iterable[str]) -> set[str]:
    """These modules and those that import them within STEPS."""
    graph = grimp.build_graph(PACKAGE)
    found = edge = {module for module in modules if module in graph.modules}
    for _ in range(STEPS):
        edge = {importer for module in edge for importer in graph.find_modules_that_directly_import(module)}
        found = found | edge
    return found


def readers(data: Path) -> list[Path]:
    """The modules that may read a table of the package: those that name it, and those beside or above it."""
    modules = [file.relative_to(ROOT) for file in (ROOT / "python" / PACKAGE).rglob("*.py")]
    folders = (data.parent, data.parent.parent)
    return [file for file in modules if file.parent in folders or data.name in (ROOT / file).read_text()]


def touched(files: Sequence[Path], tests: Sequence[Path]) -> list[Path]:
    """Which of the test files these files of the repository touch."""
    package = [file for file in files if file.parts[:2] == ("python", PACKAGE)]
    python = [file for file in package if file.suffix == ".py"]
    read = {reader for file in package if file not in python for reader in readers(file)}
    rooms = {file.parts[2].removesuffix(".py") for file in package}
    modules = near({*map(module_of, python), *map(module_of, read)})
    words = {file.name for file in files if file not in python} | {
        f'"{file.stem.replace("_", " ")}' for file in python if "cli" in file.parts
    }
    return [
        test
        for test in tests
        if test in files
        or imported(ROOT / test) & modules
        or any(word in (ROOT / test).read_text() for word in words)
        or rooms & set(test.stem.split("_"))
    ]


def crates(files: Sequence[Path]) -> set[str]:
    """Names of the packages of Rust that these files are part of."""
    return {
        f"leadline-{file.parts[1]}" for file in files if file.parts[0] == "crates" and len(file.parts) > 1
    }


def main(names: Sequence[str]) -> int:
    """Run what these files touch; 0 where all passed, 2 where a file is not there."""
    files = [Path(name).resolve() for name in names]
    lost = [name for name, file in zip(names, files, strict=True) if not file.exists()]
    if lost or not files:
        print(
            f"there is no file {lost[0]}" if lost else 'name files: make test-for FILES="A B"',
            file=sys.stderr,
        )
        return 2
    below = [file.relative_to(ROOT) for file in files]
    codes = [
        subprocess.run(
            ["cargo", "test", "--quiet", "--locked", "--package", name], cwd=ROOT, check=False
        ).returncode
        for name in sorted(crates(below))
    ]
    tests = sorted(file.relative_to(ROOT) for file in (ROOT / "tests").glob("*/test_*.py"))
    chosen = touched(below, tests)
    if crates(below):
        chosen += [file.relative_to(ROOT) for file in ROOT.glob(EXTENSION)]
    print(f"{len(chosen)} of {len(tests)} files of tests: {' '.join(map(str, chosen))}", flush=True)
    if chosen:
        command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", *map(str, chosen)]
        codes.append(subprocess.run(command, cwd=ROOT, check=False).returncode)
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
