"""What limits a diagnosis: gaps in what was seen, daemons that began anew, a single trial."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from leadline.store.tables import TrialRow

_GAPS = 0.2  # of the samples that were due
_BEGAN_ANEW = "its daemon restarted"
_OTHERS = "not observable: read from"


def notes_of(trials: Sequence[TrialRow], sampled: Sequence[int]) -> tuple[str, ...]:
    """In words, for who reads the diagnosis; `sampled` is how many samples each trial has."""
    return tuple(_notes(trials, sampled))


def _notes(trials: Sequence[TrialRow], sampled: Sequence[int]) -> Iterator[str]:
    if len(trials) == 1:
        yield "One trial only: how much it scatters is not known."
    blind = [trial.trial for trial, count in zip(trials, sampled, strict=True) if not count]
    if blind:
        yield f"Nothing was sampled in {_named(blind)}: judged by totals alone."
    gaps = [
        trial.trial
        for trial in trials
        if trial.samples_due and (trial.samples_missed or 0) >= _GAPS * trial.samples_due
    ]
    if gaps:
        yield f"A fifth of the samples or more is missing in {_named(gaps)}."
    reasons = {trial.trial: list(json.loads(trial.reasons or "{}").values()) for trial in trials}
    anew = [name for name, said in reasons.items() if any(_BEGAN_ANEW in str(words) for words in said)]
    if anew:
        yield f"A daemon restarted in {_named(anew)}: what its counters tell of that time is left out."
    others = [name for name, said in reasons.items() if any(str(words).startswith(_OTHERS) for words in said)]
    if others:
        words = "answered at its end than at its start: their counters are left out"
        yield f"In {_named(others)} other daemons {words}."


def _named(trials: Sequence[str]) -> str:
    shown = ", ".join(trials[:3])
    return shown if len(trials) <= 3 else f"{shown} and {len(trials) - 3} more trials"
