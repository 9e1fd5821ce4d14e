"""The top-level modules of a crate do not use each other in a circle: there is an order to read them in.

`python tools/house/circles.py [ROOT]` prints circles until taking out a step of each leaves none, a place
for each step with them, and exits with 1 where there is one. Tests do not count: they may reach up.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

# A call, a signal or a fork of the traced program comes upon any part of the tracer: it has one state.
ONE_PIECE = "tracer"
# The path of a module: of a `use`, or in an expression. Braces are followed into their first segments only.
PATH = re.compile(r"\b((?:crate|super)(?:::super)*)::(?:(\w+)|\{([^;]*)\};)")
TESTS = re.compile(r"^#\[cfg\(test\)\]\n(?:pub )?mod \w+ \{.*", re.MULTILINE | re.DOTALL)
TEST_FILES = re.compile(r"^#\[cfg\(test\)\]\n(?:pub )?mod (\w+);", re.MULTILINE)
RE_EXPORT = re.compile(r"^pub use (\w+)::(?:(\w+)|\{([^}]*)\});", re.MULTILINE)
COMMENT = re.compile(r"//.*")

Uses = dict[str, dict[str, str]]


def _code(file: Path) -> str:
    return COMMENT.sub("", TESTS.sub("", file.read_text(encoding="utf-8")))


def _module(file: Path, source: Path) -> tuple[str, ...]:
    """The path of a file's module below the crate's root."""
    parts = file.relative_to(source).with_suffix("").parts
    return parts[:-1] if parts[-1] == "mod" else parts


def _firsts(name: str, braces: str) -> list[str]:
    """The first segments of what a path goes on with: one name, or those in braces that are not nested."""
    if name:
        return [name]
    while (flat := re.sub(r"\{[^{}]*\}?", "", braces)) != braces:
        braces = flat
    return [one.strip().split("::")[0] for one in braces.split(",")]


def uses(source: Path) -> Uses:
    """What each top-level module of a crate uses of the others, with a place for each."""
    root = next(one for name in ("lib.rs", "main.rs") if (one := source / name).exists())
    again = {
        name.strip(): module
        for module, one, several in RE_EXPORT.findall(_code(root))
        for name in (one or several).split(",")
    }
    files = [file for file in sorted(source.rglob("*.rs")) if file != root]
    modules = {_module(file, source)[0] for file in files}
    tests = {
        (*_module(file, source), name)
        for file in files
        for name in TEST_FILES.findall(file.read_text(encoding="utf-8"))
    }
    found: Uses = {module: {} for module in sorted(modules)}
    for file in files:
        module = _module(file, source)
        code = "" if module in tests else _code(file)
        for match in PATH.finditer(code):
            start, name, braces = match.groups()
            if start != "crate" and start.count("super") != len(module):
                continue
            line = code.count("\n", 0, match.start()) + 1
            for first in _firsts(name, braces):
                used = again.get(first, first)
                if used in modules and used != module[0]:
                    found[module[0]].setdefault(used, f"{file.relative_to(source.parent)}:{line}")
    return found


def circles(graph: Mapping[str, Mapping[str, str]]) -> Iterator[list[str]]:
    """A circle, its first module again at the end, until the one step that closes each is taken out."""
    left = {module: set(used) for module, used in graph.items()}
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            circle: list[str] = error.args[1][::-1]
            yield circle
            left[circle[0]].discard(circle[1])
        else:
            return


def breaches(root: Path) -> list[str]:
    """One line for each, with the crate first."""
    found = []
    for source in sorted((root / "crates").glob("*/src")):
        if source.parent.name == ONE_PIECE:
            continue
        graph = uses(source)
        for circle in circles(graph):
            steps = (f"{one} uses {other} ({graph[one][other]})" for one, other in pairwise(circle))
            found.append(f"{source.parent.relative_to(root)}: {', '.join(steps)}")
    return found


def main(arguments: list[str]) -> int:
    """The exit code: 1 where there is a circle."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2]
    found = breaches(root)
    for line in found:
        sys.stdout.write(f"{line}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
