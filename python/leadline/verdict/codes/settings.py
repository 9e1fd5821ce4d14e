"""Whether settings that a trial was to be measured with were in force, by what was read back around it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.model import Code


def _not_in_force(case: Case) -> Iterator[Code]:
    """One trial is enough: its figures are of the other state, and blocks pair them with the wrong one."""
    for trial in case.good:
        said: Mapping[str, Any] = json.loads(trial.states) if trial.states else {}
        for moment in ("before", "after"):
            for name, read in said.get(moment, {}).items():
                if read["found"] is None:
                    why = read.get("reason") or "no reason is known"
                    yield _fired(f"{moment} {trial.trial} {name} could not be read: {why}")
                    return
                if read["found"] != read["wanted"]:
                    yield _fired(f"{moment} {trial.trial} {name} was {read['found']}, not {read['wanted']}")
                    return


def _fired(evidence: str) -> Code:
    return catalogue()["setting_not_in_force"].fire(evidence)


RULES: tuple[Rule, ...] = (_not_in_force,)
