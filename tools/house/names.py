"""One name, one class: every class of the package is named once, so that a name says which one is meant.

Names with an underscore in front count, too. `python tools/house/names.py [FOLDER]` prints each name that
several classes have, with all their places, and fails where there is one.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python" / "leadline"


def duplicates(folder: Path) -> dict[str, list[str]]:
    """Each name of several classes below `folder`, with its places."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(f"{path.relative_to(folder)}:{node.lineno}")
    return {name: places for name, places in sorted(found.items()) if len(places) > 1}


def main(arguments: list[str]) -> int:
    """Exit code 1 where a name is taken twice."""
    found = duplicates(Path(arguments[0]) if arguments else PACKAGE)
    for name, places in found.items():
        print(f"{len(places)} classes are called {name}: {', '.join(places)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
