"""Each mutant changes a text that occurs exactly once: a table that lags behind the code tries nothing."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLES = ROOT / "tests" / "mutants"


def stale(table: Path) -> list[str]:
    """Mutants of a table whose file is gone, or whose text is not there once."""
    wrong = []
    for row in tomllib.loads(table.read_text(encoding="utf-8"))["mutant"]:
        file = ROOT / row["file"]
        found = file.read_text(encoding="utf-8").count(row["old"]) if file.is_file() else 0
        if found != 1:
            wrong.append(f"{table.relative_to(ROOT)}: {row['name']}: its text occurs {found} times")
    return wrong


def main() -> int:
    """Print what lags behind."""
    wrong = [line for table in sorted(TABLES.glob("*.toml")) for line in stale(table)]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
