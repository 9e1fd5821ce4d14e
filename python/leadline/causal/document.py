"""A profile as JSON (leadline.profile/1): the runs as they were, and what follows from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leadline.analysis.sensitivity import SensitivityFit
from leadline.causal.judge import Elsewhere
from leadline.causal.model import CLASSES, CallSums, CausalProfile, Condition, DelayedRun
from leadline.errors import ResultError
from leadline.foreign import parse_json, read_plain, reading

FORMAT = "leadline.profile/1"
_BYTES_MAX = 64 << 20


def to_document(
    profile: CausalProfile, fit: SensitivityFit | None, elsewhere: Elsewhere | None = None
) -> dict[str, Any]:
    """All of it; `classes` and `run` are null where there are too few blocks."""
    return {
        "format": FORMAT,
        **profile.details,
        "program": list(profile.program),
        "below": list(profile.below),
        "seed": profile.seed,
        "delays_ns": list(profile.delays_ns),
        "asked": list(profile.asked),
        "called": list(profile.classes),
        "blocks_asked": profile.blocks_asked,
        "blocks": len(profile.blocks()),
        "ended": profile.ended,
        "cautions": list(profile.cautions),
        "run": None if fit is None else asdict(fit.run),
        "classes": None if fit is None else {name: _class(profile, fit, name) for name in profile.classes},
        "elsewhere": None if elsewhere is None else asdict(elsewhere),
        "first": _run(profile.first),
        "runs": [_run(run) for run in profile.runs],
    }


def to_text(document: Mapping[str, Any]) -> str:
    """The document as it is printed and stored."""
    return json.dumps(document, indent=1, allow_nan=False)


def _class(profile: CausalProfile, fit: SensitivityFit, name: str) -> dict[str, Any]:
    found = fit.classes[name]
    return {
        "calls": profile.calls(name),
        "latency_s": profile.latency_s(name),
        "slope": asdict(found.slope),
        "by_delay": [{"delay_s": delay_s, "slope": asdict(slope)} for delay_s, slope in found.by_delay],
        "bends": found.bends,
    }


def _run(run: DelayedRun) -> dict[str, Any]:
    sums = {name: asdict(one) for name, one in run.sums.items()}
    return {"block": run.block, **asdict(run.condition), "run_s": run.run_s, "sums": sums}


def read_profile(path: Path) -> CausalProfile:
    """A profile that was stored. Raises ResultError where it is none."""
    with reading(path, "name a file that `leadline profile` made"):
        found = parse_json(read_plain(path, _BYTES_MAX))
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ResultError(
                f"{path} is no profile of the format {FORMAT}", "name a file that `leadline profile` made"
            )
        classes = tuple(_known(name) for name in found["called"])
        return CausalProfile(
            program=tuple(map(str, found["program"])),
            below=tuple(map(str, found["below"])),
            seed=int(found["seed"]),
            delays_ns=tuple(map(int, found["delays_ns"])),
            asked=tuple(_known(name) for name in found["asked"]),
            classes=classes,
            first=_read_run(found["first"]),
            runs=tuple(_read_run(run) for run in found["runs"]),
            blocks_asked=int(found["blocks_asked"]),
            ended=found["ended"] if found["ended"] in ("whole", "time") else "interrupted",
            cautions=tuple(map(str, found["cautions"])),
            details={name: str(found[name]) for name in ("created", "version") if name in found},
        )


def _known(name: str) -> str:
    if name not in CLASSES:
        raise ValueError(f"no class is called {name!a}")
    return str(name)


def _read_run(found: Mapping[str, Any]) -> DelayedRun:
    delayed = found["delayed"]
    sums = {
        _known(name): CallSums(int(one["calls"]), float(one["own_s"]), float(one["waited_s"]))
        for name, one in found["sums"].items()
    }
    condition = Condition(None if delayed is None else _known(delayed), int(found["delay_ns"]))
    return DelayedRun(int(found["block"]), condition, float(found["run_s"]), sums)
