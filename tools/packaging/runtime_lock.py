"""The part of requirements.lock that an installed leadline needs, by what the lock says of each."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SAME = re.compile(r"[-_.]+")  # names that differ in these alone are one (PEP 503)
_NAME = re.compile(r"([A-Za-z0-9._-]+)==")


def plain(name: str) -> str:
    """A package's name as all spellings of it are compared."""
    return _SAME.sub("-", name).lower()


def entries(lock: str) -> Iterator[tuple[str, str, set[str]]]:
    """Of each package of a lock file: its name, its lines, and the packages that need it."""
    for block in re.split(r"(?m)^(?=[A-Za-z0-9])", lock):
        if found := _NAME.match(block):
            comments = [line.strip(" #") for line in block.splitlines() if line.strip().startswith("#")]
            yield (
                plain(found[1]),
                block,
                {plain(word.removeprefix("via").strip()) for word in comments} - {""},
            )


def needed(lock: str, wanted: set[str]) -> str:
    """The lines of what is `wanted`, and of all that those need. Raises ValueError where one is not there."""
    known = list(entries(lock))
    if missing := wanted - {name for name, _, _ in known}:
        raise ValueError(f"the lock file lacks {', '.join(sorted(missing))}: run make lock")
    while more := {name for name, _, parents in known if name not in wanted and parents & wanted}:
        wanted = wanted | more
    return "".join(block for name, block, _ in known if name in wanted)


def main() -> None:
    """Print it for the package's own dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {plain(re.split(r"[^A-Za-z0-9._-]", one, maxsplit=1)[0]) for one in project["dependencies"]}
    sys.stdout.write(needed((ROOT / "requirements.lock").read_text(encoding="utf-8"), wanted))


if __name__ == "__main__":
    main()
