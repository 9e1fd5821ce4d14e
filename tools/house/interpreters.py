"""One module starts Python processes: `leadline.interpreter`. Another way could run what a directory holds.

`python tools/house/interpreters.py [PACKAGE]` prints each other place that names the running interpreter
(`sys.executable`) or gives a Python `-m` and a module, and ends with 1 where there is one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python" / "leadline"
_THE_ONE = Path("interpreter.py")
_MODULE = re.compile(r"(leadline|distributed|dask)(\.|\Z)")
_COMMAND = re.compile(r"\s*-m (leadline|distributed|dask)\b")
_REMEDY = "start it by leadline.interpreter"


def breaches(package: Path) -> Iterator[str]:
    """`FILE:LINE: what` for every other way to start Python."""
    for file in sorted(package.rglob("*.py")):
        if file.relative_to(package) == _THE_ONE:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            what = _breach(node)
            if what:
                yield f"{file}:{node.lineno}: {what}: {_REMEDY}"  # type: ignore[attr-defined]


def _breach(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute) and node.attr == "executable" and _is_sys(node.value):
        return "sys.executable"
    if isinstance(node, ast.ImportFrom) and node.module == "sys":
        return "sys.executable" if any(one.name == "executable" for one in node.names) else ""
    if isinstance(node, ast.List | ast.Tuple) and _runs_a_module(node.elts):
        return "-m and a module"
    if isinstance(node, ast.Call) and _runs_a_module(node.args):
        return "-m and a module"
    if isinstance(node, ast.JoinedStr) and any(
        _COMMAND.match(text) for one in node.values if (text := _text(one)) is not None
    ):
        return "a line of a shell with -m and a module"
    return ""


def _is_sys(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "sys"


def _runs_a_module(words: Sequence[ast.expr]) -> bool:
    return any(
        _text(one) == "-m" and (module := _text(two)) is not None and _MODULE.match(module) is not None
        for one, two in pairwise(words)
    )


def _text(node: ast.expr) -> str | None:
    """The text of a constant, or the beginning of one that is put together."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def main(arguments: list[str]) -> int:
    """Prints what breaks the rule."""
    found = list(breaches(Path(arguments[0]) if arguments else PACKAGE))
    for one in found:
        print(one)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
