"""What the tracer in the kernel gave of a subject's calls, kept with what the subject said of them itself.

The kernel's side works in the host's own process namespace only. What becomes of its numbers is shown
anywhere by what it gave once; `python tests/recorded_bpf.py` records it anew (root).
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "data" / "trace" / "bpf"
SCENARIOS = ("data", "copies", "forks")
_BYTES = "base64"


def recorded(scenario: str) -> tuple[str, Path, dict[str, Any]]:
    """What the subject said, the directory in which it worked, and what the kernel's side gave."""
    kept = json.loads((KEPT / f"{scenario}.json").read_text())
    found: dict[str, Any] = _bytes(kept["found"])
    return json.dumps(kept["said"]), Path(kept["place"]), found


def _bytes(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_BYTES}:
            return base64.b64decode(value[_BYTES])
        return {name: _bytes(item) for name, item in value.items()}
    return [_bytes(item) for item in value] if isinstance(value, list) else value


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {name: _text(item) for name, item in value.items()}
    return [_text(item) for item in value] if isinstance(value, list | tuple) else value


def record(scenario: str) -> None:
    """Trace the subject and keep what came of it."""
    from bpf_support import trace

    from leadline.tracing.sources import bpf
    from trace_truth import compiled_c

    given: list[dict[str, Any]] = []
    made = bpf.tables

    def keep(found: dict[str, Any], **options: Any) -> Any:
        given.append(found)
        return made(found, **options)

    with tempfile.TemporaryDirectory() as directory:
        place, said = Path(directory, "place"), Path(directory, "said")
        place.mkdir()
        bpf.tables = keep
        try:
            with said.open("w") as output:
                words = (str(compiled_c("-static")), scenario)
                trace(words, segments_bytes=1 << 20, cwd=place, stdout=output)
        finally:
            bpf.tables = made
        last = json.loads(said.read_text().strip().splitlines()[-1])
        # Whose machine it was is nobody's business.
        text = json.dumps({"said": last, "place": str(place), "found": _text(given[0])})
    KEPT.mkdir(exist_ok=True)
    text = text.replace(directory, "/recorded").replace(str(Path(words[0]).parent), "/subject")
    (KEPT / f"{scenario}.json").write_text(f"{text}\n")


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parent / "integration"))
    for name in SCENARIOS:
        record(name)
