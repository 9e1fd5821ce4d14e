"""A share is measured: what causes are ordered by has no constant in it, and no factor that somebody chose.

`python tools/house/shares.py [ROOT]` prints every breach and exits with 1 where there is one. The one number
that an expression may have is the 1 of `1 - x`. Functions are refused, too: `least` and `greatest` pass
over what was not observed, so that `least(NULL, 1)` would be 100 %, and coalesce makes a number of it. A
threshold (`$name`) belongs to the condition, not to the share.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML

_TABLES = ("verdict/diagnosis/table/*.yaml", "watch/causes.yaml")
_REST = re.compile(r"(?<![\w.*/+-])1 - ")  # the 1 of `1 - x`
_WRONG = {
    r"(?<![\w.])\d+(?:\.\d+)?": "a number",
    r"\$\w+": "a threshold",
    r"\w+\s*\(": "a function",
}


def _complaint(share: object) -> str:
    """What is wrong with an expression, or nothing."""
    text = _REST.sub("", str(share))
    for pattern, what in _WRONG.items():
        found = re.search(pattern, text)
        if found is not None:
            return f"{what}, {found.group().strip()}"
    return ""


def breaches(root: Path) -> Iterator[str]:
    """One line for each, with the place first."""
    package = root / "python" / "leadline"
    for path in sorted(file for table in _TABLES for file in package.glob(table)):
        for name, entry in YAML(typ="safe").load(path.read_text()).items():
            wrong = _complaint(entry["share"]) if "share" in entry else ""
            if wrong:
                place = f"{path.relative_to(root)}: {name}"
                yield f"{place}: its share has {wrong}: measure it, or leave it out and say what would"


if __name__ == "__main__":
    found = list(breaches(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(found))
    sys.exit(1 if found else 0)
