"""Every dependency is pinned to one version and its contents: without a hash another could be let in."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCKS = (
    "requirements.lock",
    "tests/fuzz/requirements.lock",
    "tools/packaging/requirements.lock",
    "tools/supply/requirements.lock",
    "bench/drishti_requirements.lock",
)


def loose_crates(text: str) -> list[str]:
    """Crates of others that do not come from the registry with a checksum."""
    packages = tomllib.loads(text)["package"]
    return [
        f"Cargo.lock: {one['name']} {one['version']} has no registry and checksum"
        for one in packages
        if not one["name"].startswith("leadline-")
        and not (one.get("source", "").startswith("registry+") and one.get("checksum"))
    ]


def loose_packages(name: str, text: str) -> list[str]:
    """Lines of a lock file of pip that name no one version, or no hash."""
    wrong = []
    for entry in text.replace("\\\n", " ").splitlines():
        line = entry.strip()
        if line and not line.startswith("#") and not ("==" in line and "--hash=sha256:" in line):
            wrong.append(f"{name}: {line[:60]}")
    return wrong


def main() -> int:
    """Print what is loose."""
    wrong = loose_crates((ROOT / "Cargo.lock").read_text(encoding="utf-8"))
    for name in LOCKS:
        wrong += loose_packages(name, (ROOT / name).read_text(encoding="utf-8"))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
