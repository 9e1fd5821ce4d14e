"""Holds the locked Python packages against known vulnerabilities; the exit code is 1 where one has some.

    python tools/supply/advisories.py PIP_AUDIT [DATABASE]

DATABASE is a copy of the Python Packaging Authority's advisory database (its folder `vulns`). Without it
pip-audit asks the package registry. What nobody answered for is said so: it is not "no advisory".
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from ruamel.yaml import YAML

LOCK = Path(__file__).parents[2] / "requirements.lock"


def locked() -> dict[str, Version]:
    """The packages of the lock file."""
    lines = [line.split()[0] for line in LOCK.read_text().splitlines() if "==" in line and line[0].isalnum()]
    return {canonicalize_name(name): Version(text) for name, text in (line.split("==") for line in lines)}


def affects(advisory: dict[str, Any], name: str, version: Version) -> bool:
    """Whether an advisory (OSV) names this version, one by one or by a range."""
    for item in advisory.get("affected") or ():
        if canonicalize_name(item["package"]["name"]) != name:
            continue
        if str(version) in (item.get("versions") or ()):
            return True
        if any(
            _inside(one.get("events") or (), version)
            for one in item.get("ranges") or ()
            if one.get("type") == "ECOSYSTEM"
        ):
            return True
    return False


def _inside(events: list[dict[str, str]], version: Version) -> bool:
    inside = False
    for event in events:
        for kind, text in event.items():
            try:
                bound = Version("0") if text == "0" else Version(text)
            except InvalidVersion:
                continue
            if kind == "introduced" and version >= bound:
                inside = True
            if (kind == "fixed" and version >= bound) or (kind == "last_affected" and version > bound):
                inside = False
    return inside


def from_database(database: Path, packages: dict[str, Version]) -> Iterator[str]:
    """Advisories of a stored database that hold."""
    yaml = YAML(typ="safe")
    for name, version in packages.items():
        for path in sorted((database / name).glob("*.yaml")):
            advisory = yaml.load(path.read_text(encoding="utf-8"))
            if not advisory.get("withdrawn") and affects(advisory, name, version):
                yield f"{name} {version}: {advisory['id']} ({', '.join(advisory.get('aliases') or ())})"


def from_registry(pip_audit: str) -> tuple[list[str], list[str]]:
    """What pip-audit found, and the packages that the registry gave no answer for."""
    words = ["--require-hashes", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
    done = subprocess.run([pip_audit, "-r", str(LOCK), *words], capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(f"pip-audit failed: {done.stderr.strip()}")
    found = json.loads(done.stdout)["dependencies"]
    unanswered = [one["name"] for one in found if "skip_reason" in one]
    held = [(one, bad) for one in found for bad in one.get("vulns", ())]
    return [f"{one['name']} {one['version']}: {bad['id']}" for one, bad in held], unanswered


def main(pip_audit: str, database: str = "") -> int:
    """Print what was found and what could not be asked."""
    packages = locked()
    unanswered: list[str] = []
    if database:
        place = Path(database)
        place = place / "vulns" if (place / "vulns").is_dir() else place
        if not any(place.glob("*/*.yaml")):
            raise SystemExit(f"{database} is no copy of the advisory database: it has no NAME/*.yaml")
        found = list(from_database(place, packages))
    else:
        found, unanswered = from_registry(pip_audit)
    for line in found:
        print(line)
    print(f"Python: {len(found)} advisories hold of {len(packages) - len(unanswered)} packages asked about")
    if unanswered:
        print(
            f"NOT CHECKED: advisories of {len(unanswered)} Python packages: the registry does not answer"
            " for them; give a copy of the database: make audit PYPA_DB=DIR"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
