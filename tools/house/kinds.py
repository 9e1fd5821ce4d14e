"""Nobody outside `workloads/` tells kinds of work apart, and no kind imports another: who asks, asks a face.

No `isinstance` of a job, no test of a job's keys or format, no comparison of a kind's name. Prints file:line
of each breach and ends with 1 where there is one. Arguments: directories to look at; none: the package.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "leadline"
ALLOWED = "workloads"
KINDS = frozenset(path.parent.name for path in PACKAGE.glob(f"{ALLOWED}/*/__init__.py"))
_MAY_USE = {"pipeline": ("application",)}  # its clients are an application's copies
_OWNERS = ("cell", "job")  # whose `kind` is that of a work; a token or a column has another


def breaches(source: str) -> Iterator[tuple[int, str]]:
    """Line and words of each place in a file that tells kinds apart."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _is_isinstance_of_job(node):
            yield node.lineno, "isinstance of a job"
        elif isinstance(node, ast.Compare):
            yield from ((node.lineno, words) for words in _compared(node))


def other_kinds(source: str, own: str) -> Iterator[tuple[int, str]]:
    """Line and words of each import of another kind in a file of the kind `own`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".")
            names = [parts[2]] if len(parts) > 2 else [one.name for one in node.names]
            if parts[:2] != ["leadline", ALLOWED]:
                continue
            for name in names:
                if name in KINDS and name not in (own, *_MAY_USE.get(own, ())):
                    yield node.lineno, f"{own} imports {name}"


def _is_isinstance_of_job(call: ast.Call) -> bool:
    named = isinstance(call.func, ast.Name) and call.func.id == "isinstance"
    return named and bool(call.args) and _is_job(call.args[0])


def _compared(node: ast.Compare) -> Iterator[str]:
    sides = (node.left, *node.comparators)
    for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
        if isinstance(operator, ast.In | ast.NotIn) and _is_text(left) and _is_job(right):
            yield "a test of a job's key"
        if _is_kind(left, right) or _is_kind(right, left):
            yield "a comparison of a kind's name"
        if any(_is_format_of_job(side) for side in (left, right)):
            yield "a comparison of a job's format"


def _is_kind(side: ast.expr, other: ast.expr) -> bool:
    """`cell.kind` beside anything, or any `.kind` beside the name of a kind of work."""
    if not isinstance(side, ast.Attribute) or side.attr != "kind":
        return False
    owner = side.value
    name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
    texts = {one.value for one in ast.walk(other) if isinstance(one, ast.Constant)}
    return name in _OWNERS or bool(texts & KINDS)


def _is_job(node: ast.expr) -> bool:
    """`job`, `cell.job` and what else ends so."""
    if isinstance(node, ast.Name):
        return node.id == "job" or node.id.endswith("_job")
    return isinstance(node, ast.Attribute) and node.attr == "job"


def _is_format_of_job(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript):
        return _is_job(node.value) and _says(node.slice, "format")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        return node.func.attr == "get" and _is_job(node.func.value) and _says(node.args[0], "format")
    return False


def _says(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def look(root: Path) -> list[str]:
    """Every breach below a directory, as file:line: words."""
    found = []
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        source = path.read_text(encoding="utf-8")
        if not name.startswith(f"{ALLOWED}/"):
            found += [f"{path}:{line}: {words}" for line, words in breaches(source)]
        elif name.count("/") > 1:
            own = name.split("/")[1]
            found += [f"{path}:{line}: {words}" for line, words in other_kinds(source, own)]
    return found


def main(arguments: list[str]) -> int:
    """Look at the package, or at the directories named."""
    found = [line for root in arguments or [str(PACKAGE)] for line in look(Path(root))]
    for line in found:
        sys.stdout.write(f"{line}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
