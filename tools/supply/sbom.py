"""One bill of materials (CycloneDX) of all that leadline is made of: crates, Python packages, JavaScript.

    python tools/supply/sbom.py OUT     with cargo-cyclonedx and cyclonedx-py on PATH

Each part is made by the tool of its own kind from lock files; here they are joined and checked by the schema.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from notices import PLACE, licences

ROOT = Path(__file__).parents[2]
_CRATES = ("python", "tracer", "bpf", "engine", "record")
_SPEC = "1.5"


def of_rust() -> list[dict[str, Any]]:
    """One document for each of our crates, written beside it by the tool and taken away again."""
    options = ["--format", "json", "--spec-version", _SPEC, "--override-filename", "sbom", "--quiet"]
    subprocess.run(["cargo-cyclonedx", "cyclonedx", *options], cwd=ROOT, check=True)
    found = []
    for name in _CRATES:
        path = ROOT / "crates" / name / "sbom.json"
        found.append(json.loads(path.read_text(encoding="utf-8")))
        path.unlink()
    return found


def of_python() -> dict[str, Any]:
    """What the lock file names."""
    words = [
        "cyclonedx-py",
        "requirements",
        "--spec-version",
        _SPEC,
        "--output-reproducible",
        "requirements.lock",
    ]
    return dict(
        json.loads(subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    )


def of_pages() -> list[dict[str, Any]]:
    """The packages whose notices every page carries."""
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:npm/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:npm/{name}@{version}",
            "licenses": [{"license": {"id": licence}}],
        }
        for name, version, licence in licences(PLACE.read_text(encoding="utf-8"))
    ]


def joined() -> dict[str, Any]:
    """All in one, each component once."""
    rust, python = of_rust(), of_python()
    components: dict[str, dict[str, Any]] = {}
    dependencies: dict[str, set[str]] = {}
    for document in (*rust, python):
        own = document["metadata"].get("component")
        for component in (*([own] if own else ()), *document.get("components", ())):
            components.setdefault(component["bom-ref"], component)
        for one in document.get("dependencies", ()):
            dependencies.setdefault(one["ref"], set()).update(one.get("dependsOn", ()))
    components |= {component["bom-ref"]: component for component in of_pages()}
    version = next(document for document in rust)["metadata"]["component"]["version"]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": _SPEC,
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "leadline",
                "name": "leadline",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": list(components.values()),
        "dependencies": [
            {"ref": "leadline", "dependsOn": sorted(components)},
            *(
                {"ref": ref, "dependsOn": sorted(found & components.keys())}
                for ref, found in dependencies.items()
                if ref in components
            ),
        ],
    }


def main(out: str) -> int:
    """Write it, valid."""
    text = json.dumps(joined(), indent=1)
    wrong = JsonStrictValidator(SchemaVersion.from_version(_SPEC)).validate_str(text)
    if wrong is not None:
        print(f"the bill of materials is not valid: {str(wrong)[:500]}", file=sys.stderr)
        return 1
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    Path(out).write_text(text + "\n", encoding="utf-8")
    print(f"{out}: {len(json.loads(text)['components'])} components, CycloneDX {_SPEC}, valid")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
