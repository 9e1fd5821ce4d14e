"""No sentence without a check: each has a name of its own, and a checker of that name in `tests/sentences`.

`python tools/house/sentences.py [ROOT]` prints every breach and exits with 1 where there is one. What is said
of traces by rules is named after the rule.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML

_RULES = "tracing/rules.yaml"
_PREFIX = "rule_"


def _said(root: Path) -> Iterator[tuple[str, str]]:
    """(name, place) of every sentence that the package makes."""
    package = root / "python" / "leadline"
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "Statement":
                continue
            place = f"{path.relative_to(root)}:{node.lineno}"
            given = next((word.value for word in node.keywords if word.arg == "says"), None)
            if isinstance(given, ast.Constant):
                yield str(given.value), place
            elif isinstance(given, ast.JoinedStr) and getattr(given.values[0], "value", "") == _PREFIX:
                rules = YAML(typ="safe").load((package / _RULES).read_text())
                yield from ((f"{_PREFIX}{name}", place) for name in rules)
            else:
                yield "", place


def _checked(root: Path) -> set[str]:
    """The names that `@checks` is given, and those that are made of rules."""
    found: set[str] = set()
    for path in (root / "tests" / "sentences").glob("check_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "checks":
                found |= {str(word.value) for word in node.args if isinstance(word, ast.Constant)}
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "RULES":
                found |= {f"{_PREFIX}{name}" for name in ast.literal_eval(node.value)}
    return found


def breaches(root: Path) -> list[str]:
    """One line for each, with the place first."""
    said = list(_said(root))
    checked, count = _checked(root), Counter(name for name, _ in said)
    found = []
    for name, place in said:
        if not name:
            found.append(f"{place}: this sentence has no name that is a literal (says=)")
        elif count[name] > 1:
            found.append(f"{place}: {name!r} names several sentences")
        elif name not in checked:
            found.append(f"{place}: {name!r} has no checker in tests/sentences")
    gone = sorted(checked - count.keys())
    return [*found, *(f"tests/sentences: {name!r} is said nowhere" for name in gone)]


if __name__ == "__main__":
    found = breaches(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(found))
    sys.exit(1 if found else 0)
