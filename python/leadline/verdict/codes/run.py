"""Doubts about the run itself: samples lost, a host that is emulated, a replay that went otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.model import Code


def _events_lost(case: Case) -> Iterator[Code]:
    """Samples that were due and were not taken, or not kept."""
    kind = catalogue()["events_lost"]
    limit = kind.thresholds
    for trial in case.good:
        lost, due = trial.samples_missed or 0, trial.samples_due or 0
        if lost >= limit["samples"] and lost >= limit["share"] * due:
            yield kind.fire(
                f"the observers took {due - lost} of {due} samples that were due in {trial.trial}"
            )
            return


def _emulated_host(case: Case) -> Iterator[Code]:
    if case.emulation:
        yield catalogue()["emulated_host"].fire(case.emulation)


def _replay_differs(case: Case) -> Iterator[Code]:
    kind = catalogue()["replay_differs"]
    for evidence in case.work.differs(case, kind.thresholds):
        yield kind.fire(evidence)


RULES: tuple[Rule, ...] = (_events_lost, _emulated_host, _replay_differs)
