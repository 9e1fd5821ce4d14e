"""How long all tests took when they last ran as a whole: read from what they wrote, not run again."""

from __future__ import annotations

import json

from cost import Places
from sides import ROOT

RECORD = ROOT / "target" / "test-logs" / "all.json"
LIMIT_MIN = 16.0


def tests_took(_places: Places) -> list[str]:
    """The section of results.md."""
    lines = ["## All tests", ""]
    if not RECORD.exists():
        return [
            *lines,
            "NOT_RUN: no whole run of `make test` is on record here; run it, then `make bench`.",
            "",
        ]
    found = json.loads(RECORD.read_text())
    minutes = found["seconds"] / 60
    verdict = "met" if minutes <= LIMIT_MIN else f"**missed** by {minutes - LIMIT_MIN:.0f}"
    phases = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in found["phases"].items())
    return [
        *lines,
        f"`make test` took {minutes:.0f} min on {found['at']}, at most {LIMIT_MIN:g}: {verdict}; one run,",
        f"so that it has no interval; {found['cpu_s']:.0f} s of CPU on {found['processors']} processors.",
        f"Phases, some beside each other: {phases}.",
        "",
    ]
